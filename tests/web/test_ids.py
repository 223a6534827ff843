"""Ids: every name that a conversation can have works on every route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx2
import pytest

from tests.conversation.station import LIMIT_S
from tests.web.serving import served
from tests.web.site import API, SetSite, Site, is_chunk, read_frame, said, turn

HEADERS = {"x-user": "ada"}
WORDS = ("history", "sessions", "truncate", "ag-ui", "stream", "stop", "openapi.json", "a")
NAMES = {
    "paths of routes": [
        *(f"{one}/{other}" for one in WORDS if one != "sessions" for other in WORDS),
        *("stream", "stop", "openapi.json", "a/sessions/b", "/sessions/a", "sessionsx"),
        *("SESSIONS/a", "history/x/stream", "stop/stream/", "a/stream/stop"),
    ],
    "paths": ["/", "//", "/a", "a/", "a//b", "..a", "a/../b", "../a", "a/..", "http://a/b"],
    "marks of URLs": ["a?b=c", "a#b", "%2F", "%2e%2e", "a%", "a+b", "a;b", "a&b", "a\\b", "a:b"],
    "characters": ["a b", " ", "{id}", 'a"b', "ключ ☕", "e\u0301", "\u2028", "a" * 512],
}


@asynccontextmanager
async def visiting(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        served(site.app) as address,
        httpx2.AsyncClient(base_url=address, headers=HEADERS, timeout=LIMIT_S) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", NAMES)
async def test_a_name_that_is_taken_works_on_every_route(set_site: SetSite, kind: str) -> None:
    site = await set_site(stops=True)
    async with visiting(site) as client, asyncio.timeout(LIMIT_S):
        for name in NAMES[kind]:
            assert await _whole_life(site, client, name) == (name, [f"in {name}"], 2)


async def _whole_life(
    site: Site, client: httpx2.AsyncClient, name: str
) -> tuple[str, list[str], int]:
    """Talk under a name; return its id, who said what there, and how many rows were erased."""
    path = quote(name, safe="")
    async with client.stream("POST", API, json=turn("m1", f"in {name}", name)) as answer:
        assert answer.status_code == 200
        await site.begun(f"in {name}")
        async with client.stream("GET", f"{API}/{path}/stream") as following:
            assert await _first_of(following) == "start"
        assert (await client.post(f"{API}/{path}/stop", json={})).json()["stopped"] is True
    assert (await client.get(f"{API}/{path}/stream")).status_code == 204
    items = (await client.get(f"{API}/history", params={"id": name})).json()["items"]
    texts = [part["text"] for part in items[0]["message"]["parts"]]
    found = (await client.get(f"{API}/sessions/{path}")).json()
    erased = (await client.delete(f"{API}/sessions/{path}")).json()
    return found["id"], texts, erased["rows"]


async def _first_of(following: httpx2.Response) -> str:
    assert following.status_code == 200
    async for line in following.aiter_lines():
        if is_chunk(line):
            return str(read_frame(line)["type"])
    raise AssertionError("nothing came")


@pytest.mark.parametrize("name", ["sessions/", "sessions/a", "sessions/a/stream", "sessions//"])
@pytest.mark.parametrize(("below", "path"), [("", "id"), ("/ag-ui", "threadId")])
async def test_a_name_that_another_route_takes_for_its_own_begins_no_conversation(
    set_site: SetSite, name: str, below: str, path: str
) -> None:
    site = await set_site(ag_ui=True)
    body = {**turn("m1", "A", name), "threadId": name, "runId": "r1"}
    answer = await site.send("POST", below, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["path"]) == (400, "invalid_input", path)
    assert "must not begin with 'sessions/'" in error["message"]
    assert site.driver.calls == []


async def test_what_is_stored_under_such_a_name_can_be_read_and_deleted(set_site: SetSite) -> None:
    site = await set_site()
    await site.agent.conversation(site.key("sessions/a")).append([said("m1", "A")])
    async with visiting(site) as client:
        page = await client.get(f"{API}/history", params={"id": "sessions/a"})
        found = await client.get(f"{API}/sessions/sessions%2Fa")
        erased = await client.delete(f"{API}/sessions/sessions%2Fa")
    assert len(page.json()["items"]) == found.json()["message_count"] == erased.json()["rows"] == 1
