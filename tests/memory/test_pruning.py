"""Pruning beside the memory: what goes was archived first, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.memory.notes import TIGHT, WINDOW, ranges, sections_in
from vitehub_chat import Agent, Conversation, chat, define_agent, open_agent_state
from vitehub_chat.agent.triggers import run_agent_trigger
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import PrunePolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

NAME = "pruner"
KEY = ConversationKey(None, NAME, None, "t")
SAID = "x" * 100
ONE_HOUR = PrunePolicy(max_age=timedelta(hours=1), max_messages=None, max_tokens=None)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "file"])
async def state(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[AgentState]:
    url = "memory:" if request.param == "memory" else f"file:{tmp_path}/state.db"
    async with open_agent_state(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def agent_on(state: AgentState, root: Path, prune: Any, **options: Any) -> Agent:
    memory: Any = {"root": str(root), **options.pop("memory", {})}
    capability = chat(transcripts={"prune": prune}, memory=memory, **options)
    driver: Any = {"run": lambda _call: "an answer"}
    return define_agent(name=NAME, driver=driver, capabilities=[capability], state=state)


def message(message_id: str, text: str = SAID, **more: Any) -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}], **more}


async def say(agent: Agent, message_id: str) -> None:
    given = {"messages": [message(message_id)], "run": {"threadId": "t"}}
    result = await run_agent_trigger(agent, "chat.message", given)
    assert result.status == "complete"


async def fill(agent: Agent, clock: FakeClock, count: int = 12) -> None:
    at = clock.now().isoformat()
    said = [message(f"m{number}", createdAt=at) for number in range(1, count + 1)]
    await agent.conversation("t").append(said)


async def stored(state: AgentState) -> list[int]:
    page = await Conversation(state, KEY).history(limit=100)
    return [row.seq for row in page.items]


async def archived(root: Path) -> list[tuple[int, int]]:
    return ranges(await asyncio.to_thread(sections_in, root))


def numbers_in(found: list[tuple[int, int]]) -> list[int]:
    return [seq for first, last in found for seq in range(first, last + 1)]


async def test_what_the_end_of_a_turn_prunes_is_archived_once(
    state: AgentState, root: Path
) -> None:
    agent = agent_on(state, root, {"max_messages": 4})
    for number in range(1, 7):
        await say(agent, f"m{number}")
        assert len(await stored(state)) == min(2 * number, 4)
    assert await stored(state) == [9, 10, 11, 12]
    assert numbers_in(await archived(root)) == list(range(1, 9))


async def test_what_a_summary_covers_is_not_archived_again(
    state: AgentState, root: Path, clock: FakeClock
) -> None:
    prune = {"max_messages": 4, "max_tokens": None, "max_age_hours": None}
    agent = agent_on(state, root, prune, trigger_history=WINDOW, context=TIGHT)
    await fill(agent, clock)
    await say(agent, "n1")
    rolled = await state.summaries.get_rolling(KEY, session_id=None)
    assert rolled is not None
    assert rolled.anchor > 1
    assert numbers_in(await archived(root)) == list(range(1, rolled.anchor))
    assert (await stored(state))[0] == rolled.anchor


async def test_what_is_too_old_is_archived_although_no_summary_covers_it(
    state: AgentState, root: Path, clock: FakeClock
) -> None:
    prune = {"max_age_hours": 1, "max_messages": None, "max_tokens": None}
    wide = {**TIGHT, "limit": 100_000}
    agent = agent_on(state, root, prune, trigger_history=WINDOW, context=wide)
    await fill(agent, clock, 3)
    clock.advance(hours=1, seconds=1)
    await say(agent, "m4")
    assert await stored(state) == [4, 5]
    assert await archived(root) == [(1, 3)]


@pytest.mark.parametrize(("on_error", "left"), [("block", [1, 2, 3, 4, 5]), ("continue", [4, 5])])
async def test_rows_that_cannot_be_archived_stay_if_told_to(
    state: AgentState, root: Path, clock: FakeClock, on_error: str, left: list[int]
) -> None:
    await asyncio.to_thread(root.write_text, "no folder")
    agent = agent_on(state, root, {"max_age_hours": 1}, memory={"on_error": on_error})
    await fill(agent, clock, 3)
    clock.advance(hours=1, seconds=1)
    await say(agent, "m4")
    assert await stored(state) == left
    plan = await agent.conversation("t").prune()
    assert (await stored(state), plan.removed.age) == (left, ())
    if on_error == "block":
        await asyncio.to_thread(root.unlink)
        await say(agent, "m5")
        assert await stored(state) == [4, 5, 6, 7]
        assert await archived(root) == [(1, 3)]


async def test_pruning_on_demand_archives_and_a_dry_run_does_not(
    state: AgentState, root: Path, clock: FakeClock
) -> None:
    agent = agent_on(state, root, None, trigger_history=WINDOW, context=TIGHT)
    await fill(agent, clock, 3)
    clock.advance(hours=2)
    conversation = agent.conversation("t")
    planned = await conversation.prune(ONE_HOUR, dry_run=True)
    assert not await asyncio.to_thread(root.exists)
    done = await conversation.prune(ONE_HOUR)
    assert done.removed.age == planned.removed.age == (1, 2, 3)
    assert (await stored(state), await archived(root)) == ([], [(1, 3)])
    assert (await conversation.prune(ONE_HOUR)).removed.all == ()
    assert await archived(root) == [(1, 3)]


async def test_what_is_said_while_rows_are_archived_stays(
    state: AgentState, root: Path, clock: FakeClock
) -> None:
    agent = agent_on(state, root, {"max_messages": 2, "max_age_hours": None})
    await fill(agent, clock, 4)

    async def append_meanwhile() -> None:
        await Conversation(state, KEY).append([message("meanwhile")])

    await asyncio.gather(agent.conversation("t").prune(), append_meanwhile())
    gone = set(range(1, 6)) - set(await stored(state))
    assert gone <= set(numbers_in(await archived(root)))
    assert 5 in await stored(state)
