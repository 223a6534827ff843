"""What the tests of the command share."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from vitehub_chat import ConversationKey, define_agent

COMMAND = Path(sys.executable).with_name("vitehub-chat")
STATE = "file:state.db"
ECHO = """
name = "support"
driver = "echo"
state = "file:state.db"
[[capabilities]]
use = "chat"
triggerHistory = { source = "transcript", maxMessages = 4 }
"""

Invoke = Callable[..., Result]


def document(result: Result) -> Any:
    """Return the JSON document of a command that succeeded and said nothing else."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def failure(result: Result) -> dict[str, str]:
    """Return the error of a command that failed and wrote nothing to standard output."""
    assert result.stdout == ""
    found: dict[str, str] = json.loads(result.stderr)["error"]
    return found


def store(
    *texts: str, thread: str = "cli", channel: str | None = None, session_id: str | None = None
) -> None:
    """Store messages of a user in a conversation of the agent `support`."""
    messages = [
        {"id": f"{thread}-{n}", "role": "user", "parts": [{"type": "text", "text": text}]}
        for n, text in enumerate(texts, 1)
    ]

    agent = define_agent(name="support", state=STATE)
    agent.runtime()

    async def append() -> None:
        async with agent:
            key = ConversationKey(None, "support", channel, thread)
            await agent.conversation(key, session_id=session_id).append(messages)

    asyncio.run(append())


def texts_of(page: dict[str, Any]) -> list[str]:
    """Return the texts of a page of rows."""
    return [
        "".join(part.get("text", "") for part in item["message"]["parts"]) for item in page["items"]
    ]
