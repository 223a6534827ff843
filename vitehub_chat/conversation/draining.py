"""Draining: how many turns ran in a row under one lock until nothing waited for it any more."""

from __future__ import annotations

from vitehub_chat.conversation import events
from vitehub_chat.state.values import Grant


class Drains:
    """Counts the turns of lines that this process drains; usable from several event loops."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def go_on(self, ended: Grant) -> None:
        """Count a turn after which this process runs the next one of the line."""
        self._turns[ended.lock_key] = self._turns.get(ended.lock_key, 0) + 1

    def stop(self, last: Grant, *, is_empty: bool) -> None:
        """Forget a line, and tell of one that is empty after more than one turn."""
        turns = self._turns.pop(last.lock_key, 0) + 1
        if is_empty and turns > 1:
            events.queue_drained(turns=turns, turn_id=last.ticket_id)
