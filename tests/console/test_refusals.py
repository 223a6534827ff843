"""Who gets in, who does not, and what every answer says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

from tests.console.conftest import SetDesk
from tests.console.desk import Desk, text
from vitehub_chat import ConversationKey
from vitehub_chat.testing.clock import FakeClock

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
TURN = {"id": "c1", "messages": [text("m1", "Hello")]}
WRITES = [("POST", "/open"), ("POST", "/api/chat"), ("DELETE", "/api/sessions/x")]
CLOSED = [
    "/",
    "/main.js",
    "/api/about",
    "/api/sessions",
    "/api/chat/c1/stream",
    "/api/chat/history",
]
BEHIND = [*CLOSED, "/api/history/export?id=x", "/nothing", "/open/", "/favicon.ico"]


class Visitor:
    """A client of a desk.

    Attributes:
        desk: What it asks.
        http: What it asks with; a write says where it comes from unless told otherwise.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.http = httpx2.Client(base_url=desk.address, headers={"origin": desk.address})

    def enter(self, token: str | None = None) -> httpx2.Response:
        """Exchange the secret of the link, or another one."""
        secret = self.desk.link.partition("#")[2] if token is None else token
        return self.http.post("/open", json={"token": secret})


@pytest.fixture(scope="module")
def lobby() -> Iterator[Visitor]:
    """Give a client that got into a desk that the tests of this module share."""
    with Desk("memory:lobby") as desk:
        found = Visitor(desk)
        assert found.enter().status_code == 200
        yield found
        found.http.close()


@pytest.fixture
def inside(lobby: Visitor) -> Iterator[Visitor]:
    """Give a client of its own that got in."""
    found = Visitor(lobby.desk)
    found.http.cookies.update(lobby.http.cookies)
    yield found
    found.http.close()


@pytest.fixture
def stranger(lobby: Visitor) -> Iterator[Visitor]:
    """Give a client that did not get in."""
    found = Visitor(lobby.desk)
    yield found
    found.http.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def visitor(set_desk: SetDesk, clock: FakeClock) -> Iterator[Visitor]:
    """Give a client before the door of a desk of its own."""
    found = Visitor(set_desk(clock=clock))
    yield found
    found.http.close()


def code(response: httpx2.Response) -> str:
    found: str = response.json()["error"]["code"]
    return found


@pytest.mark.parametrize("path", BEHIND)
def test_without_the_cookie_everything_but_the_door_is_401(stranger: Visitor, path: str) -> None:
    response = stranger.http.get(path)
    assert (response.status_code, code(response)) == (401, "unauthenticated")


def test_without_the_cookie_no_turn_is_run(visitor: Visitor) -> None:
    assert visitor.http.post("/api/chat", json=TURN).status_code == 401
    desk = visitor.desk
    assert desk.call(desk.agent.conversations().sessions()).items == ()


@pytest.mark.parametrize("path", ["/open", "/open.js", "/console.css", "/icon.svg"])
def test_the_door_and_its_files_are_for_everybody(stranger: Visitor, path: str) -> None:
    assert stranger.http.get(path).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "evil@desk.example"]
)
def test_an_unlisted_host_is_421(stranger: Visitor, host: str) -> None:
    response = stranger.http.get("/open", headers={"host": host})
    assert (response.status_code, code(response)) == (421, "unknown_host")


@pytest.mark.parametrize("host", ["desk.example", "DESK.example:8000"])
def test_a_listed_name_without_port_holds_for_every_port(stranger: Visitor, host: str) -> None:
    assert stranger.http.get("/open", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", [None, "", "null", "https://evil.example", "http://127.0.0.1:1"])
@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_write_with_a_foreign_or_missing_origin_is_403(
    inside: Visitor, method: str, path: str, origin: str | None
) -> None:
    if origin is None:
        del inside.http.headers["origin"]
    else:
        inside.http.headers["origin"] = origin
    response = inside.http.request(method, path, json=TURN)
    assert (response.status_code, code(response)) == (403, "forbidden")


def test_a_write_that_names_two_origins_is_403(inside: Visitor) -> None:
    address = inside.desk.address
    origins = [("origin", address), ("origin", address)]
    with httpx2.Client(base_url=address, cookies=inside.http.cookies) as client:
        assert client.post("/api/chat", json=TURN, headers=origins).status_code == 403


def test_a_page_behind_tls_may_write(stranger: Visitor) -> None:
    headers = {"host": "desk.example", "origin": "https://desk.example"}
    response = stranger.http.post("/open", json={"token": "wrong"}, headers=headers)
    assert "too old" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("GET", "/main.js", {}, 200),
        ("GET", "/api/sessions", {}, 200),
        ("GET", "/api/chat/history?id=c9", {}, 404),
        ("GET", "/nothing", {}, 404),
        ("PUT", "/api/about", {}, 405),
        ("GET", "/open", {"host": "evil.example"}, 421),
        ("DELETE", "/api/sessions/x", {"origin": "http://evil.example"}, 403),
        ("GET", "/", {"cookie": "other=1"}, 401),
    ],
)
def test_every_answer_has_the_headers(
    inside: Visitor, method: str, path: str, headers: Mapping[str, str], status: int
) -> None:
    response = inside.http.request(method, path, headers=headers)
    found = {name: response.headers.get(name) for name in HEADERS}
    assert (response.status_code, found) == (status, HEADERS)


