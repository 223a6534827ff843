"""A capability of one's own: it tells the driver how long the input is, and brings a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vitehub_chat import Capability, DriverCall, ToolSpec, chat, define_agent, run_agent_trigger
from vitehub_chat.agent.capability import InvocationContext

WORDS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def count_words(text: str) -> int:
    """Return how many words a text has."""
    return len(text.split())


class WordCount(Capability):
    """Counts words."""

    name = "word_count"

    def tools(self, _ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        """Offer the tool `count_words`."""
        about = "Count the words of a text."
        tool = ToolSpec(name="count_words", description=about, parameters=WORDS, call=count_words)
        return [tool]

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Say how many words the model is about to read."""
        ctx.context["words"] = sum(count_words(message.text) for message in ctx.messages)


def answer(call: DriverCall) -> str:
    """Answer with what the capability gave; a model would call the tool by itself."""
    tool = call.tools[0]
    return f"{tool.name} says {tool.call(text=call.text)}, of {call.context['words']} in all."


agent = define_agent(
    name="counter",
    driver=answer,
    capabilities=[
        chat(trigger_history={"source": "transcript", "max_messages": 4}),
        WordCount(),
    ],
    state="memory:",
)


async def main() -> None:
    """Count the words of two messages."""
    async with agent:
        for text in ("one two three", "four five"):
            message = {"role": "user", "parts": [{"type": "text", "text": text}]}
            given = {"messages": [message], "run": {"thread_id": "cli"}}
            print((await run_agent_trigger(agent, "chat.message", given)).text)


if __name__ == "__main__":
    asyncio.run(main())
