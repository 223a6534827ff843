"""Scopes: which messages wait for each other, and which do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.homes import ONE
from tests.conversation.scene import Scene, shorts
from tests.conversation.station import LocalSite, Station, leftovers_of
from vitehub_chat import Agent, run_agent_trigger
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.keys import encode_key
from vitehub_chat.model.policies import LockScopeQuestion
from vitehub_chat.testing.clock import FakeClock


@attrs.frozen
class Place:
    """Where a message is said."""

    thread: str = "t1"
    channel: str = "c"
    tenant: str | None = None
    session: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """What says so in the input."""
        run = {"threadId": self.thread, "channelId": self.channel, "tenantId": self.tenant}
        session = {} if self.session is None else {"session": {"id": self.session}}
        return {"run": run, **session}


HERE = Place()
SAID = Place(session="s")
THREAD = encode_key("thread", None, "station", "c", "t1")


@attrs.frozen
class Rule:
    """What a scope means: a first message, whose lock others wait for, while others do not."""

    first: Place
    lock_key: str
    waiting: list[Place]
    free: list[Place]


RULES = {
    "thread": Rule(
        HERE,
        THREAD,
        [HERE, SAID],
        [Place("t2"), Place(channel="d"), Place(tenant="x"), Place("t2", session="s")],
    ),
    "channel": Rule(
        HERE,
        encode_key("channel", None, "station", "c"),
        [HERE, Place("t2"), Place("t3", session="s")],
        [Place(channel="d"), Place(tenant="x")],
    ),
    "agent": Rule(
        HERE,
        encode_key("agent", None, "station"),
        [HERE, Place("t2"), Place(channel="d"), Place("t3", "e", session="s")],
        [Place(tenant="x")],
    ),
    "session": Rule(
        SAID,
        encode_key("session", None, "station", "c", "s"),
        [SAID, Place("t2", session="s")],
        [
            HERE,
            Place(session="s2"),
            Place(channel="d", session="s"),
            Place(tenant="x", session="s"),
        ],
    ),
    "session without a wanted id": Rule(
        HERE,
        THREAD,
        [HERE],
        [SAID, Place("t2"), Place(channel="d"), Place(tenant="x")],
    ),
}


async def check_rule(scene: Scene, rule: Rule) -> None:
    """Check what waits for a message that runs, and what runs beside it."""
    a = await scene.first.start("A", **rule.first.fields)
    for number, place in enumerate(rule.free):
        text = f"free{number}"
        beside = await scene.second.start(text, **place.fields)
        await scene.second.release(text)
        assert await shorts(beside) == [f"complete {text}[]"]
    waiting = [
        await scene.enqueue(scene.second, f"late{number}", lock_key=rule.lock_key, **place.fields)
        for number, place in enumerate(rule.waiting)
    ]
    assert not [call for call in await scene.calls() if call.startswith("late")]
    texts = [f"late{number}" for number in range(len(waiting))]
    for site in scene.sites:
        await site.release("A", *texts)
    assert await shorts(a, *waiting) == ["complete A[]", *(f"complete {text}[]" for text in texts)]
    assert await scene.state.run_read(lambda tx: tx.locks.get(rule.lock_key)) is None
    await scene.check_nothing_is_left("t1", "t2", "t3", channel="c")


@pytest.mark.parametrize("name", RULES)
async def test_C13_a_scope_says_which_messages_wait_for_each_other(
    set_scene: SetScene, name: str
) -> None:
    scene = await set_scene("serial", sessions=True, lock_scope=name.split(maxsplit=1)[0])
    await check_rule(scene, RULES[name])


Scope = Callable[[LockScopeQuestion], Any]


def asked_about(
    tenant: str | None, channel: str, thread: str, session_id: str | None
) -> LockScopeQuestion:
    return LockScopeQuestion(
        agent="station", tenant=tenant, channel=channel, thread=thread, session_id=session_id
    )


def at_once(name: str) -> Scope:
    return lambda _question: name


def awaited(name: str) -> Scope:
    async def scope(_question: LockScopeQuestion) -> str:
        return name

    return scope


@pytest.mark.parametrize("returning", [at_once, awaited])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("set_scene", ["one-memory", "two-file"], indirect=True)
async def test_C13_a_callable_scope_counts_as_the_name_that_it_returns(
    set_scene: SetScene, name: str, returning: Callable[[str], Scope]
) -> None:
    scene = await set_scene(
        "serial", sessions=True, lock_scope=returning(name.split(maxsplit=1)[0])
    )
    await check_rule(scene, RULES[name])


@pytest.mark.parametrize("set_scene", ONE, indirect=True)
async def test_C13_a_callable_scope_is_asked_anew_for_every_message(set_scene: SetScene) -> None:
    asked: list[LockScopeQuestion] = []

    def scope(question: LockScopeQuestion) -> str:
        asked.append(question)
        return "channel" if question.channel == "dm" else "thread"

    scene = await set_scene("serial", sessions=True, lock_scope=scope)
    direct, other = Place("t1", "dm", "x", "s"), Place("t2", "dm", "x")
    lock_key = encode_key("channel", "x", "station", "dm")
    a = await scene.first.start("A", **direct.fields)
    b = await scene.enqueue(scene.first, "B", lock_key=lock_key, **other.fields)
    c = await scene.first.start("C", **HERE.fields)
    d = await scene.first.start("D", **Place("t2").fields)
    await scene.first.release("A", "B", "C", "D")
    assert await shorts(a, b, c, d) == [f"complete {text}[]" for text in "ABCD"]
    assert asked == [
        asked_about("x", "dm", "t1", "s"),
        asked_about("x", "dm", "t2", None),
        asked_about(None, "c", "t1", None),
        asked_about(None, "c", "t2", None),
    ]


def agent_of(scene: Scene) -> Agent:
    assert isinstance(scene.first, LocalSite)
    return scene.first.station.agent


async def refused(agent: Agent) -> ConfigError:
    """Return why a message of this agent is refused."""
    message = {"id": "A", "role": "user", "parts": [{"type": "text", "text": "A"}]}
    given = {"messages": [message], "run": {"threadId": "t"}}
    with pytest.raises(ConfigError) as caught:
        await run_agent_trigger(agent, "chat.message", given)
    return caught.value


LIMITED = {"strategy": "parallel", "max_concurrent": 1}


@pytest.mark.parametrize("strategy", ["serial", LIMITED])
@pytest.mark.parametrize("returning", [at_once, awaited])
@pytest.mark.parametrize("set_scene", ONE, indirect=True)
async def test_C13_a_callable_that_returns_no_scope_fails_its_call_and_leaves_nothing(
    set_scene: SetScene, returning: Callable[[str], Scope], strategy: object
) -> None:
    names = ["x", "thread"]

    def scope(question: LockScopeQuestion) -> Any:
        return returning(names.pop(0) if names[1:] else names[0])(question)

    scene = await set_scene(strategy, lock_scope=scope)
    error = await refused(agent_of(scene))
    assert (error.path, "thread, channel, agent, session" in str(error)) == ("lock_scope", True)
    assert await scene.rows() == []
    await scene.check_nothing_is_left()
    # With a claim of the first call this would be a repeat.
    await scene.first.release("A")
    assert await shorts(scene.first.send("A")) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


async def test_without_a_state_a_callable_that_returns_no_scope_leaves_nothing() -> None:
    station = Station({"lock_scope": at_once("x")}, FakeClock())
    assert (await refused(station.agent)).path == "lock_scope"
    assert sum((await leftovers_of(station.agent)).values()) == 0
    await station.close()


async def test_without_a_state_agents_of_one_name_and_thread_do_not_wait_for_each_other() -> None:
    stations = [Station({}, FakeClock()) for _ in range(2)]
    first, second = (LocalSite(station) for station in stations)
    a = await first.start("A")
    b = await second.start("B")
    c = first.send("C")
    await first.ask("seats", count=2)
    assert (await first.calls(), await second.calls()) == (["A[]"], ["B[]"])
    await second.release("B")
    assert await shorts(b) == ["complete B[]"]
    assert await first.calls() == ["A[]"]
    await first.release("A", "C")
    assert await shorts(a, c) == ["complete A[]", "complete C[]"]
    for station, site in zip(stations, (first, second), strict=True):
        assert await site.leftovers() == {}
        await station.close()


@pytest.mark.parametrize("set_scene", ONE, indirect=True)
async def test_the_limit_of_parallel_turns_is_one_of_each_key(set_scene: SetScene) -> None:
    scene = await set_scene(LIMITED)
    site = scene.first
    a = await site.start("A", thread="t1")
    b = site.send("B", thread="t1")
    await site.ask("seats", count=2)
    c = await site.start("C", thread="t2")
    # It came before, and would run by now if it did not wait.
    assert (await site.calls(), b.done()) == (["A[]", "C[]"], False)
    await site.release("C")
    assert await shorts(c) == ["complete C[]"]
    assert await site.calls() == ["A[]", "C[]"]
    await site.release("A", "B")
    assert await shorts(a, b) == ["complete A[]", "complete B[]"]
    assert await site.calls() == ["A[]", "C[]", "B[]"]
    await scene.check_nothing_is_left("t1", "t2")


@pytest.mark.parametrize("set_scene", ONE, indirect=True)
async def test_the_limit_of_parallel_turns_counts_together_what_has_one_key(
    set_scene: SetScene,
) -> None:
    scene = await set_scene(LIMITED, lock_scope="channel")
    site = scene.first
    a = await site.start("A", thread="t1", channel="c")
    b = site.send("B", thread="t2", channel="c")
    await site.ask("seats", count=2)
    c = await site.start("C", thread="t1", channel="d")
    assert await site.calls() == ["A[]", "C[]"]
    await site.release("A", "B", "C")
    assert await shorts(a, b, c) == ["complete A[]", "complete B[]", "complete C[]"]
    await scene.check_nothing_is_left("t1", "t2", channel="c")
