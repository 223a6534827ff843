"""Isolation: what another user or tenant gets with ids that are not theirs."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from tests.web.site import SetSite, Site, turn
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.web import Principal, SessionRef, per_user_sessions

READS = [
    "/history?id=c1",
    "/history?session_id=c1",
    "/history/turns?id=c1",
    "/history/window?id=c1",
    "/history/summary?id=c1",
    "/history/export?id=c1",
    "/sessions/c1",
]


@pytest.mark.parametrize("path", READS)
async def test_an_id_of_somebody_else_is_answered_like_an_unknown_one(
    set_site: SetSite, path: str
) -> None:
    site = await set_site()
    await site.post(turn())
    foreign = await site.send("GET", path, user="bob")
    unknown = await site.send("GET", path.replace("c1", "unknown"), user="bob")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/history/summary", {"id": "c1", "text": "x"}, 404),
        ("POST", "/truncate", {"id": "c1", "from_message_id": "m1"}, 404),
        ("DELETE", "/sessions/c1", None, 200),
        ("POST", "/c1/stop", {}, 200),
        ("POST", "/c1/stop", {"messageId": "m1"}, 200),
        ("GET", "/c1/stream", None, 204),
        ("POST", "", turn("m1", "Mine"), 200),
    ],
)
async def test_nothing_of_somebody_else_changes(
    set_site: SetSite, method: str, path: str, body: Any, status: int
) -> None:
    site = await set_site()
    await site.post(turn("m1", "Hers"))
    response = await site.send(method, path, body, user="bob")
    assert response.status_code == status
    assert "Hers" not in response.text
    assert await site.texts() == ["Hers", "Hers[]"]
    assert (await site.get("/history/summary", id="c1")).json()["manual"] is None


async def test_a_run_of_somebody_else_is_neither_seen_nor_stopped(set_site: SetSite) -> None:
    site = await set_site(stops=True)
    following = site.follow("POST", "", turn("m1", "A"))
    start = await following.until("start")
    assert (await site.get("/c1/stream", user="bob")).status_code == 204
    for body in ({}, {"messageId": start["messageId"]}, {"messageId": "m1"}):
        stopped = await site.send("POST", "/c1/stop", body, user="bob")
        assert stopped.json() == {"stopped": False}
    site.release("A")
    assert (await following.chunks())[-1]["type"] == "finish"


async def test_the_list_shows_the_own_conversations_alone(set_site: SetSite) -> None:
    site = await set_site()
    await site.post(turn("m1", "A", "c1"), user="ada")
    await site.post(turn("m2", "B", "c2"), user="bob")
    assert [each["id"] for each in (await site.get("/sessions")).json()["items"]] == ["c1"]
    other = (await site.get("/sessions", user="bob")).json()["items"]
    assert [each["id"] for each in other] == ["c2"]
    assert (await site.get("/sessions", user="eve")).json() == {"items": []}


async def test_a_session_of_somebody_else_cannot_be_reached_through_an_own_conversation(
    set_site: SetSite,
) -> None:
    site = await set_site(chat={"sessions": {"strategy": "manual"}}, trusted_fields=("session",))
    await site.post({**turn("m1", "Hers"), "session": {"id": "s1"}})
    await site.post(turn("m2", "Mine", "b1"), user="bob")
    for path in ("/history", "/history/export", "/history/summary", "/sessions/b1"):
        query = {"id": "b1", "session_id": "s1"}
        response = await site.get(path, user="bob", **query)
        assert (path, response.status_code) == (path, 404)
    gone = await site.send("DELETE", "/sessions/b1?session_id=s1", user="bob")
    assert set(gone.json().values()) == {0}
    assert await site.texts() == ["Hers", "Hers[]"]


async def test_a_trusted_session_id_reaches_nobody_elses_session(set_site: SetSite) -> None:
    site = await set_site(chat={"sessions": {"strategy": "manual"}}, trusted_fields=("session",))
    await site.post({**turn("m1", "Hers"), "session": {"id": "s1"}})
    await site.post({**turn("m2", "His"), "session": {"id": "s1"}}, user="bob")
    assert site.driver.calls == ["Hers[]", "His[]"]
    assert await site.texts() == ["Hers", "Hers[]"]


def tenant_of(request: Request) -> Principal:
    return Principal(request.headers["x-tenant"], "ada")


async def test_tenants_share_nothing(set_site: SetSite) -> None:
    site = await set_site(authenticate=tenant_of)
    await site.post(turn("m1", "A"), headers={"x-tenant": "one"})
    other = {"x-tenant": "two"}
    for path in (*READS, "/sessions"):
        response = await site.send("GET", path, headers=other)
        assert response.status_code == 404 or response.json() == {"items": []}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b:c"), ("a:b", "c")),
        (("1", "2:3"), ("12", ":3")),
        (("a" * 512, "c"), ("a" * 511, "c")),
        (("A", "c"), ("a", "c")),
        (("a", "c "), ("a", "c")),
    ],
)
def test_no_two_users_and_names_share_a_conversation(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    keys = [per_user_sessions(None, Principal("t", user), name).key for user, name in (one, other)]
    assert keys[0] != keys[1]
    assert all(len(key.channel or "") <= 512 for key in keys)


async def test_the_application_may_let_people_share_a_conversation(set_site: SetSite) -> None:
    def shared(_request: Any, principal: Principal, chat_id: str) -> SessionRef:
        return SessionRef(ConversationKey(principal.tenant_id, None, "team", chat_id))

    site: Site = await set_site(resolve_session=shared)
    await site.post(turn("m1", "A"), user="ada")
    page = await site.get("/history", user="bob", id="c1")
    assert page.json()["items"][0]["message"]["id"] == "m1"


async def test_a_resolver_may_name_one_session(set_site: SetSite) -> None:
    def fixed(_request: Any, principal: Principal, chat_id: str) -> SessionRef:
        key = ConversationKey(principal.tenant_id, None, "web", chat_id)
        return SessionRef(key, f"of-{chat_id}")

    site = await set_site(resolve_session=fixed, chat={"sessions": {"strategy": "manual"}})
    await site.post(turn("m1", "A"))
    items = (await site.get("/history", id="c1")).json()["items"]
    assert [item["session_id"] for item in items] == ["of-c1", "of-c1"]
    assert (await site.get("/history", id="c1", session_id="of-c1")).status_code == 200
    assert (await site.get("/history", id="c1", session_id="other")).status_code == 404
