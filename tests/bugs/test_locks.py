"""Locks and queues of threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.bugs.support import NAME, agent_on, rows_of, say, texts_of
from tests.conversation.steps import counted_steps
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import open_agent_state
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import StateConflictError
from vitehub_chat.model.keys import encode_key
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.stepped import SteppedAgentState


@pytest.mark.parametrize("strategy", ["serial", "queue"])
async def test_L128_a_message_that_arrives_while_the_lock_is_released_is_answered(
    state: SteppedAgentState, strategy: str
) -> None:
    """B comes at every moment of A's turn, from its first step to after its last."""
    agent = agent_on(state, concurrency=strategy)
    with counted_steps() as steps:
        for number in range(300):
            thread = f"t{number}"
            came: list[asyncio.Task[RunResult]] = []

            def come(thread: str = thread, came: list[asyncio.Task[RunResult]] = came) -> None:
                came.append(asyncio.create_task(say(agent, "B", thread)))

            first = asyncio.create_task(say(agent, "A", thread))
            steps.arm(number, come)
            async with asyncio.timeout(1):
                await first
                is_over = steps.disarm()
                if is_over:
                    come()
                await came[0]
            assert sorted(await texts_of(agent, thread)) == ["A", "B", "re A", "re B"]
            if is_over:
                break
    assert steps.problems == []
    assert number > 10


class Handler:
    """Takes three leases for each message."""

    def __init__(self) -> None:
        self.most = self.active = 0
        self.stopped: list[str] = []

    async def answer(self, call: DriverCall) -> AsyncIterator[str]:
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await asyncio.sleep(90)
            yield f"re {call.text}"
        except asyncio.CancelledError:
            self.stopped.append(call.text)
            raise
        finally:
            self.active -= 1


def test_L101_a_turn_of_three_leases_keeps_its_lock_and_is_told_when_it_is_lost() -> None:
    handler, clock = Handler(), LoopClock()

    async def main() -> None:
        async with open_agent_state("memory:", clock=clock) as state:
            agent = agent_on(state, handler.answer)
            await agent.runtime()._open_driver()
            results = await asyncio.gather(*(say(agent, f"m{n}") for n in range(6)))
            assert [result.text for result in results] == [f"re m{n}" for n in range(6)]
            assert (handler.most, handler.stopped) == (1, [])
            turn = asyncio.create_task(say(agent, "lost"))
            await asyncio.sleep(15)
            clock.lag = timedelta(seconds=31)
            with pytest.raises(StateConflictError) as caught:
                await turn
            assert caught.value.code == "lock_lost"
            assert handler.stopped == ["lost"]
            await agent.aclose()

    run_virtually(main())


async def test_L138_a_channel_lock_never_mixes_the_threads_of_its_channel(
    any_state: SteppedAgentState,
) -> None:
    has_begun, go_on = asyncio.Event(), asyncio.Event()
    seen: list[tuple[str, str | None, list[str]]] = []

    async def answer(call: DriverCall) -> str:
        has_begun.set()
        await go_on.wait()
        assert call.run is not None
        skipped = [each.text for each in call.messages[:-1]]
        seen.append((call.text, call.run.thread_id, skipped))
        return f"re {call.text}"

    agent = agent_on(any_state, answer, lock_scope="channel", concurrency="queue")
    lock_key = encode_key("channel", None, NAME, None)
    turns = [asyncio.create_task(say(agent, "A1", "A"))]
    await has_begun.wait()
    for number, text in enumerate(["B1", "A2", "B2"], 1):
        turns.append(asyncio.create_task(say(agent, text, text[0])))
        await waiting(any_state, lock_key, number)
    go_on.set()
    assert [(await turn).text for turn in turns] == ["re A1", "re B2", "re A2", "re B2"]
    # B has the oldest message; what was skipped there is not told to A.
    assert seen == [("A1", "A", []), ("B2", "B", ["B1"]), ("A2", "A", [])]
    assert await texts_of(agent, "A") == ["A1", "re A1", "A2", "re A2"]
    assert await texts_of(agent, "B") == ["B1", "B2", "re B2"]
    assert {row.thread_id for row in await rows_of(agent, "B")} == {"B"}
    await agent.aclose()


async def waiting(state: SteppedAgentState, lock_key: str, count: int) -> None:
    """Wait until so many messages wait for a lock."""
    async with asyncio.timeout(60):
        while await state.run_read(lambda tx: tx.entries.count_waiting(lock_key, 0)) != count:  # noqa: ASYNC110
            await asyncio.sleep(0)
