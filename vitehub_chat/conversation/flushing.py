"""Flushing: what a roll asks of the memory before it condenses messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.model.context_policy import Ask, FlushStatus
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.state.context import StateContext


@attrs.frozen(kw_only=True)
class FlushBatch:
    """Messages that are about to be condensed.

    Attributes:
        conversation: The conversation that has the rows.
        session_id: Their session, or None for the unnamed one.
        from_seq: The number of the first one.
        to_seq: The number of the last one.
        messages: They themselves, in order, as a driver gets them.
        rolling: The state that the roll goes out from; `pending` may name this very batch.
    """

    conversation: ConversationKey
    session_id: str | None
    from_seq: int
    to_seq: int
    messages: Sequence[Message]
    rolling: Rolling


class Flush(Protocol):
    """Takes messages into the memory."""

    @property
    def blocks(self) -> bool:
        """Whether a batch that could not be flushed is not condensed in this turn."""

    async def flush(self, batch: FlushBatch, /) -> FlushStatus:
        """Write a batch, once however often it is asked, and tell what became of it.

        Raises nothing of its own: a failure is `failed`.
        """


@attrs.frozen(kw_only=True)
class FlushSetting:
    """The turn that condenses.

    Attributes:
        ask: Asks the driver's model, or None where the driver has none.
        context: The context under which the turn writes.
        ids: What events are about.
    """

    ask: Ask | None
    context: StateContext
    ids: events.Ids


class MakeFlush(Protocol):
    """Makes what takes the messages of one turn into the memory."""

    def __call__(self, setting: FlushSetting, /) -> Flush:
        """Return it; nothing is written yet."""
