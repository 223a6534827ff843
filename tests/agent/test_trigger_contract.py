"""The contract of `chat.message`, case by case; each test names its case."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from tests.agent.support import (
    THREAD,
    TRANSCRIPT,
    WHEN,
    Failing,
    Gate,
    Recorder,
    agent_of,
    prepare,
    rows,
    run,
    say,
    turn,
)
from vitehub_chat import Agent, define_agent, prepare_agent_trigger, stream_agent_trigger
from vitehub_chat.agent.stream import AgentStream
from vitehub_chat.capability import chat
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.events import RunStarted
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ApprovalRequestPart,
    DataPart,
    MediaPart,
    ModelPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from vitehub_chat.model.requests import Invoker

PLACEHOLDER = "chat.placeholder"


async def invoker_of(**fields: Any) -> Invoker | None:
    prepared = await prepare({"messages": [say("hi")], **fields})
    found: Invoker | None = prepared.context.get("invoker")
    return found


async def parts_of(*parts: dict[str, Any]) -> tuple[ModelPart, ...]:
    prepared = await prepare(turn({"id": "m", "role": "user", "parts": list(parts)}))
    return prepared.messages[-1].parts  # type: ignore[return-value]


async def error_text_of(agent: Agent) -> list[str]:
    stream = stream_agent_trigger(agent, "chat.message", turn(say("hi")))
    chunks = [chunk async for chunk in stream]
    return [chunk["errorText"] for chunk in chunks if chunk["type"] == "error"]


async def test_t01_the_id_of_a_user_stands_behind_the_origin() -> None:
    invoker = await invoker_of(user={"id": "u1"}, run={"origin": "portal"})
    assert invoker is not None
    assert (invoker.id, invoker.kind, invoker.meta) == ("portal:u1", "chat", {"id": "u1"})


async def test_t02_an_email_is_an_id_with_a_domain() -> None:
    invoker = await invoker_of(user={"email": "a@x.io"})
    assert invoker is not None
    assert invoker.id == "a@x.io"
    assert invoker.email == {"address": "a@x.io", "domain": "x.io"}


async def test_t03_facts_alone_make_no_invoker() -> None:
    prepared = await prepare(turn(say("hi"), meta={"email": "a@x.io"}))
    assert "invoker" not in prepared.context
    assert prepared.context["chat"]["meta"] == {"email": "a@x.io"}
    assert prepared.context["channel"]["meta"] == {"email": "a@x.io"}


async def test_t04_nothing_is_merged_into_an_explicit_invoker() -> None:
    invoker = await invoker_of(
        invoker={"id": "k", "kind": "customer"}, meta={"p": 1}, user={"id": "u1"}
    )
    assert invoker == Invoker(id="k", kind="customer", label="k")


async def test_t05_other_facts_of_a_user_are_in_the_context_alone() -> None:
    prepared = await prepare(turn(say("hi"), user={"id": "u1", "role": "admin"}))
    assert prepared.context["chat"]["user"] == {"id": "u1", "role": "admin"}
    assert dict(prepared.context["invoker"].meta) == {"id": "u1"}


async def test_t06_meta_overlays_the_facts_but_not_the_id() -> None:
    invoker = await invoker_of(user={"email": "a@x"}, meta={"email": "b@x"})
    assert invoker is not None
    assert invoker.id == "a@x"
    assert invoker.meta["email"] == "b@x"


async def test_t07_a_tool_with_an_output_is_a_call_and_its_result() -> None:
    found = await parts_of(
        {
            "type": "dynamic-tool",
            "toolName": "search",
            "toolCallId": "t1",
            "state": "output-available",
            "input": {"q": "x"},
            "output": "42",
        }
    )
    assert found == (
        ToolCallPart("t1", "search", {"q": "x"}),
        ToolResultPart("t1", "search", "42", "completed"),
    )


async def test_t08_a_static_tool_is_named_by_its_type() -> None:
    found = await parts_of({"type": "tool-search", "output": 1})
    assert found == (
        ToolCallPart("search-1", "search"),
        ToolResultPart("search-1", "search", 1),
    )


async def test_t09_an_output_error_is_a_failed_result() -> None:
    found = await parts_of(
        {"type": "tool-s", "toolCallId": "t1", "state": "output-error", "errorText": "x"}
    )
    assert found == (
        ToolCallPart("t1", "s"),
        ToolResultPart("t1", "s", status="failed", error="x"),
    )


async def test_t10_a_call_without_an_end_is_left_out() -> None:
    found = await parts_of(
        {"type": "text", "text": "a"},
        {"type": "tool-s", "toolCallId": "t1", "state": "input-available", "input": {}},
    )
    assert found == (TextPart("a", "text-0"),)


async def test_t11_a_requested_approval_is_a_call_and_a_request() -> None:
    found = await parts_of(
        {
            "type": "tool-s",
            "toolCallId": "t1",
            "state": "approval-requested",
            "approval": {"id": "ap"},
        }
    )
    assert found == (ToolCallPart("t1", "s"), ApprovalRequestPart("ap", "t1"))


async def test_t12_a_decision_comes_behind_call_and_request() -> None:
    found = await parts_of(
        {
            "type": "tool-s",
            "toolCallId": "t1",
            "state": "approval-responded",
            "approval": {"id": "ap", "approved": False, "reason": "r"},
        }
    )
    assert found == (
        ToolCallPart("t1", "s"),
        ApprovalRequestPart("ap", "t1"),
        ApprovalDecisionPart("ap", approved=False, reason="r"),
    )


async def test_t13_data_is_kept_and_text_is_named_by_its_place() -> None:
    found = await parts_of(
        {"type": "data-weather", "id": "w", "data": {"c": 3}}, {"type": "text", "text": "a"}
    )
    assert found == (DataPart("data-weather", {"c": 3}, "w"), TextPart("a", "text-1"))


async def test_t14_an_unknown_role_is_a_user_and_a_nameless_message_has_its_place() -> None:
    prepared = await prepare(turn(say("hi", role="bot")))
    assert [(message.id, message.role) for message in prepared.messages] == [("ui-0", "user")]


async def test_t15_media_without_a_type_is_left_out() -> None:
    found = await parts_of({"type": "image", "url": "https://x/i"}, {"type": "text", "text": "a"})
    assert found == (TextPart("a", "text-1"),)


async def test_t16_the_media_type_says_what_a_file_is() -> None:
    found = await parts_of({"type": "file", "mediaType": "audio/mpeg", "url": "https://x/a"})
    assert found == (MediaPart("audio", "audio/mpeg", url="https://x/a"),)


async def test_t17_a_stream_is_a_ui_message_stream() -> None:
    stream = stream_agent_trigger(agent_of("echo"), "chat.message", turn(say("hi")))
    chunks = [chunk async for chunk in stream]
    assert [chunks[0]["type"], chunks[-1]["type"]] == ["start", "finish"]
    assert stream.headers["x-vercel-ai-ui-message-stream"] == "v1"


async def test_t18_a_stream_of_events_has_events() -> None:
    stream = stream_agent_trigger(
        agent_of("echo"), "chat.message", turn(say("hi")), output="events"
    )
    assert isinstance(await anext(stream), RunStarted)
    await stream.result()


async def test_t19_annotations_of_the_caller_stay_but_for_ours() -> None:
    prepared = await prepare(
        {
            "messages": [say("hi", createdAt=WHEN)],
            "run": {"run_id": "r", "annotations": {"x": "1", "triggered_by": "evil"}},
            "invoker": {"id": "k", "label": "Kim"},
        }
    )
    assert prepared.run is not None
    assert prepared.run.run_id == "r"
    assert prepared.run.annotations == {
        "x": "1",
        "triggered_by": "Kim",
        "channel.sent_at": "2026-01-01T00:00:00.000Z",
    }


async def test_t20_without_a_run_there_is_none() -> None:
    assert (await prepare(turn(say("hi"), thread=None))).run is None


async def test_t21_the_run_is_told_to_the_channel_alone() -> None:
    prepared = await prepare(
        {"messages": [say("hi")], "session": {"id": "s"}, "run": {"run_id": "r"}}
    )
    chat_facts, channel_facts = prepared.context["chat"], prepared.context["channel"]
    assert chat_facts["session"]["id"] == channel_facts["session"]["id"] == "s"
    assert channel_facts["run"].run_id == "r"
    assert "run" not in chat_facts


async def test_t22_the_label_of_a_session_has_thread_and_id() -> None:
    prepared = await prepare(
        turn(say("hi"), thread="th", session={"id": "s"}), sessions={"strategy": "manual"}
    )
    assert prepared.context["chat.session_id"] == "th:chat-session:s"


@pytest.mark.parametrize("name", ["chat.session_id", "chat.sessionId"])
async def test_t23_a_label_of_the_caller_stays(name: str) -> None:
    prepared = await prepare(
        turn(say("hi"), session={"id": "s"}, context={name: "fixed"}), sessions=True
    )
    assert prepared.context["chat.session_id"] == "fixed"


async def test_t24_an_empty_list_is_no_placeholder() -> None:
    prepared = await prepare(turn(say("hi")), fallback_streaming_placeholder_text=[])
    assert PLACEHOLDER in prepared.context
    assert prepared.context[PLACEHOLDER] is None


async def test_t25_an_unset_placeholder_is_absent() -> None:
    assert PLACEHOLDER not in (await prepare(turn(say("hi")))).context


async def test_t26_a_callable_that_gives_no_text_leaves_it_unset() -> None:
    prepared = await prepare(turn(say("hi")), fallback_streaming_placeholder_text=lambda: 5)
    assert PLACEHOLDER not in prepared.context


async def test_t27_no_error_text_shows_nothing(any_url: str | None) -> None:
    async with agent_of(Failing(OSError("x")), any_url, error_fallback_text=None) as agent:
        assert await error_text_of(agent) == [""]


async def test_t28_an_internal_error_shows_the_configured_text(any_url: str | None) -> None:
    async with agent_of(Failing(OSError("x")), any_url, error_fallback_text="Oops") as agent:
        assert await error_text_of(agent) == ["Oops"]


async def test_t29_a_public_message_is_shown(any_url: str | None) -> None:
    error = OSError("x")
    error.public_message = "Try later"  # type: ignore[attr-defined]
    async with agent_of(Failing(error), any_url, error_fallback_text="Oops") as agent:
        assert await error_text_of(agent) == ["Try later"]


def test_t30_a_loading_text_excludes_a_growing_reply() -> None:
    with pytest.raises(ConfigError):
        chat(loading={"text": "one moment"}, stream=True)


@pytest.mark.parametrize("value", [0, math.inf, -1, "5", True])
def test_t31_a_timeout_is_a_positive_number_of_milliseconds(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        chat(timeout_ms=value)
    assert caught.value.path == "timeout_ms"


def test_t35_an_agent_has_one_chat() -> None:
    with pytest.raises(ConfigError) as caught:
        define_agent(name="a", capabilities=[chat(), chat()])
    assert caught.value.path == "capabilities[1]"


async def test_t36_text_parts_are_joined_without_a_separator() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    prepared = await prepare(turn({"role": "user", "parts": parts}))
    assert prepared.context["message"]["text"] == "ab"


async def test_t37_a_blank_id_is_none() -> None:
    invoker = await invoker_of(user={"id": " ", "email": "a@x"})
    assert invoker is not None
    assert invoker.id == "a@x"


async def test_t38_both_spellings_of_one_name_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        await prepare({"messages": [say("hi")], "run": {"threadId": "t", "thread_id": "t"}})
    assert caught.value.path is not None
    assert caught.value.path.startswith("run.thread")


async def test_t39_the_current_message_replaces_earlier_ones_of_its_id() -> None:
    prepared = await prepare(
        turn(say("old", "a"), say("b", "b"), say("new", "a")),
        trigger_history={"source": "thread", "max_messages": 3},
    )
    assert [(message.id, message.text) for message in prepared.messages] == [
        ("b", "b"),
        ("a", "new"),
    ]


async def test_t41_preparing_changes_nothing_and_asks_nobody(url: str) -> None:
    driver, asked = Recorder(), list[Any]()

    def refuse(message: Any, _context: Any) -> bool:
        asked.append(message)
        return False

    async with agent_of(
        driver, url, trigger_history=TRANSCRIPT, sessions=True, filter=refuse
    ) as agent:
        given = turn(say("hi", "m1"))
        first = await prepare_agent_trigger(agent, "chat.message", given)
        assert await prepare_agent_trigger(agent, "chat.message", given) == first
        assert (await agent.conversations().sessions()).items == ()
        assert await rows(agent.conversation("t")) == []
    assert (driver.calls, asked) == ([], [])


async def test_t42_a_stored_conversation_needs_a_name(url: str) -> None:
    async with agent_of("echo", url) as agent:
        with pytest.raises(InputError) as caught:
            await run(agent, turn(say("hi"), thread=None))
    assert caught.value.path == "run.thread_id"


async def test_t43_a_failed_answer_is_never_shown_to_the_model(url: str) -> None:
    driver = Failing(OSError("down"))
    async with agent_of(driver, url, trigger_history=TRANSCRIPT) as agent:
        with pytest.raises(OSError, match="down"):
            await run(agent, turn(say("one", "m1")))
        await run(agent, turn(say("two", "m2")))
    assert [message.text for message in driver.calls[1].messages] == ["one", "two"]


async def follow(stream: AgentStream, count: int) -> list[Any]:
    return [await anext(stream) for _ in range(count)]


async def test_t44_a_stopped_turn_keeps_what_it_has(url: str) -> None:
    driver = Gate("one ", "two")
    async with agent_of(driver, url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        await follow(stream, 4)
        await driver.reached.wait()
        stream.stop()
        result = await stream.result()
        assert (result.status, result.text) == ("interrupted", "one two")
        assert await rows(agent.conversation("t")) == [
            ("user", "hi", "complete"),
            ("assistant", "one two", "interrupted"),
        ]


async def test_t44_a_closed_stream_does_not_stop_its_turn(any_url: str | None) -> None:
    driver = Gate("one ", "two")
    async with agent_of(driver, any_url) as agent:
        stream = stream_agent_trigger(agent, "chat.message", turn(say("hi", "m1")))
        await follow(stream, 4)
        await stream.aclose()
        driver.open()
        result = await stream.result()
    assert (result.status, result.text) == ("complete", "one two")


async def test_t45_a_cancelled_turn_is_recorded_and_lets_go(url: str) -> None:
    driver = Gate("one ")
    async with agent_of(driver, url) as agent:
        task = asyncio.create_task(run(agent, turn(say("hi", "m1"))))
        await driver.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert driver.was_cancelled
        assert await rows(agent.conversation("t")) == [
            ("user", "hi", "complete"),
            ("assistant", "one ", "interrupted"),
        ]
        driver.open()
        assert (await run(agent, turn(say("again", "m2")))).status == "complete"


async def test_t46_a_filtered_message_leaves_nothing_and_may_come_again(url: str) -> None:
    verdicts = iter([False, True])
    async with agent_of(Recorder(), url, filter=lambda *_: next(verdicts)) as agent:
        given = turn(say("hi", "m1"))
        assert (await run(agent, given)).status == "filtered"
        assert await rows(agent.conversation("t")) == []
        assert (await run(agent, given)).text == "answer 1"


async def test_t47_a_session_keeps_its_name_however_much_of_it_is_loaded(url: str) -> None:
    sessions = {"strategy": "hybrid", "idle_timeout_ms": 60_000}
    thread = [say(f"{n}", f"m{n}", createdAt=f"2026-01-01T00:{n:02}:00Z") for n in range(31)]
    async with agent_of(Recorder(), url, sessions=sessions, trigger_history=THREAD) as agent:
        first = await run(agent, turn(*thread[27:30]))
        second = await run(agent, turn(*thread))
    assert first.session_id == second.session_id == "idle:m27"


async def test_t48_a_named_session_outlives_its_thread_but_not_its_channel(url: str) -> None:
    async with agent_of(Recorder(), url, sessions=True, trigger_history=TRANSCRIPT) as agent:
        seen: list[list[str]] = []
        for channel, thread in (("c1", "t1"), ("c1", "t2"), ("c2", "t1")):
            place = {"channel_id": channel, "thread_id": thread}
            result = await run(
                agent,
                {"messages": [say(f"{channel} {thread}")], "run": place, "session": {"id": "s"}},
            )
            assert result.prepared is not None
            seen.append([message.text for message in result.prepared.messages])
        sessions = (await agent.conversations().sessions()).items
    assert seen == [["c1 t1"], ["c1 t1", "answer 1", "c1 t2"], ["c2 t1"]]
    assert sorted((s.conversation.channel or "", s.message_count) for s in sessions) == [
        ("c1", 4),
        ("c2", 2),
    ]
