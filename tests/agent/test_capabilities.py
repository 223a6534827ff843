"""Capabilities of others: when their hooks are called, and what they may change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from tests.agent.support import TRANSCRIPT, Failing, Gate, Recorder, run, say, turn
from vitehub_chat import (
    Agent,
    Capability,
    RunResult,
    ToolSpec,
    Trigger,
    chat,
    define_agent,
    prepare_agent_trigger,
    run_agent,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.capability import InvocationContext, TriggerContext
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import TextPart
from vitehub_chat.model.requests import RunInfo, TurnRequest

SCHEMA = {"type": "object", "properties": {}}


class Witness(Capability):
    """Notes when its hooks are called."""

    def __init__(self, name: str, notes: list[str], *, fails_in: str | None = None) -> None:
        self.name = name
        self.results: list[RunResult] = []
        self._notes = notes
        self._fails_in = fails_in

    async def prepare(self, ctx: InvocationContext, /) -> None:
        await self._note("prepare")
        ctx.context[self.name] = True

    async def finish(self, ctx: InvocationContext, result: RunResult, /) -> None:
        assert ctx.context[self.name]
        self.results.append(result)
        await self._note("finish")

    async def _note(self, what: str) -> None:
        await asyncio.sleep(0)
        self._notes.append(f"{what} {self.name}")
        if what == self._fails_in:
            raise LookupError(what)


class WithTool(Capability):
    """Has one tool."""

    def __init__(self, name: str, tool: str) -> None:
        self.name = name
        self._tool = tool

    def tools(self, _ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        return [ToolSpec(name=self._tool, description="", parameters=SCHEMA, call=dict)]


def agent_with(driver: Any, *capabilities: Any, state: Any = None, **options: Any) -> Agent:
    return define_agent(
        name="a", driver=driver, capabilities=[chat(**options), *capabilities], state=state
    )


async def test_prepare_goes_in_order_and_finish_in_reverse(any_url: str | None) -> None:
    notes: list[str] = []
    first, second = Witness("first", notes), Witness("second", notes)
    async with agent_with("echo", first, second, state=any_url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    assert notes == ["prepare first", "prepare second", "finish second", "finish first"]
    assert first.results == second.results == [result]


async def test_finish_is_called_after_a_failure(any_url: str | None) -> None:
    notes: list[str] = []
    witness = Witness("w", notes)
    async with agent_with(Failing(OSError("down")), witness, state=any_url) as agent:
        with pytest.raises(OSError, match="down"):
            await run(agent, turn(say("hi", "m1")))
    assert notes == ["prepare w", "finish w"]
    assert witness.results[0].status == "error"


async def test_finish_is_called_after_an_interruption(any_url: str | None) -> None:
    witness = Witness("w", [])
    async with agent_with(Gate("so far"), witness, state=any_url, timeout_ms=20) as agent:
        await run(agent, turn(say("hi", "m1")))
    assert [result.status for result in witness.results] == ["interrupted"]


async def test_a_failing_finish_loses_no_answer_and_no_other_finish(any_url: str | None) -> None:
    notes: list[str] = []
    kind, raising = Witness("kind", notes), Witness("raising", notes, fails_in="finish")
    async with agent_with("echo", kind, raising, state=any_url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.text) == ("complete", "You said: hi")
    assert notes[2:] == ["finish raising", "finish kind"]


async def test_a_failing_prepare_fails_the_turn(any_url: str | None) -> None:
    notes: list[str] = []
    driver = Recorder()
    raising = Witness("raising", notes, fails_in="prepare")
    async with agent_with(driver, raising, Witness("late", notes), state=any_url) as agent:
        with pytest.raises(LookupError, match="prepare"):
            await run(agent, turn(say("hi", "m1")))
        assert (await run(agent, turn(say("hi", "m1")))).status == "error"
    assert notes == ["prepare raising"]
    assert driver.calls == []


async def test_prepare_hooks_take_part_in_a_dry_run_but_finish_hooks_do_not() -> None:
    notes: list[str] = []
    agent = agent_with(None, Witness("w", notes))
    prepared = await prepare_agent_trigger(agent, "chat.message", turn(say("hi")))
    assert prepared.context["w"] is True
    assert notes == ["prepare w"]


async def test_a_capability_may_change_what_the_driver_gets(any_url: str | None) -> None:
    class Persona(Capability):
        name = "persona"

        async def prepare(self, ctx: InvocationContext, /) -> None:
            ctx.instructions = f"Be kind to {ctx.context['channel']['run'].thread_id}."
            ctx.messages.insert(0, Message("p", "system", (TextPart("be brief"),)))
            assert (ctx.agent, ctx.trigger) == ("a", "chat.message")
            assert ctx.request.current.id == "m1"

    driver = Recorder()
    async with agent_with(driver, Persona(), state=any_url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    [call] = driver.calls
    assert call.system == "Be kind to t."
    assert driver.texts == [["be brief", "hi"]]
    assert result.prepared is not None
    assert result.prepared.messages == call.messages


async def test_what_a_capability_adds_is_not_stored(url: str) -> None:
    class Extra(Capability):
        name = "extra"

        async def prepare(self, ctx: InvocationContext, /) -> None:
            ctx.messages.insert(0, Message("x", "system", (TextPart("extra"),)))

    driver = Recorder()
    async with agent_with(driver, Extra(), state=url, trigger_history=TRANSCRIPT) as agent:
        for number in (1, 2):
            await run(agent, turn(say("hi", f"m{number}")))
    assert driver.texts[1] == ["extra", "hi", "answer 1", "hi"]


async def test_the_driver_gets_the_tools_of_all_capabilities() -> None:
    driver = Recorder()
    await run(agent_with(driver, WithTool("x", "find"), WithTool("y", "keep")), turn(say("hi")))
    assert [tool.name for tool in driver.calls[0].tools] == ["find", "keep"]


async def test_two_tools_of_one_name_are_refused(any_url: str | None) -> None:
    driver = Recorder()
    twins = (WithTool("x", "find"), WithTool("y", "find"))
    async with agent_with(driver, *twins, state=any_url) as agent:
        with pytest.raises(ConfigError, match="'find' of 'y'"):
            await prepare_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        with pytest.raises(ConfigError, match="'find' of 'y'"):
            await run(agent, turn(say("hi", "m1")))
    assert driver.calls == []


class Ticket(Capability):
    """Has a trigger of its own."""

    name = "ticket"

    def __init__(self, output: str = "events") -> None:
        self._output = output
        self.contexts: list[TriggerContext] = []

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        return {"opened": Trigger(read=self._read, output=self._output)}

    async def _read(self, ctx: TriggerContext, given: Mapping[str, Any]) -> TurnRequest:
        self.contexts.append(ctx)
        if "subject" not in given:
            raise InputError("is required", path="subject")
        message = Message(given["id"], "user", ({"type": "text", "text": given["subject"]},))
        return TurnRequest(messages=(message,), run=RunInfo(thread_id=given["id"]))


async def test_a_trigger_of_another_capability_runs_a_turn(any_url: str | None) -> None:
    driver, ticket = Recorder(), Ticket()
    async with agent_with(driver, ticket, state=any_url) as agent:
        assert sorted(agent.triggers) == ["chat.message", "ticket.opened"]
        given = {"id": "t1", "subject": "help"}
        result = await run_agent_trigger(agent, "ticket.opened", given)
        again = await run_agent_trigger(agent, "ticket.opened", given)
        with pytest.raises(InputError, match="subject"):
            await run_agent_trigger(agent, "ticket.opened", {"id": "t1"})
    assert result.text == again.text == "answer 1"
    assert ticket.contexts[0] == TriggerContext(agent="a", trigger="ticket.opened")


@pytest.mark.parametrize("output", ["events", "ui-message-stream"])
async def test_a_trigger_names_the_form_of_its_streams(output: str) -> None:
    agent = agent_with("echo", Ticket(output))
    stream = stream_agent_trigger(agent, "ticket.opened", {"id": "t1", "subject": "help"})
    first = await anext(stream)
    await stream.result()
    assert isinstance(first, dict) is (output == "ui-message-stream")


async def test_any_object_of_the_shape_is_a_capability() -> None:
    @attrs.define
    class Plain:
        name: str = "plain"
        triggers: Mapping[str, Trigger] = attrs.field(factory=dict)

        def tools(self, _ctx: object, /) -> tuple[ToolSpec, ...]:
            return ()

        async def prepare(self, ctx: InvocationContext, /) -> None:
            ctx.instructions = "plain"

        async def finish(self, _ctx: object, _result: object, /) -> None:
            return

    driver = Recorder()
    await run(agent_with(driver, Plain()), turn(say("hi")))
    assert driver.calls[0].system == "plain"


async def test_a_direct_call_passes_the_capabilities_as_well() -> None:
    notes: list[str] = []

    class Asks(Witness):
        async def prepare(self, ctx: InvocationContext, /) -> None:
            assert ctx.trigger is None
            await super().prepare(ctx)

    await run_agent(agent_with("echo", Asks("w", notes)), "hi")
    assert notes == ["prepare w", "finish w"]
