"""Unreadable entries: reading what waited, and putting aside what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.conversation.payloads import decode_request
from vitehub_chat.errors import StateError
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.values import Entry


class EntriesPutAside(Exception):  # noqa: N818 - a way out, not a fault
    """A run did not begin because entries of it cannot be read; the others run without them.

    Attributes:
        ticket_ids: Their tickets.
    """

    def __init__(self, ticket_ids: Sequence[str]) -> None:
        super().__init__(len(ticket_ids))
        self.ticket_ids = tuple(ticket_ids)


def read_entries(entries: Sequence[Entry], request: TurnRequest | None) -> list[TurnRequest]:
    """Return what the entries of a run ask for, in order; `request` is that of the last if known.

    Raises:
        EntriesPutAside: Some of them cannot be read.
    """
    requests: list[TurnRequest] = []
    unreadable: list[str] = []
    to_read = entries if request is None else entries[:-1]
    for entry in to_read:
        try:
            requests.append(decode_request(entry.payload))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            unreadable.append(entry.ticket_id)
    if unreadable:
        raise EntriesPutAside(unreadable)
    return requests if request is None else [*requests, request]


def unreadable_error() -> StateError:
    """Return what the caller of an entry gets that was put aside."""
    return StateError(
        "the waiting message cannot be read", code="corrupt", hint="send the message again"
    )
