"""Depth: whatever is stored can be shown, also the message that is nested as deep as one may be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.web.site import SetSite, Site, read_stream, said, turn, who
from tests.web.test_tool_outputs import asked, back, tool
from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import MAX_NESTING
from vitehub_chat.web.access import Place
from vitehub_chat.web.console.mounting import mount_console
from vitehub_chat.web.mirroring import Shelf

Make = Callable[[str, Any], dict[str, Any]]
READS: list[tuple[str, dict[str, Any]]] = [
    ("/history", {}),
    ("/history/turns", {}),
    ("/history/window", {}),
    ("/history/window", {"next": "true"}),
    ("/history/summary", {}),
    ("/history/export", {}),
    ("/history/search", {"q": "deep"}),
    ("/sessions", {}),
]


def nest(levels: int, *, of_objects: bool = False) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if of_objects else [value]
    return value


def with_part(message_id: str, value: Any) -> dict[str, Any]:
    message = said(message_id, "deep")
    message["parts"].append({"type": "data-x", "data": value})
    return message


def with_metadata(message_id: str, value: Any) -> dict[str, Any]:
    return said(message_id, "deep", metadata={"a": value})


MAKES = [with_part, with_metadata]


@pytest.fixture(params=["memory", "file"])
def set_any_site(
    request: pytest.FixtureRequest, set_site: SetSite, set_file_site: SetSite
) -> SetSite:
    return set_site if request.param == "memory" else set_file_site


async def read_all(site: Site, base: str, chat_id: str) -> None:
    """Read everything of a conversation there is to read."""
    for path, query in [*READS, (f"/sessions/{chat_id}", {})]:
        given = query if path == "/sessions" or "search" in path else {"id": chat_id, **query}
        answer = await site.http.get(base + path, params=given, headers={"x-user": "ada"})
        assert (path, answer.status_code) == (path, 200)
        for line in answer.text.splitlines():
            json.loads(line)


async def accepted(site: Site, make: Make) -> tuple[int, Mapping[str, Any]]:
    """Have a message answered that is as deep as can be; return how deep, and it as stored."""
    for levels in range(MAX_NESTING + 1, 0, -1):
        body = {"id": "c1", "messages": [make(f"m{levels}", nest(levels))]}
        if (await site.post(body)).status_code == 200:
            (row, _) = await site.rows()
            return levels, row.message.to_json()
        # What is refused has left nothing behind.
        assert (await site.get("/history", id="c1")).status_code == 404
    raise AssertionError("nothing was accepted")


@pytest.mark.parametrize("make", MAKES)
async def test_the_deepest_message_that_is_accepted_is_shown_by_every_route(
    set_any_site: SetSite, make: Make
) -> None:
    site = await set_any_site()
    levels, stored = await accepted(site, make)
    assert levels > MAX_NESTING - 10
    # It reads its files.
    await asyncio.to_thread(
        mount_console, site.app, site.agent, authenticate=who, allowed_hosts=["site"]
    )
    page = (await site.get("/history", id="c1")).json()
    assert page["items"][0]["message"] == stored
    await read_all(site, "/api/chat", "c1")
    await read_all(site, "/console/api", site.key().encode())


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_its_turn_goes_on(set_site: SetSite, make: Make, accept: str) -> None:
    site = await set_site()
    levels, _ = await accepted(site, make)
    body = {"id": "c1", "messages": [make(f"m{levels}", nest(levels))]}
    again = await site.post(body, headers={"accept": accept})
    assert (again.status_code, "deep[]" in again.text) == (200, True)
    after = await site.post(turn("last", "B"), headers={"accept": accept})
    assert (after.status_code, "B[deep,deep[]]" in after.text) == (200, True)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("of_objects", [False, True])
async def test_the_deepest_message_that_a_conversation_takes_is_shown(
    set_any_site: SetSite, make: Make, *, of_objects: bool
) -> None:
    site = await set_any_site()
    conversation = site.agent.conversation(site.key())
    levels = MAX_NESTING
    while True:
        try:
            await conversation.append([make("m1", nest(levels, of_objects=of_objects))])
            break
        except InputError:
            levels -= 1
    page = (await site.get("/history", id="c1")).json()
    expected = make("m1", nest(levels, of_objects=of_objects))
    assert page["items"][0]["message"]["parts"] == expected["parts"]
    lines = [json.loads(line) async for line in conversation.export()]
    assert [line["message"]["parts"] for line in lines if line["type"] == "message"] == [
        expected["parts"]
    ]


async def test_the_deepest_output_of_a_client_is_streamed_again(set_site: SetSite) -> None:
    site, answer = await asked(set_site)
    for levels in range(MAX_NESTING, 0, -1):
        located = tool("c1", "output-available", input={}, output=nest(levels))
        response = await site.post(back(answer, located))
        if response.status_code == 200:
            break
    assert levels > MAX_NESTING - 10
    assert read_stream(response.text)[-1]["type"] == "finish"
    again = await site.post(back(answer, tool("c1", "input-available", input={})))
    assert again.status_code == 200
    page = (await site.get("/history", id="c1")).json()
    assert page["items"][1]["message"]["parts"][1]["output"] == nest(levels)


async def test_a_chunk_that_is_as_deep_as_can_be_reaches_other_processes(
    set_any_site: SetSite,
) -> None:
    site = await set_any_site()
    assert site.state is not None
    place = Place(chat_id="c1", key=site.key(), session_id=None)
    shelf = Shelf(state=site.state, place=place)
    chunk = {"type": "tool-output-available", "output": nest(MAX_NESTING)}
    await shelf.set_block("r1", 0, [chunk], is_last=True)
    assert await shelf.block("r1", 0) == {"chunks": [chunk], "is_last": True}
