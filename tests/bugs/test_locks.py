"""Locks and queues of threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.bugs.support import agent_on, given, rows_of, say, texts_of
from tests.conversation.steps import counted_steps
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import StateConflictError
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
    state: SteppedAgentState,
) -> None:
    has_begun, go_on = asyncio.Event(), asyncio.Event()
    seen: dict[str, list[str]] = {}

    async def answer(call: DriverCall) -> str:
        has_begun.set()
        await go_on.wait()
        seen[call.text] = [each.text for each in call.messages[:-1]]
        assert call.run is not None
        return f"re {call.text} in {call.run.thread_id}"

    agent = agent_on(state, answer, lock_scope="channel", concurrency="queue")
    first = asyncio.create_task(say(agent, "A1", "A"))
    await has_begun.wait()
    threads = {"B1": "B", "A2": "A", "B2": "B"}
    turns = [
        asyncio.create_task(run_agent_trigger(agent, "chat.message", given(text, thread)))
        for text, thread in threads.items()
    ]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, *turns)
    a, b = await texts_of(agent, "A"), await texts_of(agent, "B")
    assert {text for text in a if not text.startswith("re")} == {"A1", "A2"}
    assert {text for text in b if not text.startswith("re")} == {"B1", "B2"}
    assert all(text.endswith("in A") for text in a if text.startswith("re"))
    assert all(text.endswith("in B") for text in b if text.startswith("re"))
    assert set(seen.get("B2", [])) <= {"B1"}
    assert seen["A2"] == []
    assert {row.thread_id for row in await rows_of(agent, "B")} == {"B"}
