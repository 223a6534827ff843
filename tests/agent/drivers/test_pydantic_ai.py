"""The Pydantic AI driver, with the test models of Pydantic AI."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext, UnexpectedModelBehavior
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from vitehub_chat import define_agent
from vitehub_chat.agent.driver import Driver, DriverCall, ToolSpec
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.agent.drivers.pydantic_ai_events import Progress, Translation
from vitehub_chat.errors import ConfigError, ContextOverflowError
from vitehub_chat.model.events import (
    ApprovalRequested,
    Done,
    DriverEvent,
    NativeMessages,
    ReasoningDelta,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolResult,
    Usage,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import (
    ApprovalDecisionPart,
    ApprovalRequestPart,
    ModelPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from vitehub_chat.plugins import drivers

Say = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]


class Script:
    """A model that says what is written for each request, and keeps what it was asked."""

    def __init__(self, *answers: Sequence[Say]) -> None:
        self.asked: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self._answers = list(answers)
        self.model = FunctionModel(stream_function=self._stream, model_name="script")

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.asked.append(messages)
        self.infos.append(info)
        for piece in self._answers.pop(0):
            yield piece

    @property
    def last_asked(self) -> list[tuple[str, Any]]:
        return shapes(self.asked[-1])


def shapes(messages: Sequence[ModelMessage]) -> list[tuple[str, Any]]:
    """Say in short what a model was sent."""
    found: list[tuple[str, Any]] = []
    for part in (part for message in messages for part in message.parts):
        content = getattr(part, "args", None) or getattr(part, "content", None)
        if isinstance(part, ToolReturnPart) and part.outcome != "success":
            found.append((f"{part.part_kind} {part.outcome}", content))
        else:
            found.append((part.part_kind, content))
    return found


def calls(*tools: tuple[str, str, str]) -> list[Say]:
    return [
        {index: DeltaToolCall(name=name, json_args=args, tool_call_id=call_id)}
        for index, (call_id, name, args) in enumerate(tools)
    ]


def user(text: str, message_id: str = "u") -> Message:
    return Message(message_id, "user", (TextPart(text),))


def assistant(message_id: str, *parts: ModelPart) -> Message:
    return Message(message_id, "assistant", parts)


def driver_of(model: Model[Any], **config: Any) -> Driver:
    return create({"model": model, **config})


async def answer(
    driver: Driver, call: DriverCall, into: list[DriverEvent] | None = None
) -> list[DriverEvent]:
    events: list[DriverEvent] = [] if into is None else into
    async for event in driver.stream(call):
        events.append(event)  # noqa: PERF401 - what was told before an error counts
    return events


def only(events: Sequence[DriverEvent], *kinds: type) -> list[DriverEvent]:
    return [event for event in events if isinstance(event, kinds)]


def spec(name: str, call: Callable[..., Any]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=f"Does {name}.",
        parameters={"type": "object", "properties": {}},
        call=call,
    )


async def test_text_is_streamed_in_a_step_with_its_usage() -> None:
    script = Script(["Hel", "lo"])
    events = await answer(driver_of(script.model), DriverCall(messages=(user("hi"),)))
    *told, native, done = events
    assert told == [
        StepStarted(),
        TextDelta("part-1", "Hel"),
        TextDelta("part-1", "lo"),
        Usage(50, 2, "function:script"),
        StepFinished(),
    ]
    assert isinstance(native, NativeMessages)
    assert native.format == "pydantic_ai/1"
    assert [message["kind"] for message in native.payload] == ["response"]
    assert done == Done("stop")


async def test_the_test_model_answers() -> None:
    events = await answer(
        driver_of(TestModel(custom_output_text="fine")), DriverCall(messages=(user("hi"),))
    )
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "fine"


async def test_reasoning_is_streamed_apart() -> None:
    script = Script([{0: DeltaThinkingPart(content="hm", signature="s")}, "ok"])
    events = await answer(driver_of(script.model), DriverCall(messages=(user("hi"),)))
    assert only(events, ReasoningDelta, TextDelta) == [
        ReasoningDelta("part-1", "hm", "function", "s"),
        TextDelta("part-2", "ok"),
    ]


async def test_two_tools_run_at_once_and_one_that_raises_gives_a_failed_result() -> None:
    both = asyncio.Barrier(2)

    async def good(city: str) -> dict[str, Any]:
        await both.wait()
        return {"city": city, "seen": {1}}

    async def bad() -> str:
        await both.wait()
        raise LookupError("no such city")

    script = Script(
        calls(("c1", "good", '{"city": "Oslo"}'), ("c2", "bad", "{}")),
        ["done"],
    )
    tools = (spec("good", good), spec("bad", bad))
    events = await answer(driver_of(script.model), DriverCall(messages=(user("hi"),), tools=tools))

    steps = [type(event) for event in only(events, StepStarted, StepFinished)]
    assert steps == [StepStarted, StepFinished] * 2
    assert only(events, ToolCall, ToolInputDelta) == [
        ToolInputDelta("c1", "good", '{"city": "Oslo"}'),
        ToolInputDelta("c2", "bad", "{}"),
        ToolCall("c1", "good", {"city": "Oslo"}),
        ToolCall("c2", "bad", {}),
    ]
    results = {event.call_id: event for event in events if isinstance(event, ToolResult)}
    assert results == {
        "c1": ToolResult("c1", "good", {"city": "Oslo", "seen": [1]}),
        "c2": ToolResult("c2", "bad", status="failed", error="no such city"),
    }
    assert script.last_asked == [
        ("user-prompt", "hi"),
        ("tool-call", '{"city": "Oslo"}'),
        ("tool-call", "{}"),
        ("tool-return", {"city": "Oslo", "seen": [1]}),
        ("tool-return failed", "no such city"),
    ]
    assert [tool.name for tool in script.infos[0].function_tools] == ["good", "bad"]


async def test_a_tool_that_is_no_coroutine_function_works_too() -> None:
    script = Script(calls(("c1", "add", '{"a": 1, "b": 2}')), ["3"])
    call = DriverCall(messages=(user("hi"),), tools=(spec("add", lambda a, b: a + b),))
    events = await answer(driver_of(script.model), call)
    assert only(events, ToolResult) == [ToolResult("c1", "add", 3)]


@pytest.mark.parametrize(("args", "read"), [("[1]", "[1]"), ('{"a', '{"a'), ("3", "3")])
async def test_input_that_is_no_json_object_is_told_and_goes_back_to_the_model(
    args: str, read: str
) -> None:
    script = Script(calls(("c1", "add", args)), ["sorry"])
    call = DriverCall(messages=(user("hi"),), tools=(spec("add", lambda: 1),))
    events = await answer(driver_of(script.model), call)
    assert only(events, ToolCall) == [ToolCall("c1", "add", read, "the input is not a JSON object")]
    (result,) = only(events, ToolResult)
    assert isinstance(result, ToolResult)
    assert result.status == "failed"
    assert events[-1] == Done("stop")


async def test_an_unknown_tool_is_a_failed_result() -> None:
    script = Script(calls(("c1", "nope", "{}")), ["sorry"])
    events = await answer(driver_of(script.model), DriverCall(messages=(user("hi"),)))
    (result,) = only(events, ToolResult)
    assert isinstance(result, ToolResult)
    assert (result.status, "nope" in (result.error or "")) == ("failed", True)


async def test_instructions_of_the_driver_come_before_those_of_the_call() -> None:
    script = Script(["ok"])
    driver = driver_of(script.model, instructions="Be brief.")
    await answer(driver, DriverCall(system="The user is Ann.", messages=(user("hi"),)))
    assert script.infos[0].instructions == "Be brief.\n\nThe user is Ann."


async def test_instructions_that_the_call_already_has_are_sent_once() -> None:
    script = Script(["ok"])
    driver = driver_of(script.model, instructions="Be brief.")
    await answer(driver, DriverCall(system="Be brief.\n\nMore.", messages=(user("hi"),)))
    assert script.infos[0].instructions == "Be brief.\n\nMore."


async def test_settings_conversation_id_and_context_reach_the_run() -> None:
    seen: list[Any] = []
    script = Script(calls(("c1", "look", "{}")), ["ok"])
    agent: Agent[Any, str] = Agent(script.model)

    @agent.tool
    def look(ctx: RunContext[Any]) -> str:
        seen.append((ctx.deps["key"], ctx.conversation_id))
        return "seen"

    driver = create({"agent": agent, "settings": {"temperature": 0.5}})
    call = DriverCall(messages=(user("hi"),), conversation_id="conv-1", context={"key": "value"})
    await answer(driver, call)
    assert seen == [("value", "conv-1")]
    assert (script.infos[0].model_settings or {}).get("temperature") == 0.5


async def test_a_given_agent_keeps_its_instructions_system_prompt_and_tools() -> None:
    script = Script(["ok"])
    agent: Agent[Any, str] = Agent(script.model, instructions="Own.", system_prompt="Prompt.")

    @agent.tool_plain
    def own() -> str:
        return "own"

    call = DriverCall(
        system="Call.",
        messages=(user("q0", "u0"), assistant("a0", TextPart("a0")), user("q1")),
        tools=(spec("extra", lambda: 1),),
    )
    await answer(create({"agent": agent}), call)
    assert script.infos[0].instructions == "Own.\n\nCall."
    assert {tool.name for tool in script.infos[0].function_tools} == {"own", "extra"}
    assert script.last_asked == [
        ("system-prompt", "Prompt."),
        ("user-prompt", "q0"),
        ("text", "a0"),
        ("user-prompt", "q1"),
    ]


async def test_a_given_agent_can_be_overridden_and_a_given_model_replaces_its_own() -> None:
    agent: Agent[Any, str] = Agent("nobody:nothing", defer_model_check=True)
    call = DriverCall(messages=(user("hi"),))
    with agent.override(model=Script(["overridden"]).model):
        events = await answer(create({"agent": agent}), call)
    assert only(events, TextDelta) == [TextDelta("part-1", "overridden")]
    events = await answer(create({"agent": agent, "model": Script(["replaced"]).model}), call)
    assert only(events, TextDelta) == [TextDelta("part-1", "replaced")]


async def test_an_answer_given_by_a_tool_of_the_agent_is_told_as_json_text() -> None:
    script = Script(calls(("c1", "final_result", '{"response": [1, 2]}')))
    agent: Agent[Any, list[int]] = Agent(script.model, output_type=list[int])
    events = await answer(create({"agent": agent}), DriverCall(messages=(user("hi"),)))
    assert only(events, TextDelta, ToolCall, ToolInputDelta, ToolResult) == [
        TextDelta("output", "[1, 2]")
    ]


QUESTION = (
    user("q0", "u0"),
    assistant(
        "a0",
        TextPart("Let me look."),
        ToolCallPart("c1", "look", {"at": "sky"}),
        ToolResultPart("c1", "look", "blue"),
        TextPart("It is blue."),
    ),
    user("q1", "u1"),
)

FROM_PARTS = [
    ("user-prompt", "q0"),
    ("text", "Let me look."),
    ("tool-call", {"at": "sky"}),
    ("tool-return", "blue"),
    ("text", "It is blue."),
    ("user-prompt", "q1"),
]


async def test_an_earlier_tool_round_is_rebuilt_from_its_parts() -> None:
    script = Script(["ok"])
    await answer(driver_of(script.model), DriverCall(messages=QUESTION))
    assert script.last_asked == FROM_PARTS
    assert [message.kind for message in script.asked[0]] == [
        "request",
        "response",
        "request",
        "response",
        "request",
    ]


async def test_an_earlier_turn_is_replayed_from_its_native_payload() -> None:
    first = Script(calls(("c1", "look", '{"at": "sky"}')), ["It is ", "blue."])
    call = DriverCall(messages=(user("q0", "u0"),), tools=(spec("look", lambda at: f"{at} blue"),))
    events = await answer(driver_of(first.model, instructions="Secret."), call)
    (native,) = only(events, NativeMessages)
    assert isinstance(native, NativeMessages)
    assert "Secret." not in json.dumps(native.payload)
    assert [message["kind"] for message in native.payload] == ["response", "request", "response"]

    second = Script(["ok"])
    stored = json.loads(json.dumps(native.payload))
    next_call = DriverCall(
        messages=(user("q0", "u0"), assistant("a0", TextPart("other")), user("q1", "u1")),
        native={"a0": stored},
    )
    await answer(driver_of(second.model), next_call)
    assert second.last_asked == [
        ("user-prompt", "q0"),
        ("tool-call", '{"at": "sky"}'),
        ("tool-return", "sky blue"),
        ("text", "It is blue."),
        ("user-prompt", "q1"),
    ]


@pytest.mark.parametrize(
    "payload",
    [
        "text",
        [{"kind": "other"}],
        [],
        [{"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "t"}]}] * 2,
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x"}]}],
    ],
)
async def test_a_native_payload_that_cannot_be_used_is_rebuilt_from_the_parts(payload: Any) -> None:
    script = Script(["ok"])
    await answer(driver_of(script.model), DriverCall(messages=QUESTION, native={"a0": payload}))
    assert script.last_asked == FROM_PARTS


async def test_a_message_with_tool_outputs_is_answered_without_a_prompt() -> None:
    script = Script(["The sky is blue."])
    current = assistant("a0", ToolCallPart("c1", "look", {}), ToolResultPart("c1", "look", "blue"))
    events = await answer(
        driver_of(script.model, instructions="Be brief."),
        DriverCall(messages=(user("q0", "u0"), current)),
    )
    assert script.last_asked == [
        ("user-prompt", "q0"),
        ("tool-call", None),
        ("tool-return", "blue"),
    ]
    (native,) = only(events, NativeMessages)
    assert isinstance(native, NativeMessages)
    kinds = [[part["part_kind"] for part in message["parts"]] for message in native.payload]
    assert kinds == [["text"]]  # the call and its output are the current message, stored as such


async def test_an_approval_is_asked_for_and_what_is_approved_runs() -> None:
    ran = []

    def agent_of(script: Script) -> Agent[Any, Any]:
        agent: Agent[Any, Any] = Agent(script.model, output_type=[str, DeferredToolRequests])

        @agent.tool_plain(requires_approval=True)
        def delete(name: str) -> str:
            ran.append(name)
            return f"{name} is gone"

        return agent

    first = Script(calls(("c1", "delete", '{"name": "a"}'), ("c2", "delete", '{"name": "b"}')))
    asked = DriverCall(messages=(user("q0", "u0"),))
    events = await answer(create({"agent": agent_of(first)}), asked)
    assert only(events, ApprovalRequested, Done) == [
        ApprovalRequested("approval-c1", "c1"),
        ApprovalRequested("approval-c2", "c2"),
        Done("tool-calls"),
    ]
    (native,) = only(events, NativeMessages)
    assert isinstance(native, NativeMessages)
    assert ran == []

    decided = assistant(
        "a0",
        ToolCallPart("c1", "delete", {"name": "a"}),
        ApprovalRequestPart("approval-c1", "c1"),
        ApprovalDecisionPart("approval-c1", approved=True),
        ToolCallPart("c2", "delete", {"name": "b"}),
        ApprovalRequestPart("approval-c2", "c2"),
        ApprovalDecisionPart("approval-c2", approved=False, reason="keep it"),
    )
    for payloads in ({}, {"a0": native.payload}):
        ran.clear()
        second = Script(["done"])
        call = DriverCall(messages=(user("q0", "u0"), decided), native=payloads)
        events = await answer(create({"agent": agent_of(second)}), call)
        assert ran == ["a"]
        assert only(events, ToolResult) == [ToolResult("c1", "delete", "a is gone")]
        assert sorted(second.last_asked[-2:]) == [
            ("tool-return", "a is gone"),
            ("tool-return denied", "keep it"),
        ]


async def test_before_request_may_replace_what_a_tool_loop_sends() -> None:
    given: list[list[str]] = []

    async def shorten(messages: Sequence[Message]) -> Sequence[Message]:
        given.append([message.id or "" for message in messages])
        note = Message("note", "user", (TextPart("Earlier steps, condensed."),))
        return [messages[0], note, messages[-1]] if len(messages) > 2 else messages

    script = Script(
        calls(("c1", "look", '{"at": "a"}')), calls(("c2", "look", '{"at": "b"}')), ["ok"]
    )
    call = DriverCall(
        messages=(user("q0", "step-1"),),
        tools=(spec("look", lambda at: at.upper()),),
        before_request=shorten,
    )
    events = await answer(driver_of(script.model), call)
    assert given == [["step-1", "step-2"], ["step-1", "step-2", "step-3"]]
    assert script.last_asked == [
        ("user-prompt", "q0"),
        ("user-prompt", "Earlier steps, condensed."),
        ("tool-call", '{"at": "b"}'),
        ("tool-return", "B"),
    ]
    (native,) = only(events, NativeMessages)
    assert isinstance(native, NativeMessages)
    assert len(native.payload) == 5


async def test_before_request_gets_the_round_with_its_results() -> None:
    rounds: list[Message] = []

    async def look(messages: Sequence[Message]) -> Sequence[Message]:
        rounds.append(messages[-1])
        return messages

    script = Script(["Wait. ", *calls(("c1", "bad", '{"at": "a"}'))], ["ok"])

    def bad(at: str) -> str:
        raise LookupError(at)

    tools = (spec("bad", bad),)
    call = DriverCall(messages=(user("q0", "u0"),), tools=tools, before_request=look)
    await answer(driver_of(script.model), call)
    assert rounds == [
        assistant(
            "step-1",
            TextPart("Wait. "),
            ToolCallPart("c1", "bad", {"at": "a"}),
            ToolResultPart("c1", "bad", status="failed", error="a"),
        )
    ]


async def test_cancelling_in_the_middle_of_the_text_stops_the_model() -> None:
    stopped: list[str] = []
    waiting = asyncio.Event()

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        yield "one "
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            stopped.append("model")

    driver = driver_of(FunctionModel(stream_function=stream))
    events: list[DriverEvent] = []
    task = asyncio.create_task(answer(driver, DriverCall(messages=(user("hi"),)), events))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == ["model"]
    assert events == [StepStarted(), TextDelta("part-1", "one ")]
    assert other_tasks() == set()


async def test_cancelling_in_the_middle_of_a_tool_stops_the_tool() -> None:
    stopped: list[str] = []
    waiting = asyncio.Event()

    async def slow() -> str:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            stopped.append("tool")
        return "never"

    script = Script(calls(("c1", "slow", "{}")), ["never"])
    call = DriverCall(messages=(user("hi"),), tools=(spec("slow", slow),))
    task = asyncio.create_task(answer(driver_of(script.model), call))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == ["tool"]
    assert other_tasks() == set()


async def test_l161_a_turn_cancelled_in_its_first_tool_takes_a_new_prompt() -> None:
    script = Script(["ok"])
    cut = assistant("a0", ToolCallPart("c1", "slow", {"a": 1}))
    await answer(driver_of(script.model), DriverCall(messages=(user("q0", "u0"), cut, user("q1"))))
    assert script.last_asked == [
        ("user-prompt", "q0"),
        ("tool-call", {"a": 1}),
        ("tool-return interrupted", "Interrupted: this tool call has no result."),
        ("user-prompt", "q1"),
    ]


async def test_giving_up_the_stream_stops_the_run() -> None:
    stopped: list[str] = []

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        try:
            yield "one "
            yield "two"
        finally:
            stopped.append("model")

    events: Any = driver_of(FunctionModel(stream_function=stream)).stream(
        DriverCall(messages=(user("hi"),))
    )
    async for event in events:
        if isinstance(event, TextDelta):
            break
    await events.aclose()
    assert stopped == ["model"]
    assert other_tasks() == set()


def other_tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_the_error_of_the_model_comes_through() -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        yield "one "
        raise ModelHTTPError(500, "script", "down")

    driver = driver_of(FunctionModel(stream_function=stream))
    events: list[DriverEvent] = []
    with pytest.raises(ModelHTTPError):
        await answer(driver, DriverCall(messages=(user("hi"),)), events)
    assert events == [StepStarted(), TextDelta("part-1", "one ")]


async def test_a_tool_of_a_given_agent_that_raises_ends_the_run() -> None:
    script = Script(calls(("c1", "bad", "{}")))
    agent: Agent[Any, str] = Agent(script.model)

    @agent.tool_plain
    def bad() -> str:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await answer(create({"agent": agent}), DriverCall(messages=(user("hi"),)))


async def test_a_model_that_says_nothing_is_an_error() -> None:
    script = Script([""], [""], [""])
    with pytest.raises(UnexpectedModelBehavior):
        await answer(driver_of(script.model), DriverCall(messages=(user("hi"),)))


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ("maximum context length is 8192 tokens, your messages resulted in 10,500 tokens", 10500),
        ("prompt is too long: 215000 tokens > 200000 maximum", 215000),
        ("The input token count (1200000) exceeds the maximum", 1200000),
        ("no size", None),
    ],
)
async def test_an_input_that_is_too_long_is_an_overflow_with_the_reported_size(
    body: str, reported: int | None
) -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        raise ModelHTTPError.for_category(
            ModelContextWindowExceededError, status_code=400, model_name="script", body=body
        )
        yield ""

    with pytest.raises(ContextOverflowError) as caught:
        await answer(
            driver_of(FunctionModel(stream_function=stream)), DriverCall(messages=(user("hi"),))
        )
    assert caught.value.reported == reported
    assert body not in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("tool_call", "tool-calls"),
        ("error", "error"),
        ("new word", "other"),
        (None, "stop"),
    ],
)
def test_finish_reasons_are_the_words_of_the_ai_sdk(reason: str | None, told: str) -> None:
    assert Translation(Progress(finish_reason=reason)).done("text") == Done(told)


def test_slash_and_colon_name_the_same_model_and_no_key_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    slash, colon = (create({"model": f"openai{mark}gpt-5.1-mini"}) for mark in "/:")
    assert (slash.model, slash.window_tokens) == (colon.model, colon.window_tokens)
    assert slash.model == "openai:gpt-5.1-mini"


@pytest.mark.parametrize("name", ["nobody:nothing", "openai:gpt-5.1-mini"])
async def test_a_model_that_cannot_be_used_is_a_configuration_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    driver = await asyncio.to_thread(create, {"model": name})
    with pytest.raises(ConfigError, match=f"'{name}' cannot be used") as caught:
        await answer(driver, DriverCall(messages=(user("hi"),)))
    assert caught.value.path == "driver.model"


def test_the_window_comes_from_the_profile_of_the_model() -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        yield "x"

    model = FunctionModel(stream_function=stream, profile={"context_window": 1234})
    assert driver_of(model).window_tokens == 1234
    assert driver_of(TestModel()).window_tokens is None
    assert driver_of(TestModel()).model == "test:test"


@pytest.mark.parametrize(
    ("config", "path", "hint"),
    [
        (
            {"model": "test", "instruction": "x"},
            "driver.instruction",
            "did you mean 'instructions'?",
        ),
        ({}, "driver.model", "or give driver.agent"),
        ({"model": ""}, "driver.model", None),
        ({"model": 3}, "driver.model", None),
        ({"agent": "support"}, "driver.agent", None),
        ({"model": "test", "instructions": ["x"]}, "driver.instructions", None),
        ({"model": "test", "settings": "x"}, "driver.settings", None),
    ],
)
def test_a_wrong_configuration_is_named(
    config: dict[str, Any], path: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        create(config)
    assert (caught.value.path, caught.value.hint) == (path, hint)


WITHOUT_EXTRA = """
import sys
sys.modules["pydantic_ai"] = None
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.plugins import drivers
print([plugin.name for plugin in drivers.doctor() if plugin.error])
try:
    create({"model": "test"})
