"""Invocation: one call of the driver, with what the capabilities make of it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence

import attrs

from vitehub_chat.agent.asking import asker_of
from vitehub_chat.agent.capability import CapabilityLike, InvocationContext
from vitehub_chat.agent.driver import Driver, DriverCall, ToolSpec
from vitehub_chat.conversation.control import guarded
from vitehub_chat.conversation.driving import BeforeRequest, CallFacts, InvokeRequest
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import DriverEvent
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.messages import Message
from vitehub_chat.model.plans import AnsweredBy
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.state.contract import AgentState


@attrs.frozen(kw_only=True)
class AgentInvocation:
    """A prepared call; the driver is not called before `events`."""

    prepared: PreparedInvocation
    asked: InvokeRequest
    driver: Driver | None
    context: InvocationContext
    tools: tuple[ToolSpec, ...]
    capabilities: Sequence[CapabilityLike]
    before_request: BeforeRequest | None = None
    current: Message | None = None

    @property
    def answered_by(self) -> AnsweredBy:
        """Who answers."""
        driver = self.driver
        if driver is None:
            return AnsweredBy()
        return AnsweredBy(driver.kind, driver.model, driver.profile)

    @property
    def facts(self) -> CallFacts:
        """What else is sent, and to whom."""
        driver = self.driver
        if driver is None:
            return CallFacts(instructions=self.context.instructions, tools=self.tools)
        own = getattr(driver, "instructions", None)
        return CallFacts(
            model=driver.model,
            window_tokens=driver.window_tokens,
            own_instructions=own if isinstance(own, str) else None,
            instructions=self.context.instructions,
            tools=(*driver.tools, *self.tools),
            ask=asker_of(driver),
        )

    def fitted(
        self, prepared: PreparedInvocation, before_request: BeforeRequest | None, /
    ) -> AgentInvocation:
        """Return the same call with what fits into the model's window."""
        current = self.current or self.prepared.messages[-1]
        return attrs.evolve(self, prepared=prepared, before_request=before_request, current=current)

    def events(self) -> AsyncIterator[DriverEvent]:
        """Call the driver.

        Raises:
            ConfigError: The agent has no driver.
        """
        if self.driver is None:
            raise ConfigError("is needed to answer", path="driver", hint="for a demo: 'echo'")
        prepared, run = self.prepared, self.prepared.run
        thread_id = None if run is None else run.thread_id
        call = DriverCall(
            system=prepared.system or self.context.instructions,
            messages=prepared.messages,
            tools=self.tools,
            native=_own_payloads(self.asked.native, self.driver.kind),
            conversation_id=prepared.session_id or thread_id,
            run=run,
            deadline=self.asked.deadline,
            context=prepared.context,
            current=self.current,
        )
        if self.before_request is not None:
            call = attrs.evolve(call, before_request=self.before_request)
        return self.driver.stream(call)

    async def finish(self, result: RunResult, /) -> None:
        """Tell every capability what came of it, the last one first.

        Raises:
            Exception: What the first of them raised, once all were told.
        """
        first: Exception | None = None
        for capability in reversed(self.capabilities):
            try:
                with guarded():
                    await capability.finish(self.context, result)
            except Exception as error:  # noqa: BLE001 - raised below; the others have to be told
                first = first or error
        if first is not None:
            raise first


async def invoke(
    asked: InvokeRequest,
    *,
    agent: str,
    capabilities: Sequence[CapabilityLike],
    driver: Driver | None,
    state: AgentState | None = None,
) -> AgentInvocation:
    """Let the capabilities prepare a call, in their order.

    Raises:
        ConfigError: Two tools have one name.
    """
    prepared = asked.prepared
    context = InvocationContext(
        agent=agent,
        trigger=asked.request.trigger,
        request=asked.request,
        session_id=prepared.session_id,
        run=prepared.run,
        instructions=None,
        messages=list(prepared.messages),
        context=dict(prepared.context),
        state=state,
    )
    for capability in capabilities:
        await _prepare(capability, context, prepared.messages[-1].id)
    return AgentInvocation(
        prepared=attrs.evolve(prepared, messages=tuple(context.messages), context=context.context),
        asked=asked,
        driver=driver,
        context=context,
        tools=_collect_tools(capabilities, context),
        capabilities=capabilities,
    )


async def _prepare(
    capability: CapabilityLike, context: InvocationContext, current_id: str | None
) -> None:
    """Let one capability prepare the call; the current message has to stay the last one."""
    answer: object = capability.prepare(context)
    if not inspect.isawaitable(answer):
        raise ConfigError(
            f"`prepare` of {capability.name!r} is no coroutine function",
            path="capabilities",
            hint="write `async def prepare`",
        )
    await answer
    if not context.messages or context.messages[-1].id != current_id:
        raise ConfigError(
            f"{capability.name!r} moved the message that is answered away from the end",
            path="capabilities",
            hint="put messages before the last one",
        )


def _own_payloads(native: Mapping[str, Json], kind: str) -> Mapping[str, Json]:
    """Return the payloads that a driver of this kind left; those of other runtimes mean nothing."""
    return {
        message_id: stored["payload"]
        for message_id, stored in native.items()
        if stored["format"].partition("/")[0] == kind
    }


def _collect_tools(
    capabilities: Sequence[CapabilityLike], context: InvocationContext
) -> tuple[ToolSpec, ...]:
    tools: dict[str, ToolSpec] = {}
    for capability in capabilities:
        for tool in capability.tools(context):
            if tool.name in tools:
                raise ConfigError(
                    f"the tool {tool.name!r} of {capability.name!r} exists already",
                    path="capabilities",
                    hint="rename one of the two",
                )
            tools[tool.name] = tool
    return tuple(tools.values())
