"""What the benchmarks share: an agent, messages, and a stored thread."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from vitehub_chat import Agent, chat, define_agent
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest, WindowRequest

WINDOW = 20
KEY = ConversationKey(None, "benchmark", None, "t")
PLAIN = ConversationKey(None, "benchmark", None, "plain")
"""A thread without sessions."""

SESSION_ID = "s0"

Subject = Callable[[], Awaitable[object]]

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
        batch = [_row(f"m{index}", index) for index in range(start, min(start + _BATCH, rows))]
        request = SessionRequest(
            conversation=key,
            policy=_SESSIONS if has_sessions else None,
            base=SESSION_ID if has_sessions else None,
            begins_with=batch[0].message.id,
            begins_at=batch[0].message.created_at,
        )
        await state.transcripts.append(request, rows=batch)


class Turns:
    """Messages with their answers, made before they are measured."""

    def __init__(self, name: str) -> None:
        """Begin with none; their ids begin with a name."""
        self._name = name
        self._numbers = itertools.count(0, 2)
        self._made: list[tuple[NewRow, NewRow]] = []

    def make(self, count: int) -> None:
        """Make some more."""
        for number in itertools.islice(self._numbers, count):
            user, answer = (_row(f"{self._name}-{n}", n) for n in (number, number + 1))
            self._made.append((user, answer))

    def take(self) -> Sequence[NewRow]:
        """Return a message and its answer that nobody has got yet."""
        return self._made.pop()


def together(times: int, *subjects: Subject) -> Subject:
    """Return what does several things so many times each, all at the same time."""

    async def work(subject: Subject) -> None:
        for _ in range(times):
            await subject()

    return lambda: asyncio.gather(*map(work, subjects))


def in_turn(*subjects: Subject) -> Subject:
    """Return what does several things one after the other."""

    async def run() -> object:
        return [await subject() for subject in subjects]

    return run


def appending(state: AgentState, turns: Turns, key: ConversationKey = PLAIN) -> Subject:
    """Return what appends a turn to a thread without sessions."""
    session = SessionRequest(conversation=key)
    return lambda: state.transcripts.append(session, rows=turns.take())


def loading(state: AgentState) -> Subject:
    """Return what loads the newest messages of the thread without sessions."""
    newest = WindowRequest(limit=WINDOW)
    return lambda: state.transcripts.window(PLAIN, session=None, window=newest)


def _row(message_id: str, index: int) -> NewRow:
    return NewRow(
        message=Message(
            message_id,
            "assistant" if index % 2 else "user",
            ({"type": "text", "text": f"This is what was said as number {index}."},),
            {"sessionId": SESSION_ID},
            _BEGIN + timedelta(seconds=index),
        )
    )
