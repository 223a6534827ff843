"""Lost holders: who does not hold its lock any more is stopped and writes nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.homes import TWO
from tests.conversation.scene import Scene, lock_of, shorts
from tests.conversation.station import LIMIT_S
from vitehub_chat.conversation import lease
from vitehub_chat.model.clock import to_epoch_us

LEASE_S = 30
RENEWALS = {"A": 4, "B": 2}
"""How often the turn of a message outlives the lease that it began with, or would have."""
on_every_provider = pytest.mark.parametrize("set_scene", TWO, indirect=True)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let holders renew their leases so often that nobody has to wait for it."""
    monkeypatch.setattr(lease, "RENEW_EVERY", timedelta(seconds=0.2))
    monkeypatch.setattr(lease, "RETRY_EVERY", timedelta(seconds=0.05))


async def begun(scene: Scene, count: int) -> None:
    """Wait until the drivers have got so many messages."""
    async with asyncio.timeout(LIMIT_S):
        while len(await scene.calls()) != count:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0)


async def renewed(scene: Scene) -> None:
    """Wait until the lock is held for a whole lease from now on."""
    until = to_epoch_us(scene.state.clock.now() + timedelta(seconds=LEASE_S))
    async with asyncio.timeout(LIMIT_S):
        while True:
            lock = await scene.state.run_read(lambda tx: tx.locks.get(lock_of("t")))
            if lock is not None and lock.until == until:
                return
            await asyncio.sleep(0)


@on_every_provider
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("strategy", "other", "texts"),
    [
        ("serial", "B", ["A", "B", "B[]"]),
        ("serial", "A", ["A", "A[]"]),
        ("parallel", "A", ["A", "A[]"]),
    ],
)
async def test_C22_the_driver_of_a_holder_that_lost_its_lease_is_stopped(
    set_scene: SetScene, strategy: str, other: str, texts: list[str]
) -> None:
    scene = await set_scene(strategy)
    a = await scene.first.start("A")
    await scene.advance(LEASE_S)
    after = await scene.second.start(other)
    # Nobody lets the first driver go on.
    assert await shorts(a) == ["StateConflictError lock_lost"]
    assert await scene.first.ask("cancelled") == ["A"]
    await scene.second.release(other)
    assert await shorts(after) == [f"complete {other}[]"]
    assert await scene.second.ask("cancelled") == []
    assert await scene.texts() == texts
    await scene.check_nothing_is_left()


async def test_C22_a_parallel_turn_whose_lease_is_over_writes_nothing_more(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("parallel")
    a = await scene.first.start("A")
    await scene.advance(LEASE_S)
    await scene.first.release("A")
    assert await shorts(a) == ["StateConflictError lock_lost"]
    assert await scene.texts() == ["A"]
    # Its lock is its own: nobody who comes along takes it, so a sweep tidies up.
    assert await scene.second.ask("sweep") == 0
    await scene.check_nothing_is_left()
    await scene.second.release("A")
    assert await shorts(scene.second.send("A")) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]


async def test_C22_a_parallel_turn_that_another_one_took_over_writes_nothing_more(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("parallel")
    a = await scene.first.start("A")
    await scene.advance(LEASE_S)
    again = scene.second.send("A")
    await begun(scene, 2)
    for site in scene.sites:
        await site.release("A")
    assert await shorts(a, again) == ["StateConflictError lock_lost", "complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


@on_every_provider
@pytest.mark.usefixtures("soon")
async def test_C23_L101_turns_longer_than_three_leases_never_overlap(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    texts = "ABCDEF"
    ends = [await scene.first.start("A")]
    for number, text in enumerate(texts[1:]):
        ends.append(await scene.enqueue((scene.second, scene.first)[number % 2], text))
    for number, text in enumerate(texts, 1):
        await begun(scene, number)
        for _ in range(RENEWALS.get(text, 0)):
            await scene.advance(LEASE_S - 1)
            await renewed(scene)
        # The one that is not let go on is the only one that runs.
        assert len(await scene.calls()) == number
        for site in scene.sites:
            await site.release(text)
    assert await shorts(*ends) == [f"complete {text}[]" for text in texts]
    assert await scene.texts() == [each for text in texts for each in (text, f"{text}[]")]
    assert [await site.ask("cancelled") for site in scene.sites] == [[], []]
    await scene.check_nothing_is_left()
