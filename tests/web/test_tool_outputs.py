"""Outputs of client tools and decisions: the answer goes on as the message that the client has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.web.site import SetSite, Site, read_stream, said, text_of, turn
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.events import ApprovalRequested, TextDelta, ToolCall, ToolResult
from vitehub_chat.model.parts import ApprovalDecisionPart, ToolResultPart


class ToolUser:
    """Asks where the client is and whether it may pay, then goes on with what it learns."""

    kind = "tool-user"
    profile: str | None = None
    model: str | None = None
    window_tokens: int | None = None
    tools: Any = ()

    def __init__(self) -> None:
        self.calls: list[DriverCall] = []

    async def stream(self, call: DriverCall, /) -> AsyncIterator[Any]:
        self.calls.append(call)
        last = call.messages[-1]
        if last.role == "user":
            yield TextDelta("0", "Wait. ")
            yield ToolCall("c1", "locate", {})
            yield ToolCall("c2", "pay", {"eur": 5})
            yield ApprovalRequested("a2", "c2")
            return
        for part in last.parts:
            if isinstance(part, ToolResultPart):
                yield TextDelta("0", f"You are in {part.output}. ")
            elif isinstance(part, ApprovalDecisionPart) and part.approved:
                yield ToolResult("c2", "pay", "paid")
                yield TextDelta("0", "Paid. ")
            elif isinstance(part, ApprovalDecisionPart):
                yield ToolResult("c2", "pay", status="denied")

    async def aclose(self) -> None:
        """Hold nothing."""


def tool(call_id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"type": "dynamic-tool", "toolName": "t", "toolCallId": call_id, "state": state, **more}


LOCATED = tool("c1", "output-available", input={}, output="Rome")
APPROVED = tool("c2", "approval-responded", input={}, approval={"id": "a2", "approved": True})
DENIED = tool("c2", "approval-responded", input={}, approval={"id": "a2", "approved": False})


async def asked(set_site: SetSite, **options: Any) -> tuple[Site, dict[str, Any]]:
    """Set up a site whose driver waits for its client; return the answer as the client has it."""
    site = await set_site(driver=ToolUser(), **options)
    await site.post(turn("m1", "A"))
    (_, answer) = await site.rows()
    return site, {"id": answer.message.id, "role": "assistant", "parts": []}


def back(answer: dict[str, Any], *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body with which a client sends an answer back."""
    message = {**answer, "parts": [{"type": "text", "text": "Wait. "}, *parts]}
    return {"id": "c1", "messages": [said("m1", "A"), message], "messageId": answer["id"], **more}


