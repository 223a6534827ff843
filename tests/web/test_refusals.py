"""Refusals: who may not, what is busy, and what this side cannot do now, each with its status."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.web.site import SetSite, Site, read_stream, turn, who
from vitehub_chat.errors import (
    ChatBusyError,
    ChatError,
    ConfigError,
    ContextOverflowError,
    CursorError,
    InputError,
    MissingDependencyError,
    NotFoundError,
    SchemaVersionError,
    StateClosedError,
    StateConflictError,
    StateError,
    StateUnavailableError,
)
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.web import Principal, SessionRef
from vitehub_chat.web.problems import problem_of

ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "", turn()),
    ("POST", "/ag-ui", {"threadId": "c1", "runId": "r", "messages": []}),
    ("GET", "/c1/stream", None),
    ("POST", "/c1/stop", {}),
    ("GET", "/history?id=c1", None),
    ("GET", "/history/turns?id=c1", None),
    ("GET", "/history/window?id=c1", None),
    ("GET", "/history/summary?id=c1", None),
    ("PUT", "/history/summary", {"id": "c1", "text": "a"}),
    ("GET", "/history/export?id=c1", None),
    ("GET", "/sessions/c1", None),
    ("DELETE", "/sessions/c1", None),
    ("POST", "/truncate", {"id": "c1", "from_message_id": "m1"}),
]
LIST: list[tuple[str, str, Any]] = [("GET", "/sessions", None)]


def code_of(response: Any) -> str:
    code: str = response.json()["error"]["code"]
    return code


@pytest.mark.parametrize(("method", "path", "body"), ROUTES + LIST)
async def test_nobody_is_401_before_the_body_is_read(
    set_site: SetSite, method: str, path: str, body: Any
) -> None:
    site = await set_site(ag_ui=True)
    response = await site.send(method, path, None if body is None else "no object", user=None)
    assert (response.status_code, code_of(response)) == (401, "unauthenticated")


@pytest.mark.parametrize(("method", "path", "body"), ROUTES + LIST)
async def test_who_may_not_is_403(set_site: SetSite, method: str, path: str, body: Any) -> None:
    site = await set_site(ag_ui=True)
    response = await site.send(method, path, body, user="banned")
    assert (response.status_code, code_of(response)) == (403, "forbidden")


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_a_name_that_means_nothing_to_the_caller_is_404(
    set_site: SetSite, method: str, path: str, body: Any
) -> None:
    site = await set_site(ag_ui=True, resolve_session=lambda *_: None)
    response = await site.send(method, path, body)
    assert (response.status_code, code_of(response)) == (404, "not_found")
    assert site.driver.calls == []


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_a_resolver_may_forbid(set_site: SetSite, method: str, path: str, body: Any) -> None:
    def forbid(*_: Any) -> None:
        raise PermissionError

    site = await set_site(ag_ui=True, resolve_session=forbid)
    assert (await site.send(method, path, body)).status_code == 403


async def test_both_may_be_coroutine_functions(set_site: SetSite) -> None:
    async def authenticate(request: Any) -> Principal | None:
        return who(request)

    async def resolve(_request: Any, principal: Principal, chat_id: str) -> SessionRef:
        return SessionRef(ConversationKey(principal.tenant_id, None, "web", chat_id))

    site = await set_site(authenticate=authenticate, resolve_session=resolve)
    assert (await site.post(turn())).status_code == 200
    assert (await site.post(turn(), user=None)).status_code == 401


@pytest.mark.parametrize(
    "options",
    [
        {"authenticate": lambda _: "ada"},
        {"authenticate": lambda _: Principal("acme", "")},
        {"authenticate": lambda _: Principal("acme", "a\x00")},
        {"resolve_session": lambda *_: "c1"},
        {"resolve_session": lambda *_: SessionRef(ConversationKey("a", "other", "web", "t"))},
    ],
)
async def test_what_the_application_gets_wrong_is_not_blamed_on_the_client(
    set_site: SetSite, options: dict[str, Any]
) -> None:
    site = await set_site(**options)
    response = await site.post(turn())
    assert (response.status_code, code_of(response)) == (500, "config_error")
    assert site.driver.calls == []


async def test_an_unknown_error_is_a_sentence_and_a_ref_that_the_log_has(
    set_site: SetSite, caplog: pytest.LogCaptureFixture
) -> None:
    def authenticate(_request: Any) -> Principal:
        raise RuntimeError("password=hunter2")

    site = await set_site(authenticate=authenticate)
    with caplog.at_level(logging.ERROR, logger="vitehub_chat"):
        response = await site.post(turn())
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (500, "internal")
    assert "hunter2" not in response.text
    assert error["ref"] in [getattr(record, "ref", None) for record in caplog.records]


async def test_a_busy_conversation_is_409_and_says_when_to_try_again(set_site: SetSite) -> None:
    site = await set_site(stops=True, chat={"concurrency": "reject"})
    first = site.follow("POST", "", turn("m1", "A"))
    await site.begun("A")
    response = await site.post(turn("m2", "B"))
    assert (response.status_code, code_of(response)) == (409, "chat_busy")
    assert int(response.headers["retry-after"]) >= 1
    site.release("A")
    await first.chunks()


async def test_a_dropped_message_is_a_stream_that_says_so(set_site: SetSite) -> None:
    site = await set_site(stops=True, chat={"concurrency": "drop"})
    first = site.follow("POST", "", turn("m1", "A"))
    await site.begun("A")
    response = await site.post(turn("m2", "B"))
    assert response.status_code == 200
    assert read_stream(response.text)[0]["messageMetadata"] == {"status": "dropped"}
    site.release("A")
    await first.chunks()


async def test_a_full_queue_is_429(set_site: SetSite) -> None:
    concurrency = {"strategy": "serial", "max_queue_size": 1, "on_queue_full": "reject"}
    site = await set_site(stops=True, chat={"concurrency": concurrency})
    first = site.follow("POST", "", turn("m1", "A"))
    await site.begun("A")
    # One of the two takes the only place in line, and has nothing to say before its turn.
    others = [site.follow("POST", "", turn(each, each)) for each in ("m2", "m3")]
    begun = [asyncio.create_task(each.begun()) for each in others]
    await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
    (refused,) = [each for each, task in zip(others, begun, strict=True) if task.done()]
    assert refused.status == 429
    assert "retry-after" in refused.headers
    site.release("A", "m2", "m3")
    await first.chunks()
    assert [await each for each in begun].count(200) == 1


async def test_a_wait_that_is_too_long_is_504(set_site: SetSite) -> None:
    concurrency = {"strategy": "serial", "wait_timeout_ms": 30}
    site = await set_site(stops=True, chat={"concurrency": concurrency})
    first = site.follow("POST", "", turn("m1", "A"))
    await site.begun("A")
    response = await site.post(turn("m2", "B"))
    assert (response.status_code, code_of(response)) == (504, "timeout")
    site.release("A")
    await first.chunks()


@pytest.mark.parametrize("replay", ["memory", "state"])
@pytest.mark.parametrize("protocol", ["ui-message-stream", "ag-ui"])
async def test_what_fails_in_line_is_told_by_the_stream_that_is_open(
    set_site: SetSite, protocol: str, replay: str
) -> None:
    concurrency = {"strategy": "serial", "wait_timeout_ms": 250}
    options = {"chat": {"concurrency": concurrency}, "keepalive_ms": 5}
    site = await set_site(stops=True, ag_ui=True, replay=replay, **options)
    first = site.follow("POST", "", turn("m1", "A"), room=10_000)
    await site.begun("A")
    if protocol == "ag-ui":
        body = {
            "threadId": "c1",
            "runId": "r",
            "messages": [{"id": "m2", "role": "user", "content": "B"}],
        }
        second = site.follow("POST", "/ag-ui", body, room=10_000)
    else:
        second = site.follow("POST", "", turn("m2", "B"), room=10_000)
    assert await second.begun() == 200
    *_, last = await second.chunks()
    text = "waited too long for the turns before"
    if protocol == "ag-ui":
        assert last == {"type": "RUN_ERROR", "message": text, "code": "timeout"}
    else:
        assert last == {"type": "error", "errorText": text}
    site.release("A")
    await first.chunks()


async def test_what_fails_inside_before_it_begins_is_in_the_log_and_the_stream(
    set_site: SetSite, caplog: pytest.LogCaptureFixture
) -> None:
    goes_on = asyncio.Event()

    async def fails(*_given: object) -> bool:
        await goes_on.wait()
        raise ValueError("a secret")

    site = await set_site(keepalive_ms=5, chat={"filter": fails})
    following = site.follow("POST", "", turn(), room=10_000)
    assert await following.begun() == 200
    goes_on.set()
    *_, last = await following.chunks()
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert last["type"] == "error"
    assert f"(ref {vars(record)['ref']})" in last["errorText"]
    assert "secret" not in last["errorText"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/sessions/c1", None),
        ("POST", "/truncate", {"id": "c1", "from_message_id": "m1"}),
    ],
)
async def test_nothing_is_cut_while_a_turn_runs(
    set_site: SetSite, method: str, path: str, body: Any
) -> None:
    site = await set_site(stops=True)
    first = site.follow("POST", "", turn("m1", "A"))
    await site.begun("A")
    response = await site.send(method, path, body)
    assert (response.status_code, code_of(response)) == (409, "turn_in_progress")
    assert "retry-after" in response.headers
    site.release("A")
    await first.chunks()
    assert await site.texts() == ["A", "A[]"]


async def test_another_generation_is_409(set_site: SetSite) -> None:
    site = await set_site()
    await site.post(turn())
    body = {"id": "c1", "from_message_id": "m1", "expected_generation": 7}
    response = await site.send("POST", "/truncate", body)
    assert (response.status_code, code_of(response)) == (409, "state_conflict")
    assert "retry-after" not in response.headers


async def test_after_the_close_every_route_is_503(set_site: SetSite) -> None:
    site = await set_site()
    await site.mounted.aclose()
    for method, path, body in [("POST", "", turn()), ("GET", "/sessions", None)]:
        response = await site.send(method, path, body)
        assert (response.status_code, code_of(response)) == (503, "state_closed")
        assert "retry-after" in response.headers


async def test_a_closed_state_is_503(set_site: SetSite) -> None:
    site = await set_site()
    assert (await site.post(turn())).status_code == 200
    assert site.state is not None
    await site.state.aclose()
    response = await site.post(turn("m2"))
    assert (response.status_code, code_of(response)) == (503, "state_closed")


async def test_reading_without_a_state_is_a_fault_of_the_definition(
    set_stateless_site: SetSite,
) -> None:
    site = await set_stateless_site()
    response = await site.get("/history", id="c1")
    assert (response.status_code, code_of(response)) == (500, "config_error")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InputError("a"), 400, "invalid_input"),
        (InputError("a", code="unknown_tool_call"), 400, "unknown_tool_call"),
        (ConfigError("a", code="invalid_option"), 400, "invalid_option"),
        (CursorError(), 400, "invalid_cursor"),
        (NotFoundError(), 404, "not_found"),
        (ChatBusyError(), 409, "chat_busy"),
        (ChatBusyError(code="turn_in_progress"), 409, "turn_in_progress"),
        (ChatBusyError(code="queue_full"), 429, "queue_full"),
        (ChatBusyError(code="timeout"), 504, "timeout"),
        (StateConflictError(), 409, "state_conflict"),
        (StateConflictError(code="lock_lost"), 409, "lock_lost"),
        (StateError(code="too_large"), 413, "too_large"),
        (ConfigError("a"), 500, "config_error"),
        (ConfigError("a", code="unauthorized"), 500, "unauthorized"),
        (SchemaVersionError(), 500, "schema_version"),
        (StateError(code="corrupt"), 500, "corrupt"),
        (StateError(code="read_only"), 500, "read_only"),
        (StateError(code="no_space"), 500, "no_space"),
        (StateError(), 500, "state_error"),
        (MissingDependencyError("a", extra="web"), 500, "missing_dependency"),
        (ContextOverflowError(), 500, "internal"),
        (ChatError(code="turn_failed"), 500, "internal"),
        (ValueError(), 500, "internal"),
        (StateUnavailableError(), 503, "state_unavailable"),
        (StateClosedError(), 503, "state_closed"),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int, code: str) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.code) == (status, code)
    assert (problem.ref is not None) == (status == 500)
    response = problem.respond()
    assert json.loads(bytes(response.body))["error"]["code"] == code
    is_told_when = code in {"chat_busy", "turn_in_progress", "queue_full"} or status == 503
    assert ("retry-after" in response.headers) == is_told_when


def test_what_is_wrong_on_this_side_is_not_explained_to_clients() -> None:
    problem = problem_of(ConfigError("the driver is wrong", path="driver", hint="change it"))
    assert (problem.path, problem.hint) == (None, None)
    assert "driver" not in problem.message


async def test_a_refusal_names_what_is_wrong_and_what_to_do(set_site: SetSite) -> None:
    site: Site = await set_site()
    response = await site.post({**turn(), "session": {}})
    assert response.json() == {
        "error": {
            "code": "untrusted_field",
            "message": "is not taken from clients",
            "hint": "the application may allow it with `trusted_fields`",
            "path": "session",
        }
    }
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("error", [InputError("x"), NotFoundError()])
async def test_an_error_of_the_applications_functions_does_not_blame_the_client(
    set_site: SetSite, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    for options in ({"authenticate": fail}, {"resolve_session": fail}):
        site = await set_site(**options)
        response = await site.post(turn())
        assert (response.status_code, code_of(response)) == (500, "config_error")
