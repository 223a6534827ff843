"""Messages that come again: the same id in the same conversation never runs twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agent.support import (
    TRANSCRIPT,
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
from vitehub_chat import Agent, prepare_agent_trigger, stream_agent_trigger
from vitehub_chat.errors import ChatBusyError, InputError
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

ANSWERED = {
    "type": "tool-ask",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {},
    "output": "yes",
}


async def test_a_repeat_gets_the_recorded_answer(any_url: str | None) -> None:
    driver = Recorder()
    given = turn(say("hi", "m1"), run={"thread_id": "t", "run_id": "r"}, session={"id": "s"})
    async with agent_of(driver, any_url, sessions=True) as agent:
        first = await run(agent, given)
        again = await run(agent, given)
    assert (again.text, again.message, again.status, again.finish_reason) == (
        first.text,
        first.message,
        first.status,
        first.finish_reason,
    )
    assert (again.run, again.session_id) == (first.run, "s")
    assert again.prepared is None
    assert len(driver.calls) == 1


async def test_the_content_of_a_repeat_is_not_compared(any_url: str | None) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        await run(agent, turn(say("hi", "m1")))
        again = await run(agent, turn(say("something else", "m1")))
    assert again.text == "answer 1"
    assert len(driver.calls) == 1


async def test_a_repeat_is_streamed_from_the_record(any_url: str | None) -> None:
    async with agent_of(Recorder(), any_url) as agent:
        first = await run(agent, turn(say("hi", "m1")))
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        chunks = [chunk async for chunk in stream]
    assert first.message is not None
    assert chunks[0]["messageId"] == first.message.id
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["answer 1"]


async def test_a_repeat_after_a_restart_gets_the_recorded_answer(tmp_path: Any) -> None:
    driver, url = Recorder(), f"file:{tmp_path}/state.db"
    results = []
    for _ in range(2):
        async with agent_of(driver, url) as agent:
            results.append(await run(agent, turn(say("hi", "m1"))))
    assert results[0].message == results[1].message
    assert len(driver.calls) == 1


async def test_a_repeat_of_a_running_turn_waits_for_its_end(any_url: str | None) -> None:
    driver = Gate("done")
    async with agent_of(driver, any_url) as agent:
        first = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await driver.reached.wait()
        again = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await asyncio.sleep(0)
        driver.open()
        one, two = await asyncio.gather(first, again)
    assert (one.message, one.status) == (two.message, two.status)
    assert len(driver.calls) == 1


async def test_many_at_once_run_once(any_url: str | None) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        results = await asyncio.gather(*(run(agent, turn(say("hi", "m1"))) for _ in range(8)))
    assert len({result.message.id for result in results if result.message}) == 1
    assert len([result for result in results if result.prepared is not None]) == 1
    assert len(driver.calls) == 1


async def test_a_repeat_of_a_failing_turn_gets_its_end_and_does_not_raise(
    any_url: str | None,
) -> None:
    started, failing = asyncio.Event(), asyncio.Event()

    async def fail(_call: Any) -> str:
        started.set()
        await failing.wait()
        raise OSError

    async with agent_of(fail, any_url) as agent:
        first = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await started.wait()
        again = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await asyncio.sleep(0)
        failing.set()
        with pytest.raises(OSError):  # noqa: PT011 - the error has no text
            await first
        assert (await again).status == "error"


async def test_a_repeat_of_a_coalesced_message_is_coalesced(
    any_url: str | None, waiting: Waiting
) -> None:
    driver = Gate("done")
    async with agent_of(driver, any_url, concurrency="queue") as agent:
        tasks = [asyncio.create_task(run(agent, turn(say("a", "a"))))]
        await driver.reached.wait()
        tasks += [asyncio.create_task(run(agent, turn(say(text, text)))) for text in "bc"]
        await waiting.reach(2)
        driver.open()
        _, b, c = await asyncio.gather(*tasks)
        again = await run(agent, turn(say("b", "b")))
    assert (b.status, c.status) == ("coalesced", "complete")
    assert (again.status, again.message) == ("coalesced", c.message)
    assert len(driver.calls) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"thread_id": "t2"},
        {"thread_id": "t", "channel_id": "c"},
        {"thread_id": "t", "tenant_id": "x"},
    ],
    ids=["thread", "channel", "tenant"],
)
async def test_the_same_id_elsewhere_is_another_message(
    any_url: str | None, other: dict[str, str]
) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        await run(agent, turn(say("hi", "m1")))
        result = await run(agent, {"messages": [say("hi", "m1")], "run": other})
    assert result.text == "answer 2"


async def test_without_an_id_there_is_no_repeat(any_url: str | None) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        for _ in range(2):
            await run(agent, turn(say("hi")))
    assert len(driver.calls) == 2


async def test_without_a_named_conversation_there_is_no_repeat() -> None:
    driver = Recorder()
    agent = agent_of(driver)
    for _ in range(2):
        await run(agent, turn(say("hi", "m1"), thread=None))
    assert len(driver.calls) == 2


async def test_the_message_id_of_the_run_stands_in_for_a_missing_id(any_url: str | None) -> None:
    driver = Recorder()
    place = {"thread_id": "t", "message_id": "platform-1"}
    async with agent_of(driver, any_url) as agent:
        for _ in range(2):
            await run(agent, {"messages": [say("hi")], "run": place})
        await run(agent, turn(say("hi", "platform-1")))
    assert len(driver.calls) == 1


async def test_after_the_ttl_an_id_runs_again_and_its_row_is_replaced_in_place(
    state: AgentState, clock: FakeClock
) -> None:
    driver = Recorder()
    async with agent_of(driver, state, dedupe_ttl_ms=40) as agent:
        await run(agent, turn(say("hi", "m1")))
        clock.advance(milliseconds=39)
        await run(agent, turn(say("hi", "m1")))
        assert len(driver.calls) == 1
        clock.advance(milliseconds=1)
        await run(agent, turn(say("hi again", "m1")))
        assert len(driver.calls) == 2
        page = await agent.conversation("t").history()
    assert [(row.seq, row.message.text) for row in page.items] == [
        (1, "hi again"),
        (2, "answer 1"),
        (3, "answer 2"),
    ]


async def test_an_id_that_runs_again_sees_the_same_as_a_dry_run(
    state: AgentState, clock: FakeClock
) -> None:
    driver = Recorder()
    window = {"source": "transcript", "max_messages": 4}
    async with agent_of(driver, state, dedupe_ttl_ms=40, trigger_history=window) as agent:
        for name in ("m1", "m2"):
            await run(agent, turn(say(name, name)))
        clock.advance(milliseconds=40)
        given = turn(say("m1 again", "m1"))
        prepared = await prepare_agent_trigger(agent, "chat.message", given)
        await run(agent, given)
    expected = ["answer 1", "m2", "answer 2", "m1 again"]
    assert [message.text for message in prepared.messages] == expected
    assert driver.texts[-1] == expected


async def test_a_claim_lasts_at_least_until_its_turn_ends(
    state: AgentState, clock: FakeClock
) -> None:
    driver = Gate("done")
    async with agent_of(driver, state, dedupe_ttl_ms=1) as agent:
        first = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await driver.reached.wait()
        clock.advance(seconds=5)
        again = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await follows(agent)
        driver.open()
        assert (await first).message == (await again).message
    assert len(driver.calls) == 1


async def follows(agent: Agent) -> None:
    """Wait until a caller waits for the turn of another one."""
    engine = agent.runtime()._engine
    assert engine is not None
    async with asyncio.timeout(10):
        while all(len(seats) < 2 for seats in engine._room._seats.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_refused_message_may_come_again(any_url: str | None) -> None:
    driver = Gate("done")
    async with agent_of(driver, any_url, concurrency="reject") as agent:
        first = asyncio.create_task(run(agent, turn(say("a", "a"))))
        await driver.reached.wait()
        with pytest.raises(ChatBusyError) as caught:
            await run(agent, turn(say("b", "b")))
        assert caught.value.code == "chat_busy"
        driver.open()
        await first
        assert (await run(agent, turn(say("b", "b")))).status == "complete"


async def test_a_repeat_is_answered_before_the_lock_is_looked_at(any_url: str | None) -> None:
    started, opened = asyncio.Event(), asyncio.Event()

    async def answer(call: Any) -> str:
        if call.text == "slow":
            started.set()
            await opened.wait()
        return f"to {call.text}"

    async with agent_of(answer, any_url, concurrency="reject") as agent:
        await run(agent, turn(say("fast", "m1")))
        slow = asyncio.create_task(run(agent, turn(say("slow", "m2"))))
        await started.wait()
        assert (await run(agent, turn(say("fast", "m1")))).text == "to fast"
        opened.set()
        await slow


async def test_a_message_that_could_not_be_written_down_may_come_again(
    any_url: str | None,
) -> None:
    unreadable = {"id": "m1", "role": "user", "parts": [{"type": "data-x", "data": object()}]}
    async with agent_of(Recorder(), any_url) as agent:
        with pytest.raises(InputError) as caught:
            await run(agent, turn(unreadable))
        assert caught.value.path == "input.messages[0].parts[0].data"
        assert (await run(agent, turn(say("hi", "m1")))).text == "answer 1"


def asked(*parts: dict[str, Any], message_id: str = "a1") -> dict[str, Any]:
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


async def test_an_assistant_message_with_the_same_outputs_is_a_repeat(
    any_url: str | None,
) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        for _ in range(2):
            await run(agent, turn(say("hi", "m1"), asked(ANSWERED)))
    assert len(driver.calls) == 1


async def test_an_assistant_message_that_brings_nothing_new_is_a_repeat_of_its_turn(
    url: str,
) -> None:
    driver = Recorder()
    async with agent_of(driver, url) as agent:
        first = await run(agent, turn(say("hi", "m1")))
        assert first.message is not None
        again = await run(agent, turn(dict(first.message.to_json())))
    assert (again.text, again.message, again.status) == ("answer 1", first.message, "complete")
    assert len(driver.calls) == 1


async def test_an_assistant_message_with_new_outputs_runs(any_url: str | None) -> None:
    driver = Recorder()
    more = {**ANSWERED, "toolCallId": "c2", "output": "no"}
    decided = {
        "type": "tool-pay",
        "toolCallId": "c3",
        "state": "approval-responded",
        "approval": {"id": "ap", "approved": True},
    }
    async with agent_of(driver, any_url) as agent:
        for parts in ([ANSWERED], [ANSWERED, more], [ANSWERED, more, decided]):
            await run(agent, turn(say("hi", "m1"), asked(*parts)))
    assert len(driver.calls) == 3


async def test_an_assistant_message_replaces_its_row(url: str) -> None:
    more = {**ANSWERED, "toolCallId": "c2"}
    async with agent_of(Recorder(), url, trigger_history=TRANSCRIPT) as agent:
        await run(agent, turn(say("hi", "m1")))
        answer_id = (await agent.conversation("t").history()).items[1].message.id
        assert answer_id is not None
        for parts in ([ANSWERED], [ANSWERED, more]):
            await run(agent, turn(asked(*parts, message_id=answer_id)))
        page = await agent.conversation("t").history()
    ids = [row.message.id for row in page.items]
    assert ids.count(answer_id) == 1
    parts_now = page.items[1].message.to_json()["parts"]
    assert [part["toolCallId"] for part in parts_now] == ["c1", "c2"]


async def test_an_ended_error_never_runs_again(any_url: str | None) -> None:
    driver = Failing(OSError("down"))
    async with agent_of(driver, any_url) as agent:
        with pytest.raises(OSError, match="down"):
            await run(agent, turn(say("hi", "m1")))
        for _ in range(2):
            assert (await run(agent, turn(say("hi", "m1")))).status == "error"
    assert len(driver.calls) == 1


async def test_clearing_a_conversation_removes_its_claims(url: str) -> None:
    driver = Recorder()
    async with agent_of(driver, url) as agent:
        await run(agent, turn(say("hi", "m1")))
        await agent.conversation("t").clear()
        await run(agent, turn(say("hi", "m1")))
        assert await rows(agent.conversation("t")) == [
            ("user", "hi", "complete"),
            ("assistant", "answer 2", "complete"),
        ]
