"""Strategies: what happens when messages meet, wherever their callers are."""

from __future__ import annotations

import pytest

from tests.conversation.conftest import SetScene
from tests.conversation.homes import ALL
from tests.conversation.scene import shorts
from vitehub_chat import chat
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning


async def test_C01_serial_gives_every_message_its_own_run_in_order(set_scene: SetScene) -> None:
    scene = await set_scene("serial")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    c = await scene.enqueue(scene.first, "C")
    await scene.first.release("A", "C")
    await scene.second.release("B")
    assert await shorts(a, b, c) == ["complete A[]", "complete B[]", "complete C[]"]
    assert await scene.texts() == ["A", "A[]", "B", "B[]", "C", "C[]"]
    assert [await site.ask("most") for site in scene.sites] == [1 for _ in scene.sites]
    await scene.check_nothing_is_left()


async def test_C02_queue_answers_what_waits_in_one_run(set_scene: SetScene) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    c = await scene.enqueue(scene.first, "C")
    d = await scene.enqueue(scene.second, "D")
    await scene.first.release("A")
    await scene.second.release("D")
    assert await shorts(a, b, c, d) == [
        "complete A[]",
        "coalesced D[B,C]",
        "coalesced D[B,C]",
        "complete D[B,C]",
    ]
    assert [(await each).is_driven for each in (a, b, c, d)] == [True, False, False, True]
    assert {(await each).message_id for each in (b, c, d)} == {(await scene.rows())[-1].message.id}
    assert await scene.texts() == ["A", "A[]", "B", "C", "D", "D[B,C]"]
    await scene.check_nothing_is_left()


FULL = {
    "C03": ("drop-oldest", ["dropped", "coalesced D[C]", "complete D[C]"]),
    "C04": ("drop-newest", ["coalesced C[B]", "complete C[B]", "dropped"]),
    "C05": ("reject", ["coalesced C[B]", "complete C[B]", "ChatBusyError queue_full"]),
}


@pytest.mark.parametrize("case", FULL)
async def test_a_full_queue_keeps_what_its_policy_says(set_scene: SetScene, case: str) -> None:
    policy, expected = FULL[case]
    scene = await set_scene({"strategy": "queue", "max_queue_size": 2, "on_queue_full": policy})
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    c = await scene.enqueue(scene.first, "C")
    d = scene.second.send("D")
    refused = b if policy == "drop-oldest" else d
    await refused
    await scene.first.release("A", "C")
    await scene.second.release("D")
    assert await shorts(a, b, c, d) == ["complete A[]", *expected]
    assert (await refused).reason in {"queue_full", None}
    await scene.check_nothing_is_left()


async def test_C06_an_entry_past_its_life_never_runs(set_scene: SetScene) -> None:
    scene = await set_scene({"strategy": "queue", "queue_entry_ttl_ms": 20_000})
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    await scene.advance(20)
    await scene.first.release("A")
    assert await shorts(a, b) == ["complete A[]", "dropped"]
    assert (await b).reason == "expired"
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


async def test_C09_parallel_runs_at_most_so_many_at_once(set_scene: SetScene) -> None:
    scene = await set_scene({"strategy": "parallel", "max_concurrent": 2})
    site = scene.first
    ends = [site.send(text) for text in "ABCD"]
    await site.begun("A")
    await site.begun("B")
    await site.release("B")
    await site.begun("C")
    await site.release("A")
    await site.begun("D")
    await site.release("C", "D")
    assert await shorts(*ends) == [f"complete {text}[]" for text in "ABCD"]
    assert await site.ask("most") == 2
    await scene.check_nothing_is_left()


def test_C10_a_limit_of_no_turn_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        chat({"concurrency": {"strategy": "parallel", "max_concurrent": 0}})
    assert caught.value.path == "concurrency.max_concurrent"


def test_C11_a_limit_without_effect_warns() -> None:
    with pytest.warns(ConfigOverrideWarning, match="max_concurrent"):
        chat({"concurrency": {"strategy": "queue", "max_concurrent": 2}})


