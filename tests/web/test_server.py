"""A real server on loopback: streams that arrive as they are said, and sockets that drop."""

from __future__ import annotations

import asyncio

import httpx2

from tests.conversation.station import LIMIT_S
from tests.web.serving import served
from tests.web.site import SetSite, is_chunk, read_frame, turn

HEADERS = {"x-user": "ada"}


async def types_of(response: httpx2.Response) -> list[str]:
    return [read_frame(line)["type"] async for line in response.aiter_lines() if is_chunk(line)]


async def test_a_stream_arrives_while_it_is_said_and_a_dropped_one_is_recorded(
    set_site: SetSite,
) -> None:
    site = await set_site(stops=True)
    async with served(site.app) as address, httpx2.AsyncClient(base_url=address) as client:
        async with asyncio.timeout(LIMIT_S):
            body = turn("m1", "A")
            async with client.stream("POST", "/api/chat", json=body, headers=HEADERS) as response:
                assert response.status_code == 200
                async for line in response.aiter_lines():
                    if is_chunk(line):
                        assert read_frame(line)["type"] == "start"
                        break
            # The socket is closed now, and the driver was not told to go on yet.
            following = client.stream("GET", "/api/chat/c1/stream", headers=HEADERS)
            async with following as response:
                assert response.status_code == 200
                site.release("A")
                assert (await types_of(response))[-1] == "finish"
            page = await client.get("/api/chat/history?id=c1", headers=HEADERS)
    assert [item["status"] for item in page.json()["items"]] == ["complete", "complete"]
    assert await site.texts() == ["A", "A[]"]


async def test_many_dropped_sockets_leave_every_answer_whole(set_site: SetSite) -> None:
    site = await set_site(stops=True)
    names = [f"c{number}" for number in range(20)]
    async with served(site.app) as address:

        async def ask(name: str, *, drops: bool) -> None:
            async with (
                httpx2.AsyncClient(base_url=address, timeout=LIMIT_S) as client,
                client.stream(
                    "POST", "/api/chat", json=turn("m1", name, name), headers=HEADERS
                ) as response,
            ):
                async for line in response.aiter_lines():
                    if drops and is_chunk(line):
                        return

        async with asyncio.timeout(LIMIT_S):
            dropping = [asyncio.create_task(ask(name, drops=True)) for name in names[:10]]
            staying = [asyncio.create_task(ask(name, drops=False)) for name in names[10:]]
            await asyncio.gather(*dropping)
            site.release(*names)
            await asyncio.gather(*staying)
            while runs := [run.task for each in site.mounted._runs._runs.values() for run in each]:
                await asyncio.wait(runs)
                await asyncio.sleep(0)
    assert [await site.texts(name) for name in names] == [[name, f"{name}[]"] for name in names]


async def test_an_id_with_an_encoded_slash_arrives_whole(set_site: SetSite) -> None:
    site = await set_site()
    async with served(site.app) as address, httpx2.AsyncClient(base_url=address) as client:
        await client.post("/api/chat", json=turn(chat_id="a/b"), headers=HEADERS)
        response = await client.get("/api/chat/sessions/a%2Fb", headers=HEADERS)
        empty = await client.get("/api/chat/a%2Fb/stream", headers=HEADERS)
    assert response.json()["id"] == "a/b"
    assert empty.status_code == 204
