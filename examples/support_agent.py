"""A support agent that needs no key: three turns, and what the last one saw.

Run it twice. The conversation is kept in `.vitehub/agent-state.db` of the working directory, so the
second run goes on where the first one stopped.
"""

from __future__ import annotations

import asyncio

from vitehub_chat import PreparedInvocation, RunResult, chat, define_agent, run_agent_trigger

agent = define_agent(
    name="support",
    driver="echo",
    capabilities=[
        chat(
            concurrency="queue",
            trigger_history={"source": "transcript", "max_messages": 8},
            sessions={"strategy": "hybrid", "idle_timeout_ms": 30 * 60 * 1000},
        )
    ],
    state="file:.vitehub/agent-state.db",
)

THREAD = "cli"  # the one that the command `vitehub-chat` looks at unless it is told another
PROMPTS = ("My parcel has not arrived.", "It is order 1042.", "Can you send it again?")


async def say(message_id: str, text: str) -> RunResult:
    """Run one turn and print both sides of it; an id that came before would not run again."""
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
    run = {"thread_id": THREAD}
    result = await run_agent_trigger(agent, "chat.message", {"messages": [message], "run": run})
    print(f"user       {text}")
    print(f"assistant  {result.text}\n")
    return result


def explain(prepared: PreparedInvocation) -> None:
    """Print what the driver was given, and why."""
    print("What the last turn saw:\n")
    texts = {message.id: message.text for message in prepared.messages}
    for entry in prepared.selection:
        seq = "new" if entry.seq is None else f"#{entry.seq}"
        text = texts[entry.message_id] if entry.kept else "(left out)"
        print(f"{seq:>4}  {entry.role:<9}  {entry.reason:<8}  {text}")
    first = min((entry.seq for entry in prepared.selection if entry.seq), default=1)
    if first > 1:
        print(f"\nRows before #{first} are stored too; the window of 8 messages leaves them out.")


async def main() -> None:
    """Hold the conversation."""
    async with agent:
        stored = (await agent.conversation(THREAD).history(limit=1)).live_edge_seq
        print(f"{stored} messages are stored from before.\n" if stored else "Nothing stored yet.\n")
        results = [await say(f"m{stored + n}", text) for n, text in enumerate(PROMPTS, 1)]
        if results[-1].prepared is not None:
            explain(results[-1].prepared)


if __name__ == "__main__":
    asyncio.run(main())
