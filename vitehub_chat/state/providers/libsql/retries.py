"""Retries: another attempt where it cannot do harm, after a pause that grows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vitehub_chat.errors import ChatError, StateUnavailableError
from vitehub_chat.model.ids import pick
from vitehub_chat.state.providers.libsql.failures import AttemptError

T = TypeVar("T")

FIRST_PAUSE_MS: Final = 50
LONGEST_PAUSE_MS: Final = 2000


async def repeat(
    attempt: Callable[[], Awaitable[T]], *, seconds: float, writes: bool, idempotent: bool
) -> T:
    """Return what an attempt returns, as soon as one does not fail.

    Cancelling it ends the attempts, so that a caller with a deadline waits no longer than that.

    Args:
        attempt: What to do; what fails and may be repeated raises `AttemptError`.
        seconds: How long after the first attempt another one begins at most.
        writes: Whether it may write, for the outcome in an error.
        idempotent: Whether doing it twice is as good as once.

    Raises:
        ChatError: The one of the last failure.
    """
    time = asyncio.get_running_loop().time
    end = time() + seconds
    count, is_unknown = 0, False
    while True:
        try:
            return await attempt()
        except AttemptError as failure:
            count += 1
            is_unknown = is_unknown or (writes and failure.repeat == "idempotent")
            left = end - time()
            if left <= 0 or not _may_repeat(failure, idempotent=idempotent):
                raise _final(failure.error, is_unknown=is_unknown)  # noqa: B904  it has its cause
            pause = 0.0 if failure.at_once and count == 1 else _pause(count)
        await asyncio.sleep(min(pause, left))


def _may_repeat(failure: AttemptError, *, idempotent: bool) -> bool:
    return failure.repeat == "always" or (idempotent and failure.repeat == "idempotent")


def _pause(count: int) -> float:
    """Return a pause in seconds by chance, so that those who failed together come back apart."""
    longest = min(FIRST_PAUSE_MS * 2 ** min(count - 1, 10), LONGEST_PAUSE_MS)
    return pick(range(longest + 1)) / 1000


def _final(error: ChatError, *, is_unknown: bool) -> ChatError:
    if isinstance(error, StateUnavailableError):
        # What an earlier attempt did counts, and a read writes nothing.
        error.outcome = "unknown" if is_unknown else "not_written"
    return error
