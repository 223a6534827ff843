"""What a turn records, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.agent.support import (
    THREAD,
    Gate,
    Recorder,
    Waiting,
    agent_of,
    rows,
    run,
    say,
    turn,
)
from vitehub_chat import Agent, Row, stream_agent_trigger
from vitehub_chat.model.events import Done, TextDelta, ToolCall, ToolResult, Usage


async def stored(agent: Agent, thread: str = "t") -> tuple[Row, ...]:
    return (await agent.conversation(thread).history(limit=100)).items


async def test_the_message_is_durable_before_the_driver_starts(url: str) -> None:
    seen: list[Any] = []
    agents: list[Agent] = []

    async def answer(_call: Any) -> str:
        seen.extend(await rows(agents[0].conversation("t")))
        return "done"

    async with agent_of(answer, url) as agent:
        agents.append(agent)
        await run(agent, turn(say("hi", "m1")))
    assert seen == [("user", "hi", "complete")]


async def test_of_the_array_only_the_current_message_is_recorded(url: str) -> None:
    async with agent_of(Recorder(), url, trigger_history=THREAD) as agent:
        result = await run(agent, turn(say("a", "a"), say("b", "b"), say("c", "c")))
        assert result.prepared is not None
        assert len(result.prepared.messages) == 3
        assert await rows(agent.conversation("t")) == [
            ("user", "c", "complete"),
            ("assistant", "answer 1", "complete"),
        ]


async def test_skipped_messages_are_recorded_before_the_current_one(url: str) -> None:
    async with agent_of(
        Recorder(),
        url,
        concurrency="queue",
        trigger_history={"source": "thread", "max_messages": 1},
    ) as agent:
        skipping = {"chat": {"skippedCount": 2}}
        given = turn(say("a", "a"), say("b", "b"), say("c", "c"), say("d", "d", metadata=skipping))
        result = await run(agent, given)
        assert result.prepared is not None
        assert [message.id for message in result.prepared.messages] == ["b", "c", "d"]
        assert [row.message.id for row in await stored(agent)][:3] == ["b", "c", "d"]


async def test_rows_keep_the_parts_as_supplied(url: str) -> None:
    parts = [
        {"type": "text", "text": "hi", "providerMetadata": {"x": 1}},
        {"type": "image", "url": "https://x/i"},
        {"type": "unheard-of", "value": None},
    ]
    message = {"id": "m1", "role": "bot", "parts": parts, "metadata": {"deep": {"er": [1]}}}
    async with agent_of("echo", url) as agent:
        await run(agent, turn(message, run={"thread_id": "t"}))
        row = (await stored(agent))[0]
    assert list(row.message.parts) == parts
    assert (row.message.role, row.message.metadata) == ("bot", {"deep": {"er": [1]}})
    assert row.thread_id == "t"


async def test_a_message_without_an_id_gets_one(url: str) -> None:
    async with agent_of("echo", url) as agent:
        await run(agent, turn(say("hi")))
        await run(agent, turn(say("hi")))
        ids = [row.message.id for row in await stored(agent)]
    assert len(set(ids)) == 4
    assert all(ids)


async def test_an_answer_is_stored_under_the_id_that_the_stream_tells(url: str) -> None:
    async with agent_of("echo", url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        first = await anext(stream)
        result = await stream.result()
        row = (await stored(agent))[1]
    assert first["messageId"] == row.message.id
    assert result.message == row.message


async def test_an_empty_answer_has_a_row_that_no_model_sees(url: str) -> None:
    async with agent_of(lambda _call: "", url) as agent:
        await run(agent, turn(say("hi", "m1")))
        row = (await stored(agent))[1]
    assert (row.status, row.message.parts, row.is_shown) == ("complete", (), False)


async def test_open_tool_calls_of_a_stopped_turn_have_failed(url: str) -> None:
    driver = Gate(
        ToolCall("c1", "search", {"q": "x"}),
        ToolResult("c1", "search", "found"),
        ToolCall("c2", "search", {"q": "y"}),
    )
    async with agent_of(driver, url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        await anext(stream)
        await driver.reached.wait()
        stream.stop()
        await stream.result()
        row = (await stored(agent))[1]
    assert row.status == "interrupted"
    assert [(part["state"], part.get("errorText")) for part in row.message.to_json()["parts"]] == [
        ("output-available", None),
        ("output-error", "interrupted"),
    ]


async def test_a_tool_result_is_durable_while_the_turn_runs(url: str) -> None:
    driver = Gate(ToolCall("c1", "search", {}), ToolResult("c1", "search", "found"))
    async with agent_of(driver, url) as agent:
        task = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await driver.reached.wait()
        pending = (await stored(agent))[1]
        driver.open()
        result = await task
        complete = (await stored(agent))[1]
    assert pending.status == "pending"
    assert pending.message.to_json()["parts"][0]["output"] == "found"
    assert (complete.status, complete.seq, complete.message) == (
        "complete",
        pending.seq,
        result.message,
    )


async def test_what_the_model_reported_is_stored_with_the_answer(url: str) -> None:
    async def events() -> AsyncIterator[Any]:
        yield TextDelta("t", "hi")
        yield Usage(10, 2, "m")
        yield Done("stop")

    async with agent_of(lambda _call: events(), url) as agent:
        await run(agent, turn(say("hi", "m1")))
        row = (await stored(agent))[1]
    assert row.usage == {"input_tokens": 10, "output_tokens": 2, "model": "m"}


@pytest.mark.parametrize("how", ["stopped", "cancelled"])
async def test_a_message_that_is_given_up_while_it_waits_leaves_nothing(
    url: str, how: str, waiting: Waiting
) -> None:
    driver = Gate("done")
    async with agent_of(driver, url) as agent:
        first = asyncio.create_task(run(agent, turn(say("a", "a"))))
        await driver.reached.wait()
        stream = stream_agent_trigger(agent, "chat.message", turn(say("b", "b")))
        if how == "stopped":
            second = asyncio.create_task(stream.result())
            await waiting.reach(1)
            stream.stop()
            assert (await second).status == "interrupted"
        else:
            second = asyncio.create_task(run(agent, turn(say("b", "b"))))
            await waiting.reach(1)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
        driver.open()
        await first
        assert await rows(agent.conversation("t")) == [
            ("user", "a", "complete"),
            ("assistant", "done", "complete"),
        ]
        assert (await run(agent, turn(say("b", "b")))).status == "complete"


async def test_a_message_that_is_given_up_before_it_begins_leaves_nothing(
    any_url: str | None,
) -> None:
    driver = Recorder()
    async with agent_of(driver, any_url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        stream.stop()
        assert (await stream.result()).status == "interrupted"
        task = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if any_url is not None:
            assert await rows(agent.conversation("t")) == []
        assert driver.calls == []
        assert (await run(agent, turn(say("hi", "m1")))).text == "answer 1"


async def test_the_author_of_a_row_is_who_identity_names(url: str) -> None:
    async def name(context: Any) -> str:
        user: str = context["chat"]["user"]["id"]
        return f"key-{user}"

    async with agent_of("echo", url, identity=name) as agent:
        await run(agent, turn(say("hi", "m1"), user={"id": "u1"}))
        await run(agent, turn(say("hi", "m2"), user={"id": "u1"}, user_key="given"))
        await run(agent, turn(say("hi", "m3")))
        authors = [row.author for row in await stored(agent) if row.message.role == "user"]
    assert authors == ["key-u1", "given", None]
