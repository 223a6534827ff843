"""The capability contract: what an agent can be given, by us and by others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from vitehub_chat.agent.driver import ToolSpec
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import RunInfo, TurnRequest
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.contract import AgentState


@attrs.frozen(kw_only=True)
class TriggerContext:
    """What a trigger knows when it reads its input: the agent's name and the trigger's id."""

    agent: str
    trigger: str


@attrs.frozen(kw_only=True)
class Trigger:
    """A way to start a turn.

    Attributes:
        read: Turns the input of a call into the request of a turn; raises `InputError`.
        output: The stream format when a call names none.
    """

    read: Callable[[TriggerContext, Mapping[str, Any]], Awaitable[TurnRequest]]
    output: str = "events"


@attrs.define(kw_only=True)
class InvocationContext:
    """One call of the driver, as the capabilities see it.

    `prepare` may change `instructions`, `messages` and `context`; the last message stays the one
    that is answered.

    Attributes:
        agent: The agent's name.
        trigger: The trigger's id, or None for a direct invocation.
        request: The request of the turn.
        session_id: The session, or None.
        run: Where the message came from, or None.
        instructions: What the driver is told, or None.
        messages: What the driver gets, the current message last.
        context: Values for the driver.
        state: The agent's state, opened; None without one and in a direct invocation.
    """

    agent: str
    trigger: str | None
    request: TurnRequest
    session_id: str | None
    run: RunInfo | None
    instructions: str | None
    messages: list[Message]
    context: dict[str, Any]
    state: AgentState | None = None


class Capability:
    """Something that an agent can do; a subclass overrides what it needs.

    Any object with these attributes is one; the class only has the defaults.
    """

    name: str = ""
    """Its name; the first half of the ids of its triggers, and unique in an agent."""

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """The triggers it registers, by the second half of their ids."""
        return {}

    def tools(self, ctx: InvocationContext, /) -> Sequence[ToolSpec]:  # noqa: ARG002 - a default
        """Return the tools that the model may call in this invocation."""
        return ()

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Change what the driver gets; called in the order of the definition."""

    async def finish(self, ctx: InvocationContext, result: RunResult, /) -> None:
        """See what came of it; called in reverse order, also after a failure."""


class CapabilityLike(Protocol):
    """What the runtime asks of a capability."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """Its triggers."""

    def tools(self, ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        """Return its tools."""

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Change what the driver gets."""

    async def finish(self, ctx: InvocationContext, result: RunResult, /) -> None:
        """See what came of it."""
