"""Refusing: messages that the policy does not let run."""

from __future__ import annotations

from typing import Literal

from vitehub_chat.conversation import events
from vitehub_chat.conversation.places import Place
from vitehub_chat.errors import ChatBusyError

DropReason = Literal["busy", "queue_full"]


def refuse(verdict: Literal["busy", "dropped"], reason: str | None, place: Place) -> DropReason:
    """Tell that a message was dropped, and return why.

    Raises:
        ChatBusyError: The policy rejects instead (`busy`); the message may be sent again.
    """
    known: DropReason = "queue_full" if reason == "queue_full" else "busy"
    if verdict == "dropped":
        events.queue_dropped(reason=known, key=place.conversation)
        return known
    if known == "queue_full":
        raise ChatBusyError("too many messages wait in this conversation", code="queue_full")
    raise ChatBusyError("a turn of this conversation is running", code="chat_busy")