def test_a_stream_has_the_headers_and_those_of_its_protocol(inside: Visitor) -> None:
    response = inside.http.post("/api/chat", json=TURN)
    assert response.headers["content-security-policy"] == CSP
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert response.headers["cache-control"] == "no-cache, no-transform"


def test_a_link_used_twice_is_refused(inside: Visitor, stranger: Visitor) -> None:
    again = stranger.enter()
    assert (again.status_code, code(again)) == (403, "forbidden")
    assert inside.http.get("/api/about").status_code == 200


def test_a_wrong_secret_does_not_use_the_link_up(visitor: Visitor) -> None:
    refused = [visitor.enter(token).status_code for token in ("", "wrong", "é😀")]
    assert refused == [403, 403, 403]
    assert visitor.enter().status_code == 200


@pytest.mark.parametrize(("seconds", "status"), [(120, 200), (121, 403)])
def test_a_link_works_for_two_minutes(
    visitor: Visitor, clock: FakeClock, seconds: int, status: int
) -> None:
    clock.advance(seconds=seconds)
    assert visitor.enter().status_code == status


@pytest.mark.parametrize("body", [{}, {"token": 1}, []])
def test_a_body_without_a_secret_is_400(stranger: Visitor, body: Any) -> None:
    response = stranger.http.post("/open", json=body)
    assert (response.status_code, code(response)) == (400, "invalid_input")


def test_the_cookie_is_for_the_server_and_this_site_alone(visitor: Visitor) -> None:
    desk = visitor.desk
    port = desk.address.rpartition(":")[2]
    name, value, *facts = visitor.enter().headers["set-cookie"].replace("=", ";", 1).split(";")
    assert name == f"vitehub_chat_{port}"
    assert len(value) >= 40
    assert value not in desk.link
    assert {fact.strip().lower() for fact in facts} == {"httponly", "samesite=strict", "path=/"}


def test_a_cookie_of_another_process_opens_nothing(inside: Visitor, set_desk: SetDesk) -> None:
    other = set_desk()
    (value,) = inside.http.cookies.values()
    with httpx2.Client(base_url=other.address, cookies={other.door.cookie_name: value}) as client:
        assert client.get("/").status_code == 401


def test_a_secret_of_ones_own_works_again_and_is_not_in_the_link(
    set_desk: SetDesk, clock: FakeClock
) -> None:
    secret = "s" * 40
    desk = set_desk(secret=secret, clock=clock)
    clock.advance(days=1)
    assert desk.link == f"{desk.address}/open"
    visitor = Visitor(desk)
    assert [visitor.enter(secret).status_code for _ in range(2)] == [200, 200]
    visitor.http.close()


def test_a_cursor_that_is_none_is_400(inside: Visitor) -> None:
    inside.desk.store([text("m1", "Hello")])
    name = ConversationKey(None, "support", "portal", "t1").encode()
    response = inside.http.get("/api/history", params={"id": name, "cursor": "nonsense"})
    assert (response.status_code, code(response)) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    "name",
    [
        ConversationKey("other", "support", "portal", "t1").encode(),
        ConversationKey(None, "other", "portal", "t1").encode(),
        ConversationKey(None, "support", "portal", "unknown").encode(),
        "nonsense",
        "-",
        "-7:support-99:t1",
        "-7:support6:portal2:t1-",
    ],
)
def test_what_is_not_of_this_tenant_and_agent_is_404(inside: Visitor, name: str) -> None:
    inside.desk.store([text("m1", "Hello")])
    inside.desk.store([text("m1", "Hello")], tenant="other")
    for path in ("history", "history/turns", "history/window", "history/export", "history/summary"):
        response = inside.http.get(f"/api/{path}", params={"id": name})
        assert (response.status_code, code(response)) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/api/history/summary"), ("POST", "/api/truncate"), ("POST", "/api"), ("POST", "/")],
)
def test_the_console_changes_nothing_but_by_deleting(
    inside: Visitor, method: str, path: str
) -> None:
    assert inside.http.request(method, path, json=TURN).status_code in {404, 405}


def test_a_console_that_does_not_talk_has_no_routes_for_clients(set_desk: SetDesk) -> None:
    visitor = Visitor(set_desk(talks=False))
    visitor.enter()
    assert visitor.http.get("/api/about").json()["chat"] is None
    assert visitor.http.post("/api/chat", json=TURN).status_code == 404
    visitor.http.close()
