"""Arrivals: the messages of a run as they came, and as the rows they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from vitehub_chat.conversation.selecting import Coalesced, Draft
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.values import Entry, NewRow


def coalesced_of(
    requests: Sequence[TurnRequest], entries: Sequence[Entry]
) -> tuple[Coalesced, ...]:
    """Return the messages that are run together with the one that is answered, by arrival."""
    return tuple(
        Coalesced(
            message=_with_id(_named(request), entry.ticket_id),
            is_new=request.session.action == "new",
        )
        for request, entry in zip(requests, entries, strict=False)
    )


def rows_of(
    draft: Draft, ticket_id: str, authors: Mapping[str, str | None], author: str | None
) -> Sequence[NewRow]:
    """Return what a turn stores, in order, the current message last.

    `authors` has those of messages that came from other callers.
    """
    run = draft.request.run
    to_record = (*draft.to_record[:-1], _named(draft.request))
    newest_first = [
        NewRow(
            message=_with_id(message, ticket_id, position),
            author=authors.get(message.id or "", author),
            thread_id=None if run is None else run.thread_id,
        )
        for position, message in enumerate(reversed(to_record))
    ]
    return newest_first[::-1]


def _named(request: TurnRequest) -> Message:
    """Return the message of a request; one without id has the id that its run gives it.

    That id is claimed, so the message comes again under it, and is stored once.
    """
    message, run = request.current, request.run
    if message.id is not None or run is None or run.message_id is None:
        return message
    return attrs.evolve(message, id=run.message_id)


def _with_id(message: Message, ticket_id: str, position: int = 0) -> Message:
    """Return a message with an id to store it under; the same one whenever it is recorded."""
    if message.id is not None:
        return message
    suffix = f"-{position}" if position else ""
    return attrs.evolve(message, id=f"msg-{ticket_id}{suffix}")
