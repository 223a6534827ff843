"""Benchmark of the route for chat clients: what it adds to the model, against Pydantic AI's own.

Run it with `uv run --all-extras python tests/benchmarks/routes.py`.

A model double of Pydantic AI says an answer in small pieces, at once. Each subject is a POST of
the AI SDK to an ASGI application, without a socket, whose stream is read to its end. The peer's
route is `VercelAIAdapter.dispatch_request` in Starlette; it has neither claim, lock nor session,
its run ends with its request, and with `memory:` ours also reads the window and stores message and
answer. In the memory of ours every turn begins a conversation. Pieces that come faster than they
are read are one frame in ours.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic_ai import Agent as ModelAgent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.measuring import Rounds, Subject, freeze, read_options, report
from vitehub_chat import chat, define_agent, open_agent_state
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.model.messages import Message
from vitehub_chat.web import Principal, mount_chat, per_user_sessions

PEER = "pydantic-ai-slim"
API = "/api/chat"
TEXT = "Hello"
PIECE = "a few words of it "

ALONE = "the model in our driver"
AGENT = "the model in an agent of Pydantic AI"
ROUTE = "our route, nothing stored"
STORED = "our route, on memory:"
ADAPTER = "the route of VercelAIAdapter"


async def main() -> None:
    """Measure and report."""
    options = read_options("the route for chat clients")
    pieces, rounds = (5, 3) if options.is_tiny else (200, 200)
    model = _model(pieces)
    async with AsyncExitStack() as stack:
        subjects = {
            ALONE: _driving(model),
            AGENT: _running(model),
            ROUTE: await _ours(stack, model, pieces, None),
            STORED: await _ours(stack, model, pieces, "memory:"),
            ADAPTER: _peer(model, pieces),
        }
        freeze()
        measured = Rounds(time.perf_counter, collects=False)
        await measured.run(subjects, rounds)
    figures = [
        measured.figure(ROUTE, ALONE),
        measured.figure(STORED, ALONE),
        measured.figure(ADAPTER, AGENT),
        measured.figure(ROUTE, ADAPTER),
        measured.figure(STORED, ADAPTER),
    ]
    report(options, figures, [], {PEER: metadata.version(PEER)})


def _model(pieces: int) -> FunctionModel:
    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        for _ in range(pieces):
            yield PIECE

    return FunctionModel(stream_function=answer)


def _driving(model: FunctionModel) -> Subject:
    driver = create({"model": model})
    call = DriverCall(messages=(Message("m", "user", ({"type": "text", "text": TEXT},)),))

    async def drive() -> object:
        return [event async for event in driver.stream(call)]

    return drive


def _running(model: FunctionModel) -> Subject:
    agent = ModelAgent(model)

    async def run() -> object:
        async with agent.run_stream_events(TEXT) as stream:
            return [event async for event in stream]

    return run


async def _ours(
    stack: AsyncExitStack, model: FunctionModel, pieces: int, url: str | None
) -> Subject:
    state: Any = None
    if url is not None:
        state = await stack.enter_async_context(open_agent_state(url))
    window: Any = {"source": "thread" if state is None else "transcript", "max_messages": 20}
    agent = await stack.enter_async_context(
        define_agent(
            name="routes",
            driver={"use": "pydantic_ai", "model": model},
            capabilities=[chat(trigger_history=window)],
            state=state,
        )
    )
    app = Starlette()
    mounted = mount_chat(
        app,
        agent,
        path=API,
        authenticate=lambda _request: Principal("acme", "ada"),
        resolve_session=per_user_sessions,
    )
    stack.push_async_callback(mounted.aclose)
    return _asking(app, pieces)


def _peer(model: FunctionModel, pieces: int) -> Subject:
    agent = ModelAgent(model)

    async def answer(request: Request) -> Response:
        return await VercelAIAdapter.dispatch_request(request, agent=agent, sdk_version=6)

    return _asking(Starlette(routes=[Route(API, answer, methods=["POST"])]), pieces)


def _asking(app: Any, pieces: int) -> Subject:
    numbers = itertools.count()

    async def ask() -> object:
        number = next(numbers)
        message = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": TEXT}]}
        given = {"id": f"c{number}", "trigger": "submit-message", "messages": [message]}
        stream = await _post(app, json.dumps(given).encode())
        if stream.count(PIECE.encode()) != pieces:
            raise RuntimeError(stream.decode())
        return stream

    return ask


async def _post(app: Any, body: bytes) -> bytes:
    """Send a request to an application and return the whole content of its response."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "server": ("benchmark", 80),
        "path": API,
        "raw_path": API.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"benchmark")],
    }
    asked = iter([{"type": "http.request", "body": body, "more_body": False}])
    never: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
    content: list[bytes] = []

    async def receive() -> Mapping[str, Any]:
        return next(asked, None) or await never

    async def send(event: Mapping[str, Any]) -> None:
        content.append(event.get("body", b""))

    await app(scope, receive, send)
    return b"".join(content)


if __name__ == "__main__":
    asyncio.run(main())
