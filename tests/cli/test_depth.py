"""Messages that are nested as deep as they may be, on the command line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.cli.helpers import STATE, Invoke, document
from vitehub_chat import ConversationKey, define_agent
from vitehub_chat.cli.text import json_document, json_line
from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import MAX_NESTING


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def store_deepest() -> list[dict[str, Any]]:
    """Store a message that is as deep as one may be, and return its parts."""
    agent = define_agent(name="support", state=STATE)
    agent.runtime()

    async def append() -> list[dict[str, Any]]:
        async with agent:
            conversation = agent.conversation(ConversationKey(None, "support", None, "cli"))
            for levels in range(MAX_NESTING, 0, -1):
                parts = [{"type": "text", "text": "deep"}, {"type": "data-x", "data": nest(levels)}]
                try:
                    await conversation.append([{"id": "m1", "role": "user", "parts": parts}])
                except InputError:
                    continue
                return parts
        raise AssertionError("nothing was stored")

    return asyncio.run(append())


def test_the_deepest_message_is_shown_by_every_command(support: str, invoke: Invoke) -> None:
    parts = store_deepest()
    for command in ("history", "turns", "summary", "sessions"):
        document(invoke(command, support, "--json"))
    page = document(invoke("history", support, "--json"))
    assert page["items"][0]["message"]["parts"] == parts
    lines = invoke("export", support).stdout.splitlines()
    assert json.loads(lines[1])["message"]["parts"] == parts
    assert invoke("history", support).exit_code == 0
    assert document(invoke("search", "deep", support, "--json"))["items"][0]["message_id"] == "m1"


def test_what_is_too_deep_to_be_written_is_shown_as_close_as_can_be() -> None:
    for write in (json_document, json_line):
        shown = json.loads(write({"near": 1, "far": nest(100_000)}))
        assert (shown["near"], isinstance(shown["far"], list)) == (1, True)
