"""Progress: what was said so far is written again while the store is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from tests.conversation.scene import check_free, rows_of
from vitehub_chat import (
    Agent,
    chat,
    define_agent,
    open_agent_state,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.events import ToolCall, ToolResult
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

STORES = pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
SAID = {
    "messages": [{"id": "A", "role": "user", "parts": [{"type": "text", "text": "A"}]}],
    "run": {"threadId": "t"},
}


class Busy:
    """The turns of a store that cannot write progress for some time."""

    def __init__(self, turns: Any, times: int, outcome: Literal["unknown", "not_written"]) -> None:
        self._turns = turns
        self._left = times
        self._outcome = outcome
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def progress(self, ticket_id: str, **more: Any) -> Any:
        if self._left:
            self._left -= 1
            raise StateUnavailableError(outcome=self._outcome)
        self.written += 1
        return await self._turns.progress(ticket_id, **more)


class Tools:
    """A driver that calls a tool, and may wait after it."""

    def __init__(self, *, waits: bool = False) -> None:
        self.has_result = asyncio.Event()
        self._waits = waits

    async def __call__(self, call: DriverCall) -> AsyncIterator[Any]:
        return self._answer(call)

    async def _answer(self, call: DriverCall) -> AsyncIterator[Any]:
        yield ToolCall("c1", "look")
        yield ToolResult("c1", "look", "seen")
        self.has_result.set()
        if self._waits:
            await asyncio.Event().wait()
        yield f"re {call.text}"


def agent_on(state: SteppedAgentState, driver: Tools) -> Agent:
    return define_agent(name="station", driver=driver, capabilities=[chat()], state=state)


@STORES
@pytest.mark.parametrize(
    ("times", "outcome", "written"),
    [(2, "not_written", 1), (99, "not_written", 0), (1, "unknown", 0)],
)
async def test_a_store_that_is_busy_for_progress_does_not_fail_the_turn(
    store: str, times: int, outcome: Any, written: int
) -> None:
    async with open_agent_state(store, clock=FakeClock()) as state:
        assert isinstance(state, SteppedAgentState)
        busy = Busy(state.turns, times, outcome)
        state.turns = busy  # type: ignore[assignment]
        agent = agent_on(state, Tools())
        result = await run_agent_trigger(agent, "chat.message", SAID)
        assert (result.status, result.text, busy.written) == ("complete", "re A", written)
        assert [row.status for row in await rows_of(state, "t")] == ["complete", "complete"]
        await check_free(state, "t")
        await agent.aclose()


@STORES
async def test_a_turn_that_is_stopped_while_progress_is_written_again_ends_at_once(
    store: str,
) -> None:
    async with open_agent_state(store, clock=FakeClock()) as state:
        assert isinstance(state, SteppedAgentState)
        driver = Tools(waits=True)
        state.turns = Busy(state.turns, 1, "not_written")  # type: ignore[assignment]
        agent = agent_on(state, driver)
        stream = stream_agent_trigger(agent, "chat.message", SAID, output="events")
        ending = asyncio.create_task(stream.result())
        while (await anext(stream)).__class__ is not ToolResult:
            pass
        stream.stop()
        async with asyncio.timeout(4):
            result = await ending
        assert result.status == "interrupted"
        assert not driver.has_result.is_set()
        rows = await rows_of(state, "t")
        assert [row.status for row in rows] == ["complete", "interrupted"]
        assert rows[1].message.to_json()["parts"][0]["output"] == "seen"
        await check_free(state, "t")
        await agent.aclose()
