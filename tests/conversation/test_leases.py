"""Leases: a turn keeps its lock as long as it runs, and loses it when its process stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.scene import check_free, key_of, lock_of, rows_of, shorts
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import (
    Agent,
    chat,
    define_agent,
    open_agent_state,
    run_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.conversation.payloads import encode_request
from vitehub_chat.errors import StateConflictError, StateUnavailableError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.requests import RunInfo, TurnRequest
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.values import NewEntry
from vitehub_chat.testing.clock import FakeClock


def dead_entry(text: str) -> NewEntry:
    """Return a message of a process that accepts it and then is gone."""
    message = Message(text, "user", ({"type": "text", "text": text},))
    request = TurnRequest(messages=(message,), run=RunInfo(thread_id="t"))
    return NewEntry(
        ticket_id=f"ticket of {text}",
        lock_key=lock_of("t"),
        conversation=key_of("t"),
        wanted_id=None,
        claim_id=text,
        payload=encode_request(request, request.messages),
        owner="gone",
    )


async def test_C16_the_lock_of_a_dead_process_is_free_after_thirty_seconds(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("serial")
    admitted = await scene.state.turns.admit(
        dead_entry("X"),
        policy=ConcurrencyPolicy(),
        lease=timedelta(seconds=30),
        dedupe_ttl=timedelta(minutes=10),
    )
    assert admitted.grant is not None
    b = await scene.enqueue(scene.first, "B")
    await scene.first.release("X", "B")
    await scene.advance(29.999)
    outcome = await scene.state.turns.outcome("ticket of X")
    assert (outcome.state, b.done()) == ("running", False)
    await scene.advance(0.001)
    assert await shorts(b) == ["complete B[]"]
    # What the dead process had accepted and not stored is run by whoever comes next, at its place.
    assert await scene.first.calls() == ["X[]", "B[]"]
    assert await scene.texts() == ["X", "X[]", "B", "B[]"]
    assert {row.thread_id for row in await scene.rows()} == {"t"}
    await scene.check_nothing_is_left()


async def test_a_turn_asks_for_thirty_seconds(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    a = await scene.first.start("A")
    lock = await scene.state.run_read(lambda tx: tx.locks.get(lock_of("t")))
    assert lock is not None
    assert lock.until == to_epoch_us(scene.state.clock.now() + timedelta(seconds=30))
    await scene.first.release("A")
    await a


async def test_C22_a_holder_that_lost_its_lease_writes_nothing_more(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    a = await scene.first.start("A")
    await scene.advance(30)
    await scene.second.release("B", "C")
    assert await shorts(scene.second.send("B")) == ["complete B[]"]
    await scene.first.release("A")
    assert await shorts(a) == ["StateConflictError lock_lost"]
    assert await shorts(scene.second.send("C")) == ["complete C[]"]
    assert await scene.texts() == ["A", "B", "B[]", "C", "C[]"]
    await scene.check_nothing_is_left()


async def test_a_message_of_a_lost_turn_runs_when_it_is_sent_again(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    a = await scene.first.start("A")
    await scene.advance(30)
    again = await scene.second.start("A")
    await scene.first.release("A")
    await scene.second.release("A")
    assert await shorts(a, again) == ["StateConflictError lock_lost", "complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


class Handler:
    """Takes three leases for every message, and notes when it is told to stop."""

    def __init__(self, seconds: float) -> None:
        self.most = self.active = 0
        self.stopped: list[str] = []
        self._seconds = seconds

    async def __call__(self, call: DriverCall) -> AsyncIterator[str]:
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            yield "half "
            await asyncio.sleep(self._seconds)
            yield f"of {call.text}"
        except asyncio.CancelledError:
            self.stopped.append(call.text)
            raise
        finally:
            self.active -= 1


async def agent_of(state: AgentState, handler: Handler, **options: object) -> Agent:
    agent = define_agent(
        name="station", driver=handler.__call__, capabilities=[chat(options)], state=state
    )
    await agent.runtime()._open_driver()
    return agent


async def say(agent: Agent, text: str) -> RunResult:
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given = {"messages": [message], "run": {"threadId": "t"}}
    return await run_agent_trigger(agent, "chat.message", given)


def test_C23_turns_longer_than_a_lease_never_overlap() -> None:
    handler = Handler(90)

    async def main() -> None:
        async with open_agent_state("memory:", clock=LoopClock()) as state:
            agents = [await agent_of(state, handler, concurrency="serial") for _ in range(2)]
            said = [say(agents[n % 2], f"m{n}") for n in range(6)]
            results = await asyncio.gather(*said)
            assert [result.status for result in results] == ["complete"] * 6
            page = await agents[0].conversation("t").history()
            assert [row.message.text for row in page.items] == [
                text for n in range(6) for text in (f"m{n}", f"half of m{n}")
            ]
            for agent in agents:
                await agent.aclose()

    run_virtually(main())
    assert (handler.most, handler.active, handler.stopped) == (1, 0, [])


def test_a_holder_learns_of_its_lost_lock_by_the_next_renewal_and_is_stopped() -> None:
    handler = Handler(25)

    async def main() -> None:
        clock = LoopClock()
        async with open_agent_state("memory:", clock=clock) as state:
            agent = await agent_of(state, handler)
            turn = asyncio.create_task(say(agent, "A"))
            await asyncio.sleep(5)
            clock.lag = timedelta(seconds=30)
            with pytest.raises(StateConflictError) as caught:
                await turn
            assert caught.value.code == "lock_lost"
            assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)
            rows = (await agent.conversation("t").history()).items
            assert [row.message.text for row in rows] == ["A"]
            await agent.aclose()

    run_virtually(main())
    assert handler.stopped == ["A"]


class _Unreachable:
    """The turns of a store whose renewals do not get through."""

    def __init__(self, turns: object) -> None:
        self._turns = turns

    def __getattr__(self, name: str) -> object:
        return getattr(self._turns, name)

    async def renew(self, *_given: object, **_more: object) -> bool:
        raise StateUnavailableError


class _Silent(_Unreachable):
    """The turns of a store that never answers to a renewal."""

    async def renew(self, *_given: object, **_more: object) -> bool:
        await asyncio.Event().wait()
        return True


@pytest.mark.parametrize("turns_of", [_Unreachable, _Silent])
def test_a_holder_that_cannot_renew_stops_before_its_lease_is_over(
    turns_of: type[_Unreachable],
) -> None:
    handler = Handler(60)

    async def main() -> None:
        async with open_agent_state("memory:", clock=LoopClock()) as state:
            state.turns = turns_of(state.turns)  # type: ignore[misc, assignment]
            agent = await agent_of(state, handler)
            with pytest.raises(StateConflictError):
                await say(agent, "A")
            assert asyncio.get_running_loop().time() <= 30
            await agent.aclose()

    run_virtually(main())
    assert handler.stopped == ["A"]


def test_the_default_lock_lifetime_is_ten_minutes() -> None:
    handler = Handler(3600)

    async def main() -> RunResult:
        async with open_agent_state("memory:", clock=LoopClock()) as state:
            agent = await agent_of(state, handler)
            result = await say(agent, "A")
            assert asyncio.get_running_loop().time() == pytest.approx(600, abs=1)
            assert (await say(agent, "A")).text == "half "
            await agent.aclose()
        return result

    result = run_virtually(main())
    assert (result.status, result.finish_reason, result.text) == (
        "interrupted",
        "lock_lifetime",
        "half ",
    )


@pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
async def test_a_stream_of_a_turn_that_lost_its_lock_ends_with_an_error(store: str) -> None:
    clock = FakeClock()
    go_on = asyncio.Event()

    async def half(call: DriverCall) -> AsyncIterator[str]:
        yield "half"
        if call.text == "A":
            await go_on.wait()

    async with open_agent_state(store, clock=clock) as state:
        agent = define_agent(name="station", driver=half, capabilities=[chat()], state=state)
        given = {
            "messages": [{"id": "A", "role": "user", "parts": [{"type": "text", "text": "A"}]}],
            "run": {"threadId": "t"},
        }
        stream = stream_agent_trigger(agent, "chat.message", given)
        kinds = []
        async for chunk in stream:
            kinds.append(chunk["type"])
            if chunk["type"] == "text-delta":
                clock.advance(seconds=30)
                assert (await say(agent, "B")).status == "complete"
                go_on.set()
        assert kinds[-1] == "error"
        with pytest.raises(StateConflictError):
            await stream.result()
        await agent.aclose()


@pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
async def test_a_conflict_that_the_driver_raises_is_no_lost_lock(store: str) -> None:
    async def conflict(_call: DriverCall) -> str:
        raise StateConflictError("of another conversation")

    async with open_agent_state(store, clock=FakeClock()) as state:
        assert isinstance(state, SteppedAgentState)
        agent = define_agent(name="station", driver=conflict, capabilities=[chat()], state=state)
        with pytest.raises(StateConflictError, match="of another conversation"):
            await say(agent, "A")
        assert [row.status for row in await rows_of(state, "t")] == ["complete", "error"]
        await check_free(state, "t")
        await agent.aclose()
