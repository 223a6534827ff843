"""Shrinking: one row at a time where those that were asked for are too large for one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from vitehub_chat.errors import StateError

T = TypeVar("T")


async def shrink_once(read: Callable[[int], Awaitable[T]], limit: int) -> T:
    """Return what a read of `limit` rows returns, or of one row if that is too large an answer.

    Raises:
        StateError: What the read raised; `too_large` if even that is.
    """
    try:
        return await read(limit)
    except StateError as error:
        if error.code != "too_large" or limit <= 1:
            raise
    return await read(1)
