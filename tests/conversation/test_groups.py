"""Groups: what one run of a line takes together, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.homes import ALL
from tests.conversation.scene import Scene, shorts
from tests.conversation.test_leases import dead_entry
from vitehub_chat.conversation.payloads import encode_request
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.requests import Invoker, RunInfo, TurnRequest

LEASE_S = 30


def said(*texts: str) -> list[dict[str, Any]]:
    """Return messages whose ids are their texts."""
    return [
        {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]} for text in texts
    ]


def window(count: int) -> dict[str, Any]:
    return {"source": "thread", "max_messages": count}


@attrs.frozen
class Array:
    """What the newest message of a group brings along, and what comes of it."""

    texts: Sequence[str]
    answer: str
    max_messages: int = 50


ARRAYS = {
    "the earlier ones stand right before the newest": Array("xyD", "D[x,y,B,C]"),
    "each stands where the array has it": Array("xByCD", "D[x,B,y,C]"),
    "only what the array does not have is put in": Array("xByD", "D[x,B,y,C]"),
    "the count takes none of the group": Array("xByCD", "D[B,C]", 1),
    "the count takes the rest": Array("xByCD", "D[B,y,C]", 3),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("set_scene", ALL, indirect=True)
async def test_the_input_of_a_run_is_the_array_of_its_newest_message(
    set_scene: SetScene, name: str
) -> None:
    array = ARRAYS[name]
    scene = await set_scene("queue", trigger_history=window(array.max_messages))
    a = await scene.first.start("A")
    # What the others bring along is theirs, and nobody sees it.
    b = await scene.enqueue(scene.second, "B", messages=said("p", "B"))
    c = await scene.enqueue(scene.first, "C", messages=said("q", "B", "C"))
    d = await scene.enqueue(scene.second, "D", messages=said(*array.texts))
    await scene.first.release("A")
    await scene.second.release("D")
    assert await shorts(a, b, c, d) == [
        "complete A[]",
        f"coalesced {array.answer}",
        f"coalesced {array.answer}",
        f"complete {array.answer}",
    ]
    assert await scene.texts() == ["A", "A[]", "B", "C", "D", array.answer]
    await scene.check_nothing_is_left()


def in_thread(name: str) -> dict[str, Any]:
    return {"thread": name}


def in_session(name: str) -> dict[str, Any]:
    return {"thread": "t", "session": {"id": name}}


@pytest.mark.parametrize("place", [in_thread, in_session])
@pytest.mark.parametrize("max_messages", [0, 50])
async def test_a_group_never_mixes_threads_or_sessions(
    set_scene: SetScene, place: Any, max_messages: int
) -> None:
    history = window(max_messages) if max_messages else "none"
    scene = await set_scene("queue", lock_scope="channel", sessions=True, trigger_history=history)
    fields = {"channel": "c", "lock_key": scene.lock_of_channel("c")}
    a = await scene.first.start("A", channel="c", **place("t0"))
    line = {"x": "t1", "B": "t2", "y": "t1", "C": "t2", "D": "t2"}
    turns = [
        await scene.enqueue(site, text, **fields, **place(name))
        for (text, name), site in zip(line.items(), (scene.second, scene.first) * 3, strict=False)
    ]
    for site in scene.sites:
        await site.release("A", "y", "D")
    assert await shorts(a, *turns) == [
        "complete A[]",
        "coalesced y[x]",
        "coalesced D[B,C]",
        "complete y[x]",
        "coalesced D[B,C]",
        "complete D[B,C]",
    ]
    if place is in_thread:
        assert await scene.texts("t1", "c") == ["x", "y", "y[x]"]
        assert await scene.texts("t2", "c") == ["B", "C", "D", "D[B,C]"]
    else:
        assert [(await each).session_id for each in turns] == list(line.values())
    await scene.check_nothing_is_left("t0", "t1", "t2", "t", channel="c")


async def told_by(scene: Scene) -> list[dict[str, Any]]:
    """Return what the calls of all drivers were told."""
    return [told for site in scene.sites for told in await site.ask("told")]


async def test_a_run_is_on_behalf_of_the_newest_of_its_callers(set_scene: SetScene) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.first, "B", user={"id": "ub"}, context={"note": "of b"})
    c = await scene.enqueue(scene.second, "C", user={"id": "uc"}, context={"note": "of c"})
    await scene.first.release("A")
    await scene.second.release("C")
    assert await shorts(a, b, c) == ["complete A[]", "coalesced C[B]", "complete C[B]"]
    alone = {"invoker": None, "note": None, "thread": "t", "coalesced": None}
    assert await told_by(scene) == [
        alone,
        {"invoker": "uc", "note": "of c", "thread": "t", "coalesced": ["B"]},
    ]
    await scene.check_nothing_is_left()


async def test_a_run_of_dead_callers_has_the_stored_input_of_the_newest(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("queue", trigger_history=window(50))
    for text in "BC":
        earlier, message = (
            Message(each, "user", ({"type": "text", "text": each},))
            for each in (f"before {text}", text)
        )
        request = TurnRequest(
            messages=(earlier, message),
            run=RunInfo(thread_id="t"),
            invoker=Invoker(id=f"u{text}"),
            context={"note": f"of {text}", "only here": object()},
        )
        await scene.state.turns.admit(
            attrs.evolve(
                dead_entry(text), payload=encode_request(request, request.messages), owner=None
            ),
            policy=ConcurrencyPolicy(strategy="queue"),
            lease=timedelta(seconds=LEASE_S),
            dedupe_ttl=timedelta(minutes=10),
        )
    await scene.advance(LEASE_S)
    await scene.first.release("C")
    assert await scene.first.ask("sweep") == 1
    again = await scene.first.send("C")
    assert (again.status, again.text) == ("complete", "C[before C,B]")
    assert await told_by(scene) == [
        {"invoker": "uC", "note": "of C", "thread": "t", "coalesced": ["B"]}
    ]
    assert await scene.texts() == ["B", "C", "C[before C,B]"]
    await scene.check_nothing_is_left()
