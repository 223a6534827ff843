"""The provider in memory: who shares a store, how it is bounded, and who may use it at once."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from vitehub_chat.errors import ConfigError, StateClosedError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import NO_CONTEXT
from vitehub_chat.state.memory import store as stores
from vitehub_chat.state.memory.indexed import Index, Indexed
from vitehub_chat.state.providers.memory import MemoryAgentState, open_memory
from vitehub_chat.state.records import EntryRecord, LockRecord
from vitehub_chat.state.stepped import Step
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewEntry, NewRow, SessionRequest, TurnEnd
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "helper", None, "t1")
SESSION = SessionRequest(conversation=KEY)
LEASE = timedelta(seconds=30)


def row(message_id: str) -> NewRow:
    return NewRow(message=Message(message_id, "user", ({"type": "text", "text": "hi"},)))


async def stored_rows(state: MemoryAgentState) -> list[Row]:
    return [each async for batch in state.transcripts.export(KEY) for each in batch.rows]


async def stored_ids(state: MemoryAgentState) -> list[str | None]:
    return [each.message.id for each in await stored_rows(state)]


async def run_turn(state: MemoryAgentState, lock_key: str) -> None:
    entry = NewEntry(
        ticket_id=f"ticket of {lock_key}",
        lock_key=lock_key,
        conversation=KEY,
        wanted_id=None,
        claim_id=lock_key,
        payload="{}",
        owner="me",
    )
    admission = await state.turns.admit(
        entry, policy=ConcurrencyPolicy(), lease=LEASE, dedupe_ttl=timedelta(minutes=10)
    )
    assert admission.grant is not None
    await state.turns.record(entry.ticket_id, rows=(), session=None)
    await state.turns.finish(
        entry.ticket_id,
        answer=None,
        end=TurnEnd(status="complete"),
        owner="me",
        lease=LEASE,
        ctx=NO_CONTEXT,
    )


def waiting_entry(ticket_id: str) -> EntryRecord:
    return EntryRecord(
        ticket_id=ticket_id,
        lock_key=ticket_id,
        conversation=ticket_id,
        lane=ticket_id,
        claim_id=ticket_id,
        claim_key=ticket_id,
        payload="{}",
        starts_session=False,
        coalesces=False,
        state="waiting",
        owner=None,
        attended_until=0,
        expires_at=1,
        claim_until=0,
        keep_until=0,
    )


def contents(state: MemoryAgentState) -> str:
    """Describe everything in the store, the containers of its indexes included."""
    tables = state._store.tables
    parts: list[object] = []
    for table in (
        tables.locks,
        tables.entries,
        tables.conversations,
        tables.sessions,
        tables.rows,
        tables.summaries,
    ):
        fields = vars(table).values()
        parts += [each._groups for each in fields if isinstance(each, Index)]
        parts += [each._records for each in fields if isinstance(each, Indexed)]
    return repr(parts)


async def test_it_is_not_durable() -> None:
    assert "durable" not in open_memory("memory:").features


async def test_use_before_open_and_after_close_is_refused() -> None:
    state = open_memory("memory:")
    with pytest.raises(StateClosedError):
        await stored_ids(state)
    async with state:
        assert await stored_ids(state) == []
    with pytest.raises(StateClosedError):
        await state.transcripts.append(SESSION, rows=[row("m1")])


async def test_closing_twice_does_nothing_and_opening_again_finds_what_was_stored() -> None:
    state = open_memory("memory:")
    async with state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
    await state.aclose()
    async with state, state:
        assert await stored_ids(state) == ["m1"]


async def test_states_of_one_name_share_a_store_and_others_do_not() -> None:
    urls = ["memory:shop", "MEMORY:shop", "memory:sh%6Fp", "memory:Shop", "memory:", "memory:"]
    states = [open_memory(url) for url in urls]
    for state in states:
        await state.__aenter__()
    await states[0].transcripts.append(SESSION, rows=[row("m1")])
    assert [await stored_ids(state) for state in states] == [["m1"]] * 3 + [[]] * 3
    await states[0].aclose()
    assert await stored_ids(states[1]) == ["m1"]


async def test_a_named_store_is_gone_with_the_last_state_that_has_it() -> None:
    async with open_memory("memory:gone") as state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
    del state
    gc.collect()
    async with open_memory("memory:gone") as state:
        assert await stored_ids(state) == []


async def test_a_thousand_states_leave_nothing_in_the_module() -> None:
    for number in range(1000):
        async with open_memory(f"memory:store {number}") as state:
            await state.transcripts.append(SESSION, rows=[row("m1")])
    del state
    gc.collect()
    assert not [name for name in stores._stores if name.startswith("store ")]


@pytest.mark.parametrize("url", ["memory://shop", "memory:shop?mode=ro", "memo:shop", "file:x"])
def test_another_form_of_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_memory(url)
    assert caught.value.path == "state.url"


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'durability'"):
        open_memory("memory:", durabilty="full")


async def test_a_step_that_raises_leaves_no_trace() -> None:
    async with open_memory("memory:") as state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
        before = contents(state)

        def step(tx: Transaction) -> None:
            conversation = tx.conversations.ensure("new")
            tx.conversations.allocate(conversation.key, 3)
            tx.rows.delete(1, None)
            raise LookupError("on purpose")

        with pytest.raises(LookupError):
            await state.run_write(step)
        assert contents(state) == before


async def test_what_a_reading_step_writes_is_undone() -> None:
    async with open_memory("memory:") as state:
        await state.run_read(lambda tx: tx.conversations.ensure("new"))
        assert await state.run_read(lambda tx: tx.conversations.get("new")) is None


async def test_three_loops_in_three_threads_lose_and_double_nothing() -> None:
    state = open_memory("memory:")
    count = 300

    async def append_all(name: str) -> None:
        for number in range(count):
            await state.transcripts.append(SESSION, rows=[row(f"{name}{number}")])
            await asyncio.sleep(0)

    async def hammer(name: str) -> None:
        await asyncio.gather(append_all(f"{name} a"), append_all(f"{name} b"))

    async with state:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(3) as threads:
            names = ("x", "y", "z")
            runs = [loop.run_in_executor(threads, asyncio.run, hammer(name)) for name in names]
            await asyncio.gather(*runs)
        rows = await stored_rows(state)
    assert [stored.seq for stored in rows] == list(range(1, 6 * count + 1))
    assert len({stored.message.id for stored in rows}) == 6 * count


async def test_turns_of_many_lock_keys_leave_no_more_than_was_allowed() -> None:
    clock = FakeClock()
    async with open_memory("memory:", clock=clock, max_ended_entries=8) as state:
        for number in range(2000):
            await run_turn(state, f"lock {number}")
        tables = state._store.tables
        assert (len(tables.locks), len(tables.entries)) == (0, 8)
        clock.advance(hours=1)
        await run_turn(state, "last")
        assert (len(tables.locks), len(tables.entries)) == (0, 1)


async def test_a_hundred_thousand_lock_keys_leave_nothing_behind() -> None:
    def use(tx: Transaction, lock_key: str) -> None:
        tx.entries.insert(waiting_entry(lock_key))
        tx.locks.put(
            LockRecord(lock_key=lock_key, token=1, ticket_id=lock_key, owner="me", until=0)
        )
        tx.entries.delete(lock_key)
        tx.locks.delete(lock_key)

    def use_all(keys: list[str]) -> Step[None]:
        def step(tx: Transaction) -> None:
            for key in keys:
                use(tx, key)

        return step

    async with open_memory("memory:") as state:
        empty = contents(state)
        for hundred in range(1000):
            await state.run_write(use_all([f"lock {hundred} {each}" for each in range(100)]))
        assert contents(state) == empty


async def test_expired_rows_are_removed_at_most_once_per_interval() -> None:
    clock = FakeClock()
    options: dict[str, Any] = {"transcripts": {"retention": "1h"}, "cleanup_interval_ms": 1000}
    async with open_memory("memory:", clock=clock, **options) as state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
        clock.advance(hours=1)
        assert await stored_ids(state) == []
        assert len(state._store.tables.rows) == 1
        await state.transcripts.append(SESSION, rows=[row("m2")])
        assert len(state._store.tables.rows) == 1
        assert await stored_ids(state) == ["m2"]


async def test_an_expired_row_does_not_keep_its_message_id_from_being_stored_again() -> None:
    clock = FakeClock()
    options: dict[str, Any] = {"transcripts": {"retention": "1h"}, "cleanup_interval_ms": 7_200_000}
    async with open_memory("memory:", clock=clock, **options) as state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
        clock.advance(hours=1)
        rows = await state.transcripts.append(SESSION, rows=[row("m1")])
        assert [each.seq for each in rows] == [2]
        assert await stored_ids(state) == ["m1"]


async def test_opening_with_forever_keeps_rows_that_are_past_their_time() -> None:
    clock = FakeClock()
    hour: dict[str, Any] = {"transcripts": {"retention": "1h"}}
    async with open_memory("memory:forever", clock=clock, **hour) as state:
        await state.transcripts.append(SESSION, rows=[row("m1")])
        clock.advance(hours=2)
        assert await stored_ids(state) == []
        forever: dict[str, Any] = {"transcripts": {"retention": "forever"}}
        async with open_memory("memory:forever", clock=clock, **forever) as keeper:
            assert await stored_ids(keeper) == ["m1"]
