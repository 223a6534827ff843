"""AG-UI `resume` entries: decisions about calls, under the rules of every other decision."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import AssistantMessage, Event, ResumeEntry, ToolMessage, UserMessage
from pydantic import TypeAdapter

from tests.web.site import SetSite, Site, read_stream, said
from tests.web.test_ag_ui import asked
from tests.web.test_tool_outputs import ToolUser

MODELS: TypeAdapter[Any] = TypeAdapter(Event)


async def interrupted(set_site: SetSite) -> tuple[Site, dict[str, Any], str]:
    """Set up a site whose answer asks; return its interrupt and the id of the answer."""
    site = await set_site(driver=ToolUser(), ag_ui=True)
    events = read_stream((await site.send("POST", "/ag-ui", asked("m1", "A"))).text)
    assert all(MODELS.validate_python(event) for event in events)
    outcome = events[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    (interrupt,) = outcome["interrupts"]
    return site, interrupt, (await site.rows())[1].message.id or ""


def resumed(answer_id: str, *entries: Any, run_id: str = "r2", **more: Any) -> dict[str, Any]:
    messages = [UserMessage(id="m1", content="A"), AssistantMessage(id=answer_id, content="Wait. ")]
    return asked(run_id=run_id, resume=list(entries), **{"messages": messages, **more})


def entry(interrupt: dict[str, Any], status: Any, payload: Any = None) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt["id"], status=status, payload=payload)


def state_of(site_rows: Any) -> tuple[str, Any]:
    (part,) = [
        part
        for part in site_rows[1].message.to_json()["parts"]
        if part.get("approval", {}).get("id") == "a2"
    ]
    return part["state"], part["approval"]


@pytest.mark.parametrize(
    ("status", "payload", "state", "approval", "text"),
    [
        ("resolved", {"approved": True}, "output-available", {"approved": True}, "Wait. Paid. "),
        ("resolved", True, "output-available", {"approved": True}, "Wait. Paid. "),
        (
            "resolved",
            {"approved": False, "reason": "too much"},
            "output-denied",
            {"approved": False, "reason": "too much"},
            "Wait. ",
        ),
        ("cancelled", None, "output-denied", {"approved": False}, "Wait. "),
        ("cancelled", {"approved": True}, "output-denied", {"approved": False}, "Wait. "),
    ],
)
async def test_a_decision_goes_on_with_the_answer_that_asked(
    set_site: SetSite, status: str, payload: Any, state: str, approval: dict[str, Any], text: str
) -> None:
    site, interrupt, answer_id = await interrupted(set_site)
    assert (interrupt["id"], interrupt["toolCallId"]) == ("a2", "c2")
    response = await site.send(
        "POST", "/ag-ui", resumed(answer_id, entry(interrupt, status, payload))
    )
    events = read_stream(response.text)
    assert all(MODELS.validate_python(event) for event in events)
    assert events[-1]["outcome"] == {"type": "success"}
    rows = await site.rows()
    assert [row.message.text for row in rows] == ["A", text]
    assert rows[1].message.id == answer_id
    assert state_of(rows) == (state, {"id": "a2", **approval})


async def test_the_same_decision_again_runs_nothing(set_site: SetSite) -> None:
    site, interrupt, answer_id = await interrupted(set_site)
    approved = entry(interrupt, "resolved", {"approved": True})
    for run_id in ("r2", "r3"):
        await site.send("POST", "/ag-ui", resumed(answer_id, approved, run_id=run_id))
    assert len(site.driver.calls) == 2
    assert await site.texts() == ["A", "Wait. Paid. "]


async def test_a_decision_and_the_result_of_a_tool_come_together(set_site: SetSite) -> None:
    site, interrupt, answer_id = await interrupted(set_site)
    messages = [
        UserMessage(id="m1", content="A"),
        AssistantMessage(id=answer_id),
        ToolMessage(id="t1", tool_call_id="c1", content="Rome"),
    ]
    approved = entry(interrupt, "resolved", {"approved": True})
    await site.send("POST", "/ag-ui", resumed(answer_id, approved, messages=messages))
    assert await site.texts() == ["A", "Wait. You are in Rome. Paid. "]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"interruptId": "a9", "status": "cancelled"}, "unknown_tool_call"),
        ({"interruptId": "a2", "status": "resolved"}, "invalid_input"),
        ({"interruptId": "a2", "status": "resolved", "payload": {}}, "invalid_input"),
        ({"interruptId": "a2", "status": "resolved", "payload": "yes"}, "invalid_input"),
        (
            {"interruptId": "a2", "status": "resolved", "payload": {"approved": 1}},
            "invalid_input",
        ),
        ({"interruptId": "a2", "status": "done"}, "invalid_input"),
        ({"interruptId": "", "status": "cancelled"}, "invalid_input"),
        ({"status": "cancelled"}, "invalid_input"),
        ("a2", "invalid_input"),
    ],
)
async def test_what_decides_nothing_is_refused_and_nothing_runs(
    set_site: SetSite, given: Any, code: str
) -> None:
    site, _, answer_id = await interrupted(set_site)
    body = {**resumed(answer_id), "resume": [given]}
    response = await site.send("POST", "/ag-ui", body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert len(site.driver.calls) == 1
    assert state_of(await site.rows())[0] == "approval-requested"


async def test_a_decision_beside_a_new_message_is_refused(set_site: SetSite) -> None:
    site, interrupt, answer_id = await interrupted(set_site)
    body = resumed(answer_id, entry(interrupt, "resolved", {"approved": True}))
    body["messages"].append({"id": "m2", "role": "user", "content": "B"})
    response = await site.send("POST", "/ag-ui", body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_input")
    assert len(site.driver.calls) == 1


async def test_nobody_decides_in_the_conversation_of_somebody_else(set_site: SetSite) -> None:
    site, interrupt, answer_id = await interrupted(set_site)
    approved = entry(interrupt, "resolved", {"approved": True})
    response = await site.send("POST", "/ag-ui", resumed(answer_id, approved), user="eve")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert state_of(await site.rows())[0] == "approval-requested"


async def test_decisions_need_a_state(set_stateless_site: SetSite) -> None:
    site = await set_stateless_site(
        driver=ToolUser(),
        ag_ui=True,
        chat={"trigger_history": {"source": "thread", "max_messages": 9}},
    )
    body = {**resumed("x"), "resume": [{"interruptId": "a2", "status": "cancelled"}]}
    response = await site.send("POST", "/ag-ui", body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "unknown_tool_call")
    assert site.driver.calls == []


async def test_no_entries_mean_a_message_like_any_other(set_site: SetSite) -> None:
    site, _, _ = await interrupted(set_site)
    body = {**asked("m2", "B"), "resume": []}
    assert (await site.send("POST", "/ag-ui", body)).status_code == 200
    assert said("m2", "B")["id"] == (await site.rows())[2].message.id
