"""The real npm clients against mounted routes: what their users see is what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.streams.npm import run_node
from tests.web.serving import serving
from tests.web.site import who
from vitehub_chat import chat, define_agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.events import ApprovalRequested, Done, TextDelta, ToolCall, ToolResult
from vitehub_chat.model.parts import ApprovalDecisionPart, ToolResultPart
from vitehub_chat.web import mount_chat, per_user_sessions

pytestmark = pytest.mark.service

HERE = Path(__file__).parent
API = "/api/chat"
REASONS = {
    "stop": "stop",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content-filter",
    "tool_use": "tool-calls",
    "error": "error",
    "interrupted": "other",
    "unheard-of": "other",
}
"""Reasons of drivers, as clients get them."""


class Talker:
    """Answers users, asks for tools and decisions of clients, and holds an answer."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()

    async def __call__(self, call: DriverCall) -> AsyncIterator[Any]:
        """Do what the message says."""
        if call.messages[-1].role == "assistant":
            for event in self.go_on(call):
                yield event
        elif call.text == "ask":
            yield TextDelta("0", "Wait. ")
            yield ToolCall("c1", "locate", {})
        elif call.text == "pay":
            yield ToolCall("c2", "pay", {"eur": 5})
            yield ApprovalRequested("a2", "c2")
        elif call.text == "hold":
            yield TextDelta("0", "one ")
            await self.may_go_on.wait()
            self.may_go_on.clear()
            yield TextDelta("0", "two")
        elif call.text.startswith("finish "):
            yield TextDelta("0", "over")
            yield Done(call.text.removeprefix("finish "))
        elif call.text == "fail":
            yield TextDelta("0", "half ")
            raise ValueError("not for people")
        else:
            yield f"re {call.text} after {len(call.messages) - 1}"

    def go_on(self, call: DriverCall) -> Iterator[Any]:
        for part in call.messages[-1].parts:
            if isinstance(part, ToolResultPart) and part.output != "nowhere":
                yield TextDelta("0", f"You are in {part.output}.")
            elif isinstance(part, ApprovalDecisionPart) and part.approved:
                yield ToolResult("c2", "pay", "paid")
                yield TextDelta("0", "Paid.")
            elif isinstance(part, ApprovalDecisionPart):
                yield ToolResult("c2", "pay", status="denied")
                yield TextDelta("0", "Not paid.")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve an agent, and a way to let it go on."""
    talker, app = Talker(), Starlette()
    window: Any = {"source": "transcript", "max_messages": 20}
    capabilities = [chat(trigger_history=window, error_fallback_text="Sorry.")]
    agent = define_agent(name="site", driver=talker, capabilities=capabilities, state="memory:")
    mounted = mount_chat(
        app, agent, API, authenticate=who, resolve_session=per_user_sessions, ag_ui=True
    )

    async def go(_request: Request) -> Response:
        talker.may_go_on.set()
        return Response()

    app.router.routes.append(Route(f"{API}/go", go, methods=["POST"]))
    app.router.lifespan_context = mounted.lifespan
    with serving(app) as address:
        yield address + API


class Scenes:
    """What one version of the client showed, and what is stored."""

    def __init__(self, address: str, version: int) -> None:
        self._address = f"{address}"
        self.version = version
        self.seen: dict[str, Any] = run_node(HERE / "clients.mjs", version, address, *REASONS)

    def stored(self, chat_id: str) -> list[dict[str, Any]]:
        query = {"id": chat_id}
        page = httpx2.get(f"{self._address}/history", params=query, headers={"x-user": "ada"})
        return [item["message"] for item in page.json()["items"]]


@pytest.fixture(scope="module", params=[6, 7])
def scenes(request: pytest.FixtureRequest, address: str) -> Iterator[Scenes]:
    """Let a version of the client play every scene, then forget what it said."""
    played = Scenes(address, request.param)
    yield played
    names = ["send", "repeat", "regenerate", "edit", "tool", "silent", "resume", "stop", "fail"]
    names += [f"approval-{approved}" for approved in ("true", "false")]
    names += [f"finish-{reason}" for reason in REASONS]
    for name in names:
        httpx2.delete(f"{address}/sessions/{name}", headers={"x-user": "ada"})


def ids(messages: list[dict[str, Any]]) -> list[str]:
    return [message["id"] for message in messages]


def states(message: dict[str, Any]) -> list[tuple[str, Any]]:
    parts = [part for part in message["parts"] if "toolCallId" in part]
    return [(part["state"], part.get("output")) for part in parts]


def test_messages_are_sent_and_answered(scenes: Scenes) -> None:
    seen = scenes.seen["send"]
    assert seen["texts"] == ["hello", "re hello after 0", "again", "re again after 2"]
    assert (seen["status"], seen["errors"]) == ("ready", [])
    assert ids(seen["messages"]) == ids(scenes.stored("send"))
    assert seen["messages"][1]["metadata"]["status"] == "complete"


def test_an_answer_is_made_anew(scenes: Scenes) -> None:
    seen = scenes.seen["regenerate"]
    assert (seen["texts"], seen["errors"]) == (["hello", "re hello after 0"], [])
    assert seen["messages"][1]["id"] != seen["before"]
    assert ids(seen["messages"]) == ids(scenes.stored("regenerate"))


def test_a_message_is_changed(scenes: Scenes) -> None:
    seen = scenes.seen["edit"]
    assert (seen["texts"], seen["errors"]) == (["changed", "re changed after 0"], [])
    assert ids(seen["messages"]) == ids(scenes.stored("edit"))


def test_the_output_of_a_tool_is_sent_once_and_goes_on_in_its_message(scenes: Scenes) -> None:
    seen = scenes.seen["toolOutput"]
    assert (seen["texts"], seen["errors"]) == (["ask", "Wait. You are in Rome."], [])
    assert (states(seen["messages"][1]), seen["requests"]) == ([("output-available", "Rome")], 1)
    stored = scenes.stored("tool")
    assert ids(seen["messages"]) == ids(stored)
    assert [part["type"] for part in seen["messages"][1]["parts"]] == [
        part["type"] for part in stored[1]["parts"]
    ]


def test_an_output_that_nothing_follows_is_not_sent_again_and_again(scenes: Scenes) -> None:
    seen = scenes.seen["toolOutputWithoutAnAnswer"]
    assert (seen["requests"], seen["errors"]) == (2, [])
    assert seen["texts"] == ["ask", "Wait. ", "hello", "re hello after 2"]


@pytest.mark.parametrize(
    ("approved", "text", "state"),
    [
        ("true", "Paid.", ("output-available", "paid")),
        ("false", "Not paid.", ("output-denied", None)),
    ],
)
def test_a_decision_is_sent_once_and_goes_on_in_its_message(
    scenes: Scenes, approved: str, text: str, state: tuple[str, Any]
) -> None:
    seen = scenes.seen["approval"][approved]
    assert (seen["texts"], seen["errors"], seen["requests"]) == (["pay", text], [], 1)
    assert states(seen["messages"][1]) == [state]
    assert ids(seen["messages"]) == ids(scenes.stored(f"approval-{approved}"))


def test_a_second_client_resumes_what_the_first_one_began(scenes: Scenes) -> None:
    seen = scenes.seen["resume"]
    for client in ("first", "second", "third"):
        assert (seen[client]["texts"], seen[client]["errors"]) == (["hold", "one two"], [])
        assert seen[client]["status"] == "ready"
        assert ids(seen[client]["messages"]) == ids(scenes.stored("resume"))


def test_a_stopped_answer_is_ready_and_not_streaming(scenes: Scenes) -> None:
    seen = scenes.seen["stop"]
    answer = seen["messages"][1]
    assert seen["answer"] == {"stopped": True, "message_id": answer["id"]}
    assert (seen["texts"], seen["status"], seen["errors"]) == (["hold", "one "], "ready", [])
    assert answer["metadata"]["status"] == "interrupted"
    assert [part["state"] for part in answer["parts"] if part["type"] == "text"] == ["done"]


def test_a_failed_run_is_an_error_with_the_text_for_people(scenes: Scenes) -> None:
    seen = scenes.seen["fail"]
    assert (seen["status"], seen["errors"]) == ("error", ["Sorry."])
    assert seen["texts"] == ["fail", "half "]


def test_a_refusal_is_an_error_that_says_why(scenes: Scenes) -> None:
    seen = scenes.seen["refuse"]
    assert seen["status"] == "error"
    assert '"code":"invalid_input"' in seen["errors"][0].replace(" ", "")


GONE = None


@pytest.mark.parametrize(
    ("scene", "chat_id", "answers"),
    [
        ("send", "send", [0, 1]),
        ("repeat", "repeat", [0, 0]),
        ("regenerate", "regenerate", [GONE, 0]),
        ("edit", "edit", [GONE, GONE, 0]),
        ("toolOutput", "tool", [0, 0]),
        ("resume", "resume", [0, 0]),
        ("stop", "stop", [0]),
        ("fail", "fail", [0]),
    ],
)
def test_a_stream_starts_one_message_under_the_id_it_is_stored_with(
    scenes: Scenes, scene: str, chat_id: str, answers: list[int | None]
) -> None:
    starts = [stream["starts"] for stream in scenes.seen[scene]["streams"]]
    assert [len(each) for each in starts] == [1] * len(answers)
    stored = [each["id"] for each in scenes.stored(chat_id) if each["role"] == "assistant"]
    told = [stored.index(each) if each in stored else GONE for (each,) in starts]
    assert told == answers


def test_a_message_that_is_sent_again_is_answered_from_the_record(scenes: Scenes) -> None:
    seen = scenes.seen["repeat"]
    for client in ("first", "second"):
        assert seen[client]["texts"] == ["hello", "re hello after 0"]
        assert (seen[client]["status"], seen[client]["errors"]) == ("ready", [])
        assert ids(seen[client]["messages"]) == ids(scenes.stored("repeat"))


def test_decisions_go_on_in_streams_that_start_the_stored_message(scenes: Scenes) -> None:
    starts = [stream["starts"] for stream in scenes.seen["approval"]["streams"]]
    expected = [
        [scenes.stored(f"approval-{approved}")[1]["id"]]
        for approved in ("true", "false")
        for _ in ("asks", "goes on")
    ]
    assert starts == expected


@pytest.mark.parametrize(("reason", "told"), REASONS.items())
def test_every_reason_to_finish_is_one_that_clients_take(
    scenes: Scenes, reason: str, told: str
) -> None:
    seen = scenes.seen["finish"][reason]
    assert (seen["texts"][1], seen["status"], seen["errors"]) == ("over", "ready", [])
    assert seen["ends"] == [{"finishReason": told, "isError": False}]


@pytest.fixture(scope="module")
def ag_ui(address: str) -> dict[str, Any]:
    """Let the client of AG-UI play its scenes."""
    seen: dict[str, Any] = run_node(HERE / "ag_ui_client.mjs", f"{address}/ag-ui")
    return seen


def test_an_ag_ui_client_talks_and_sends_the_output_of_its_tool(ag_ui: dict[str, Any]) -> None:
    seen = ag_ui
    texts = [message["content"] for message in seen["talked"]]
    assert texts == ["hello", "re hello after 0", "again", "re again after 2"]
    for turn in seen["turns"]:
        assert (turn["types"][0], turn["types"][-1]) == ("RUN_STARTED", "RUN_FINISHED")
    (asked,) = seen["asked"]["newMessages"]
    assert [call["id"] for call in asked["toolCalls"]] == ["c1"]
    (located,) = seen["located"]["newMessages"]
    assert located["content"] == "You are in Rome."
    assert seen["later"]["newMessages"][0]["content"] == "re later after 2"
    roles = [message["role"] for message in seen["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert len(set(ids(seen["messages"]))) == 6


def test_a_fresh_ag_ui_client_restores_and_goes_on(ag_ui: dict[str, Any], address: str) -> None:
    seen = ag_ui["restores"]["talked"]
    assert seen["types"] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert seen["messages"] == ag_ui["talked"]
    assert [each["content"] for each in seen["afterwards"]["newMessages"]] == ["re third after 4"]
    page = httpx2.get(f"{address}/history", params={"id": "talk"}, headers={"x-user": "ada"})
    stored = [item["message"] for item in page.json()["items"]]
    assert ids(seen["all"]) == ids(stored)
    assert len(stored) == 6


def test_a_fresh_ag_ui_client_decides_what_another_one_was_asked(ag_ui: dict[str, Any]) -> None:
    seen = ag_ui["restores"]["paid"]
    assert [(each["id"], each["toolCallId"]) for each in seen["asksFor"]] == [("a2", "c2")]
    assert [each.get("content") for each in seen["newMessages"]] == ["paid", "Paid."]
    assert seen["pending"] == []


def test_a_fresh_ag_ui_client_sends_the_output_of_a_call_that_waits(ag_ui: dict[str, Any]) -> None:
    assert [each["content"] for each in ag_ui["restores"]["located"]] == ["You are in Rome."]


def test_an_ag_ui_client_of_an_unknown_conversation_has_no_messages(ag_ui: dict[str, Any]) -> None:
    assert ag_ui["restores"]["unknown"] == []
