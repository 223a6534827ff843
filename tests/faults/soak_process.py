"""A process that sends messages until each is answered, whatever happens to it meanwhile.

Leases are short here, so that one who stands still for some seconds has lost its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import timedelta
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


def tell(*facts: str) -> None:
    """Write a line at once, so that a kill cannot cut it in two."""
    os.write(sys.stdout.fileno(), f"{json.dumps(facts)}\n".encode())


async def answer(call: DriverCall) -> str:
    """Answer a message after a moment."""
    tell("driven", call.text)
    await asyncio.sleep(0.02)
    return f"re {call.text}"


async def send(agent: Agent, text: str) -> None:
    """Send a message until it is answered; its thread is the first word of its text."""
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given: dict[str, Any] = {"messages": [message], "run": {"threadId": text.split(maxsplit=1)[0]}}
    while True:
        try:
            result = await run_agent_trigger(agent, "chat.message", given)
        except ChatError as error:
            tell("failed", text, error.code)
        else:
            tell(result.status, text, result.text)
            if result.status in {"complete", "coalesced"}:
                return
        await asyncio.sleep(0.1)


async def send_all(agent: Agent, texts: list[str]) -> None:
    """Send the messages of one thread, some at once."""
    ahead = asyncio.Semaphore(AT_ONCE)

    async def in_turn(text: str) -> None:
        async with ahead:
            await send(agent, text)

    await asyncio.gather(*map(in_turn, texts))


async def main(url: str, strategy: Any, options: dict[str, Any], texts: list[str]) -> None:
    """Send messages of several threads at once."""
    async with open_agent_state(url, **options) as state:
        agent = define_agent(
            name="station",
            driver=answer,
            capabilities=[chat(concurrency=strategy)],
            state=state,
        )
        threads = sorted({text.split()[0] for text in texts})
        lines = [[text for text in texts if text.split()[0] == thread] for thread in threads]
        await asyncio.gather(*(send_all(agent, line) for line in lines))
        await agent.aclose()
    tell("over")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
