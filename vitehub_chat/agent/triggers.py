"""Triggers: running an agent, streaming it, and asking what it would see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.runtime import AgentRuntime, read_prompt
from vitehub_chat.agent.stream import AgentStream
from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.driving import Sink
from vitehub_chat.errors import InputError
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.streams.encoders import encoder_for


async def run_agent_trigger(agent: Agent, trigger: str, input: Mapping[str, Any]) -> RunResult:
    """Run one turn to its end.

    With a state the user message is durable before the driver starts, and the answer is recorded
    with its status whatever happens. A repeated message id gets the recorded answer. Cancelling
    stops the driver, records what it said so far as interrupted, and then raises.

    Args:
        agent: The agent.
        trigger: `<capability>.<trigger>`, such as `chat.message`.
        input: The input of the trigger, in either spelling.

    Raises:
        NotFoundError: There is no such trigger.
        InputError: The input is wrong.
        ConfigError: The definition, an option or the environment is wrong.
        ChatBusyError: The conversation is busy and the policy refuses or the wait was too long.
        StateError: The state failed.
        Exception: What the driver raised, unchanged.
    """
    runtime = _runtime_of(agent)
    request = await runtime.read(trigger, input)
    control = TurnControl()
    return await _finish(runtime.start(request, control, _ignore), control)


def stream_agent_trigger(
    agent: Agent, trigger: str, input: Mapping[str, Any], *, output: str | None = None
) -> AgentStream:
    """Return one turn as a stream; it begins with the first iteration.

    Args:
        agent: The agent.
        trigger: `<capability>.<trigger>`, such as `chat.message`.
        input: The input of the trigger, in either spelling.
        output: `ui-message-stream`, `ag-ui` or `events`; None is the default of the trigger.

    Raises:
        NotFoundError: There is no such trigger.
        InputError: There is no such output. Wrong input is raised by the iteration.
    """
    _runtime_of(agent)
    form = output or agent.find_trigger(trigger).output
    encoder = encoder_for(form, continued=_goes_on(input))

    def start(control: TurnControl, sink: Sink) -> asyncio.Task[RunResult]:
        return asyncio.create_task(_read_and_run(agent, trigger, input, control, sink))

    return AgentStream(start, encoder, raises=form == "events")


async def prepare_agent_trigger(
    agent: Agent, trigger: str, input: Mapping[str, Any]
) -> PreparedInvocation:
    """Return what the driver would get, with a reason for every message; a dry run.

    Writes nothing, takes no lock and no claim, and calls neither driver nor filter.

    Raises:
        NotFoundError: There is no such trigger.
        InputError: The input is wrong.
        ConfigError: The definition, an option or the environment is wrong.
        StateError: The state failed.
    """
    runtime = _runtime_of(agent)
    return await runtime.prepare(await runtime.read(trigger, input))


async def run_agent(agent: Agent, prompt: str | Sequence[Mapping[str, Any] | Message]) -> RunResult:
    """Call the driver with a text, or with messages as they are; nothing is stored or locked.

    Raises:
        InputError: The last message is empty, or one of them is no message.
        Exception: What the driver raised, unchanged.
    """
    control = TurnControl()
    messages = read_prompt(prompt)
    return await _finish(_runtime_of(agent).start_directly(messages, control, _ignore), control)


async def _read_and_run(
    agent: Agent, trigger: str, given: Mapping[str, Any], control: TurnControl, sink: Sink
) -> RunResult:
    runtime = agent.runtime()
    request = await runtime.read(trigger, given)
    return await _finish(runtime.start(request, control, sink), control)


async def _finish(task: asyncio.Task[RunResult], control: TurnControl) -> RunResult:
    """Wait for a turn; a cancellation stops it and is raised once everything is recorded."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            control.stop("cancelled")
            cancelled = error
    if cancelled is not None:
        _ = task.cancelled() or task.exception()
        raise cancelled
    return task.result()


def _runtime_of(agent: object) -> AgentRuntime:
    if not isinstance(agent, Agent):
        raise InputError(
            f"must be an agent, not {type(agent).__name__}",
            path="agent",
            hint="make one with define_agent() or load_agent()",
        )
    return agent.runtime()


def _goes_on(given: object) -> bool:
    """Tell whether the answer continues a message that the client already shows."""
    messages = given.get("messages") if isinstance(given, Mapping) else None
    if not isinstance(messages, Sequence) or not messages:
        return False
    last = messages[-1]
    role = last.get("role") if isinstance(last, Mapping) else getattr(last, "role", None)
    return role == "assistant"


def _ignore(event: AgentEvent) -> None:
    """Nobody listens."""
