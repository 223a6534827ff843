"""How an application's code reads to a type checker; checked, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from vitehub_chat import (
    Agent,
    Chat,
    PreparedInvocation,
    RunResult,
    chat,
    define_agent,
    load_agent,
    prepare_agent_trigger,
    run_agent,
    run_agent_trigger,
    stream_agent_trigger,
)

OPTIONS: Mapping[str, object] = {"lockScope": "thread"}

assert_type(chat(), Chat)
assert_type(chat(OPTIONS), Chat)
assert_type(
    chat(
        concurrency="queue",
        lock_scope="thread",
        trigger_history={"source": "thread", "max_messages": 20, "max_age_ms": 1_800_000},
        sessions={
            "strategy": "hybrid",
            "idle_timeout_ms": 1_800_000,
            "metadata_key": "sessionId",
        },
    ),
    Chat,
)
assert_type(chat(lockScope="thread", triggerHistory={"maxMessages": 20}), Chat)
assert_type(define_agent({"name": "support", "driver": "echo"}), Agent)
assert_type(load_agent("support.toml"), Agent)


async def every_way_to_run(agent: Agent) -> None:
    """Run, stream and prepare one turn."""
    given = {"messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}]}
    async with agent:
        result = await run_agent_trigger(agent, "chat.message", given)
        assert_type(result, RunResult)
        stream = stream_agent_trigger(agent, "chat.message", given, output="events")
        assert_type(await stream.result(), RunResult)
        prepared = await prepare_agent_trigger(agent, "chat.message", given)
        assert_type(prepared, PreparedInvocation)
        assert_type(await run_agent(agent, "hello"), RunResult)
