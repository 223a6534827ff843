"""The web application of the how-to: what it answers, and how errors become statuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.examples.test_documents import ROOT, read
from vitehub_chat import define_agent

Answer = tuple[int, str]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Give the names of the application."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    code = next(read(ROOT / "docs" / "how-to" / "routes.md")).code
    names: dict[str, Any] = {}
    exec(compile(code, "routes.py", "exec"), names)  # noqa: S102  our own document
    return names


async def ask(app: Any, body: str, path: str = "/") -> Answer:
    """Send one request and return the status and the whole body."""
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": body.encode()}

    async def send(event: Mapping[str, Any]) -> None:
        sent.append(event)

    await app({"type": "http", "path": path, "headers": [(b"x-customer", b"c7")]}, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()


def said(message_id: str, text: str) -> str:
    return json.dumps({"id": message_id, "text": text})


async def test_an_answer_is_a_stream_of_frames(page: dict[str, Any]) -> None:
    async with page["agent"]:
        status, body = await ask(page["app"], said("m1", "Hello"))
    assert status == 200
    assert body.startswith('data: {"type":"start"')
    assert body.endswith("data: [DONE]\n\n")
    assert page["running"] == {}


@pytest.mark.parametrize("body", ["no JSON", "{}", said("m1", "")])
async def test_wrong_input_is_answered_before_the_stream(page: dict[str, Any], body: str) -> None:
    async with page["agent"]:
        assert (await ask(page["app"], body))[0] == 400


async def test_a_busy_conversation_is_answered_with_409_until_it_is_stopped(
    page: dict[str, Any],
) -> None:
    started = asyncio.Event()

    async def answer(_call: object) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    slow = define_agent(
        name="slow", driver=answer, capabilities=page["agent"].capabilities, state="memory:"
    )
    page["agent"] = slow
    async with slow:
        first = asyncio.create_task(ask(page["app"], said("m1", "Hello")))
        await started.wait()
        assert await ask(page["app"], said("m2", "Hello?")) == (409, '{"code": "chat_busy"}')
        assert (await ask(page["app"], "", "/stop"))[0] == 202
        assert (await first)[0] == 200
