"""A process that sends messages until each is answered, whatever happens to it meanwhile.

Leases are short here, so that one who stands still for some seconds has lost its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from vitehub_chat.conversation import lease

# Before anything else is imported that takes them over.
lease.LEASE = timedelta(seconds=2)
lease.RENEW_EVERY = timedelta(seconds=0.5)
lease.ATTENDANCE = timedelta(seconds=1)
lease.ATTEND_EVERY = timedelta(seconds=0.3)

from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger  # noqa: E402
from vitehub_chat.agent.agent import Agent  # noqa: E402
from vitehub_chat.agent.driver import DriverCall  # noqa: E402
from vitehub_chat.errors import ChatError  # noqa: E402

AT_ONCE = 3
"""How many messages of a thread are on their way at a time."""


def tell(*facts: str | None) -> None:
    """Write a line at once, so that a kill cannot cut it in two."""
    os.write(sys.stdout.fileno(), f"{json.dumps(facts)}\n".encode())


async def answer(call: DriverCall) -> str:
    """Answer a message after a moment."""
    tell("driven", call.text)
    await asyncio.sleep(0.02)
    return f"re {call.text}"


async def send(agent: Agent, text: str) -> None:
    """Send a message until it is answered; its text begins with its thread and its session."""
    thread, session, _ = text.split()
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given: dict[str, Any] = {
        "messages": [message],
        "run": {"threadId": thread},
        "session": {"id": f"{thread} {session}"},
    }
    while True:
        try:
            result = await run_agent_trigger(agent, "chat.message", given)
        except ChatError as error:
            tell("failed", text, error.code)
        else:
            tell(result.status, text, result.text, result.session_id)
            # The end of a run that died is not recorded: then the message has to be sent again.
            if result.status != "dropped" and result.session_id is not None:
                return
        await asyncio.sleep(0.1)


class Texts:
    """What is sent: first what was not answered before, then new texts until there is a note."""

    def __init__(self, name: str, left: list[str], first: int, note: Path) -> None:
        self._left = left
        self._name = name
        self._numbers = itertools.count(first)
        self._note = note

    def next(self, thread: str) -> str | None:
        """Return the next text of a thread, told before it is sent, or None."""
        for text in self._left:
            if text.split()[0] == thread:
                self._left.remove(text)
                return text
        if self._note.exists():
            return None
        number = next(self._numbers)
        text = f"{thread} s{number % 2} {self._name}{number}"
        tell("sent", text)
        return text


async def main(
    url: str,
    strategy: Any,
    options: dict[str, Any],
    threads: list[str],
    note: str,
    name: str,
    left: list[str],
    first: int,
) -> None:
    """Send messages of several threads at once."""
    texts = Texts(name, left, first, Path(note))
    async with open_agent_state(url, **options) as state:
        agent = define_agent(
            name="station",
            driver=answer,
            capabilities=[chat(concurrency=strategy, sessions={"strategy": "manual"})],
            state=state,
        )

        async def send_all(thread: str) -> None:
            while (text := texts.next(thread)) is not None:
                await send(agent, text)

        await asyncio.gather(*(send_all(thread) for thread in threads for _ in range(AT_ONCE)))
        # A turn that was taken over from a dead process would be interrupted by closing.
        await agent.runtime().settle(timedelta(seconds=30))
        await agent.aclose()
    tell("over")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
