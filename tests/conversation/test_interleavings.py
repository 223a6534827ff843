"""Interleavings: a message that comes at any moment of another one's turn is answered once."""

from __future__ import annotations

import asyncio

import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.scene import shorts
from tests.conversation.station import Ended
from tests.conversation.steps import counted_steps

MOST_STEPS = 1000
FEWEST_MOMENTS = 8
EVERY_HOW_MANY_STEPS = [
    pytest.param("one-memory", 1),
    pytest.param("two-memory", 1),
    pytest.param("one-file", 1),
    pytest.param("two-file", 2),
    pytest.param("two-libsql", 4, marks=pytest.mark.service),
    pytest.param("two-postgres", 4, marks=pytest.mark.service),
]


@pytest.mark.parametrize("strategy", ["serial", "queue"])
@pytest.mark.parametrize(("set_scene", "stride"), EVERY_HOW_MANY_STEPS, indirect=["set_scene"])
async def test_C21_whenever_a_message_comes_while_the_lock_is_released_it_is_answered_once(
    set_scene: SetScene, strategy: str, stride: int
) -> None:
    """B comes at every moment of A's turn, from its first step to after its last."""
    scene = await set_scene(strategy)
    for site in scene.sites:
        await site.release("A", "B")
    is_over, moments = False, 0
    with counted_steps() as steps:
        for number in range(0, MOST_STEPS, stride):
            thread = f"t{number}"
            came: list[asyncio.Task[Ended]] = []

            def come(thread: str = thread, came: list[asyncio.Task[Ended]] = came) -> None:
                came.append(scene.second.send("B", thread=thread))

            a = scene.first.send("A", thread=thread)
            steps.arm(number, come)
            ends = await shorts(a)
            is_over = steps.disarm()
            if is_over:
                come()
            assert [*ends, *await shorts(*came)] == ["complete A[]", "complete B[]"]
            texts = await scene.texts(thread)
            assert texts in (["A", "A[]", "B", "B[]"], ["B", "B[]", "A", "A[]"])
            await scene.check_nothing_is_left(thread)
            moments += 1
            if is_over:
                break
    assert is_over
    assert steps.problems == []
    assert moments > FEWEST_MOMENTS
    assert sorted(await scene.calls()) == ["A[]"] * moments + ["B[]"] * moments
