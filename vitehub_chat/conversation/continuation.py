"""Continuation: a stored answer that a turn goes on with, in its place."""

from __future__ import annotations

import attrs

from vitehub_chat.conversation.continuing import (
    brings_decisions,
    brings_nothing_new,
    call_ids,
    call_ids_settled,
    merge_settled,
)
from vitehub_chat.conversation.replacing import find_row, read_before, session_of_row
from vitehub_chat.errors import InputError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import (
    NewRow,
    PageRequest,
    SessionRef,
    SessionRequest,
    WindowRequest,
    WindowRows,
)

NEWEST = 100
"""Among so many of the newest messages the owner of a call is looked for."""


@attrs.frozen(kw_only=True)
class Continuation:
    """What a turn goes on with.

    Attributes:
        message: The answer with what its client added.
        row: Where it is stored, or None without a state.
        session: What asks for its session, whatever the times say.
        repeats: The turn that has settled all that its client added, or None.
    """

    message: Message
    row: Row | None = None
    session: SessionRequest | None = None
    repeats: str | None = None

    @property
    def to_record(self) -> tuple[NewRow, ...]:
        """What is stored before the driver goes on; from then on a crash interrupts the answer."""
        if self.row is None:
            return ()
        return (
            NewRow(
                message=self.message,
                status="pending",
                author=self.row.author,
                thread_id=self.row.thread_id,
                usage=self.row.usage,
            ),
        )


def goes_on(request: TurnRequest) -> bool:
    """Tell whether a turn goes on with an answer."""
    return request.replace is not None and request.replace.kind == "continue"


def check_continues(request: TurnRequest, *, has_state: bool) -> None:
    """Refuse what no answer can go on with.

    Raises:
        InputError: The current message is no answer, or brings decisions and nothing is stored
            that asked for them.
    """
    if not goes_on(request):
        return
    if request.current.role != "assistant":
        raise InputError(
            "needs to end with the answer that goes on", path="messages", code="invalid_input"
        )
    if not has_state and brings_decisions(request.current):
        raise InputError(
            "decides about a call that nobody recorded",
            path="messages[-1].parts",
            code="unknown_tool_call",
            hint="decisions need a state",
        )


async def find_continuation(
    state: AgentState | None, request: TurnRequest, asked: SessionRequest
) -> Continuation | None:
    """Return the answer that a turn goes on with, or None if it begins one.

    Raises:
        InputError: There is no such answer, or it has no such call (`unknown_tool_call`).
        StateError: The state failed.
    """
    if request.replace is None or not goes_on(request):
        return None
    if state is None:
        return Continuation(message=request.current)
    sent = request.current
    home, row = await _find_answer(state, request.replace.message_id, sent, asked)
    # An answer that still is pending was left by a process that died with all of it settled.
    is_settled = row.status != "pending" and brings_nothing_new(sent, row.message)
    return Continuation(
        message=merge_settled(row.message, sent),
        row=row,
        session=session_of_row(asked, home, row),
        repeats=row.turn_id if is_settled else None,
    )


async def read_before_answer(
    state: AgentState, continuation: Continuation, wanted: WindowRequest | None
) -> tuple[SessionRef | None, WindowRows]:
    """Return the session of a stored answer, and the rows of the window before it."""
    if continuation.session is None or continuation.row is None:
        return None, WindowRows()
    message_id = continuation.row.message.id or ""
    return await read_before(state, message_id, continuation.session, wanted)


def with_current(request: TurnRequest, message: Message) -> TurnRequest:
    """Return a request with another current message."""
    return attrs.evolve(request, messages=(*request.messages[:-1], message))


async def _find_answer(
    state: AgentState, message_id: str, sent: Message, asked: SessionRequest
) -> tuple[ConversationKey, Row]:
    """Return the stored answer of an id, else the newest that has the settled calls."""
    resolved = await state.sessions.resolve(asked)
    found: tuple[ConversationKey, Row] | None
    try:
        found = await find_row(state, message_id, asked, resolved)
    except NotFoundError:
        found = await _find_owner(state, sent, resolved)
    if found is None or found[1].message.role != "assistant":
        raise InputError(
            "settles a call of a message that is not stored",
            path="messages[-1].parts",
            code="unknown_tool_call",
            hint="load the history again",
        )
    return found


async def _find_owner(
    state: AgentState, sent: Message, resolved: SessionRef
) -> tuple[ConversationKey, Row] | None:
    home, wanted = ConversationKey.decode(resolved.conversation), call_ids_settled(sent)
    request = PageRequest(session_id=resolved.session_id, limit=NEWEST)
    try:
        page = await state.transcripts.page(home, request=request)
    except NotFoundError:
        return None
    owners = (row for row in reversed(page.items) if wanted & call_ids(row.message))
    row = next(owners, None)
    return None if row is None or not wanted else (home, row)
