"""FastAPI: the routes and the console in an application of its own, with its lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastapi
import httpx2
import pytest

import vitehub_chat.web.console.routes
import vitehub_chat.web.routes  # noqa: F401 - imported before an event loop runs
from tests.web.site import read_stream, text_of, turn, who
from vitehub_chat import Agent, chat, define_agent
from vitehub_chat.web import MountedChat, mount_chat, mount_console, per_user_sessions

ADA = {"x-user": "ada"}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return define_agent(
        name="site", driver="echo", capabilities=[chat()], state=f"file:{tmp_path}/state.db"
    )


@pytest.fixture
def app(agent: Agent) -> fastapi.FastAPI:
    """Return an application that has a route of its own, then ours, then a route for all else."""
    mounted: MountedChat

    @asynccontextmanager
    async def lifespan(app: fastapi.FastAPI) -> AsyncIterator[None]:
        async with mounted.lifespan(app):
            yield

    app = fastapi.FastAPI(lifespan=lifespan)

    @app.get("/own/{number}")
    async def own(number: int) -> dict[str, int]:
        return {"number": number}

    mounted = mount_chat(
        app, agent, authenticate=who, resolve_session=per_user_sessions, ag_ui=True
    )
    mount_console(app, agent, authenticate=who, allowed_hosts=["site"])

    @app.get("/{path:path}")
    async def other(path: str) -> dict[str, str]:
        return {"path": path}

    return app


@pytest.fixture
async def client(app: fastapi.FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of the application while it runs."""
    transport: Any = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://site") as client,
    ):
        yield client


async def test_a_turn_is_answered_and_listed(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/chat", json=turn("m1", "Hello"), headers=ADA)
    assert text_of(read_stream(answer.text)) == "You said: Hello"
    sessions = await client.get("/api/chat/sessions", headers=ADA)
    assert [(item["id"], item["message_count"]) for item in sessions.json()["items"]] == [("c1", 2)]
    history = await client.get("/api/chat/history", params={"id": "c1"}, headers=ADA)
    assert [item["message"]["role"] for item in history.json()["items"]] == ["user", "assistant"]
    again = await client.get("/api/chat/c1/stream", headers=ADA)
    assert again.status_code == 204


async def test_a_body_that_is_wrong_is_refused_as_everywhere(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/chat", json={"id": "c1"}, headers=ADA)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_input")
    assert (await client.post("/api/chat", json=turn())).status_code == 401


async def test_the_console_shows_what_was_said(client: httpx2.AsyncClient) -> None:
    await client.post("/api/chat", json=turn("m1", "Hello"), headers=ADA)
    page = await client.get("/console/", headers=ADA)
    assert (page.status_code, "<title>" in page.text) == (200, True)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    (item,) = (await client.get("/console/api/sessions", headers=ADA)).json()["items"]
    assert item["message_count"] == 2


async def test_routes_of_the_application_stay_its_own(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/own/5")).json() == {"number": 5}
    assert (await client.get("/elsewhere")).json() == {"path": "elsewhere"}
    document = (await client.get("/openapi.json")).json()
    assert set(document["paths"]) == {"/own/{number}", "/{path}"}


async def test_the_lifespan_opens_and_closes_the_agent(app: fastapi.FastAPI, agent: Agent) -> None:
    async with app.router.lifespan_context(app):
        assert agent._runtime is not None
    assert agent._runtime is None