async def test_parallel_turns_share_no_lock(set_scene: SetScene) -> None:
    scene = await set_scene("parallel")
    a = await scene.first.start("A")
    b = await scene.second.start("B")
    assert await scene.count_waiting() == 0
    await scene.second.release("B")
    assert await shorts(b) == ["complete B[]"]
    await scene.first.release("A")
    assert await shorts(a) == ["complete A[]"]
    assert await scene.texts() == ["A", "B", "B[]", "A[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize(
    ("strategy", "short"), [("drop", "dropped"), ("reject", "ChatBusyError chat_busy")]
)
async def test_drop_and_reject_refuse_at_once_while_a_turn_runs(
    set_scene: SetScene, strategy: str, short: str
) -> None:
    scene = await set_scene(strategy)
    a = await scene.first.start("A")
    assert await shorts(scene.second.send("B")) == [short]
    await scene.first.release("A")
    assert await shorts(a) == ["complete A[]"]
    assert await scene.texts() == ["A", "A[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("strategy", ["drop", "reject"])
async def test_C18_a_refused_message_runs_when_it_is_sent_again(
    set_scene: SetScene, strategy: str
) -> None:
    scene = await set_scene(strategy)
    a = await scene.first.start("A")
    await scene.second.send("B")
    await scene.first.release("A")
    await a
    await scene.second.release("B")
    assert await shorts(scene.second.send("B")) == ["complete B[]"]
    assert await scene.texts() == ["A", "A[]", "B", "B[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("queue", ["coalesced C[B]", "complete C[B]"]),
        ("serial", ["complete B[]", "complete C[]"]),
    ],
)
async def test_C24_a_failed_turn_is_its_callers_and_the_queue_goes_on(
    set_scene: SetScene, strategy: str, expected: list[str]
) -> None:
    scene = await set_scene(strategy)
    a = await scene.first.start("fail A", key="a")
    b = await scene.enqueue(scene.second, "B")
    c = await scene.enqueue(scene.first, "C")
    await scene.first.release("fail A", "C")
    await scene.second.release("B")
    assert await shorts(a, b, c) == ["Boom fail A", *expected]
    rows = await scene.rows()
    assert [(row.message.role, row.status) for row in rows[:2]] == [
        ("user", "complete"),
        ("assistant", "error"),
    ]
    await scene.check_nothing_is_left()


async def test_C25_a_failed_run_fails_for_everybody_in_it(set_scene: SetScene) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.first, "B")
    d = await scene.enqueue(scene.second, "fail D")
    await scene.first.release("A")
    await scene.second.release("fail D")
    assert await shorts(a, d) == ["complete A[]", "Boom fail D"]
    # What another process raised cannot be raised here as it was.
    assert await shorts(b) in (["Boom fail D"], ["ChatError turn_failed"])
    assert await scene.texts() == ["A", "A[]", "B", "fail D", ""]
    await scene.check_nothing_is_left()


async def test_C26_a_channel_shares_a_lock_and_every_answer_stays_in_its_thread(
    set_scene: SetScene,
) -> None:
    scene = await set_scene("queue", lock_scope="channel")
    lock = scene.lock_of_channel("c")
    a = await scene.first.start("A", thread="t1", channel="c")
    b = await scene.enqueue(scene.first, "B", thread="t2", channel="c", lock_key=lock)
    c = await scene.enqueue(scene.second, "C", thread="t1", channel="c", lock_key=lock)
    d = await scene.enqueue(scene.second, "D", thread="t2", channel="c", lock_key=lock)
    await scene.first.release("A")
    await scene.second.release("D", "C")
    assert await shorts(a, b, c, d) == [
        "complete A[]",
        "coalesced D[B]",
        "complete C[]",
        "complete D[B]",
    ]
    assert await scene.texts("t1", "c") == ["A", "A[]", "C", "C[]"]
    assert await scene.texts("t2", "c") == ["B", "D", "D[B]"]
    assert {row.thread_id for row in await scene.rows("t1", "c")} == {"t1"}
    assert {row.thread_id for row in await scene.rows("t2", "c")} == {"t2"}
    await scene.check_nothing_is_left("t1", "t2", channel="c")


async def test_C27_a_run_answers_one_session_alone(set_scene: SetScene) -> None:
    scene = await set_scene("queue", sessions={"strategy": "manual"})
    a = await scene.first.start("A", session={"id": "s1"})
    b = await scene.enqueue(scene.second, "B", session={"id": "s1"})
    c = await scene.enqueue(scene.first, "C", session={"id": "s2"})
    d = await scene.enqueue(scene.second, "D", session={"id": "s1"})
    await scene.first.release("A", "C")
    await scene.second.release("D")
    assert await shorts(a, b, c, d) == [
        "complete A[]",
        "coalesced D[B]",
        "complete C[]",
        "complete D[B]",
    ]
    assert [(await each).session_id for each in (a, b, c, d)] == ["s1", "s1", "s2", "s1"]
    await scene.check_nothing_is_left()


