"""Searching over the route: by words, and only in what belongs to who calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.site import SetSite, Site, turn


async def talked(set_site: SetSite) -> Site:
    """Set up a site where Ada said something in two chats, and Bob in one of the same name."""
    site = await set_site()
    for user, chat_id, message_id, text in (
        ("ada", "c1", "m1", "Green tea, please"),
        ("ada", "c2", "m2", "今天的天气 and tea"),
        ("bob", "c2", "m3", "tea of somebody else"),
    ):
        site.clock.advance(seconds=60)
        await site.post(turn(message_id, text, chat_id), user=user)
    return site


async def find(site: Site, user: str = "ada", **query: Any) -> list[str]:
    answer = await site.get("/history/search", user=user, **query)
    assert answer.status_code == 200
    return [item["message_id"] for item in answer.json()["items"] if item["role"] == "user"]


async def test_l173_only_own_messages_are_found(set_site: SetSite) -> None:
    site = await talked(set_site)
    assert await find(site, q="TEA") == ["m2", "m1"]
    assert await find(site, "bob", q="tea") == ["m3"]
    assert await find(site, "eve", q="tea") == []
    assert (await site.get("/history/search", user=None, q="tea")).status_code == 401
    assert (await site.get("/history/search", user="banned", q="tea")).status_code == 403


async def test_a_hit_has_its_place_and_its_text(set_site: SetSite) -> None:
    site = await talked(set_site)
    items = (await site.get("/history/search", q="tea green", role="user")).json()["items"]
    [row, _] = await site.rows("c1")
    created_at = row.message.to_json().get("createdAt")
    assert items == [
        {
            "id": "c1",
            "message_id": "m1",
            "seq": 1,
            "role": "user",
            "created_at": created_at,
            "snippet": "**Green** **tea**, please",
            "score": 2,
        }
    ]
    page = await site.get("/history", id=items[0]["id"], around=items[0]["message_id"])
    assert page.json()["items"][0]["message"]["id"] == "m1"


async def test_a_search_is_narrowed_to_a_conversation_a_role_and_times(set_site: SetSite) -> None:
    site = await talked(set_site)
    assert await find(site, q="tea", id="c1") == ["m1"]
    assert await find(site, q="天气", id="c2") == ["m2"]
    assert await find(site, q="tea", role="assistant") == []
    assert await find(site, q="tea", limit=50, after=site.clock.now().isoformat()) == []
    assert await find(site, q="tea", before="2000-01-01") == []
    assert (await site.get("/history/search", q="tea", id="unknown")).status_code == 404


@pytest.mark.parametrize("q", ["", " ", "a/b", '"x,', "*", ":", "(", "NOT", "%", "💥'; --"])
async def test_no_query_is_wrong(set_site: SetSite, q: str) -> None:
    site = await talked(set_site)
    assert await find(site, q=q) == []


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"q": "tea", "limit": "0"},
        {"q": "tea", "limit": "many"},
        {"q": "tea", "before": "yesterday"},
        {"q": "tea", "after": ""},
        {"q": "tea", "id": ""},
    ],
)
async def test_a_search_that_cannot_be_is_refused(set_site: SetSite, query: dict[str, Any]) -> None:
    site = await talked(set_site)
    answer = await site.get("/history/search", **query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_input")
