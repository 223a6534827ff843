"""The console in an application of somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import vitehub_chat.web.console.routes  # noqa: F401 - imported before an event loop runs
from tests.console.desk import text
from tests.console.test_refusals import HEADERS
from vitehub_chat import Agent, ConversationKey, define_agent
from vitehub_chat.errors import ConfigError
from vitehub_chat.web import Principal, mount_console


def who(request: Request) -> Principal | None:
    user = request.headers.get("x-user")
    if user == "banned":
        raise PermissionError("banned users may do nothing")
    return None if user is None else Principal(request.headers.get("x-tenant"), user)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    agent = define_agent(name="support", state=f"memory:{tmp_path}")
    agent.runtime()
    return agent


@pytest.fixture
def app(agent: Agent) -> Starlette:
    async def home(request: Request) -> PlainTextResponse:  # noqa: ARG001 - Starlette's
        return PlainTextResponse("home")

    app = Starlette(routes=[Route("/", home), Route("/console-of-others", home)])
    mount_console(app, agent, "/ops/console/", authenticate=who, allowed_hosts=["ops.example"])
    app.router.routes.append(Route("/ops/other", home))
    return app


@pytest.fixture
async def client(agent: Agent, app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app)
    headers = {"x-user": "ada"}
    async with (
        agent,
        httpx2.AsyncClient(
            transport=transport, base_url="http://ops.example", headers=headers
        ) as client,
    ):
        yield client


async def store(agent: Agent, tenant: str | None, thread: str) -> str:
    key = ConversationKey(tenant, "support", "portal", thread)
    await agent.conversation(key).append([text("m1", "Hello")])
    return key.encode()


async def test_pages_files_and_answers_are_below_the_path(client: httpx2.AsyncClient) -> None:
    index = await client.get("/ops/console/")
    assert "<title>" in index.text
    for path in ("main.js", "api/about", "api/sessions"):
        assert (await client.get(f"/ops/console/{path}")).status_code == 200


async def test_the_path_leads_to_the_page(client: httpx2.AsyncClient) -> None:
    response = await client.get("/ops/console")
    assert (response.status_code, response.headers["location"]) == (307, "/ops/console/")


async def test_the_rest_of_the_application_stays_as_it_is(client: httpx2.AsyncClient) -> None:
    for path in ("/", "/console-of-others", "/ops/other"):
        response = await client.get(path, headers={"host": "any.example"})
        assert (response.text, "content-security-policy" in response.headers) == ("home", False)


@pytest.mark.parametrize("path", ["", "/", "/main.js", "/api/about", "/api/sessions", "/nothing"])
async def test_another_host_is_421(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(f"/ops/console{path}", headers={"host": "evil.example"})
    assert response.status_code == 421


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/about", "/api/sessions"])
@pytest.mark.parametrize(("user", "status"), [(None, 401), ("banned", 403)])
async def test_who_may_not_look_sees_nothing(
    client: httpx2.AsyncClient, path: str, user: str | None, status: int
) -> None:
    if user is None:
        del client.headers["x-user"]
    else:
        client.headers["x-user"] = user
    response = await client.get(f"/ops/console{path}")
    assert response.status_code == status
    assert {name: response.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/open", 404), ("PUT", "/", 405)])
async def test_what_is_not_there_has_the_headers_too(
    client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await client.request(
        method, f"/ops/console{path}", headers={"origin": "http://ops.example"}
    )
    assert response.status_code == status
    assert {name: response.headers.get(name) for name in HEADERS} == HEADERS


async def test_everybodys_conversations_of_the_tenant_are_listed(
    agent: Agent, client: httpx2.AsyncClient
) -> None:
    mine = await store(agent, "acme", "t1")
    await store(agent, "other", "t2")
    client.headers["x-tenant"] = "acme"
    items = (await client.get("/ops/console/api/sessions")).json()["items"]
    assert [(item["id"], item["thread"], item["channel"]) for item in items] == [
        (mine, "t1", "portal")
    ]


async def test_a_conversation_is_deleted_and_counted(
    agent: Agent, client: httpx2.AsyncClient
) -> None:
    name = await store(agent, None, "a/b?c#d")
    client.headers["origin"] = "http://ops.example"
    path = f"/ops/console/api/sessions/{quote(name, safe='')}"
    counts = (await client.delete(path)).json()
    assert (counts["rows"], counts["sessions"]) == (1, 1)
    assert (await client.get("/ops/console/api/sessions")).json()["items"] == []
    assert set((await client.delete(path)).json().values()) == {0}


async def test_a_foreign_page_deletes_nothing(agent: Agent, client: httpx2.AsyncClient) -> None:
    name = await store(agent, None, "t1")
    response = await client.delete(
        f"/ops/console/api/sessions/{name}", headers={"origin": "http://evil.example"}
    )
    assert response.status_code == 403
    assert len((await client.get("/ops/console/api/sessions")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"allowed_hosts": []}, "allowed_hosts"),
        ({"allowed_hosts": "ops.example"}, "allowed_hosts"),
        ({"allowed_hosts": ["*"]}, "allowed_hosts"),
        ({"allowed_hosts": ["http://ops.example"]}, "allowed_hosts"),
        ({"authenticate": None}, "authenticate"),
        ({"path": "/"}, "path"),
        ({"path": "console"}, "path"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], path: str) -> None:
    given = {"authenticate": who, "allowed_hosts": ["ops.example"], **options}
    with pytest.raises(ConfigError) as caught:
        mount_console(Starlette(), define_agent(name="support"), **given)
    assert caught.value.path == path
