"""Mutants: ways to break the provider in memory, and the check that notices each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Mutant:
    """One way to break it.

    Attributes:
        name: What is wrong with it.
        target: The class or module that is changed.
        attribute: What of it is replaced.
        replace: Makes the broken one from the right one.
        caught_by: The check that fails.
    """

    name: str
    target: object
    attribute: str
    replace: Callable[[Any], Any]
    caught_by: str
