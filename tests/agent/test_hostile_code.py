"""Code and values of the application that misbehave: a turn ends all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.agent.support import TRANSCRIPT, Recorder, agent_of, rows, run, say, turn
from vitehub_chat import (
    Capability,
    DriverCall,
    Message,
    chat,
    define_agent,
    run_agent_trigger,
)
from vitehub_chat.errors import ConfigError, StateError
from vitehub_chat.model.events import (
    Done,
    DriverEvent,
    FileProduced,
    NativeMessages,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)

SAID = TextDelta("t", "hello")
LITTLE = timedelta(milliseconds=5)


def emitting(*emitted: Any) -> Callable[[DriverCall], AsyncIterator[DriverEvent]]:
    async def drive(_call: DriverCall) -> AsyncIterator[DriverEvent]:
        for event in emitted:
            yield event

    return drive


async def hang(*_arguments: object) -> Any:
    await asyncio.Event().wait()


class Hanging(Capability):
    name = "hanging"

    async def prepare(self, ctx: object, /) -> None:
        await hang(ctx)


@pytest.mark.parametrize(
    "options",
    [
        {"filter": hang},
        {"identity": hang},
        {"lock_scope": hang},
        {"fallback_streaming_placeholder_text": hang},
    ],
    ids=lambda options: next(iter(options)),
)
async def test_code_that_never_answers_is_left_when_its_caller_leaves(
    options: dict[str, Any], url: str
) -> None:
    async with agent_of(Recorder(), url, **options) as agent:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await run(agent, turn(say("hi", "m1")))


async def test_a_hook_that_never_ends_is_stopped_by_the_life_of_the_lock(url: str) -> None:
    life: Any = {"strategy": "serial", "max_lock_lifetime_ms": 50}
    capabilities = [chat(concurrency=life), Hanging()]
    agent = define_agent(name="a", driver=Recorder(), capabilities=capabilities, state=url)
    async with agent:
        result = await run(agent, turn(say("hi", "m1")))
        assert (result.status, result.finish_reason) == ("interrupted", "lock_lifetime")
        assert await rows(agent.conversation("t")) == [
            ("user", "hi", "complete"),
            ("assistant", "", "interrupted"),
        ]


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("t", 5),  # type: ignore[arg-type]
        TextDelta("t", None),  # type: ignore[arg-type]
        Done(object()),  # type: ignore[arg-type]
        ToolCall(5, "look", {}),  # type: ignore[arg-type]
        ToolResult("c", "look", error=b"x", status="failed"),  # type: ignore[arg-type]
        ReasoningDelta("r", "hm", "google", b"sig"),  # type: ignore[arg-type]
        FileProduced("image/png", b"x"),  # type: ignore[arg-type]
        NativeMessages(object(), {}),  # type: ignore[arg-type]
        {"type": "text", "text": "no event"},
    ],
    ids=["number", "nothing", "reason", "id", "error", "signature", "url", "format", "mapping"],
)
async def test_an_event_that_cannot_be_stored_fails_the_turn_and_frees_the_lock(
    event: Any, url: str
) -> None:
    async with agent_of(emitting(SAID, event), url) as agent:
        with pytest.raises(ConfigError, match=r"emitted|yielded"):
            await run(agent, turn(say("hi", "m1")))
        assert [status for _, _, status in await rows(agent.conversation("t"))] == [
            "complete",
            "error",
        ]
        async with asyncio.timeout(5):
            with pytest.raises(ConfigError, match=r"emitted|yielded"):
                await run(agent, turn(say("again", "m2")))


def twice_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value.update(a=value, b=value, c=value)
    return value


@pytest.mark.parametrize(
    "events",
    [
        [ToolCall("c", "look", {"n": 10**5000}), ToolResult("c", "look", 10**5000)],
        [ToolCall("c", "look", twice_itself()), ToolResult("c", "look", twice_itself())],
        [ToolCall("c", "look", {"x": object()}), ToolResult("c", "look", {1: {2, 3}})],
        [Usage(float("nan"), 1)],  # type: ignore[arg-type]
        [NativeMessages("callable/1", {"x": object()})],
    ],
    ids=["large", "cyclic", "objects", "usage", "native"],
)
async def test_values_that_are_no_json_are_stored_as_close_as_can_be(
    events: list[Any], url: str
) -> None:
    async with agent_of(emitting(SAID, *events), url) as agent:
        result = await run(agent, turn(say("hi", "m1")))
        assert (result.status, result.text) == ("complete", "hello")
        assert [text for _, text, _ in await rows(agent.conversation("t"))] == ["hi", "hello"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-x", "toolCallId": "c", "state": []},
        {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,\ud800"},
        {"type": ["text"], "text": "x"},
    ],
)
async def test_a_strange_part_of_an_earlier_message_does_not_stop_the_turn(
    part: dict[str, Any], url: str
) -> None:
    window = {"source": "thread", "max_messages": 5}
    earlier = {"id": "e", "role": "user", "parts": [part]}
    async with agent_of(Recorder(), url, trigger_history=window) as agent:
        result = await run(agent, turn(earlier, say("hi", "m1")))
    assert result.status == "complete"


async def test_a_message_value_with_a_naive_time_is_in_utc(url: str) -> None:
    naive = Message("m1", "user", ({"type": "text", "text": "hi"},), {}, datetime(2026, 5, 1))  # noqa: DTZ001
    window = {"source": "thread", "max_messages": 5, "max_age_ms": 1000}
    async with agent_of(Recorder(), url, trigger_history=window) as agent:
        given = {"messages": [naive], "run": {"thread_id": "t"}}
        result = await run_agent_trigger(agent, "chat.message", given)
    assert result.prepared is not None
    assert result.prepared.context["channel"]["run"].annotations["channel.sent_at"] == (
        "2026-05-01T00:00:00.000Z"
    )


async def test_lone_surrogates_reach_no_driver(url: str) -> None:
    driver = Recorder()
    async with agent_of(driver, url, trigger_history=TRANSCRIPT) as agent:
        await run(agent, turn(say("a\ud800b", "m1")))
    assert driver.texts == [["a\ufffdb"]]


async def test_a_failing_renewal_does_not_cost_the_lock(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitehub_chat.conversation.lease.RENEW_EVERY", LITTLE)
    renewals: list[bool] = []
    renewed = asyncio.Event()

    async def drive(_call: DriverCall) -> str:
        await renewed.wait()
        return "done"

    async with agent_of(drive, url) as agent:
        turns = (await agent.open_state()).turns
        renew = turns.renew

        async def failing_once(ticket_id: str, /, **options: Any) -> bool:
            renewals.append(True)
            if len(renewals) == 1:
                raise StateError("full", code="no_space")
            answer = await renew(ticket_id, **options)
            renewed.set()
            return answer

        monkeypatch.setattr(turns, "renew", failing_once)
        result = await run(agent, turn(say("hi", "m1")))
    assert (result.status, result.text, len(renewals) >= 2) == ("complete", "done", True)


async def test_an_id_that_two_threads_of_one_session_use_names_two_messages(url: str) -> None:
    async with agent_of(Recorder(), url, sessions=True) as agent:
        for thread in ("t1", "t2"):
            given = turn(say(f"hello from {thread}", "1"), thread=thread, session={"id": "s"})
            assert (await run(agent, given)).session_id == "s"
        assert [text for _, text, _ in await rows(agent.conversation("t1"))] == [
            "hello from t1",
            "answer 1",
            "hello from t2",
            "answer 2",
        ]


async def test_a_message_with_the_id_of_an_answer_does_not_take_its_place(url: str) -> None:
    async with agent_of(Recorder(), url) as agent:
        first = await run(agent, turn(say("hi", "u1")))
        assert first.message is not None
        await run(agent, turn(say("mine", first.message.id)))
        assert (await run(agent, turn(say("hi", "u1")))).text == "answer 1"
        assert [text for _, text, _ in await rows(agent.conversation("t"))] == [
            "hi",
            "answer 1",
            "mine",
            "answer 2",
        ]


async def test_sessions_that_begin_with_messages_of_one_id_have_names_of_their_own(
    url: str,
) -> None:
    async with agent_of(Recorder(), url, sessions=True) as agent:
        await run(agent, turn(say("begin", "0"), session={"id": "s"}))
        named = [
            (
                await run(
                    agent,
                    turn(say("new", "1"), thread=f"t{n}", session={"id": "s", "action": "new"}),
                )
            ).session_id
            for n in range(4)
        ]
    assert len(set(named)) == 4
