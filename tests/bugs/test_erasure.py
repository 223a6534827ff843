"""Erasure, retention, orphans, and what is left after a conversation was deleted."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import NAME, WINDOW, agent_on, key_of, say
from vitehub_chat import (
    Conversation,
    ConversationKey,
    Conversations,
    open_agent_state,
    run_agent_trigger,
)
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import ChatBusyError, NotFoundError
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.sql.texts import load_texts
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.steps.inventory import INVENTORY
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing import all_checks
from vitehub_chat.testing.checks.material import row
from vitehub_chat.testing.clock import FakeClock

MARKER = "xylophone-of-ann"


def bytes_beside(path: Path) -> bytes:
    """Return everything that is in the files of a store."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))


async def store(
    state: SteppedAgentState, key: ConversationKey, session_id: str, user_key: str, *texts: str
) -> None:
    """Store messages of a person in a session that belongs to them."""
    request = SessionRequest(
        conversation=key, policy=SessionPolicy(), base=session_id, user_key=user_key
    )
    rows = [NewRow(message=row(f"{session_id} {t}", t).message, author=user_key) for t in texts]
    await state.transcripts.append(request, rows=rows)


async def test_L160_only_messages_move_the_activity(
    state: SteppedAgentState, clock: FakeClock
) -> None:
    idle = {"strategy": "idle-timeout", "idle_timeout_ms": 30 * 60_000}
    agent = agent_on(state, sessions=idle)
    first = await say(agent, "A")
    key = key_of()
    before = await state.sessions.get(key, session_id=first.session_id)
    clock.advance(minutes=20)
    conversation = agent.conversation("t", session_id=first.session_id)
    await agent.conversations().rename(key, first.session_id, "Taxes")
    await conversation.save_summary("so far")
    await conversation.history()
    await conversation.replace_message("A", {"id": "A", "role": "user", "parts": []})
    after = await state.sessions.get(key, session_id=first.session_id)
    assert after.last_message_at == before.last_message_at
    clock.advance(minutes=11)
    assert (await say(agent, "B")).session_id != first.session_id


async def test_L163_a_session_of_another_is_not_found_and_stays_as_it_is(
    state: SteppedAgentState,
) -> None:
    key = key_of()
    await store(state, key, "a", "ann", "hello")
    bob = Conversations(state, tenant=None, agent=NAME, user_key="bob")
    for call in (
        bob.session(key, "a"),
        bob.get(key, "a"),
        bob.rename(key, "a", "mine"),
        bob.delete(key, "a"),
    ):
        with pytest.raises(NotFoundError):
            await call
    assert (await bob.sessions()).items == ()
    info = await state.sessions.get(key, session_id="a")
    assert (info.title, info.message_count) == (None, 1)


async def test_L238_a_deleted_session_is_in_no_file(path: Path, clock: FakeClock) -> None:
    async with open_agent_state(f"file:{path}", clock=clock) as state:
        assert isinstance(state, SteppedAgentState)
        await store(state, key_of(), "a", "ann", MARKER, MARKER * 500)
        await store(state, key_of(), "b", "bob", "stays-of-bob")
        conversation = Conversation(state, key_of(), session_id="a")
        await conversation.save_summary(MARKER)
        assert MARKER.encode() in bytes_beside(path)
        await conversation.clear(delete_session=True)
        await state.admin.cleanup()
        exported = [line async for line in Conversation(state, key_of()).export()]
        assert MARKER not in "".join(exported)
        assert MARKER.encode() not in bytes_beside(path)
        assert b"stays-of-bob" in bytes_beside(path)
    assert MARKER.encode() not in bytes_beside(path)


async def test_L238_an_erased_person_is_in_no_file(path: Path, clock: FakeClock) -> None:
    retention = {"retention": "forever"}
    async with open_agent_state(f"file:{path}", clock=clock, transcripts=retention) as state:
        assert isinstance(state, SteppedAgentState)
        shared = key_of("shared")
        await store(state, key_of(), "a", "ann", MARKER, f"{MARKER} 2")
        await store(state, shared, "b", "bob", "stays-of-bob")
        for n in range(5):
            request = SessionRequest(conversation=shared, policy=SessionPolicy(), base="b")
            given = NewRow(message=row(f"x{n}", f"{MARKER} {n}").message, author="ann")
            await state.transcripts.append(request, rows=[given])
        await Conversation(state, shared).truncate("x3")
        await Conversation(state, key_of(), session_id="a").save_summary(MARKER)
        await state.admin.erase_person(None, "ann")
        assert MARKER.encode() not in bytes_beside(path)
        assert b"stays-of-bob" in bytes_beside(path)


