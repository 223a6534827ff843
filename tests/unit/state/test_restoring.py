"""What a cut leaves of the rolling summary: it is kept, an earlier one comes back, or none."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from vitehub_chat.model.rolling import PendingFlush, Rolling
from vitehub_chat.state.providers.memory import MemoryAgentState, open_memory
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.steps.rolling import restore_below
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.checks.material import append, new_key
from vitehub_chat.testing.clock import FakeClock

KEY = new_key()


@pytest.fixture
async def state() -> AsyncIterator[MemoryAgentState]:
    async with open_memory("memory:", clock=FakeClock()) as opened:
        await append(opened, KEY, "m1")
        for through in (4, 8, 12):
            await roll(opened, through)
        yield opened


async def rolling(state: MemoryAgentState) -> Rolling:
    found = await state.summaries.get_rolling(KEY, session_id=None)
    assert found is not None
    return found


async def roll(state: MemoryAgentState, through: int) -> None:
    await state.summaries.commit_roll(
        KEY,
        session_id=None,
        since=await rolling(state),
        summary=f"through {through}",
        anchor=through + 1,
        model=f"model {through}",
    )


async def cut(state: MemoryAgentState, seq: int) -> str:
    def step(tx: Transaction) -> str:
        conversation = tx.conversations.get(KEY.encode())
        assert conversation is not None
        session = tx.sessions.of_conversation(conversation.key, None)
        assert session is not None
        return restore_below(tx, session, seq, Writing(now=1))

    return await state.run_write(step)


async def through(state: MemoryAgentState) -> list[int]:
    found = await state.summaries.get_checkpoints(KEY, session_id=None)
    return [each.through_seq for each in found]


async def test_a_cut_at_the_anchor_keeps_the_summary(state: MemoryAgentState) -> None:
    before = await rolling(state)
    assert await cut(state, before.anchor) == "kept"
    assert await rolling(state) == before
    assert await through(state) == [4, 8, 12]


@pytest.mark.parametrize(("seq", "left"), [(12, [4, 8]), (9, [4, 8]), (8, [4]), (5, [4])])
async def test_a_cut_below_the_anchor_restores_the_newest_checkpoint_before_it(
    state: MemoryAgentState, seq: int, left: list[int]
) -> None:
    assert await cut(state, seq) == "restored"
    found = await rolling(state)
    assert (found.summary, found.anchor, found.version) == (f"through {left[-1]}", left[-1] + 1, 4)
    assert found.model == f"model {left[-1]}"
    assert await through(state) == left


async def test_a_cut_before_every_checkpoint_leaves_no_summary(state: MemoryAgentState) -> None:
    assert await cut(state, 4) == "reset"
    found = await rolling(state)
    assert (found.summary, found.anchor, found.version, found.created_at) == ("", 1, 4, None)
    assert await through(state) == []


@pytest.mark.parametrize(("seq", "stays"), [(16, False), (17, True)])
async def test_a_batch_that_the_cut_reaches_is_not_pending_any_more(
    state: MemoryAgentState, seq: int, *, stays: bool
) -> None:
    pending = PendingFlush("f" * 32, 13, 16)
    since = await rolling(state)
    await state.summaries.set_pending(KEY, session_id=None, since=since, pending=pending)
    assert await cut(state, seq) == "kept"
    found = await rolling(state)
    assert (found.pending, found.version) == (pending if stays else None, since.version)


async def test_a_roll_after_a_restored_summary_goes_on_from_it(state: MemoryAgentState) -> None:
    await cut(state, 9)
    await roll(state, 10)
    assert await through(state) == [4, 8, 10]
    assert (await rolling(state)).version == 5
