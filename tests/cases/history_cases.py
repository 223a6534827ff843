"""Cases of history pages, through `Conversation`.

The HTTP status that an expected error names belongs to the routes and is not looked at here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from vitehub_chat import Conversation, ConversationKey, HistoryPage, errors, open_agent_state

_SIZE_OF_BATCH = 50


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
        )
        await running.store(fixtures[case["input"]["rows"]])
        steps, expected = case["input"]["steps"], case["expect"]["steps"]
        for step, answer in zip(steps, expected, strict=True):
            await running.check(step, answer)


class _Running:
    """A case in progress: its conversations, and the pages that it got, by step."""

    def __init__(self, own: Conversation, other: Conversation) -> None:
        self._own = own
        self._other = other
        self._pages: list[HistoryPage | None] = []
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
        self._pages.append(None)

    async def append(self, _step: Mapping[str, Any], _expected: object) -> Mapping[str, Any]:
        self._appended += 1
        parts = [{"type": "text", "text": "one more"}]
        message = {"id": f"more-{self._appended}", "role": "user", "parts": parts}
        rows = await self._own.append([message])
        self._pages.append(None)
        return {"seq": rows[-1].seq}

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
_STEPS: Mapping[str, _Step] = {"history": _Running.history, "append": _Running.append}
