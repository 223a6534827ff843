"""The cache of threads of an agent that stores nothing, and what is looked at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from vitehub_chat.channels.looks import Looks
from vitehub_chat.channels.threads import ThreadCache, merge
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ThreadHistory
from vitehub_chat.testing.clock import FakeClock

HOUR = ThreadHistory(max_messages=3, ttl=timedelta(hours=1))


def key(thread: str) -> ConversationKey:
    return ConversationKey(None, "a", "c", thread)


def message(message_id: str, text: str | None = None) -> Message:
    return Message(message_id, "user", ({"type": "text", "text": text or message_id},))


def cache(clock: FakeClock | None = None, *, max_threads: int = 10) -> ThreadCache:
    return ThreadCache(HOUR, clock or FakeClock(), max_threads=max_threads)


def ids(threads: ThreadCache, thread: str = "t") -> list[str | None]:
    return [each.id for each in threads.messages(key(thread))]


def test_the_newest_messages_are_remembered() -> None:
    threads = cache()
    assert [threads.add(key("t"), message(name)) for name in "abcd"] == [True] * 4
    assert ids(threads) == ["b", "c", "d"]


def test_a_known_message_is_not_added_again() -> None:
    threads = cache()
    threads.add(key("t"), message("a", "first"))
    assert threads.add(key("t"), message("a", "second")) is False
    assert [each.text for each in threads.messages(key("t"))] == ["first"]


def test_an_answer_stands_behind_its_question() -> None:
    threads = cache()
    threads.add(key("t"), message("a"))
    threads.add(key("t"), message("b"))
    threads.insert_after(key("t"), "a", message("answer"))
    assert ids(threads) == ["a", "answer", "b"]


def test_an_answer_to_what_was_forgotten_is_the_newest() -> None:
    threads = cache()
    threads.add(key("t"), message("b"))
    threads.insert_after(key("t"), "a", message("answer"))
    assert ids(threads) == ["b", "answer"]


def test_a_thread_is_forgotten_after_its_time() -> None:
    clock = FakeClock()
    threads = cache(clock)
    threads.add(key("t"), message("a"))
    threads.add(key("u"), message("b"))
    clock.advance(minutes=30)
    threads.add(key("u"), message("c"))
    clock.advance(minutes=30)
    assert (ids(threads, "t"), ids(threads, "u"), len(threads)) == ([], ["b", "c"], 1)


def test_the_thread_that_is_silent_for_longest_makes_room() -> None:
    threads = cache(max_threads=2)
    for thread in ("t", "u", "t", "v"):
        threads.add(key(thread), message(f"{thread}-{len(threads)}"))
    assert (ids(threads, "t"), ids(threads, "u"), len(threads)) == (["t-0", "t-2"], [], 2)


def test_many_threads_leave_no_more_than_the_bound() -> None:
    threads = cache(max_threads=100)
    for number in range(10_000):
        threads.add(key(f"t{number}"), message("a"))
    assert len(threads) == 100


def test_of_two_versions_the_later_one_counts_at_the_earlier_place() -> None:
    merged = merge([message("a", "old"), message("b")], [message("c"), message("a", "new")])
    assert [(each.id, each.text) for each in merged] == [("a", "new"), ("b", "b"), ("c", "c")]


def test_changes_of_unknown_messages_do_nothing() -> None:
    threads = cache()
    assert threads.replace(key("t"), message("a")) is False
    assert threads.remove(key("t"), "a") is False
    threads.add(key("t"), message("a"))
    assert threads.replace(key("t"), message("a", "new")) is True
    assert [each.text for each in threads.messages(key("t"))] == ["new"]
    assert threads.remove(key("t"), "a") is True
    assert ids(threads) == []


async def test_who_asks_at_the_same_time_waits_for_one_look() -> None:
    looks, gate, seen = Looks(), asyncio.Event(), []

    async def look() -> None:
        seen.append("look")
        await gate.wait()

    asking = [asyncio.create_task(looks.once(key("t"), look)) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*asking, looks.once(key("t"), look))
    assert seen == ["look"]


async def test_a_look_that_fails_does_not_count() -> None:
    looks = Looks()

    async def fail() -> None:
        raise LookupError

    async def succeed() -> None:
        seen.append("look")

    seen: list[str] = []
    with pytest.raises(LookupError):
        await looks.once(key("t"), fail)
    await looks.once(key("t"), succeed)
    await looks.once(key("t"), succeed)
    assert seen == ["look"]


async def test_a_look_that_is_cancelled_holds_nobody_up() -> None:
    looks, seen = Looks(), []

    async def hang() -> None:
        await asyncio.Event().wait()

    async def succeed() -> None:
        seen.append("look")

    hanging = asyncio.create_task(looks.once(key("t"), hang))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(looks.once(key("t"), succeed))
    await asyncio.sleep(0)
    hanging.cancel()
    await asyncio.wait({hanging, waiting})
    await looks.once(key("t"), succeed)
    assert seen == ["look"]


async def test_what_was_looked_at_is_remembered_within_bounds() -> None:
    looks = Looks(limit=2)
    seen: list[str] = []

    for thread in ("t", "u", "v", "v", "t"):

        async def look(name: str = thread) -> None:
            seen.append(name)

        await looks.once(key(thread), look)
    assert seen == ["t", "u", "v", "t"]
