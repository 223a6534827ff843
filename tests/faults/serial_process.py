"""A process that sends its messages into one thread when it is told to, and tells the answers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall


async def main(url: str, options: str, name: str, marks: str, count: int) -> None:
    """Send `count` messages at once; the driver marks when it begins and ends."""
    handle = os.open(Path(marks), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def answer(call: DriverCall) -> str:
        os.write(handle, f"begin {call.text}\n".encode())
        await asyncio.sleep(0)
        os.write(handle, f"end {call.text}\n".encode())
        return f"re {call.text}"

    def said(text: str) -> dict[str, Any]:
        message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
        return {"messages": [message], "run": {"threadId": "t"}}

    async with open_agent_state(url, **json.loads(options)) as state:
        agent = define_agent(
            name="station",
            driver=answer,
            capabilities=[chat(concurrency="serial")],
            state=state,
        )
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        texts = [f"{name}{number}" for number in range(count)]
        turns = [run_agent_trigger(agent, "chat.message", said(text)) for text in texts]
        results = await asyncio.gather(*turns)
        await agent.aclose()
    os.close(handle)
    print(json.dumps([[result.status, result.text] for result in results]), flush=True)


if __name__ == "__main__":
    _, place, its_options, my_name, file, how_many = sys.argv
    asyncio.run(main(place, its_options, my_name, file, int(how_many)))
