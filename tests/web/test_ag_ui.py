"""The AG-UI route: its input, its stream, and the rules of every other turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, Event, RunAgentInput, ToolMessage, UserMessage
from pydantic import TypeAdapter

from tests.web.site import SetSite, read_stream, turn
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.events import TextDelta, ToolCall
from vitehub_chat.model.parts import ToolResultPart

MODELS: TypeAdapter[Any] = TypeAdapter(Event)


def asked(message_id: str = "m1", content: Any = "Hello", **more: Any) -> dict[str, Any]:
    """Return an input as the protocol's own model writes it."""
    message = UserMessage(id=message_id, content=content)
    given = RunAgentInput(
        **{
            "thread_id": "c1",
            "run_id": "r1",
            "messages": [message],
            "state": {},
            "tools": [],
            "context": [],
            "forwarded_props": {},
            **more,
        }
    )
    dumped: dict[str, Any] = given.model_dump(by_alias=True, exclude_none=True)
    return dumped


async def test_an_answer_is_a_stream_of_valid_events(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    response = await site.send("POST", "/ag-ui", asked())
    assert response.headers["content-type"] == "text/event-stream"
    events = read_stream(response.text)
    assert all(MODELS.validate_python(event) for event in events)
    assert [event["type"] for event in events] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert (events[0]["threadId"], events[0]["runId"]) == ("c1", "r1")
    assert events[1]["messageId"] == (await site.rows())[1].message.id
    assert "[DONE]" not in response.text


async def test_both_protocols_share_a_conversation(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    await site.send("POST", "/ag-ui", asked("m1", "A"))
    await site.post(turn("m2", "B"))
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


async def test_what_a_client_adds_is_data_for_the_driver(set_site: SetSite) -> None:
    calls: list[DriverCall] = []

    def answer(call: DriverCall) -> str:
        calls.append(call)
        return "ok"

    site = await set_site(ag_ui=True, driver=answer)
    props = {"timeoutMs": 1, "session": {"id": "s"}}
    given = asked(state={"a": 1}, forwarded_props=props)
    response = await site.send("POST", "/ag-ui", given)
    assert response.status_code == 200
    data = calls[0].context["ag_ui"]
    assert (data["state"], data["forwarded_props"]) == ({"a": 1}, props)
    assert calls[0].tools == ()


async def test_media_of_a_message_are_files(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "url", "value": "https://a/b.png"}},
        {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "file", "value": "file-1"}},
    ]
    await site.send("POST", "/ag-ui", asked("m1", content))
    stored = (await site.rows())[0].message.to_json()["parts"]
    assert stored == [
        {"type": "text", "text": "Look"},
        {"type": "file", "mediaType": "application/octet-stream", "url": "https://a/b.png"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QQ=="},
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"messages": [{"id": "s", "role": "system", "content": "x"}]}, "no_user_message"),
        ({"messages": [{"id": "t", "role": "tool", "content": "x"}]}, "invalid_input"),
        (
            {"messages": [{"id": "t", "role": "tool", "toolCallId": "c", "content": "x"}]},
            "unknown_tool_call",
        ),
        ({"messages": [{"id": "a", "role": "assistant", "content": "x"}]}, "no_user_message"),
        ({"messages": ["x"]}, "invalid_input"),
        ({"messages": [{"id": "m", "role": "user", "content": 5}]}, "invalid_input"),
        ({"messages": [{"id": "m", "role": "user", "content": ["x"]}]}, "invalid_input"),
        (
            {"messages": [{"id": "m", "role": "user", "content": [{"type": "image"}]}]},
            "invalid_input",
        ),
        ({"messages": [{"id": "m", "role": "user", "content": ""}]}, "empty_message"),
        ({"threadId": "history"}, "invalid_input"),
        ({"threadId": None}, "invalid_input"),
        ({"runId": 5}, "invalid_input"),
    ],
)
async def test_an_input_that_means_no_run_is_refused(
    set_site: SetSite, change: dict[str, Any], code: str
) -> None:
    site = await set_site(ag_ui=True)
    response = await site.send("POST", "/ag-ui", {**asked(), **change})
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert site.driver.calls == []


async def test_a_failed_run_ends_with_an_error_event(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    events = read_stream((await site.send("POST", "/ag-ui", asked("m1", "fail"))).text)
    assert [event["type"] for event in events] == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_run_is_resumed_and_stopped_like_any_other(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True, stops=True)
    first = site.follow("POST", "/ag-ui", asked())
    await first.until("RUN_STARTED")
    second = site.follow("GET", "/c1/stream")
    await second.until("RUN_STARTED")
    await first.hang_up()
    assert (await site.send("POST", "/c1/stop", {})).json()["stopped"] is True
    last = (await second.chunks())[-1]
    assert last["outcome"] == {"type": "cancelled"}


async def test_results_of_tools_go_on_with_the_answer_that_called_them(set_site: SetSite) -> None:
    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        if call.messages[-1].role == "user":
            yield ToolCall("c1", "locate", {})
            yield ToolCall("c2", "clock", {})
        else:
            results = [part for part in call.messages[-1].parts if isinstance(part, ToolResultPart)]
            yield TextDelta("0", f"{results[0].output} {results[1].error}")

    site = await set_site(ag_ui=True, driver={"run": answer})
    first = read_stream((await site.send("POST", "/ag-ui", asked())).text)
    (start, *_) = [event for event in first if event["type"] == "TOOL_CALL_START"]
    messages = [
        UserMessage(id="m1", content="Hello"),
        AssistantMessage(id=start["parentMessageId"]),
        ToolMessage(id="t1", tool_call_id="c1", content="Rome"),
        ToolMessage(id="t2", tool_call_id="c2", content="", error="no clock"),
    ]
    response = await site.send("POST", "/ag-ui", asked(messages=messages, run_id="r2"))
    events = read_stream(response.text)
    assert all(MODELS.validate_python(event) for event in events)
    said = [event for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert [event["delta"] for event in said] == ["Rome no clock"]
    (_, row) = await site.rows()
    assert (row.message.text, row.message.id) == ("Rome no clock", start["parentMessageId"])
    assert said[0]["messageId"] == f"{row.message.id}:r2"