async def test_an_output_goes_on_as_the_same_message(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    response = await site.post(back(answer, LOCATED))
    chunks = read_stream(response.text)
    assert response.status_code == 200
    assert (chunks[0]["type"], chunks[0]["messageId"]) == ("start", answer["id"])
    assert text_of(chunks) == "You are in Rome. "
    assert await site.texts() == ["A", "Wait. You are in Rome. "]
    assert (await site.rows())[1].message.id == answer["id"]


async def test_the_message_id_may_be_left_out(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    body = back(answer, LOCATED)
    del body["messageId"]
    await site.post(body)
    assert await site.texts() == ["A", "Wait. You are in Rome. "]


@pytest.mark.parametrize(
    ("decision", "kind", "text"),
    [(APPROVED, "tool-output-available", "Paid. "), (DENIED, "tool-output-denied", "")],
)
async def test_a_decision_goes_on_and_its_call_is_not_announced_again(
    set_site: SetSite, decision: dict[str, Any], kind: str, text: str
) -> None:
    site, answer = await asked(set_site)
    chunks = read_stream((await site.post(back(answer, decision))).text)
    tools = [chunk for chunk in chunks if "toolCallId" in chunk]
    assert [(chunk["type"], chunk["toolCallId"]) for chunk in tools] == [(kind, "c2")]
    assert text_of(chunks) == text
    parts = (await site.rows())[1].message.to_json()["parts"]
    assert parts[2]["state"] == kind.removeprefix("tool-")


async def test_a_resend_gets_what_the_client_lacks_and_runs_nothing(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    waiting = tool("c1", "input-available", input={})
    first = read_stream((await site.post(back(answer, waiting, APPROVED))).text)
    again = read_stream((await site.post(back(answer, waiting, APPROVED))).text)
    assert len(site.driver.calls) == 2
    assert (again[0]["messageId"], text_of(again)) == (answer["id"], text_of(first))
    results = [chunk["output"] for chunk in again if chunk["type"] == "tool-output-available"]
    assert results == ["paid"]


async def test_the_answer_as_one_object_is_the_whole_message(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    response = await site.post(back(answer, LOCATED), headers={"accept": "application/json"})
    result = response.json()
    assert (result["message"]["id"], result["status"]) == (answer["id"], "complete")
    assert result["text"] == "Wait. You are in Rome. "


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (tool("c9", "output-available", output=1), "unknown_tool_call"),
        (tool("c2", "output-available", output=1), "unknown_tool_call"),
        ({**APPROVED, "approval": {"id": "a9", "approved": True}}, "unknown_tool_call"),
        (tool("c1", "input-available"), "invalid_input"),
    ],
)
async def test_what_the_answer_does_not_wait_for_is_400(
    set_site: SetSite, part: dict[str, Any], code: str
) -> None:
    site, answer = await asked(set_site)
    if code == "unknown_tool_call":
        response = await site.post(back(answer, part))
    else:
        response = await site.post({**back(answer, part), "messageId": "m1"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert await site.texts() == ["A", "Wait. "]
    assert len(site.driver.calls) == 1


async def test_an_answer_without_id_is_400(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    body = back({**answer, "id": None}, LOCATED)
    response = await site.post(body)
    error = response.json()["error"]
    assert (response.status_code, error["path"]) == (400, "messages[1].id")


async def test_an_answer_of_somebody_else_is_refused_like_an_unknown_one(
    set_site: SetSite,
) -> None:
    site, answer = await asked(set_site)
    unknown = await site.post(back({**answer, "id": "nowhere"}, LOCATED), user="bob")
    foreign = await site.post(back(answer, LOCATED), user="bob")
    assert (unknown.status_code, unknown.json()) == (400, foreign.json())
    assert unknown.json()["error"]["code"] == "unknown_tool_call"
    assert await site.texts() == ["A", "Wait. "]


async def test_marks_and_session_ids_of_the_answer_are_taken_out(set_site: SetSite) -> None:
    site, answer = await asked(set_site, chat={"sessions": {"strategy": "manual"}})
    forged = {**answer, "metadata": {"sessionId": "forged"}}
    await site.post(back(forged, {"type": "data-summary", "data": 1}, LOCATED))
    row = (await site.rows())[1]
    assert (row.message.text, row.message.metadata) == ("Wait. You are in Rome. ", {})


async def test_the_history_of_the_client_may_be_the_thread(set_site: SetSite) -> None:
    site, answer = await asked(set_site, history="client")
    await site.post(back(answer, LOCATED))
    assert [each.text for each in site.driver.calls[-1].messages] == ["A", "Wait. "]
    assert await site.texts() == ["A", "Wait. You are in Rome. "]


async def test_without_a_state_an_output_goes_on_and_a_decision_is_refused(
    set_stateless_site: SetSite,
) -> None:
    site = await set_stateless_site(driver=ToolUser())
    answer = {"id": "a1", "role": "assistant"}
    chunks = read_stream((await site.post(back(answer, LOCATED))).text)
    assert (chunks[0]["messageId"], text_of(chunks)) == ("a1", "You are in Rome. ")
    refused = await site.post(back(answer, APPROVED))
    assert refused.json()["error"]["code"] == "unknown_tool_call"
