"""New identifiers: the only place that draws random ones."""

from __future__ import annotations

import random
import secrets
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
NewId = Callable[[], str]
"""A source of unique ids; tests inject a counter."""


def new_id() -> str:
    """Return a random id of 32 hexadecimal digits."""
    return uuid.uuid4().hex


def new_token() -> str:
    """Return a random secret of 32 bytes, as text that can be part of a URL."""
    return secrets.token_urlsafe(32)


def pick(choices: Sequence[T]) -> T:
    """Return one of some choices by chance."""
    return random.choice(choices)  # noqa: S311 - nothing depends on it
