"""Mounting: exact routes, options, the lifespan, and the sweep."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from tests.conversation.station import LIMIT_S
from tests.web.site import SetSite, turn, who
from vitehub_chat import chat, define_agent
from vitehub_chat.errors import ConfigError
from vitehub_chat.web import chat_app, mount_chat, per_user_sessions

ALLOW: Any = {"authenticate": who, "resolve_session": per_user_sessions}


def agent_of(state: str | None = "memory:") -> Any:
    return define_agent(name="a", driver="echo", capabilities=[chat()], state=state)


@pytest.mark.parametrize("path", ["/api/chat", "/api/chat/", "/x", "/"])
def test_every_route_is_an_exact_one(path: str) -> None:
    app = Starlette()
    mount_chat(app, agent_of(), path, **ALLOW, ag_ui=True)
    assert all(isinstance(route, Route) for route in app.routes)
    base = path.rstrip("/")
    found = {route.path for route in app.routes if isinstance(route, Route)}
    assert found == {
        base or "/",
        f"{base}/ag-ui",
        f"{base}/history",
        f"{base}/history/turns",
        f"{base}/history/window",
        f"{base}/history/search",
        f"{base}/history/summary",
        f"{base}/history/export",
        f"{base}/sessions",
        f"{base}/sessions/{{id:path}}",
        f"{base}/truncate",
        f"{base}/openapi.json",
        f"{base}/{{id:path}}/stream",
        f"{base}/{{id:path}}/stop",
    }


async def test_a_post_is_not_redirected(set_site: SetSite) -> None:
    site = await set_site()
    assert (await site.post(turn())).status_code == 200
    assert (await site.send("GET", "")).status_code == 405
    assert (await site.send("DELETE", "/history?id=c1")).status_code == 405


async def test_routes_that_are_switched_off_are_not_there(set_site: SetSite) -> None:
    site = await set_site(read_routes=False)
    assert (await site.post(turn())).status_code == 200
    for method, path in (("GET", "/history?id=c1"), ("GET", "/sessions"), ("POST", "/ag-ui")):
        assert (await site.send(method, path)).status_code == 404
    assert (await site.get("/c1/stream")).status_code == 204


async def test_an_application_of_its_own_opens_and_closes_the_agent() -> None:
    agent = agent_of()
    app = chat_app(agent, **ALLOW)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://a") as client,
    ):
        response = await client.post("/api/chat", json=turn(), headers={"x-user": "ada"})
        assert response.status_code == 200
        assert agent._runtime is not None
    assert agent._runtime is None


async def test_a_lifespan_can_be_entered_again() -> None:
    app = Starlette()
    mounted = mount_chat(app, agent_of(), **ALLOW)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://a") as client:
        for _ in range(2):
            async with mounted.lifespan(app):
                response = await client.post("/api/chat", json=turn(), headers={"x-user": "ada"})
                assert response.status_code == 200
            after = await client.post("/api/chat", json=turn(), headers={"x-user": "ada"})
            assert after.status_code == 503


async def test_the_first_request_begins_to_sweep_and_the_close_ends_it(set_site: SetSite) -> None:
    site = await set_site()
    swept = asyncio.Event()
    runtime = site.agent.runtime()
    sweep = runtime.sweep

    async def watched() -> int:
        swept.set()
        return await sweep()

    runtime.sweep = watched  # type: ignore[method-assign]
    await site.get("/sessions")
    async with asyncio.timeout(LIMIT_S):
        await swept.wait()
    (sweeper,) = site.mounted._sweepers.values()
    task = sweeper._task
    assert task is not None
    await site.mounted.aclose()
    await site.mounted.aclose()
    assert task.cancelled()


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"authenticate": None}, "authenticate"),
        ({"resolve_session": "per_user"}, "resolve_session"),
        ({"trusted_fields": ("run",)}, "trusted_fields"),
        ({"trusted_fields": "session"}, "trusted_fields"),
        ({"trusted_fields": (5,)}, "trusted_fields"),
        ({"history": "both"}, "history"),
        ({"replay": "disk"}, "replay"),
        ({"read_routes": 1}, "read_routes"),
        ({"ag_ui": None}, "ag_ui"),
        ({"max_body_bytes": 0}, "max_body_bytes"),
        ({"keepalive_ms": True}, "keepalive_ms"),
        ({"shutdown_grace_ms": "1"}, "shutdown_grace_ms"),
        ({"keepalive": 1}, "keepalive"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mount_chat(Starlette(), agent_of(), **{**ALLOW, **options})
    assert caught.value.path == path


def test_there_is_no_default_for_who_may_call() -> None:
    with pytest.raises(TypeError):
        mount_chat(Starlette(), agent_of())  # type: ignore[call-arg]


async def test_a_head_request_needs_to_sign_in_too(set_site: SetSite) -> None:
    site = await set_site()
    assert (await site.send("HEAD", "/sessions", user=None)).status_code == 401
