"""Unreadable entries: they are put aside, their callers learn of it, and nobody waits for them."""

from __future__ import annotations

import logging
from datetime import timedelta

import attrs
import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.scene import Scene, key_of, shorts
from tests.conversation.station import LocalSite
from tests.conversation.test_leases import dead_entry
from vitehub_chat.conversation.unreadable import EntriesPutAside, read_entries
from vitehub_chat.model.policies import ConcurrencyPolicy, ConcurrencyStrategy
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import Entry

LEASE = timedelta(seconds=30)
UNREADABLE = "StateError corrupt"
BROKEN = ["", "{", "[]", "null", '{"messages": []}', '{"messages": 1, "run": 2}']


def breaking(claim_id: str, payload: str) -> object:
    """Return a step that breaks what waits of a message."""

    def step(tx: Transaction) -> None:
        entries = tx.entries.open_in(key_of("t").encode())
        [entry] = [each for each in entries if each.claim_id == claim_id]
        tx.entries.update(attrs.evolve(entry, payload=payload))

    return step


async def break_entry(scene: Scene, claim_id: str, payload: str = "{") -> None:
    await scene.state.run_write(breaking(claim_id, payload))  # type: ignore[arg-type]


async def admit_dead(
    scene: Scene, text: str, strategy: ConcurrencyStrategy, payload: str = "{"
) -> str:
    """Let a process accept a message that is dead then, and break it; return its ticket."""
    entry = attrs.evolve(dead_entry(text), payload=payload, owner=None)
    await scene.state.turns.admit(
        entry,
        policy=ConcurrencyPolicy(strategy=strategy),
        lease=LEASE,
        dedupe_ttl=timedelta(minutes=10),
    )
    return entry.ticket_id


def check_log(scene: Scene, log: pytest.LogCaptureFixture, count: int) -> None:
    """Check that it was told, where it can be heard."""
    if all(isinstance(site, LocalSite) for site in scene.sites):
        told = [record for record in log.records if record.message == "chat.row.quarantined"]
        assert len(told) == count


@pytest.mark.parametrize("payload", BROKEN)
def test_what_is_no_request_is_told_by_its_ticket(payload: str) -> None:
    good = dead_entry("B").payload
    entries = [Entry(ticket_id=name, payload=text) for name, text in (("x", payload), ("b", good))]
    with pytest.raises(EntriesPutAside) as caught:
        read_entries(entries, None)
    assert caught.value.ticket_ids == ("x",)
    [request] = read_entries(entries[1:], None)
    assert request.current.id == "B"


async def test_C29_an_unreadable_message_of_a_group_is_left_out(
    set_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="vitehub_chat")
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    x = await scene.enqueue(scene.first, "X")
    c = await scene.enqueue(scene.second, "C")
    await break_entry(scene, "X")
    await scene.first.release("A")
    await scene.second.release("C")
    assert await shorts(a, b, x, c) == [
        "complete A[]",
        "coalesced C[B]",
        UNREADABLE,
        "complete C[B]",
    ]
    assert await scene.texts() == ["A", "A[]", "B", "C", "C[B]"]
    check_log(scene, caplog, 1)
    await scene.check_nothing_is_left()


async def test_C29_several_unreadable_messages_are_put_aside_at_once(set_scene: SetScene) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    turns = [await scene.enqueue(scene.second, text) for text in ("X", "B", "Y", "C")]
    await break_entry(scene, "X")
    await break_entry(scene, "Y")
    await scene.first.release("A")
    await scene.second.release("C")
    assert await shorts(a, *turns) == [
        "complete A[]",
        UNREADABLE,
        "coalesced C[B]",
        UNREADABLE,
        "complete C[B]",
    ]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("strategy", ["serial", "queue"])
async def test_C29_an_unreadable_message_of_a_dead_process_blocks_nobody(
    set_scene: SetScene, caplog: pytest.LogCaptureFixture, strategy: ConcurrencyStrategy
) -> None:
    caplog.set_level(logging.WARNING, logger="vitehub_chat")
    scene = await set_scene(strategy)
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    ticket_id = await admit_dead(scene, "X", strategy)
    c = await scene.enqueue(scene.first, "C")
    await scene.first.release("A", "C")
    await scene.second.release("B")
    expected = ["complete A[]", "complete B[]", "complete C[]"]
    if strategy == "queue":
        expected = ["complete A[]", "coalesced C[B]", "complete C[B]"]
    assert await shorts(a, b, c) == expected
    outcome = await scene.state.turns.outcome(ticket_id)
    assert outcome.end is not None
    assert (outcome.end.status, outcome.end.reason) == ("dropped", "unreadable")
    assert "X" not in await scene.texts()
    check_log(scene, caplog, 1)
    await scene.check_nothing_is_left()


async def test_a_message_that_was_put_aside_runs_when_it_is_sent_again(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    x = await scene.enqueue(scene.first, "X")
    b = await scene.enqueue(scene.second, "B")
    await break_entry(scene, "X")
    await scene.first.release("A", "X")
    await scene.second.release("B", "X")
    assert await shorts(a, x, b) == ["complete A[]", UNREADABLE, "complete B[]"]
    assert await shorts(scene.second.send("X")) == ["complete X[]"]
    await scene.check_nothing_is_left()


async def test_a_message_that_nobody_can_run_does_not_stand_in_the_way(
    set_scene: SetScene,
) -> None:
    """Its session id was valid when it was accepted, for a release that knew no limit."""
    scene = await set_scene("serial", sessions=True)
    a = await scene.first.start("A")
    long = "s" * 600
    payload = dead_entry("X").payload.replace('"id":null', f'"id":"{long}"')
    assert long in payload
    await admit_dead(scene, "X", "serial", payload)
    b = await scene.enqueue(scene.second, "B")
    await scene.first.release("A")
    await scene.second.release("B")
    assert await shorts(a, b) == ["complete A[]", "complete B[]"]
    assert await scene.texts() == ["A", "A[]", "B", "B[]"]
    await scene.check_nothing_is_left()
