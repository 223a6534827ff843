"""A model behind the same chat(); needs the extra `models`, but no key.

The test model of Pydantic AI stands in for a real one: with a key,
`driver={"model": "openai:gpt-5.1-mini", "instructions": ...}` is all that changes.
"""

from __future__ import annotations

import asyncio

from pydantic_ai.models.test import TestModel

from vitehub_chat import chat, define_agent, stream_agent_trigger
from vitehub_chat.model.events import TextDelta

agent = define_agent(
    name="model",
    driver={
        "model": TestModel(custom_output_text="It is on its way."),
        "instructions": "Answer support chat messages.",
    },
    capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 8})],
    state="memory:",
)


async def main() -> None:
    """Print one answer while it grows."""
    message = {"role": "user", "parts": [{"type": "text", "text": "Where is my parcel?"}]}
    given = {"messages": [message], "run": {"thread_id": "cli"}}
    async with agent:
        stream = stream_agent_trigger(agent, "chat.message", given, output="events")
        async for event in stream:
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
        result = await stream.result()
    print(f"\n{result.status}, {result.finish_reason}")


if __name__ == "__main__":
    asyncio.run(main())
