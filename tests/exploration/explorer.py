"""The explorer: every order in which the actions of a world can happen, each world once."""

from __future__ import annotations

import attrs

from tests.exploration.world import Action, BrokenRuleError, Scene, World

Path = tuple[Action, ...]


@attrs.frozen
class Explored:
    """How much was seen: different worlds, and those in which nothing more could happen."""

    worlds: int
    ends: int


def explore(scene: Scene) -> Explored:
    """Visit every world that can come of a scene, and check its rules there.

    A world is made again by the actions that led to it; two that do not differ in anything that
    matters count as one.

    Raises:
        BrokenRuleError: With the rule and the actions that broke it.
    """
    start = World(scene)
    seen = {start.fingerprint()}
    ends = 0
    to_visit: list[tuple[Path, Action]] = [((), action) for action in start.actions()]
    while to_visit:
        path, action = to_visit.pop()
        taken = (*path, action)
        world = _play(scene, taken)
        fingerprint = world.fingerprint()
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        following = [(taken, each) for each in world.actions()]
        ends += not following
        to_visit.extend(following)
        _rescue(world, taken)
    return Explored(len(seen), ends)


def _play(scene: Scene, path: Path) -> World:
    world = World(scene)
    try:
        for action in path:
            world.act(action)
    except BrokenRuleError as error:
        raise BrokenRuleError(*error.args, path) from error
    return world


def _rescue(world: World, path: Path) -> None:
    try:
        world.rescue()
    except BrokenRuleError as error:
        raise BrokenRuleError(*error.args, path, "then rescued") from error
