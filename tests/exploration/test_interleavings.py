"""All interleavings of two holders and three messages keep the rules; without a guard they do not.

The rules: each accepted message is answered exactly once, in a group of its own thread and session,
in order of arrival; only who holds the lock writes; and a lock is released only when nothing waits.
"""

from __future__ import annotations

import attrs
import pytest

from tests.exploration.explorer import explore
from tests.exploration.guards import GUARDS, Guard
from tests.exploration.plans import BrokenRuleError, Scene
from tests.exploration.scenes import SCENES


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_no_interleaving_breaks_a_rule(scene: Scene) -> None:
    explored = explore(scene)
    assert explored.worlds > 1000
    assert explored.ends > 1


@pytest.mark.parametrize("name", ["serial_sent_again", "queue_of_two_threads"])
def test_no_interleaving_without_deaths_breaks_a_rule(name: str) -> None:
    explored = explore(attrs.evolve(SCENES[name], crashes=0))
    assert explored.worlds > 300


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_its_guard_a_rule_is_broken(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.remove(monkeypatch)
    with pytest.raises(BrokenRuleError) as broken:
        explore(SCENES[guard.scene])
    assert broken.value.args[0] == guard.rule
