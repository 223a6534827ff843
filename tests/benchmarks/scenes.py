"""What the benchmarks share: an agent, messages, and a stored thread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from vitehub_chat import Agent, chat, define_agent
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest

WINDOW = 20
KEY = ConversationKey(None, "benchmark", None, "t")
SESSION_ID = "s0"

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_IDLE = timedelta(minutes=30)
_SESSION_LENGTH = 50
_BATCH = 1000
_SESSIONS = SessionPolicy(strategy="hybrid", idle_timeout=_IDLE, metadata_key="sessionId")


def make_agent(
    source: Literal["thread", "transcript"], *, has_sessions: bool = True, state: Any = None
) -> Agent:
    """Return an agent with a window, hybrid sessions and the echo driver."""
    sessions = {
        "strategy": "hybrid",
        "idle_timeout_ms": _IDLE // timedelta(milliseconds=1),
        "metadata_key": "sessionId",
    }
    window = {"source": source, "max_messages": WINDOW}
    capability = chat({"trigger_history": window, "sessions": sessions if has_sessions else None})
    return define_agent(name="benchmark", driver="echo", capabilities=[capability], state=state)


def make_messages(count: int) -> list[dict[str, Any]]:
    """Return messages with ids, times and session ids, as a client holds them."""
    return [
        make_message(f"m{index}", index, f"s{index // _SESSION_LENGTH}") for index in range(count)
    ]


def make_message(message_id: str, index: int, session_id: str = SESSION_ID) -> dict[str, Any]:
    """Return one message; `index` gives its role and its time."""
    return {
        "id": message_id,
        "role": "assistant" if index % 2 else "user",
        "parts": [{"type": "text", "text": f"This is what was said as number {index}."}],
        "metadata": {"sessionId": session_id},
        "createdAt": (_BEGIN + timedelta(seconds=index)).isoformat().replace("+00:00", "Z"),
    }


async def fill(
    state: AgentState, rows: int, *, key: ConversationKey = KEY, has_sessions: bool = True
) -> None:
    """Store so many messages as one session."""
    for start in range(0, rows, _BATCH):
        batch = [
            NewRow(
                message=Message(
                    f"m{index}",
                    "assistant" if index % 2 else "user",
                    ({"type": "text", "text": f"This is what was said as number {index}."},),
                    {"sessionId": SESSION_ID},
                    _BEGIN + timedelta(seconds=index),
                )
            )
            for index in range(start, min(start + _BATCH, rows))
        ]
        request = SessionRequest(
            conversation=key,
            policy=_SESSIONS if has_sessions else None,
            base=SESSION_ID if has_sessions else None,
            begins_with=batch[0].message.id,
            begins_at=batch[0].message.created_at,
        )
        await state.transcripts.append(request, rows=batch)