async def test_L108_an_erasure_has_a_receipt_and_goes_on_behind_what_is_busy(
    state: SteppedAgentState,
) -> None:
    keep_running = asyncio.Event()
    runs = asyncio.Event()

    async def answer(_call: DriverCall) -> str:
        runs.set()
        await keep_running.wait()
        return "done"

    agent = agent_on(state, answer, sessions=True)
    given = {
        "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        "run": {"threadId": "busy"},
        "userKey": "ann",
    }
    turn = asyncio.create_task(run_agent_trigger(agent, "chat.message", given))
    await runs.wait()
    await store(state, key_of("rest"), "a", "ann", "one", "two")
    operator = agent.conversations()
    with pytest.raises(ChatBusyError, match="everything else is erased"):
        await operator.erase_person("ann")
    assert (await state.sessions.list(None, agent=NAME, user_key="ann")).items[0].message_count == 1
    keep_running.set()
    await turn
    receipt = await operator.erase_person("ann")
    assert (receipt["rows"], receipt["sessions"]) == (2, 1)
    assert set((await operator.erase_person("ann")).values()) == {0}


async def test_L320_a_person_is_erased_in_every_channel_of_the_tenant(
    state: SteppedAgentState,
) -> None:
    places = [
        ConversationKey("acme", agent, channel, "t")
        for agent in ("one", "two")
        for channel in ("portal", "mail", None)
    ]
    for place in places:
        await store(state, place, "a", "ann", "x")
        await store(state, place, "b", "bob", "y")
    await store(state, ConversationKey("other", "one", "portal", "t"), "a", "ann", "x")
    receipt = await Conversations(state, tenant="acme", agent="one").erase_person("ann")
    assert (receipt["rows"], receipt["sessions"]) == (6, 6)
    for place in places:
        rows = (await Conversation(state, place).history()).items
        assert [row.message.text for row in rows] == ["y"]
    left = await state.sessions.list("other", agent=None, user_key="ann")
    assert [info.message_count for info in left.items] == [1]


async def test_L279_an_export_has_everything_and_no_table_is_forgotten(
    state: SteppedAgentState, path: Path
) -> None:
    await store(state, key_of(), "a", "ann", "one", "two")
    await Conversation(state, key_of(), session_id="a").save_summary("so far")
    await store(state, key_of("other"), "b", "bob", "hello")
    request = SessionRequest(conversation=key_of("other"), policy=SessionPolicy(), base="b")
    given = NewRow(message=row("x", "of ann").message, author="ann")
    await state.transcripts.append(request, rows=[given])
    conversations = Conversations(state, tenant=None, agent=NAME, user_key="ann")
    lines = [json.loads(line) async for line in conversations.export_person()]
    texts = [line["message"]["parts"][0]["text"] for line in lines if line["type"] == "message"]
    assert texts == ["one", "two", "of ann"]
    counts = {"message": 3, "session": 1, "summary": 1}
    assert lines[-1] == {"type": "end", "counts": counts}
    assert await asyncio.to_thread(tables_of, path) == {holding.table for holding in INVENTORY}


def tables_of(path: Path) -> set[str]:
    """Return the tables of a store, as the database's own catalogue names them."""
    texts = load_texts("sqlite", "p_")
    with closing(sqlite3.connect(path.with_name("catalogue.db"))) as connection:
        for migration in (*texts.migrations, *texts.migrations_for_requests):
            for text in migration.statements:
                connection.execute(text, {"secret": b"secret"})
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'p_*'"
        return {name.removeprefix("p_") for (name,) in connection.execute(query)}


def test_L166_every_provider_is_checked_for_erasure_and_export() -> None:
    names = {check.name for check in all_checks()}
    assert names >= {
        "looking_after.a_person_is_erased_everywhere",
        "looking_after.what_is_exported_is_what_is_erased",
        "looking_after.erasing_reaches_what_forever_keeps",
    }


async def test_L180_a_sweep_goes_in_small_steps_beside_who_writes(
    path: Path, clock: FakeClock
) -> None:
    async with open_agent_state(
        f"file:{path}", clock=clock, transcripts={"retention": "1h"}, cleanup_interval_ms=2**31 - 1
    ) as state:
        conversation = Conversation(state, key_of())
        for _ in range(5):
            await conversation.append(
                [{"role": "user", "parts": [{"type": "text", "text": "old"}]} for _ in range(300)]
            )
        clock.advance(hours=1)
        sweeping = asyncio.create_task(state.admin.cleanup())
        written = 0
        while not sweeping.done():
            await conversation.append([{"role": "user", "parts": []}])
            written += 1
        counts = await sweeping
        assert counts["rows"] == 1500
        assert written >= 2
        assert (await state.admin.info()).counts["rows"] == written


