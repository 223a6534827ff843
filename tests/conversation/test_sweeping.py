"""Sweeping: what dead processes left is run in order, and nothing else is touched."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import attrs
import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.scene import Scene, key_of, lock_of, shorts
from tests.conversation.test_leases import dead_entry
from tests.conversation.virtual_time import LoopClock, run_virtually
from vitehub_chat import chat, define_agent, open_agent_state
from vitehub_chat.conversation.sweeping import Sweeper
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.keys import ConversationKey, encode_key
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.contract import Fence, StateContext
from vitehub_chat.state.values import Admission, Grant, NewRow, SessionRequest

LEASE = timedelta(seconds=30)
LEASE_S = 30.0


async def admit(scene: Scene, text: str, strategy: Any = "serial", **changes: Any) -> Admission:
    """Let a process accept a message that is dead from then on."""
    return await scene.state.turns.admit(
        attrs.evolve(dead_entry(text), **changes),
        policy=ConcurrencyPolicy(strategy=strategy),
        lease=LEASE,
        dedupe_ttl=timedelta(minutes=10),
    )


async def record(scene: Scene, grant: Grant) -> None:
    message = Message("X", "user", ({"type": "text", "text": "X"},))
    row = NewRow(message=message, thread_id="t")
    await scene.state.turns.record(
        grant.ticket_id,
        rows=[row],
        session=SessionRequest(conversation=key_of("t")),
        ctx=StateContext(fence=Fence(grant.lock_key, grant.token)),
    )


async def swept(scene: Scene) -> int:
    count: int = await scene.first.ask("sweep")
    return count


@pytest.mark.parametrize("strategy", ["serial", "queue"])
async def test_C31_a_sweep_drains_what_a_dead_process_left_in_order(
    set_scene: SetScene, strategy: str
) -> None:
    scene = await set_scene(strategy)
    for text in "XYZ":
        await admit(scene, text, strategy)
    await scene.first.release("X", "Y", "Z")
    await scene.advance(LEASE_S - 0.001)
    assert await swept(scene) == 0
    await scene.advance(0.001)
    assert await swept(scene) == 1
    await until_free(scene)
    # What was not recorded waits again, so that all of a queue is one run.
    runs = {"serial": ["X[]", "Y[]", "Z[]"], "queue": ["Z[X,Y]"]}
    assert await scene.first.calls() == runs[strategy]
    assert await swept(scene) == 0
    await scene.check_nothing_is_left()


async def until_free(scene: Scene, lock_key: str = lock_of("t")) -> None:
    """Wait until a lock is free and nothing waits for it."""
    async with asyncio.timeout(20):
        while await scene.state.run_read(lambda tx: tx.locks.get(lock_key)) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_message_that_was_recorded_is_not_run_by_a_sweep(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    grant = (await admit(scene, "X")).grant
    assert grant is not None
    await record(scene, grant)
    await admit(scene, "Y")
    await scene.first.release("X", "Y")
    await scene.advance(LEASE_S)
    assert await swept(scene) == 1
    await until_free(scene)
    assert await scene.first.calls() == ["Y[]"]
    assert await scene.texts() == ["X", "Y", "Y[]"]
    outcome = await scene.state.turns.outcome("ticket of X")
    assert outcome.state == "lost"
    await scene.check_nothing_is_left()


async def test_a_sweep_touches_nothing_that_lives(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    a = await scene.second.start("A")
    b = await scene.enqueue(scene.second, "B")
    await admit(scene, "S", "debounce", lock_key=lock_of("t2"), conversation=key_of("t2"))
    assert await swept(scene) == 0
    await scene.second.release("A", "B")
    assert await shorts(a, b) == ["complete A[]", "complete B[]"]
    assert await scene.count_waiting(lock_of("t2")) == 1
    await scene.check_nothing_is_left()


async def test_a_sweep_runs_what_settled_while_nobody_waited(set_scene: SetScene) -> None:
    scene = await set_scene("debounce")
    await admit(scene, "X", "debounce")
    await scene.advance(1.499)
    assert await swept(scene) == 0
    # The process that accepted it might still wait for it.
    await scene.advance(10)
    await scene.first.release("X")
    assert await swept(scene) == 1
    await until_free(scene)
    assert await scene.texts() == ["X", "X[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_parallel_turn_of_a_dead_process_leaves_neither_entry_nor_lock(
    set_scene: SetScene,
    is_recorded: bool,  # noqa: FBT001
) -> None:
    scene = await set_scene("parallel")
    lock_key = encode_key("ticket", "ticket of X")
    grant = (await admit(scene, "X", "parallel", lock_key=lock_key)).grant
    assert grant is not None
    if is_recorded:
        await record(scene, grant)
    await scene.first.release("X")
    await scene.advance(LEASE_S)
    assert await swept(scene) == (not is_recorded)
    await until_free(scene, lock_key)
    assert await scene.texts() == (["X"] if is_recorded else ["X", "X[]"])
    await scene.check_nothing_is_left()


async def test_a_sweep_leaves_the_lines_of_other_agents_alone(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    other = ConversationKey(None, "other", None, "t")
    await admit(scene, "X", conversation=other, lock_key="other")
    await scene.advance(LEASE_S)
    assert await swept(scene) == 0
    outcome = await scene.state.turns.outcome("ticket of X")
    assert outcome.is_stalled


async def test_two_processes_that_sweep_at_once_run_everything_once(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    for number in range(12):
        name = f"t{number}"
        await admit(scene, f"X{number}", lock_key=lock_of(name), conversation=key_of(name))
        for site in scene.sites:
            await site.release(f"X{number}")
    await scene.advance(LEASE_S)
    counts = await asyncio.gather(scene.first.ask("sweep"), scene.second.ask("sweep"))
    assert sum(counts) == 12
    for number in range(12):
        await until_free(scene, lock_of(f"t{number}"))
    assert sorted(await scene.calls()) == sorted(f"X{number}[]" for number in range(12))
    await scene.check_nothing_is_left()


def test_what_serves_sweeps_at_once_and_at_least_every_thirty_seconds() -> None:
    times: list[float] = []

    async def sweep() -> int:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 2:
            raise StateUnavailableError
        return 0

    async def main() -> None:
        async with Sweeper(sweep):
            await asyncio.sleep(100)

    run_virtually(main())
    assert len(times) >= 4
    assert times[0] < 1
    assert all(later - earlier <= 30 for earlier, later in itertools.pairwise(times))


def test_an_agent_that_serves_runs_what_is_left_by_itself() -> None:
    calls: list[str] = []

    async def answer(call: Any) -> str:
        calls.append(call.text)
        return "fine"

    async def main() -> None:
        async with open_agent_state("memory:", clock=LoopClock()) as state:
            agent = define_agent(name="station", driver=answer, capabilities=[chat()], state=state)
            await agent.runtime()._open_driver()
            await state.turns.admit(
                dead_entry("X"),
                policy=ConcurrencyPolicy(),
                lease=LEASE,
                dedupe_ttl=timedelta(minutes=10),
            )
            async with agent.sweeping():
                await asyncio.sleep(60)
            await agent.aclose()

    run_virtually(main())
    assert calls == ["X"]
