"""What comes of a call: every status, and what goes with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agent.support import (
    Failing,
    Gate,
    Recorder,
    Waiting,
    agent_of,
    rows,
    run,
    say,
    turn,
)
from vitehub_chat import Agent, RunResult, stream_agent_trigger
from vitehub_chat.errors import ChatBusyError, NotFoundError
from vitehub_chat.model.events import Done, RunInterrupted, TextDelta
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

NOTHING = ("", None, (), None)


def content(result: RunResult) -> tuple[Any, ...]:
    return (result.text, result.message, result.new_messages, result.prepared)


async def start(agent: Agent, driver: Gate, *texts: str, waiting: Waiting) -> list[Any]:
    """Start a turn that runs, and others behind it; the text of each is its id."""
    tasks = [asyncio.create_task(run(agent, turn(say(texts[0], texts[0]))))]
    await driver.reached.wait()
    for count, text in enumerate(texts[1:], start=1):
        tasks.append(asyncio.create_task(run(agent, turn(say(text, text)))))
        await waiting.reach(count)
    return tasks


async def test_complete_is_what_ends_by_itself(any_url: str | None) -> None:
    async with agent_of(Recorder(), any_url) as agent:
        result = await run(agent, turn(say("hi", "m1"), run={"thread_id": "t", "run_id": "r"}))
    assert (result.status, result.finish_reason, result.text) == ("complete", "stop", "answer 1")
    assert result.message is not None
    assert result.message.role == "assistant"
    assert result.new_messages == (result.message,)
    assert result.prepared is not None
    assert result.run == result.prepared.run
    assert result.session_id is None


async def test_the_reason_of_the_driver_is_told(any_url: str | None) -> None:
    async def answer(_call: Any) -> Any:
        async def events() -> Any:
            yield TextDelta("t", "cut o")
            yield Done("length")

        return events()

    async with agent_of(answer, any_url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.finish_reason) == ("complete", "length")


async def test_an_empty_answer_is_complete_and_no_message(any_url: str | None) -> None:
    async with agent_of(lambda _call: "", any_url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.text, result.message) == ("complete", "", None)
    assert result.new_messages == ()


async def test_a_stopped_turn_is_interrupted(any_url: str | None) -> None:
    driver = Gate("so far")
    async with agent_of(driver, any_url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")), output="events")
        events: list[Any] = [await anext(stream)]
        await driver.reached.wait()
        stream.stop()
        stream.stop()
        events += [event async for event in stream]
        result = await stream.result()
    assert (result.status, result.text) == ("interrupted", "so far")
    assert events[-1] == RunInterrupted(reason="stopped")
    assert driver.was_cancelled


@pytest.mark.parametrize("where", ["option", "call"])
async def test_a_timeout_interrupts(any_url: str | None, where: str) -> None:
    options = {"timeout_ms": 20} if where == "option" else {"timeout_ms": 60_000}
    fields: dict[str, Any] = {} if where == "option" else {"timeoutMs": 20}
    async with agent_of(Gate("so far"), any_url, **options) as agent:
        result = await run(agent, turn(say("hi", "m1"), **fields))
    assert (result.status, result.finish_reason) == ("interrupted", "timeout")
    assert result.text == "so far"


async def test_the_driver_knows_when_it_is_stopped(state: AgentState, clock: FakeClock) -> None:
    driver = Recorder()
    async with agent_of(driver, state, timeout_ms=5000) as agent:
        await run(agent, turn(say("hi", "m1")))
        await run(agent, turn(say("hi", "m2"), timeout_ms=7000))
    deadlines = [call.deadline for call in driver.calls]
    clock.advance(seconds=5)
    assert deadlines[0] == clock.now()
    assert deadlines[1] == clock.advance(seconds=2)


async def test_a_turn_that_holds_its_lock_too_long_is_interrupted(any_url: str | None) -> None:
    policy = {"strategy": "serial", "max_lock_lifetime_ms": 20}
    async with agent_of(Gate("so far"), any_url, concurrency=policy) as agent:
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.finish_reason) == ("interrupted", "lock_lifetime")


async def test_shutdown_interrupts_and_records_turns_that_nobody_follows(tmp_path: Any) -> None:
    driver, url = Gate("so far"), f"file:{tmp_path}/state.db"
    agent = agent_of(driver, url)
    stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
    await anext(stream)
    await driver.reached.wait()
    await stream.aclose()
    await agent.aclose()
    assert driver.was_cancelled
    async with agent_of(None, url) as later:
        assert await rows(later.conversation("t")) == [
            ("user", "hi", "complete"),
            ("assistant", "so far", "interrupted"),
        ]


async def test_shutdown_interrupts_a_turn_whose_caller_waits(any_url: str | None) -> None:
    driver = Gate("so far")
    agent = agent_of(driver, any_url)
    task = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
    await driver.reached.wait()
    await agent.aclose()
    assert (await task).status == "interrupted"


async def test_shutdown_ends_the_waiting_of_messages(any_url: str | None, waiting: Waiting) -> None:
    driver = Gate("so far")
    agent = agent_of(driver, any_url)
    tasks = await start(agent, driver, "a", "b", waiting=waiting)
    await agent.aclose()
    results = await asyncio.gather(*tasks)
    assert [result.status for result in results] == ["interrupted", "interrupted"]
    assert len(driver.calls) == 1


async def test_coalesced_messages_get_the_answer_of_the_newest(
    any_url: str | None, waiting: Waiting
) -> None:
    driver = Gate("done")
    async with agent_of(driver, any_url, concurrency="queue", sessions=True) as agent:
        tasks = await start(agent, driver, "a", "b", "c", "d", waiting=waiting)
        driver.open()
        a, b, c, d = await asyncio.gather(*tasks)
    assert [result.status for result in (a, b, c, d)] == [
        "complete",
        "coalesced",
        "coalesced",
        "complete",
    ]
    for result in (b, c):
        assert result.prepared is None
        assert (result.text, result.message, result.new_messages) == (
            d.text,
            d.message,
            d.new_messages,
        )
        assert (result.finish_reason, result.session_id) == (d.finish_reason, d.session_id)
    assert d.prepared is not None
    assert [message.text for message in d.prepared.messages] == ["b", "c", "d"]


async def test_a_message_that_meets_a_turn_is_dropped(any_url: str | None) -> None:
    driver = Gate("done")
    async with agent_of(driver, any_url, concurrency="drop") as agent:
        first = asyncio.create_task(run(agent, turn(say("a", "a"))))
        await driver.reached.wait()
        result = await run(agent, turn(say("b", "b")))
        assert (result.status, result.reason) == ("dropped", "busy")
        assert content(result) == NOTHING
        driver.open()
        await first
        assert (await run(agent, turn(say("b", "b")))).status == "complete"


async def test_a_full_queue_drops_the_oldest(any_url: str | None, waiting: Waiting) -> None:
    driver = Gate("done")
    policy = {"strategy": "queue", "max_queue_size": 2}
    async with agent_of(driver, any_url, concurrency=policy) as agent:
        tasks = await start(agent, driver, "a", "b", "c", "d", waiting=waiting)
        pushed_out = await tasks[1]
        assert (pushed_out.status, pushed_out.reason) == ("dropped", "queue_full")
        assert content(pushed_out) == NOTHING
        driver.open()
        assert [(await task).status for task in tasks[2:]] == ["coalesced", "complete"]
        assert (await run(agent, turn(say("b", "b")))).status == "complete"


async def test_a_full_queue_drops_the_newest(any_url: str | None, waiting: Waiting) -> None:
    driver = Gate("done")
    policy = {"strategy": "queue", "max_queue_size": 1, "on_queue_full": "drop-newest"}
    async with agent_of(driver, any_url, concurrency=policy) as agent:
        tasks = await start(agent, driver, "a", "b", waiting=waiting)
        result = await run(agent, turn(say("c", "c")))
        assert (result.status, result.reason) == ("dropped", "queue_full")
        driver.open()
        await asyncio.gather(*tasks)


async def test_a_full_queue_refuses(any_url: str | None, waiting: Waiting) -> None:
    driver = Gate("done")
    policy = {"strategy": "queue", "max_queue_size": 1, "on_queue_full": "reject"}
    async with agent_of(driver, any_url, concurrency=policy) as agent:
        tasks = await start(agent, driver, "a", "b", waiting=waiting)
        with pytest.raises(ChatBusyError) as caught:
            await run(agent, turn(say("c", "c")))
        assert caught.value.code == "queue_full"
        driver.open()
        await asyncio.gather(*tasks)


async def test_a_message_that_waited_too_long_is_dropped(
    state: AgentState, clock: FakeClock, waiting: Waiting
) -> None:
    driver = Gate("done")
    policy = {"strategy": "queue", "queue_entry_ttl_ms": 1000}
    async with agent_of(driver, state, concurrency=policy) as agent:
        tasks = await start(agent, driver, "a", "b", waiting=waiting)
        clock.advance(milliseconds=1000)
        expired = await tasks[1]
        assert (expired.status, expired.reason) == ("dropped", "expired")
        assert content(expired) == NOTHING
        driver.open()
        assert (await tasks[0]).status == "complete"
        assert await rows(agent.conversation("t")) == [
            ("user", "a", "complete"),
            ("assistant", "done", "complete"),
        ]


@pytest.mark.parametrize("verdict", [False, None, 0, ""])
async def test_a_filtered_message_leaves_nothing(any_url: str | None, verdict: object) -> None:
    driver = Recorder()

    async def decide(message: Any, context: Any) -> Any:
        assert (message.text, context["x"]) == ("hi", 1)
        return verdict

    async with agent_of(driver, any_url, filter=decide) as agent:
        result = await run(agent, turn(say("hi", "m1"), context={"x": 1}))
    assert result.status == "filtered"
    assert content(result) == NOTHING
    assert driver.calls == []


async def test_a_filtered_message_takes_no_lock(any_url: str | None) -> None:
    driver = Gate("done")
    async with agent_of(
        driver, any_url, concurrency="reject", filter=lambda message, _: message.text != "no"
    ) as agent:
        first = asyncio.create_task(run(agent, turn(say("a", "a"))))
        await driver.reached.wait()
        assert (await run(agent, turn(say("no", "b")))).status == "filtered"
        driver.open()
        await first


async def test_a_recorded_error_is_returned_to_a_repeat(any_url: str | None) -> None:
    driver = Failing(OSError("down"), "so far")
    async with agent_of(driver, any_url) as agent:
        with pytest.raises(OSError, match="down"):
            await run(agent, turn(say("hi", "m1")))
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.text, result.prepared) == ("error", "so far", None)
    assert len(driver.calls) == 1


async def test_the_error_of_a_driver_is_raised_unchanged(any_url: str | None) -> None:
    error = OSError("down")
    async with agent_of(Failing(error), any_url) as agent:
        with pytest.raises(OSError, match="down") as caught:
            await run(agent, turn(say("hi", "m1")))
    assert caught.value is error


@pytest.mark.parametrize("trigger", ["chat.massage", "message", ""])
async def test_an_unknown_trigger_names_the_known_ones(trigger: str) -> None:
    with pytest.raises(NotFoundError, match=r"chat\.message"):
        stream_agent_trigger(agent_of("echo"), trigger, turn(say("hi")))
