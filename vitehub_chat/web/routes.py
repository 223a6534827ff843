"""Routes: every path with what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.web.access import Access
from vitehub_chat.web.history import HistoryRoutes
from vitehub_chat.web.inputs import InputBuilder
from vitehub_chat.web.openapi import DOCUMENT, openapi_document
from vitehub_chat.web.problems import json_response, problem_of
from vitehub_chat.web.runs import RunRegistry
from vitehub_chat.web.searching import SearchRoutes
from vitehub_chat.web.sessions import SessionRoutes
from vitehub_chat.web.settings import RouteSettings
from vitehub_chat.web.turns import TurnRoutes

Endpoint = Callable[[Request], Awaitable[Response]]


def find_endpoints(
    agent: Agent, access: Access, settings: RouteSettings, runs: RunRegistry, path: str = ""
) -> Mapping[str, Mapping[str, Endpoint]]:
    """Return every endpoint by path and method, the exact paths first."""
    inputs = InputBuilder(agent, settings.history)
    turns = TurnRoutes(agent, access, inputs, runs, settings)
    found: dict[str, Mapping[str, Endpoint]] = {"": {"POST": turns.post}}
    if settings.ag_ui:
        found["/ag-ui"] = {"POST": turns.ag_ui}
    if settings.read_routes:
        found |= _read_endpoints(agent, access, inputs, settings)
    found[DOCUMENT] = {"GET": _document(access, path, settings)}
    return found | {
        "/{id:path}/stream": {"GET": turns.resume},
        "/{id:path}/stop": {"POST": turns.stop},
    }


def guard(endpoint: Endpoint, begin: Callable[[], Awaitable[None]]) -> Endpoint:
    """Return an endpoint that begins to serve with its first request, and whose errors are told."""

    async def answer(request: Request) -> Response:
        try:
            await begin()
            return await endpoint(request)
        except ClientDisconnect:
            # Nobody is there any more to be told.
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - told to the client, and in the log if ours
            return problem_of(error).respond()

    return answer


def _document(access: Access, path: str, settings: RouteSettings) -> Endpoint:
    async def document(request: Request) -> Response:
        await access.principal(request)
        return json_response(
            openapi_document(path, read_routes=settings.read_routes, ag_ui=settings.ag_ui)
        )

    return document


def _read_endpoints(
    agent: Agent, access: Access, inputs: InputBuilder, settings: RouteSettings
) -> Mapping[str, Mapping[str, Endpoint]]:
    history = HistoryRoutes(agent, access, inputs, settings.max_body_bytes)
    sessions = SessionRoutes(agent, access)
    return {
        "/history": {"GET": history.page},
        "/history/turns": {"GET": history.turns},
        "/history/window": {"GET": history.window},
        "/history/search": {"GET": SearchRoutes(agent, access).search},
        "/history/summary": {"GET": history.summary, "PUT": history.save_summary},
        "/history/export": {"GET": history.export},
        "/sessions": {"GET": sessions.list},
        "/sessions/{id:path}": {"GET": sessions.get, "DELETE": sessions.delete},
        "/truncate": {"POST": history.truncate},
    }
