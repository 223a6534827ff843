"""Selecting: from the request of a turn and the stored rows to what its driver gets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import attrs

from vitehub_chat.conversation import invocation
from vitehub_chat.conversation.retention import age_limit
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import to_model_messages
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, SelectionReason
from vitehub_chat.model.rows import Row
from vitehub_chat.model.selections import Selection
from vitehub_chat.selection.session_ids import wanted_id
from vitehub_chat.selection.sessions import (
    Array,
    SessionCut,
    cut_session,
    cut_stored_session,
    find_places,
    name_session,
)
from vitehub_chat.selection.window import select_window, skipped_count
from vitehub_chat.state.values import (
    SessionRef,
    SessionRequest,
    WindowRequest,
    WindowRows,
)

_NOT_USED: SelectionReason = "not_used"


@attrs.frozen(kw_only=True)
class Coalesced:
    """A message that is run together with the current one; `is_new` came with `new`."""

    message: Message
    is_new: bool = False


@attrs.frozen(kw_only=True)
class Draft:
    """What can be said of a turn before anything is stored.

    Attributes:
        array: The supplied messages, with the coalesced ones right before the current.
        cut: The session of the current message, by ids and silence.
        window: What this call may see, or None.
        retained: Indices of messages that are kept and recorded whatever the window says.
    """

    request: TurnRequest
    policy: ChatPolicy
    array: Array
    cut: SessionCut
    window: HistoryWindow | None
    retained: tuple[int, ...]

    @property
    def reads_transcript(self) -> bool:
        """Whether the window is read from the stored rows."""
        return self.window is not None and self.window.source == "transcript"

    @property
    def to_record(self) -> tuple[Message, ...]:
        """The messages that this turn stores, in order, the current one last."""
        messages = self.array.messages
        return (*(messages[index] for index in self.retained), messages[-1])


def draft_turn(
    request: TurnRequest, policy: ChatPolicy, coalesced: Sequence[Coalesced] = ()
) -> Draft:
    """Decide what a turn is about: which messages, which session, which window."""
    array = _array_of(request, coalesced)
    window = policy.window if request.window is None else request.window
    cut = cut_session(array, policy.sessions, request.session)
    kept_anyway = set(array.coalesced)
    if policy.concurrency.strategy == "queue" and (skipped := skipped_count(request.current)):
        kept_anyway.update(array.places[-1 - skipped : -1])
    return Draft(
        request=request,
        policy=policy,
        array=array,
        cut=cut,
        window=window if isinstance(window, HistoryWindow) else None,
        retained=tuple(index for index in cut.members[:-1] if index in kept_anyway),
    )


def session_request(
    draft: Draft, conversation: ConversationKey, user_key: str | None
) -> SessionRequest:
    """Return which stored session the turn asks for."""
    policy, choice = draft.policy.sessions, draft.request.session
    messages = draft.array.messages
    begins = draft.to_record
    if not draft.reads_transcript:
        begins = tuple(messages[index] for index in draft.cut.members)
    base = None if policy is None else wanted_id(choice, messages[-1], policy)
    return SessionRequest(
        conversation=conversation,
        policy=policy,
        base=base,
        starts_new=choice.action == "new" or draft.array.new_from is not None,
        begins_with=begins[0].id,
        begins_at=_first_time(begins),
        chat_id=draft.request.chat_id,
        user_key=user_key,
    )


def window_request(draft: Draft, now: datetime) -> WindowRequest | None:
    """Return which stored rows the turn needs, or None if it reads none."""
    if draft.window is None or not draft.reads_transcript:
        return None
    return WindowRequest(
        limit=draft.window.max_messages - 1,
        besides=frozenset(message.id for message in draft.to_record if message.id is not None),
        whole_conversation=draft.policy.sessions is None,
        not_older_than=age_limit(draft.policy.prune, now),
        from_anchor=draft.policy.context is not None,
    )


def messages_to_keep(draft: Draft) -> Sequence[Message]:
    """Return the supplied messages that another process would need to run this turn."""
    messages, members = draft.array.messages, draft.cut.members
    limit = 1
    if draft.window is not None and not draft.reads_transcript:
        limit = draft.window.max_messages
    kept = set(members[-limit:]) | set(draft.retained)
    return [messages[index] for index in members if index in kept]


def prepare_turn(
    draft: Draft, session: SessionRef | None, window: WindowRows, now: datetime
) -> PreparedInvocation:
    """Return what the driver gets, with a reason for every message.

    `session` is the stored one, or None where nothing is stored.
    """
    request, policy = draft.request, draft.policy
    if draft.reads_transcript:
        messages, selection = _select_rows(draft, window, now)
    else:
        messages, selection = _select_array(draft, session)
    session_id = (
        name_session(draft.array, draft.cut, policy.sessions, request.session)
        if session is None
        else session.session_id
    )
    invoker = invocation.resolve_invoker(request)
    run = invocation.describe_run(request, invoker)
    ids = (draft.array.messages[index].id for index in sorted(draft.array.coalesced))
    context = invocation.build_context(
        request, invoker, run, session_id, tuple(each for each in ids if each is not None)
    )
    return PreparedInvocation(
        messages=to_model_messages(messages),
        selection=selection,
        session_id=session_id,
        run=run,
        context=context,
    )


def _array_of(request: TurnRequest, coalesced: Sequence[Coalesced]) -> Array:
    supplied = request.messages
    if not coalesced:
        return Array(messages=supplied, places=find_places(supplied))
    known = {message.id: index for index, message in enumerate(supplied[:-1])}
    known.pop(None, None)
    messages = list(supplied[:-1])
    indices: list[int] = []
    new_from: int | None = None
    for each in coalesced:
        if each.message.id is not None and each.message.id in known:
            index = known[each.message.id]
        else:
            index = len(messages)
            messages.append(each.message)
        indices.append(index)
        new_from = index if each.is_new else new_from
    messages.append(supplied[-1])
    places = find_places(messages)
    present = frozenset(indices) & set(places)
    return Array(
        messages=messages,
        places=places,
        coalesced=present,
        new_from=new_from if new_from in present else None,
    )


def _select_array(draft: Draft, session: SessionRef | None) -> tuple[list[Message], Selection]:
    array, cut = draft.array, draft.cut
    if session is not None and draft.policy.sessions is not None:
        cut = cut_stored_session(
            array,
            cut,
            first_message_id=session.first_message_id,
            started_at=session.started_at,
            has_beginning=draft.policy.sessions.strategy != "manual" or session.began_by_new,
        )
    chosen = select_window(array.messages, cut.members, draft.window, draft.retained)
    reasons: list[SelectionReason] = ["duplicate"] * len(array.messages)
    for reasons_of in (cut.cut, chosen.reasons):
        for index, reason in reasons_of.items():
            reasons[index] = reason
    messages = array.messages
    return [messages[index] for index in chosen.kept], Selection(messages, reasons)


def _select_rows(
    draft: Draft, window: WindowRows, now: datetime
) -> tuple[list[Message], Selection]:
    """Select among stored rows, then the retained messages, then the current one."""
    recorded = draft.to_record
    rows = [_as_said(row) for row in window.shown]
    current = recorded[-1]
    if current.created_at is None:
        recorded = (*recorded[:-1], attrs.evolve(current, created_at=now))
    messages = [*rows, *recorded]
    retained = range(len(rows), len(messages) - 1)
    places = find_places(messages)
    chosen = select_window(messages, places, draft.window, retained)
    reasons: list[SelectionReason] = ["duplicate"] * len(messages)
    for index, reason in chosen.reasons.items():
        reasons[index] = reason
    unused = [m for m in draft.array.messages[:-1] if all(m is not kept for kept in recorded)]
    selection = _merge(unused, window, messages, reasons)
    final = [messages[index] for index in chosen.kept]
    # The driver gets the current message as it was supplied; its time here was only for the age.
    return [*final[:-1], current], selection


def _merge(
    unused: Sequence[Message],
    window: WindowRows,
    messages: Sequence[Message],
    reasons: Sequence[SelectionReason],
) -> Selection:
    """Put what was not used first, then all rows by number, then what this turn records."""
    shown: Iterable[tuple[int, Message, SelectionReason]] = (
        (row.seq, row.message, reasons[index]) for index, row in enumerate(window.shown)
    )
    hidden: Iterable[tuple[int, Message, SelectionReason]] = (
        (row.seq, row.message, "not_shown") for row in window.not_shown
    )
    ordered = sorted((*shown, *hidden), key=lambda each: each[0])
    begin = len(unused)
    seqs: Mapping[int, int] = {begin + at: seq for at, (seq, _, _) in enumerate(ordered)}
    tail = range(len(window.shown), len(messages))
    return Selection(
        [*unused, *(each[1] for each in ordered), *(messages[index] for index in tail)],
        [
            *itertools.repeat(_NOT_USED, len(unused)),
            *(each[2] for each in ordered),
            *(reasons[index] for index in tail),
        ],
        seqs,
    )


def _as_said(row: Row) -> Message:
    """Return the message of a row; without a time of its own it was said when it was recorded."""
    message = row.message
    if message.created_at is not None:
        return message
    return Message(message.id, message.role, message.parts, message.metadata, row.recorded_at)


def _first_time(messages: Iterable[Message]) -> datetime | None:
    return next((m.created_at for m in messages if m.created_at is not None), None)
