"""The document of our own routes: it names every route, and every answer fits it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import hypothesis
import pytest
import schemathesis
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.applications import Starlette
from starlette.routing import Route

from tests.web.serving import serving
from tests.web.site import SetSite, said
from vitehub_chat import chat, define_agent
from vitehub_chat.web import (
    Principal,
    chat_app,
    mount_chat,
    openapi_document,
    per_user_sessions,
)

ALLOW: Any = {
    "authenticate": lambda _: Principal("acme", "ada"),
    "resolve_session": per_user_sessions,
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
DOCUMENT = openapi_document(ag_ui=True)


def agent_of() -> Any:
    window: Any = {"source": "transcript", "max_messages": 9}
    return define_agent(
        name="site", driver="echo", capabilities=[chat(trigger_history=window)], state="memory:"
    )


@pytest.mark.parametrize("path", ["/api/chat", "/", "/x/"])
@pytest.mark.parametrize("options", [{}, {"read_routes": False}, {"ag_ui": True}])
def test_every_route_is_in_the_document_and_no_other(path: str, options: Any) -> None:
    app = Starlette()
    mount_chat(app, agent_of(), path, **ALLOW, **options)
    mounted = {
        (method, route.path.replace("{id:path}", "{id}"))
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or ())
        if method != "HEAD"
    }
    described = {
        (method.upper(), path)
        for path, methods in openapi_document(path, **options)["paths"].items()
        for method in methods
    }
    assert described == mounted


async def test_the_document_is_served_to_who_may_call(set_site: SetSite) -> None:
    site = await set_site(ag_ui=True)
    assert (await site.get("/openapi.json")).json() == DOCUMENT
    assert (await site.get("/openapi.json", user=None)).status_code == 401


def test_every_schema_is_one_and_is_used() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    pieces = json.dumps(DOCUMENT).split("#/components/schemas/")[1:]
    assert {piece.partition('"')[0] for piece in pieces} == set(schemas)


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [
        ("/history", {"id": "c1"}, "HistoryPage"),
        ("/history/turns", {"id": "c1"}, "Turns"),
        ("/history/window", {"id": "c1"}, "Window"),
        ("/history/window", {"id": "c1", "next": "true"}, "Window"),
        ("/history/summary", {"id": "c1"}, "Summaries"),
        ("/history/search", {"q": "A"}, "Found"),
        ("/sessions", {}, "Sessions"),
        ("/sessions/c1", {}, "Session"),
    ],
)
async def test_what_is_answered_fits_its_schema_and_has_nothing_else(
    set_site: SetSite, path: str, query: dict[str, str], name: str
) -> None:
    site = await set_site(chat={"context": {"limit": 100_000}})
    await site.post({"id": "c1", "messages": [said("m1", "A")]})
    await site.send("PUT", "/history/summary", {"id": "c1", "text": "about A"})
    response = await site.get(path, **query)
    schemas = DOCUMENT["components"]["schemas"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    Draft202012Validator(schema).validate(response.json())
    assert set(response.json()) <= set(schemas[name]["properties"])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve an agent with a stored conversation `c1`."""
    with serving(chat_app(agent_of(), **ALLOW, ag_ui=True)) as address:
        base = f"{address}/api/chat"
        with httpx2.Client() as client:
            for number in range(3):
                body = {"id": "c1", "messages": [said(f"m{number}", "A")]}
                assert client.post(base, json=body).status_code == 200
            summary = {"id": "c1", "text": "about A"}
            assert client.put(f"{base}/history/summary", json=summary).status_code == 200
        yield address


def about_what_is_stored(case: Any) -> None:
    """Make every second request of reading one about the stored conversation."""
    given = {"get": case.query, "put": case.body}.get(case.method.lower())
    if isinstance(given, dict) and len(json.dumps(given)) % 2 and "{id}" not in case.path:
        given["id"] = "c1"
        given.pop("session_id", None)
    elif case.method == "GET" and "{id}" in case.path and len(case.path_parameters["id"]) % 2:
        case.path_parameters["id"] = "c1"


SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.mark.service
@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=6,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
def test_every_answer_fits_the_document(case: Any, address: str) -> None:
    about_what_is_stored(case)
    response = case.call(base_url=address, timeout=20)
    case.validate_response(response, checks=CHECKS)
