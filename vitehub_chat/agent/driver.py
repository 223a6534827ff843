"""The driver contract: what answers one prepared call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs

from vitehub_chat.conversation.driving import BeforeRequest
from vitehub_chat.model.events import DriverEvent
from vitehub_chat.model.json_text import Json, JsonObject
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import RunInfo


@attrs.frozen(kw_only=True)
class ToolSpec:
    """A tool that the model may call.

    Attributes:
        name: Its name, unique in one call.
        description: What it does, for the model.
        parameters: JSON Schema of its input, an object.
        call: Runs it; called with the input as keyword arguments, may be async.
    """

    name: str
    description: str
    parameters: JsonObject
    call: Callable[..., Any]


async def _unchanged(messages: Sequence[Message]) -> Sequence[Message]:
    return messages


@attrs.frozen(kw_only=True)
class DriverCall:
    """One call of a driver.

    Attributes:
        system: Instructions, or None.
        messages: What the model sees, the current message last.
        tools: The tools of the agent's capabilities.
        native: Payloads that a driver of this kind left with earlier answers, by message id; the
            format of such a payload is the kind, or begins with it and a slash.
        conversation_id: For telemetry.
        run: Where the message came from, or None.
        deadline: When the driver is stopped, or None.
        context: Values for the driver.
        before_request: Asked before each request of a tool loop; returns the messages to send.
    """

    system: str | None = None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    native: Mapping[str, Json] = attrs.field(factory=dict)
    conversation_id: str | None = None
    run: RunInfo | None = None
    deadline: datetime | None = None
    context: Mapping[str, Any] = attrs.field(factory=dict)
    before_request: BeforeRequest = _unchanged
    _current: Message | None = attrs.field(default=None, alias="current", repr=False)

    @property
    def text(self) -> str:
        """The text of the current message, without the marks that a summary puts around it."""
        current = self.messages[-1] if self._current is None else self._current
        return current.text


class Driver(Protocol):
    """Answers calls; neither reads nor writes history, and retries no turn.

    Attributes:
        kind: Its kind, as in the registry.
        profile: The wire format that it speaks, or None.
        model: The model it calls, or None.
        window_tokens: How much the model takes, or None when unknown.
        tools: Tools it brings itself.
    """

    kind: str
    profile: str | None
    model: str | None
    window_tokens: int | None
    tools: Sequence[ToolSpec]

    def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        """Answer a call with events; raises its own errors and lets cancellation through."""

    async def aclose(self) -> None:
        """Free what it holds; repeating does nothing."""
