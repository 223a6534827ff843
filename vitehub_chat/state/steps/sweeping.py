"""Sweeping: finding what nobody runs any more."""

from __future__ import annotations

from typing import Final

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.tables import Transaction

FOUND_AT_ONCE: Final = 100
PURGED_AT_ONCE: Final = 200


@attrs.frozen
class Lines:
    """Some lines whose lock nobody holds.

    Attributes:
        lock_keys: Their locks, by arrival.
        next: The position behind which there may be more, or None.
    """

    lock_keys: tuple[str, ...]
    next: int | None


def find_lines(tx: Transaction, now: int, *, agent: str | None, above: int) -> Lines:
    """Return lines of an agent that have entries and a free lock.

    They may change at once: what is done about one is decided in a step of its own.
    """
    found = tx.entries.stalled(now, above, FOUND_AT_ONCE)
    mine = (e.lock_key for e in found if ConversationKey.decode(e.conversation).agent == agent)
    is_more = len(found) == FOUND_AT_ONCE
    return Lines(tuple(dict.fromkeys(mine)), found[-1].position if is_more else None)


def purge(tx: Transaction, now: int) -> int:
    """Delete some entries whose time to be kept is over."""
    return tx.entries.purge(now, PURGED_AT_ONCE)
