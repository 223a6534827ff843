"""Having a message answered: the stream, the JSON object, and what is taken from a body."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.site import SetSite, Site, read_stream, said, text_of, turn
from vitehub_chat.agent.driver import DriverCall

JSON = {"accept": "application/json"}


async def test_an_answer_is_a_ui_message_stream(set_site: SetSite) -> None:
    site = await set_site()
    response = await site.post(turn())
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert response.text.startswith(": stream-open\n\n")
    assert response.text.endswith("data: [DONE]\n\n")
    chunks = read_stream(response.text)
    assert [chunk["type"] for chunk in chunks] == [
        "start",
        "text-start",
        "text-delta",
        "text-end",
        "finish",
    ]
    assert text_of(chunks) == "Hello[]"


async def test_the_streamed_message_id_is_that_of_the_stored_answer(set_site: SetSite) -> None:
    site = await set_site()
    start = read_stream((await site.post(turn())).text)[0]
    assert start["messageId"] == (await site.rows())[1].message.id


async def test_with_accept_json_the_answer_is_one_object(set_site: SetSite) -> None:
    site = await set_site()
    response = await site.post(turn(), headers=JSON)
    stored = (await site.rows())[1].message.to_json()
    assert response.status_code == 200
    assert response.json() == {
        "text": "Hello[]",
        "message": stored,
        "new_messages": [stored],
        "status": "complete",
        "finish_reason": "stop",
    }


@pytest.mark.parametrize(
    "accept", ["*/*", "text/event-stream", "application/json, text/event-stream"]
)
async def test_whoever_takes_a_stream_gets_one(set_site: SetSite, accept: str) -> None:
    site = await set_site()
    response = await site.post(turn(), headers={"accept": accept})
    assert response.headers["content-type"] == "text/event-stream"


async def test_only_the_new_message_is_taken_with_the_history_of_the_server(
    set_site: SetSite,
) -> None:
    site = await set_site()
    await site.post(turn("m1", "A"))
    invented = {"id": "x", "role": "assistant", "parts": [{"type": "text", "text": "invented"}]}
    await site.post({"id": "c1", "messages": [said("m0", "old"), invented, said("m2", "B")]})
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


async def test_the_history_of_the_server_replaces_a_window_over_the_array(
    set_site: SetSite,
) -> None:
    window = {"source": "thread", "max_messages": 3}
    site = await set_site(chat={"trigger_history": window})
    await site.post(turn("m1", "A"))
    await site.post({"id": "c1", "messages": [said("m0", "invented"), said("m2", "B")]})
    assert site.driver.calls[-1] == "B[A,A[]]"


async def test_without_a_state_the_array_of_the_client_is_the_thread(
    set_stateless_site: SetSite,
) -> None:
    site = await set_stateless_site()
    await site.post({"id": "c1", "messages": [said("m1", "A"), said("m2", "B")]})
    assert site.driver.calls == ["B[A]"]


async def test_the_history_of_the_client_can_be_chosen_with_a_state(set_site: SetSite) -> None:
    site = await set_site(history="client")
    await site.post(turn("m0", "stored"))
    await site.post({"id": "c1", "messages": [said("m1", "A"), said("m2", "B")]})
    assert site.driver.calls[-1] == "B[A]"


async def test_the_history_of_the_server_needs_a_state(set_stateless_site: SetSite) -> None:
    site = await set_stateless_site(history="server")
    response = await site.post(turn())
    assert (response.status_code, response.json()["error"]["code"]) == (500, "config_error")


async def test_a_resend_gets_the_recorded_answer_and_runs_nothing(set_site: SetSite) -> None:
    site = await set_site()
    first = read_stream((await site.post(turn())).text)
    again = read_stream((await site.post(turn("m1", "other text"))).text)
    assert (again[0]["messageId"], text_of(again)) == (first[0]["messageId"], text_of(first))
    assert site.driver.calls == ["Hello[]"]


async def test_the_new_message_gets_the_time_of_the_server(set_site: SetSite) -> None:
    site = await set_site()
    site.clock.advance(hours=5)
    message = said("m1", "A", createdAt="1999-01-01T00:00:00Z", created_at=0)
    await site.post({"id": "c1", "messages": [message]})
    assert (await site.rows())[0].message.created_at == site.clock.now()


@pytest.mark.parametrize(
    "metadata",
    [
        {"sessionId": "s9"},
        {"session_id": "s9"},
        {"chatSessionId": "s9"},
        {"chat": {"sessionId": "s9"}},
        {"session": {"id": "s9"}},
        {"mine": "s9"},
    ],
)
async def test_no_session_id_of_a_message_chooses_a_session(
    set_site: SetSite, metadata: dict[str, Any]
) -> None:
    site = await set_site(chat={"sessions": {"strategy": "manual", "metadata_key": "mine"}})
    await site.post({"id": "c1", "messages": [said("m1", "A", metadata=metadata)]})
    assert [row.session_id for row in await site.rows()] == [None, None]


@pytest.mark.parametrize(
    "field", ["session", "meta", "user", "timeoutMs", "timeout_ms", "triggerHistory"]
)
async def test_a_field_that_is_not_trusted_is_refused(set_site: SetSite, field: str) -> None:
    site = await set_site()
    response = await site.post({**turn(), field: {}})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["path"]) == (400, "untrusted_field", field)
    assert site.driver.calls == []


async def test_run_invoker_context_and_owner_are_never_taken(set_site: SetSite) -> None:
    calls: list[DriverCall] = []

    def answer(call: DriverCall) -> str:
        calls.append(call)
        return "ok"

    site = await set_site(driver=answer)
    foreign = {"thread_id": "other", "tenant_id": "other", "run_id": "r"}
    extra = {"run": foreign, "invoker": {"id": "root"}, "context": {"a": 1}, "user_key": "bob"}
    more = {"replace": {"kind": "edit", "message_id": "m1"}, "chat_id": "other", "unknown": 1}
    response = await site.post({**turn(), **extra, **more})
    assert response.status_code == 200
    (call,) = calls
    assert call.run is not None
    assert (call.run.tenant_id, call.run.run_id) == ("acme", None)
    assert call.context["invoker"].id == "ada"
    assert "a" not in call.context
    assert await site.texts() == ["Hello", "ok"]


async def test_trusted_fields_are_passed_on_but_who_calls_stays(set_site: SetSite) -> None:
    calls: list[DriverCall] = []

    def answer(call: DriverCall) -> str:
        calls.append(call)
        return "ok"

    site = await set_site(
        driver=answer,
        trusted_fields=("session", "meta", "user", "timeoutMs", "triggerHistory"),
        chat={"sessions": {"strategy": "manual"}},
    )
    given = {
        "session": {"action": "continue", "id": "s1"},
        "meta": {"page": "/cart"},
        "user": {"id": "root", "name": "Ada L."},
        "timeout_ms": 5000,
        "triggerHistory": {"maxMessages": 2},
    }
    response = await site.post({**turn(), **given})
    assert response.status_code == 200
    invoker = calls[0].context["invoker"]
    assert (invoker.id, invoker.label, invoker.meta["page"]) == ("ada", "Ada L.", "/cart")
    assert read_stream(response.text)[0]["messageMetadata"]["sessionId"] == "s1"


@pytest.mark.parametrize(
    ("given", "status", "code", "path"),
    [
        ({"timeoutMs": 5, "timeout_ms": 5}, 400, "invalid_input", "timeout_ms"),
        ({"timeoutMs": "5"}, 400, "invalid_input", "timeout_ms"),
        ({"triggerHistory": {"maxMessages": 0}}, 400, "invalid_option", None),
    ],
)
async def test_a_wrong_trusted_field_is_refused(
    set_site: SetSite, given: dict[str, Any], status: int, code: str, path: str | None
) -> None:
    site = await set_site(trusted_fields=("timeoutMs", "trigger_history"))
    response = await site.post({**turn(), **given})
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert path in {None, error.get("path")}


ASSISTANT = {"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "A"}]}


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({"messages": []}, "no_user_message", "messages"),
        ({"messages": [{**said("m1", "A"), "role": "system"}]}, "no_user_message", "messages"),
        ({"messages": [{**said("m1", "A"), "role": "tool"}]}, "no_user_message", "messages"),
        ({"messages": [said("m1", " ")]}, "empty_message", "messages[0]"),
        ({"messages": [ASSISTANT]}, "unknown_tool_call", "messages"),
        ({"trigger": "regenerate-message", "messages": [ASSISTANT]}, "no_user_message", "messages"),
        ({"messageId": "a\nb"}, "invalid_input", "messageId"),
        ({"trigger": "other"}, "invalid_input", "trigger"),
        ({"messages": "text"}, "invalid_input", "messages"),
        ({"messages": ["text"]}, "invalid_input", "messages[0]"),
        ({"messages": [{"role": "user"}]}, "invalid_input", "messages[0].parts"),
        ({"messages": [said("a\x00b", "A")]}, "invalid_input", "messages[0].id"),
        ({"messageId": "a", "message_id": "a"}, "invalid_input", "message_id"),
        ({"id": None}, "invalid_input", "id"),
    ],
)
async def test_a_body_that_means_no_turn_is_refused(
    set_site: SetSite, body: dict[str, Any], code: str, path: str
) -> None:
    site = await set_site()
    response = await site.post({**turn(), **body})
    error = response.json()["error"]
    assert response.status_code == 400
    assert error["code"] == code
    assert error["path"].startswith(path)
    assert site.driver.calls == []


@pytest.mark.parametrize(
    "chat_id",
    ["", "a" * 513, "a\nb", "\x7f", ".", "..", "history", "sessions", "truncate", "ag-ui"],
)
async def test_a_name_that_no_conversation_can_have_is_refused(
    set_site: SetSite, chat_id: str
) -> None:
    site = await set_site()
    assert (await site.post(turn(chat_id=chat_id))).status_code == 400
    assert (await site.get("/history", id=chat_id)).status_code == 400


@pytest.mark.parametrize("chat_id", ["a/b", "a" * 512, "%2F", "ключ ☕", "historical", "a b"])
async def test_any_other_name_works_on_every_route(set_site: SetSite, chat_id: str) -> None:
    site = await set_site()
    assert (await site.post(turn(chat_id=chat_id))).status_code == 200
    assert len((await site.get("/history", id=chat_id)).json()["items"]) == 2
    path = "/sessions/" + chat_id.replace("%", "%25")
    assert (await site.get(path)).json()["id"] == chat_id
    stop = f"/{chat_id.replace('%', '%25')}/stop"
    assert (await site.send("POST", stop, {})).json() == {"stopped": False}


async def test_a_message_that_a_filter_refuses_is_a_stream_that_says_so(set_site: SetSite) -> None:
    site = await set_site(chat={"filter": lambda *_: False})
    response = await site.post(turn())
    chunks = read_stream(response.text)
    assert response.status_code == 200
    assert chunks[0] == {"type": "start", "messageMetadata": {"status": "filtered"}}
    assert chunks[-1]["type"] == "finish"


async def stored(site: Site) -> list[str]:
    return [row.status for row in await site.rows()]


async def test_a_driver_that_fails_ends_the_stream_with_the_text_for_people(
    set_site: SetSite,
) -> None:
    site = await set_site(chat={"fallback_streaming_placeholder_text": None})
    chunks = read_stream((await site.post(turn("m1", "fail"))).text)
    error_text = "Sorry, something went wrong. Please try again."
    assert chunks[-1] == {"type": "error", "errorText": error_text}
    assert await stored(site) == ["complete", "error"]


async def test_a_driver_that_fails_is_a_500_where_json_is_wanted(
    set_site: SetSite, caplog: pytest.LogCaptureFixture
) -> None:
    site = await set_site()
    response = await site.post(turn("m1", "fail"), headers=JSON)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (500, "internal")
    assert error["message"] == "Sorry, something went wrong. Please try again."
    assert len(error["ref"]) == 32
    assert await stored(site) == ["complete", "error"]
    # Its message leads from the ref that people were shown to the turn.
    failed = [vars(record) for record in caplog.records if record.msg == "chat.turn.failed"]
    (message_id, other) = (record.get("message_id") for record in failed)
    assert message_id == other == (await site.rows())[0].message.id
    assert [("ref" in record, "turn_id" in record) for record in failed] == [
        (False, True),
        (True, False),
    ]


async def test_a_recorded_failure_is_told_again_to_a_resend(set_site: SetSite) -> None:
    site = await set_site()
    await site.post(turn("m1", "fail"))
    chunks = read_stream((await site.post(turn("m1", "fail"))).text)
    assert chunks[-1]["messageMetadata"]["status"] == "error"
    assert site.driver.calls == ["fail[]"]


async def test_turns_work_on_a_file(set_file_site: SetSite) -> None:
    site = await set_file_site()
    assert (await site.post(turn("m1", "A"))).status_code == 200
    assert (await site.post(turn("m2", "B"))).status_code == 200
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]
