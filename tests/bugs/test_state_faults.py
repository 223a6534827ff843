"""Shared connections, large writes, second writers, retention and names of files."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import agent_on, key_of, rows_of, say
from vitehub_chat import open_agent_state
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.messages import Message
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.material import append, stored_ids
from vitehub_chat.testing.clock import FakeClock


async def test_L244_a_write_beside_one_that_is_undone_persists(
    any_url: str, clock: FakeClock
) -> None:
    async with open_agent_state(any_url, clock=clock) as state:
        assert isinstance(state, SteppedAgentState)

        def undone(tx: Transaction) -> None:
            tx.conversations.ensure("undone")
            raise ZeroDivisionError

        writes = [
            asyncio.ensure_future(write)
            for number in range(10)
            for write in (state.run_write(undone), append(state, key_of(), f"m{number}"))
        ]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(each) for each in answers[::2]] == [ZeroDivisionError] * 10
        assert sorted(await stored_ids(state, key_of())) == sorted(f"m{n}" for n in range(10))
        found = await state.run_read(lambda tx: tx.conversations.get("undone"))
        assert found is None


async def test_L184_the_wait_for_others_is_an_option(path: Path) -> None:
    async with open_sqlite(f"file:{path}", busy_timeout_ms=60_000) as state:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.ensure_future(append(state, key_of(), "m1"))
            assert await stored_ids(state, key_of()) == []
            other.execute("ROLLBACK")
        await waiting
    with pytest.raises(ConfigError, match="busy_timeout_ms"):
        open_sqlite(f"file:{path}", busy_timeout_ms=0)


async def test_L184_a_write_of_20_mb_does_not_keep_other_writers_waiting(path: Path) -> None:
    large = NewRow(message=_large(20_000_000))
    waits: list[float] = []
    async with open_sqlite(f"file:{path}") as one, open_sqlite(f"file:{path}") as two:
        await append(two, key_of("other"), "m")
        loop = asyncio.get_running_loop()
        writing = asyncio.ensure_future(
            one.transcripts.append(SessionRequest(conversation=key_of()), rows=[large])
        )
        number = 0
        while not writing.done() or number < 3:
            begun = loop.time()
            await append(two, key_of("other"), f"m{number}")
            waits.append(loop.time() - begun)
            number += 1
        assert [row.seq for row in await writing] == [1]
    # As a guard against minutes of a lock; how long it is exactly, benchmarks tell.
    assert max(waits) < 10


def _large(size: int) -> Any:
    return Message("large", "assistant", ({"type": "text", "text": "x" * size},))


async def test_L311_a_write_beside_a_running_turn_does_not_stop_it(any_url: str) -> None:
    has_begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(call: DriverCall) -> str:
        has_begun.set()
        await go_on.wait()
        return f"re {call.text}"

    async with open_agent_state(any_url) as state:
        agent = agent_on(state, answer)
        turn = asyncio.create_task(say(agent, "A"))
        await has_begun.wait()
        await agent.conversation("t").save_summary("beside the turn")
        await state.sessions.rename(key_of(), session_id=None, title="renamed")
        await agent.conversation("t").append([{"id": "side", "role": "user", "parts": []}])
        go_on.set()
        assert (await turn).status == "complete"
        assert {row.message.id for row in await rows_of(agent)} >= {"A", "side"}
        info = await state.sessions.get(key_of(), session_id=None)
        assert (info.title, info.message_count) == ("renamed", 3)
        await agent.aclose()


async def test_L328_switching_the_retention_of_a_live_store(any_url: str, clock: FakeClock) -> None:
    key = key_of()

    async def with_retention(value: str | None, write: str) -> list[str]:
        options: Any = {"transcripts": {"retention": value}} if value else {}
        async with open_agent_state(any_url, clock=clock, **options) as state:
            await append(state, key, write)
            return await stored_ids(state, key)

    assert await with_retention("7d", "a") == ["a"]
    clock.advance(days=3)
    assert await with_retention("30d", "b") == ["a", "b"]
    clock.advance(days=5)
    # The first row has had its seven days, and nobody has removed it yet.
    assert await with_retention("forever", "c") == ["a", "b", "c"]
    clock.advance(days=4000)
    assert await with_retention("forever", "d") == ["a", "b", "c", "d"]
    assert await with_retention("7d", "e") == ["a", "b", "c", "d", "e"]
    clock.advance(days=8)
    assert await with_retention(None, "f") == ["a", "b", "c", "d", "f"]


@pytest.mark.parametrize(
    "name", ["ok\n", "ok\r", "a\x00b", "\x7f", "../x", "..\u2215x", "\uff0fetc", "a/../../b"]
)
async def test_L217_no_id_is_a_path(path: Path, name: str) -> None:
    is_control = any(ord(letter) < 32 or letter == "\x7f" for letter in name)
    before = sorted(each.name for each in path.parent.iterdir())
    async with open_agent_state(f"file:{path}") as state:
        agent = agent_on(state, sessions=True)
        calls: list[Callable[[], Any]] = [
            lambda: say(agent, "A", name),
            lambda: say(agent, "A", "other", message_id=name),
            lambda: agent.conversation(name).history(),
        ]
        for call in calls:
            if is_control:
                with pytest.raises(InputError):
                    await call()
            else:
                await call()
        if not is_control:
            assert [row.message.text for row in await rows_of(agent, name)] == ["A", "re A"]
        await agent.aclose()
    assert sorted(each.name for each in path.parent.iterdir()) == sorted({*before, "state.db"})
