"""Cases of history pages, through `Conversation`, and what routes make of its errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from vitehub_chat import Conversation, ConversationKey, HistoryPage, errors, open_agent_state
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rows import TurnPage
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewEntry
from vitehub_chat.web.problems import problem_of

_SIZE_OF_BATCH = 50
_FIRST = 120
"""How many rows the conversations of these cases have at first."""


def lacking_steps(case: Mapping[str, Any]) -> Sequence[str]:
    """Return the steps of a case that cannot be carried out yet."""
    return sorted({step["do"] for step in case["input"]["steps"]} - _STEPS.keys())


async def run(case: Mapping[str, Any], fixtures: Mapping[str, Any], url: str | None) -> None:
    """Check one case in a new state."""
    assert url is not None
    async with open_agent_state(url) as state:
        running = _Running(
            Conversation(state, ConversationKey(None, "a", None, "t")),
            Conversation(state, ConversationKey(None, "a", None, "other")),
            state,
        )
        await running.store(fixtures[case["input"]["rows"]])
        steps, expected = case["input"]["steps"], case["expect"]["steps"]
        for step, answer in zip(steps, expected, strict=True):
            await running.check(step, answer)


class _Running:
    """A case in progress: its conversations, and the pages that it got, by step."""

    def __init__(self, own: Conversation, other: Conversation, state: AgentState) -> None:
        self._own = own
        self._other = other
        self._state = state
        self._pages: list[HistoryPage | TurnPage | None] = []
        self._appended = 0

    async def store(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), _SIZE_OF_BATCH):
            await self._own.append(rows[start : start + _SIZE_OF_BATCH])

    async def check(self, step: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        carry_out = _STEPS[step["do"]]
        if "error" not in expected:
            assert await carry_out(self, step, expected) == dict(expected)
            return
        with pytest.raises(getattr(errors, expected["error"]["class"])) as caught:
            await carry_out(self, step, expected)
        assert caught.value.code == expected["error"]["code"]
        problem = problem_of(caught.value)
        told = (problem.status, problem.code)
        assert told == (expected["error"]["http"], expected["error"]["code"])
        if "seqs" in expected:
            rows = self._state.transcripts.export(self._own.key)
            left = [row.seq async for batch in rows for row in batch.rows if row.seq <= _FIRST]
            assert left == expected["seqs"]
        self._pages.append(None)

    async def append(self, _step: Mapping[str, Any], _expected: object) -> Mapping[str, Any]:
        self._appended += 1
        parts = [{"type": "text", "text": "one more"}]
        message = {"id": f"more-{self._appended}", "role": "user", "parts": parts}
        rows = await self._own.append([message])
        self._pages.append(None)
        return {"seq": rows[-1].seq}

    async def delete(self, step: Mapping[str, Any], _expected: object) -> Mapping[str, Any]:
        await self._own.delete_message(f"m{step['seq']}")
        self._pages.append(None)
        return {}

    async def truncate(
        self, step: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if step.get("while_turn_runs"):
            await self._start_turn()
        done = await self._own.truncate(f"m{step['from_seq']}")
        self._pages.append(None)
        return {name: getattr(done, name) for name in expected}

    async def turns(
        self, step: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        page = await self._own.turns(
            limit=step["limit"], cursor=self._cursor(step["cursor"]) if "cursor" in step else None
        )
        self._pages.append(page)
        told = {
            "turn_nos": [item.turn_no for item in page.items],
            "seqs": [item.seq for item in page.items],
            "next_cursor": page.next_cursor is not None,
        }
        return {name: told[name] for name in expected}

    async def _start_turn(self) -> None:
        """Let a turn of the conversation run that stores nothing."""
        entry = NewEntry(
            ticket_id="running",
            lock_key=self._own.key.encode(),
            conversation=self._own.key,
            wanted_id=None,
            claim_id=None,
            payload="{}",
            owner="somebody",
        )
        await self._state.turns.admit(
            entry,
            policy=ConcurrencyPolicy(),
            lease=timedelta(seconds=30),
            dedupe_ttl=timedelta(minutes=10),
        )

    async def history(
        self, step: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        conversation = self._other if step.get("session") == "other" else self._own
        page = await conversation.history(
            limit=step["limit"],
            cursor=self._cursor(step["cursor"]) if "cursor" in step else None,
            direction=step.get("direction", "older"),
            around=f"m{step['around_seq']}" if "around_seq" in step else None,
        )
        assert page.next_cursor == page.older_cursor
        self._pages.append(page)
        told = {
            "seqs": [row.seq for row in page.items],
            "older_cursor": page.older_cursor is not None,
            "newer_cursor": page.newer_cursor is not None,
            "next_cursor": page.next_cursor is not None,
            "at_live_edge": page.at_live_edge,
            "generation": page.generation,
            "reset": page.reset,
        }
        return {name: told[name] for name in expected}

    def _cursor(self, wanted: Mapping[str, Any]) -> str:
        page = self._pages[wanted["from_step"]]
        cursor = getattr(page, wanted["name"])
        assert isinstance(cursor, str)
        if not wanted.get("altered"):
            return cursor
        middle = len(cursor) // 2
        letter = "A" if cursor[middle] != "A" else "B"
        return f"{cursor[:middle]}{letter}{cursor[middle + 1 :]}"


_Step = Callable[[_Running, Mapping[str, Any], Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
_STEPS: Mapping[str, _Step] = {
    "history": _Running.history,
    "append": _Running.append,
    "delete": _Running.delete,
    "truncate": _Running.truncate,
    "turns": _Running.turns,
}
