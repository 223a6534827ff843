"""New identifiers: the only place that draws random ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable

NewId = Callable[[], str]
"""A source of unique ids; tests inject a counter."""


def new_id() -> str:
    """Return a random id of 32 hexadecimal digits."""
    return uuid.uuid4().hex