async def test_L178_an_empty_history_is_not_the_full_one(state: SteppedAgentState) -> None:
    seen: list[list[str]] = []

    def answer(call: DriverCall) -> str:
        seen.append([each.text for each in call.messages])
        return "fine"

    agent = agent_on(state, answer, trigger_history=WINDOW)
    await say(agent, "first question")
    await say(agent, "second question")
    done = await agent.conversation("t").truncate("first question")
    assert (done.deleted, done.live_edge_seq) == (4, 0)
    await say(agent, "first question")
    assert seen[-1] == ["first question"]
    assert (await agent.conversation("t").turns()).items[0].turn_no == 1


@pytest.mark.slow
async def test_L239_ten_thousand_creations_and_deletions_leave_no_orphans(path: Path) -> None:
    async with open_sqlite(f"file:{path}", clock=FakeClock(), durability="normal") as state:
        for n in range(10_000):
            mixed = n * 2_654_435_761 % 2**32 >> 8
            key, name = key_of(f"t{mixed % 20}"), f"s{mixed // 20 % 5}"
            await one_step(state, key, name, n, STEPS[mixed // 100 % len(STEPS)])
        found = await state.admin.check_integrity()
        assert found.problems == {}
        for thread in range(20):
            await state.sessions.clear(key_of(f"t{thread}"), delete_session=True)
        counts = (await state.admin.info()).counts
        left = {table: counts[table] for table in ("rows", "sessions", "summaries", "documents")}
        assert left == dict.fromkeys(left, 0)


STEPS = ("add", "cut", "add", "delete", "clear", "add", "summary", "remove")


async def one_step(state: Any, key: ConversationKey, name: str, n: int, what: str) -> None:
    conversation = Conversation(state, key, session_id=name)
    try:
        if what == "add":
            await store(state, key, name, "ann", f"m{n}")
        elif what == "summary":
            await conversation.save_summary("so far")
        elif what in {"cut", "delete"}:
            page = await conversation.history(limit=3)
            if page.items:
                oldest = page.items[0].message.id or ""
                act = conversation.truncate if what == "cut" else conversation.delete_message
                await act(oldest)
        else:
            await conversation.clear(delete_session=what == "remove")
    except NotFoundError:
        assert what == "summary"


async def test_L288_nothing_of_a_cleared_conversation_reaches_the_model(
    state: SteppedAgentState,
) -> None:
    seen: list[str] = []

    def answer(call: DriverCall) -> str:
        seen.append(" ".join(each.text for each in call.messages))
        return f"about {MARKER}" if "color" in call.text else "fine"

    agent = agent_on(state, answer, trigger_history=WINDOW, sessions=True)
    await say(agent, f"my color is {MARKER}")
    await agent.conversation("t").save_summary(f"likes {MARKER}")
    await say(agent, "go on")
    assert MARKER in seen[-1]
    for deletes in (False, True):
        await agent.conversation("t").clear(delete_session=deletes)
        await say(agent, f"what do I like? {deletes}")
        assert MARKER not in seen[-1]
        assert await agent.conversation("t").get_summary() is None
        await say(agent, f"my color is {MARKER} again {deletes}")


async def test_L198_what_is_silent_for_long_is_deleted_with_its_summary_and_what_is_found(
    state: SteppedAgentState, clock: FakeClock
) -> None:
    agent = agent_on(state)
    await say(agent, "an old secret", "old")
    await say(agent, "another secret", "used")
    await agent.conversation("old").save_summary("about a secret")
    clock.advance(days=40)
    await agent.conversation("old").history()
    await say(agent, "still here", "used")
    conversations = agent.conversations()
    limit = clock.now() - timedelta(days=30)
    silent = [
        info for info in (await conversations.sessions()).items if info.last_message_at < limit
    ]
    assert [info.conversation.thread for info in silent] == ["old"]
    for info in silent:
        await conversations.delete(info.conversation, info.session_id)
    assert await agent.conversation("old").get_summary() is None
    assert {hit.conversation.thread for hit in (await conversations.search("secret")).items} == {
        "used"
    }
