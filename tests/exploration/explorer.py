"""The explorer: every order in which the actions of a world can happen, each world once."""

from __future__ import annotations

import attrs

from tests.exploration.plans import Action, BrokenRuleError, Scene
from tests.exploration.world import World


@attrs.frozen
class Explored:
    """How much was seen: different worlds, and those in which nothing more could happen."""

    worlds: int
    ends: int


def explore(scene: Scene) -> Explored:
    """Visit every world that can come of a scene, and check its rules there.

    Two that do not differ in anything that matters count as one.

    Raises:
        BrokenRuleError: With the rule and the actions that broke it.
    """
    search = _Search(scene)
    try:
        search.go_on()
    except BrokenRuleError as error:
        raise BrokenRuleError(*error.args, search.path) from error
    return Explored(len(search.seen), search.ends)


class _Search:
    """A world, how it came to be, and what was seen already."""

    def __init__(self, scene: Scene) -> None:
        self._world = World(scene)
        self.path: list[Action] = []
        self.seen = {self._world.fingerprint()}
        self.ends = 0

    def go_on(self) -> None:
        """Visit what can come of the world as it is, and leave it so."""
        actions = list(self._world.actions())
        self.ends += not actions
        moment = self._world.moment()
        for action in actions:
            self.path.append(action)
            self._visit(action)
            self._world.go_back(moment)
            self.path.pop()

    def _visit(self, action: Action) -> None:
        self._world.act(action)
        if self._is_new():
            self._rescue()
            self.go_on()

    def _is_new(self) -> bool:
        count = len(self.seen)
        self.seen.add(self._world.fingerprint())
        return len(self.seen) > count

    def _rescue(self) -> None:
        moment = self._world.moment()
        self._world.rescue()
        self._world.go_back(moment)