except Exception as error:
    print(type(error).__name__, error.extra)
"""


def test_without_the_extra_the_module_imports_and_a_driver_names_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "MissingDependencyError models"]


def test_the_registry_finds_the_three_drivers() -> None:
    made = [
        drivers.get("echo")({}),
        drivers.get("callable")({"run": print}),
        drivers.get("pydantic_ai")({"model": "test"}),
    ]
    assert [driver.kind for driver in made] == ["echo", "callable", "pydantic_ai"]


async def test_two_calls_at_once_do_not_mix() -> None:
    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        request = messages[-1]
        assert isinstance(request, ModelRequest)
        (prompt,) = (part for part in request.parts if isinstance(part, UserPromptPart))
        yield "to "
        await asyncio.sleep(0)
        yield str(prompt.content)

    driver = driver_of(FunctionModel(stream_function=stream))
    answers = await asyncio.gather(
        *(answer(driver, DriverCall(messages=(user(text),))) for text in ("a", "b"))
    )
    texts = [
        "".join(event.text for event in events if isinstance(event, TextDelta))
        for events in answers
    ]
    assert texts == ["to a", "to b"]


@pytest.mark.parametrize("given", [TestModel(), Agent(TestModel())])
def test_a_model_or_an_agent_in_place_of_a_driver_is_told_how_to_be_given(given: object) -> None:
    with pytest.raises(ConfigError) as caught:
        define_agent(name="a", driver=given)
    assert caught.value.hint == (
        "give {'model': a model} or {'use': 'pydantic_ai', 'agent': an agent}"
    )


WHOLE = FunctionModel(lambda _messages, _info: ModelResponse([]))


@pytest.mark.parametrize("config", [{"model": WHOLE}, {"agent": Agent(WHOLE)}])
async def test_a_model_that_does_not_stream_is_refused(config: dict[str, Any]) -> None:
    driver = create(config)
    with pytest.raises(ConfigError, match="stream_function") as caught:
        await answer(driver, DriverCall(messages=(user("hi"),)))
    assert caught.value.path == "driver.model"
