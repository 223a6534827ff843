"""Unread: stored rows that the window did not even have to read."""

from __future__ import annotations

import attrs

from vitehub_chat.agent.agent import Agent
from vitehub_chat.conversation.conversation import MAX_PAGE, Conversation
from vitehub_chat.conversation.places import find_place
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, SelectionEntry, SelectionReason
from vitehub_chat.model.rows import Row


@attrs.frozen(kw_only=True)
class Unread:
    """Rows that a call does not see and did not read.

    Attributes:
        entries: The newest of them with the reason, ascending.
        below_seq: Rows below this number are there too, but not among the entries; None if none.
    """

    entries: tuple[SelectionEntry, ...] = ()
    below_seq: int | None = None


async def find_unread(agent: Agent, request: TurnRequest, prepared: PreparedInvocation) -> Unread:
    """Return the stored rows of the conversation that the selection does not tell about.

    A window over supplied messages (`source="thread"`) uses no stored row, so there are none.
    """
    state = await agent.runtime().open_state()
    window = agent.policy.window if request.window is None else request.window
    if state is None or (isinstance(window, HistoryWindow) and window.source == "thread"):
        return Unread()
    place = find_place(agent.name, request, agent.policy, has_state=True)
    page = await Conversation(state, place.conversation).history(limit=MAX_PAGE)
    told = {entry.message_id for entry in prepared.selection}
    rows = [row for row in page.items if row.message.id not in told]
    has_window = isinstance(window, HistoryWindow)
    has_sessions = agent.policy.sessions is not None
    full: SelectionReason = _why_full(prepared) if has_window else "no_window"
    rolled_through = _rolled_through(prepared)
    return Unread(
        entries=tuple(
            _entry(row, "other_session")
            if has_sessions and row.session_id != prepared.session_id
            else _entry(row, _why(row, full, rolled_through))
            for row in rows
        ),
        below_seq=page.items[0].seq if page.older_cursor is not None else None,
    )


def _why(row: Row, full: SelectionReason, rolled_through: int) -> SelectionReason:
    if not row.is_shown:
        return "not_shown"
    return "rolled" if row.seq <= rolled_through else full


def _rolled_through(prepared: PreparedInvocation) -> int:
    budget = prepared.context_budget
    return 0 if budget is None else budget.summary_through_seq or 0


def _why_full(prepared: PreparedInvocation) -> SelectionReason:
    is_cut_by_age = any(entry.reason == "too_old" for entry in prepared.selection)
    return "too_old" if is_cut_by_age else "over_count"


def _entry(row: Row, reason: SelectionReason) -> SelectionEntry:
    return SelectionEntry(row.message.id, row.seq, row.message.role, kept=False, reason=reason)
