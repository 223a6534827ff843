"""How many stored rows a read touches: at most twice those it uses, however many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.bugs.support import NAME, agent_on, key_of, say
from tests.bugs.test_speed import fill
from tests.providers.sqlite_helpers import connection_of
from vitehub_chat import Capability, Conversations, chat, define_agent, open_agent_state
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.capability import InvocationContext
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.memory.rows import MemoryRows
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.records import RowRecord
from vitehub_chat.state.sql.loading import Loader
from vitehub_chat.state.values import NewRow, SessionRequest

STORED = 50_000
TEXT = ({"type": "text", "text": "hello"},)
COLUMNS = len(attrs.fields(RowRecord))


class RowsRead:
    """Counts the rows that a database hands over, in all states of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        fetch, ask, select = Statements.fetch_all, Loader.ask, MemoryRows.select

        def counted_fetch(statements: Any, name: str, values: Any) -> Any:
            return self._count(fetch(statements, name, values))

        async def counted_ask(loader: Any, statements: Any) -> Any:
            answers = await ask(loader, statements)
            for rows in answers:
                self._count(rows)
            return answers

        def counted_select(rows: Any, query: Any) -> Any:
            found = select(rows, query)
            self.count += len(found)
            return found

        monkeypatch.setattr(Statements, "fetch_all", counted_fetch)
        monkeypatch.setattr(Loader, "ask", counted_ask)
        monkeypatch.setattr(MemoryRows, "select", counted_select)

    def take(self) -> int:
        """Return how many there were since this was asked last."""
        count, self.count = self.count, 0
        return count

    def _count(self, rows: Any) -> Any:
        self.count += sum(len(row) == COLUMNS for row in rows)
        return rows


@pytest.mark.slow
async def test_L203_L229_rows_read_are_at_most_twice_those_used(
    any_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_agent_state(any_url) as filling:
        agent = agent_on(filling)
        await fill(agent, "t", STORED)
        conversation = agent.conversation("t")
        since = await filling.summaries.get_rolling(conversation.key, session_id=None)
        assert since is not None
        await filling.summaries.commit_roll(
            conversation.key, session_id=None, since=since, summary="so far", anchor=STORED - 19
        )
    read = RowsRead(monkeypatch)
    for each in ("window", "newest page", "page around", "behind the anchor", "turn"):
        # Another state knows nothing yet, as one of another process.
        async with open_agent_state(any_url) as state:
            used = await use(each, state)
        taken = read.take()
        assert 0 < taken <= 2 * used, f"{each}: {taken} for {used}"
        assert used >= 10, each


async def use(what: str, state: Any) -> int:
    """Read in one way, and return how many rows are used of what was read."""
    window = {"source": "transcript", "max_messages": 20}
    agent = agent_on(state, trigger_history=window)
    conversation = agent.conversation("t")
    if what == "newest page":
        return len((await conversation.history(limit=20)).items)
    if what == "page around":
        return len((await conversation.history(limit=20, around=f"m{STORED - 10}")).items)
    if what == "behind the anchor":
        return await use_summary(agent_on(state, context=True, trigger_history=window))
    if what == "window":
        return len((await conversation.format("openai_chat"))["messages"])
    result = await say(agent, "B")
    assert result.prepared is not None
    return len(result.prepared.messages)


async def use_summary(agent: Agent) -> int:
    """Run a turn that sees a summary and what comes after it."""
    result = await say(agent, "A")
    assert result.prepared is not None
    assert result.prepared.system is not None
    return len(result.prepared.messages)


async def test_L245_a_window_of_thousands_comes_whole(any_url: str) -> None:
    async with open_agent_state(any_url) as state:
        window = {"source": "transcript", "max_messages": 5000}
        agent = agent_on(state, trigger_history=window)
        await fill(agent, "t", 2000)
        result = await say(agent, "A")
        assert result.prepared is not None
        assert len(result.prepared.messages) == 2001
        assert len((await agent.conversation("t").history(limit=5000)).items) == 100
        exported = [line async for line in agent.conversation("t").export()]
        assert sum('"message"' in line for line in exported) >= 2002


async def test_L225_what_a_model_is_told_in_every_turn_is_not_stored(path: Path) -> None:
    block = "be brief and kind " * 6000
    told: list[int] = []

    class Telling(Capability):
        name = "telling"

        async def prepare(self, ctx: InvocationContext) -> None:
            ctx.instructions = block

    def answer(call: DriverCall) -> str:
        told.append(len(call.system or ""))
        return "an answer"

    async with open_agent_state(f"file:{path}", durability="normal") as state:
        agent = define_agent(
            name=NAME, driver={"run": answer}, capabilities=[chat(), Telling()], state=state
        )
        for number in range(100):
            await say(agent, f"m{number}")
        await agent.aclose()
    assert told == [len(block)] * 100
    stored = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    assert b"be brief and kind" not in stored
    assert len(stored) < 10 * len(block)


async def test_L256_the_newest_of_two_hundred_sessions_take_one_query(path: Path) -> None:
    async with open_sqlite(f"file:{path}", durability="normal") as state:
        for number in range(200):
            await state.transcripts.append(
                SessionRequest(
                    conversation=key_of(f"t{number}"),
                    policy=SessionPolicy(),
                    base=f"s{number}",
                    user_key="ann",
                ),
                rows=[NewRow(message=Message(f"m{number}", "user", TEXT))],
            )
        conversations = Conversations(state, tenant=None, agent=NAME, user_key="ann")
        await conversations.sessions()
        statements: list[str] = []
        reader = connection_of(state, "reader")
        reader.set_trace_callback(statements.append)
        page = await conversations.sessions(limit=100)
        reader.set_trace_callback(None)
        assert len(page.items) == 100
        assert sum(each.lstrip().startswith("SELECT") for each in statements) <= 3
