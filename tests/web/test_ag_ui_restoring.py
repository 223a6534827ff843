"""AG-UI restoring: an input without messages is answered with what is stored, and runs nothing."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

from tests.web.site import SetSite, Site, read_stream, said, turn
from tests.web.test_ag_ui import asked
from tests.web.test_tool_outputs import ToolUser
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.web import SessionRef

MODELS: TypeAdapter[Any] = TypeAdapter(Event)
EMPTY: dict[str, Any] = {"messages": []}


async def restore(site: Site, chat_id: str = "c1", **more: Any) -> list[dict[str, Any]]:
    """Return the events of an input without messages."""
    body = asked(thread_id=chat_id, run_id="r9", **EMPTY)
    assert RunAgentInput.model_validate(body).messages == []
    response = await site.send("POST", "/ag-ui", body, **more)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    events = read_stream(response.text)
    assert all(MODELS.validate_python(event) for event in events)
    names = [event["type"] for event in events]
    assert names == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    for event in (events[0], events[-1]):
        assert (event["threadId"], event["runId"]) == (chat_id, "r9")
    return events


async def restored(site: Site, chat_id: str = "c1", **more: Any) -> list[Any]:
    found: list[Any] = (await restore(site, chat_id, **more))[1]["messages"]
    return found


async def test_what_is_stored_comes_back_and_nothing_runs(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    await site.post(turn("m1", "A"))
    await site.send("POST", "/ag-ui", asked("m2", "B"))
    rows = await site.rows()
    assert await restored(site) == [
        {"id": row.message.id, "role": row.message.role, "content": row.message.text}
        for row in rows
    ]
    assert len(site.driver.calls) == 2
    assert await site.rows() == rows


async def test_an_unknown_conversation_is_empty_and_stays_unknown(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    assert await restored(site) == []
    assert (await site.get("/sessions")).json()["items"] == []
    assert (await site.get("/history", id="c1")).status_code == 404


async def test_the_newest_hundred_messages_come_oldest_first(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    conversation = site.agent.conversation(site.key())
    for start in (0, 60):
        await conversation.append([said(f"m{n}", f"A{n}") for n in range(start, start + 60)])
    ids = [each["id"] for each in await restored(site)]
    assert ids == [f"m{n}" for n in range(20, 120)]


async def test_failed_answers_come_as_the_history_shows_them(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    await site.post(turn("m1", "fail"))
    page = (await site.get("/history", id="c1")).json()
    shown = [(item["message"]["id"], item["message"]["role"]) for item in page["items"]]
    assert shown[0] == ("m1", "user")
    assert [(each["id"], each["role"]) for each in await restored(site)] == shown


async def test_a_blank_answer_comes_as_it_is_stored(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    conversation = site.agent.conversation(site.key())
    parts = [{"type": "step-start"}, {"type": "text", "text": " "}]
    await conversation.append([said("m1", "A"), {"id": "a1", "role": "assistant", "parts": parts}])
    assert [(each["id"], each["content"]) for each in await restored(site)] == [
        ("m1", "A"),
        ("a1", " "),
    ]


async def test_a_name_that_no_new_conversation_may_have_is_read(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    assert await restored(site, "sessions/old") == []
    response = await site.send("POST", "/ag-ui", asked(thread_id="sessions/old"))
    assert response.status_code == 400


async def test_only_the_session_that_was_resolved_comes_back(set_site: SetSite) -> None:
    def resolve(_request: Any, _principal: Any, chat_id: str) -> SessionRef:
        return SessionRef(ConversationKey("acme", None, "web", "t"), chat_id)

    site = await set_site(
        ag_ui=True,
        resolve_session=resolve,
        chat={"sessions": {"idle_timeout_ms": 1000}},
    )
    await site.post(turn("m1", "A", chat_id="first"))
    await site.post(turn("m2", "B", chat_id="second"))
    assert [each["content"] for each in await restored(site, "first")] == ["A", "A[]"]
    assert [each["id"] for each in await restored(site, "third")] == []


async def test_nobody_restores_what_somebody_else_said(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    await site.post(turn("m1", "A"))
    assert await restored(site, user="eve") == []


async def test_access_is_that_of_reading(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True, resolve_session=lambda *_: None)
    for user, status in ((None, 401), ("banned", 403), ("ada", 404)):
        response = await site.send("POST", "/ag-ui", asked(**EMPTY), user=user)
        assert response.status_code == status
        assert (await site.get("/history", user=user, id="c1")).status_code == status


@pytest.mark.parametrize("chat_id", ["", "history", "a\u0000b", "x" * 513])
async def test_what_is_no_name_is_refused(set_site: SetSite, chat_id: str) -> None:
    site = await set_site(ag_ui=True)
    response = await site.send("POST", "/ag-ui", asked(thread_id=chat_id, **EMPTY))
    assert (response.status_code, response.json()["error"]["path"]) == (400, "threadId")


async def test_without_routes_that_read_there_is_nothing_to_restore(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True, read_routes=False)
    response = await site.send("POST", "/ag-ui", asked(**EMPTY))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "no_user_message")


async def test_without_a_state_nothing_is_stored(set_stateless_site: SetSite) -> None:
    thread = {"trigger_history": {"source": "thread", "max_messages": 9}}
    site = await set_stateless_site(ag_ui=True, chat=thread)
    assert await restored(site) == []


async def test_decisions_without_messages_are_still_decisions(set_site: SetSite) -> None:
    site = await set_site(driver=ToolUser(), ag_ui=True)
    await site.post(turn("m1", "A"))
    events = await restore(site)
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"]) == ("a2", "c2")
    (_, answer) = events[1]["messages"]
    assert [call["id"] for call in answer["toolCalls"]] == ["c1", "c2"]
    entry = {"interruptId": "a2", "status": "resolved", "payload": {"approved": True}}
    response = await site.send("POST", "/ag-ui", asked(resume=[entry], **EMPTY))
    assert read_stream(response.text)[-1]["outcome"] == {"type": "success"}
    assert await site.texts() == ["A", "Wait. Paid. "]
    assert (await restore(site))[-1]["outcome"] == {"type": "success"}
