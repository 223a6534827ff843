"""Running: whether turns of a conversation or of a session are under way."""

from __future__ import annotations

from vitehub_chat.errors import ChatBusyError
from vitehub_chat.state.records import EntryRecord
from vitehub_chat.state.steps.granting import is_attended, is_expired, live_lock
from vitehub_chat.state.steps.scopes import Scope, entries_in
from vitehub_chat.state.tables import Transaction


def is_running(tx: Transaction, scope: Scope, now: int) -> bool:
    """Carry out `TurnStore.running`."""
    return any(_is_active(tx, entry, now) for entry in entries_in(tx, scope))


def check_at_rest(
    tx: Transaction,
    scope: Scope,
    now: int,
    *,
    ignores_waiting: bool = False,
    ignores_run: str | None = None,
) -> None:
    """Refuse to go on while a turn is under way.

    Raises:
        ChatBusyError: One is (`turn_in_progress`).
    """
    for entry in entries_in(tx, scope):
        if ignores_waiting and entry.state == "waiting":
            continue
        if ignores_run is not None and entry.run_ticket_id == ignores_run:
            continue
        if _is_active(tx, entry, now):
            raise ChatBusyError("a turn of this conversation is running", code="turn_in_progress")


def _is_active(tx: Transaction, entry: EntryRecord, now: int) -> bool:
    """Tell whether an entry runs, or waits and somebody will run it."""
    lock = live_lock(tx, entry.lock_key, now)
    if entry.state == "waiting":
        return not is_expired(entry, now) and (lock is not None or is_attended(entry, now))
    return lock is not None and lock.ticket_id == entry.run_ticket_id
