"""Checked by type checkers, never run: editors know the options of `chat()`."""

from __future__ import annotations

from typing import Unpack

from vitehub_chat.config.typed import ChatOptions
from vitehub_chat.model.policies import LockScope, LockScopeQuestion


def chat(**options: Unpack[ChatOptions]) -> ChatOptions:
    """Take what `chat()` takes."""
    return options


def by_kind(question: LockScopeQuestion) -> LockScope:
    """Lock whole channels, but threads in direct messages."""
    return "thread" if question.is_dm else "channel"


async def by_kind_later(question: LockScopeQuestion) -> LockScope:
    """Do the same, asynchronously."""
    return by_kind(question)


chat(
    concurrency="queue",
    lock_scope="thread",
    trigger_history={"source": "thread", "max_messages": 20, "max_age_ms": 30 * 60 * 1000},
    sessions={
        "strategy": "hybrid",
        "idle_timeout_ms": 30 * 60 * 1000,
        "metadata_key": "sessionId",
    },
)
chat(
    lockScope=by_kind,
    triggerHistory={"source": "transcript", "maxMessages": 20},
    concurrency={"strategy": "debounce", "debounceMs": 5, "onQueueFull": "drop-newest"},
    threadHistory={"maxMessages": 5},
    fallbackStreamingPlaceholderText=["a", "b"],
    errorFallbackText=None,
    filter=lambda message, context: bool(message and context),
)
chat(lock_scope=by_kind_later, trigger_history="none", sessions=True, timeout_ms=None)
chat(transcripts={"retention": "forever", "prune": False}, memory=None, context=False)

chat(max_messages=20)  # type: ignore[call-arg]
chat(timeout_ms="20")  # type: ignore[arg-type]
chat(concurrency="steer")  # type: ignore[arg-type]
chat(trigger_history={"source": "thread", "max_message": 20})  # type: ignore[arg-type]
