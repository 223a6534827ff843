"""Outages: who waits for a turn is patient with a store that does not answer for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conversation.test_leases import Handler, agent_of, say
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import open_agent_state
from vitehub_chat.errors import StateUnavailableError

FIRST_TURN_S = 60.0


class Away:
    """The turns of a store that answers nobody who waits for some time."""

    def __init__(self, turns: Any, from_s: float, until_s: float) -> None:
        self._turns = turns
        self._from_s = from_s
        self._until_s = until_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def outcome(self, ticket_id: str, **more: Any) -> Any:
        self._check()
        return await self._turns.outcome(ticket_id, **more)

    async def renew(self, ticket_id: str, **more: Any) -> Any:
        if more.get("ctx") is None:  # the attendance of who waits
            self._check()
        return await self._turns.renew(ticket_id, **more)

    def _check(self) -> None:
        if self._from_s <= asyncio.get_running_loop().time() < self._until_s:
            raise StateUnavailableError


async def say_twice(until_s: float, *, is_repeat: bool) -> list[Any]:
    """Send a message while another one runs, or the same again, and return how both ended."""
    async with open_agent_state("memory:", clock=LoopClock()) as state:
        state.turns = Away(state.turns, 5, until_s)  # type: ignore[misc]
        agent = await agent_of(state, Handler(FIRST_TURN_S))
        turns = [say(agent, "A"), say(agent, "A" if is_repeat else "B")]
        ends = await asyncio.gather(*turns, return_exceptions=True)
        await agent.aclose()
        return ends


@pytest.mark.parametrize("is_repeat", [True, False])
def test_a_store_that_is_away_for_a_while_is_waited_for(
    is_repeat: bool,  # noqa: FBT001
) -> None:
    first, second = run_virtually(say_twice(30, is_repeat=is_repeat))
    assert (first.status, first.text) == ("complete", "half of A")
    assert (second.status, second.text) == (
        "complete",
        "half of A" if is_repeat else "half of B",
    )


@pytest.mark.parametrize("is_repeat", [True, False])
def test_a_store_that_is_away_for_longer_than_a_lease_is_an_error(
    is_repeat: bool,  # noqa: FBT001
) -> None:
    first, second = run_virtually(say_twice(50, is_repeat=is_repeat))
    assert (first.status, first.text) == ("complete", "half of A")
    assert isinstance(second, StateUnavailableError)