async def test_C28_a_message_that_begins_a_session_ends_the_run_before_it(
    set_scene: SetScene,
) -> None:
    window = {"source": "transcript", "max_messages": 10}
    scene = await set_scene("queue", sessions=True, trigger_history=window)
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    n = await scene.enqueue(scene.first, "N", session={"action": "new"})
    e = await scene.enqueue(scene.second, "E")
    await scene.first.release("A")
    await scene.second.release("B", "E")
    assert await shorts(a, b, n, e) == [
        "complete A[]",
        "complete B[A,A[]]",
        "coalesced E[N]",
        "complete E[N]",
    ]
    sessions = [(await each).session_id for each in (a, b, n, e)]
    assert sessions == [None, None, "new:N", "new:N"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("strategy", ["serial", "queue"])
@pytest.mark.parametrize("set_scene", ALL, indirect=True)
async def test_C32_who_waited_too_long_leaves_and_may_come_again(
    set_scene: SetScene, strategy: str
) -> None:
    scene = await set_scene({"strategy": strategy, "wait_timeout_ms": 60})
    a = await scene.first.start("A")
    assert await shorts(scene.second.send("B")) == ["ChatBusyError timeout"]
    assert await scene.count_waiting() == 0
    await scene.first.release("A")
    await a
    await scene.second.release("B")
    assert await shorts(scene.second.send("B")) == ["complete B[]"]
    assert await scene.texts() == ["A", "A[]", "B", "B[]"]
    await scene.check_nothing_is_left()


@pytest.mark.parametrize("leave", ["cancel", "stop"])
async def test_C33_who_leaves_while_waiting_takes_the_message_along(
    set_scene: SetScene, leave: str
) -> None:
    scene = await set_scene("queue")
    a = await scene.first.start("A")
    b = await scene.enqueue(scene.second, "B")
    c = await scene.enqueue(scene.first, "C")
    await scene.second.ask(leave, key="B")
    assert await shorts(b) == ["CancelledError None" if leave == "cancel" else "interrupted"]
    await scene.waiting(1)
    await scene.first.release("A", "C")
    assert await shorts(a, c) == ["complete A[]", "complete C[]"]
    assert await scene.texts() == ["A", "A[]", "C", "C[]"]
    await scene.check_nothing_is_left()


async def test_C34_a_turn_that_holds_its_lock_too_long_is_interrupted(set_scene: SetScene) -> None:
    scene = await set_scene({"strategy": "serial", "max_lock_lifetime_ms": 250})
    a = await scene.first.start("A")
    await scene.second.release("B")
    b = scene.second.send("B")
    assert await shorts(a, b) == ["interrupted", "complete B[]"]
    assert (await a).finish_reason == "lock_lifetime"
    statuses = [row.status for row in await scene.rows()]
    assert statuses == ["complete", "interrupted", "complete", "complete"]
    assert await scene.first.ask("cancelled") == ["A"]
    await scene.check_nothing_is_left()


async def test_a_repeat_is_answered_although_no_slot_is_free(set_scene: SetScene) -> None:
    scene = await set_scene(
        {"strategy": "parallel", "max_concurrent": 1, "wait_timeout_ms": 60_000}
    )
    site = scene.first
    await site.release("A")
    assert await shorts(site.send("A")) == ["complete A[]"]
    b = await site.start("B")
    waits = site.send("C")
    assert await shorts(site.send("A")) == ["complete A[]"]
    again = site.send("B")
    await site.release("B", "C")
    assert await shorts(b, again, waits) == ["complete B[]", "complete B[]", "complete C[]"]
    assert await site.calls() == ["A[]", "B[]", "C[]"]
    await scene.check_nothing_is_left()


async def test_who_waits_too_long_for_a_slot_leaves_and_may_come_again(set_scene: SetScene) -> None:
    policy = {"strategy": "parallel", "max_concurrent": 1, "wait_timeout_ms": 60}
    scene = await set_scene(policy)
    site = scene.first
    a = await site.start("A")
    assert await shorts(site.send("B")) == ["ChatBusyError timeout"]
    await site.release("A", "B")
    assert await shorts(a) == ["complete A[]"]
    assert await shorts(site.send("B")) == ["complete B[]"]
    assert await scene.texts() == ["A", "A[]", "B", "B[]"]
    await scene.check_nothing_is_left()
