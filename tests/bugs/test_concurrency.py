"""Concurrent writes, SQLite locks and stale writes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bugs.support import agent_on, hear, processes, rows_of, say, tell
from vitehub_chat import open_agent_state
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.stepped import SteppedAgentState

APPEND = """
import asyncio, sys
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey

async def main(url, name, count, threads):
    async with open_agent_state(url) as state:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

        async def append(number):
            key = ConversationKey(None, "helper", None, f"t{number}" if threads else "t")
            message = {"id": f"{name}{number}", "role": "user", "parts": []}
            await Conversation(state, key).append([message])

        await asyncio.gather(*map(append, range(count)))
        print("done", flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), len(sys.argv) > 4))
"""


def append_in_processes(url: str, *arguments: tuple[object, ...]) -> None:
    """Append in several processes that begin at once."""
    with processes(APPEND, *([url, *each] for each in arguments)) as started:
        assert {hear(each) for each in started} == {"ready"}
        for each in started:
            tell(each)
        assert {hear(each) for each in started} == {"done"}


async def test_L122_appends_of_two_processes_to_one_session_are_all_there(shared_url: str) -> None:
    await asyncio.to_thread(append_in_processes, shared_url, ("a", 10), ("b", 10))
    async with open_agent_state(shared_url) as state:
        rows = await rows_of(agent_on(state))
    assert [row.seq for row in rows] == list(range(1, 21))
    assert {row.message.id for row in rows} == {f"{name}{n}" for name in "ab" for n in range(10)}


async def test_L313_thirty_two_conversations_created_at_once_are_all_created(
    shared_url: str,
) -> None:
    await asyncio.to_thread(
        append_in_processes, shared_url, *((name, 8, "threads") for name in ("a", "b", "c", "d"))
    )
    async with open_agent_state(shared_url) as state:
        agent = agent_on(state)
        for number in range(8):
            rows = await rows_of(agent, f"t{number}")
            assert {row.message.id for row in rows} == {f"{name}{number}" for name in "abcd"}
        assert len((await agent.conversations().sessions(limit=100)).items) == 8


def test_L112_appends_of_many_threads_get_consecutive_numbers(any_url: str) -> None:
    agents, url = 4, any_url

    async def append(name: int) -> None:
        async with open_agent_state(url) as state:
            conversation = agent_on(state).conversation("t")
            for number in range(10):
                await conversation.append([{"id": f"{name}-{number}", "role": "user", "parts": []}])

    async def read() -> list[int]:
        async with open_agent_state(url) as state:
            return [row.seq for row in await rows_of(agent_on(state))]

    async def main() -> list[int]:
        async with open_agent_state(url):
            loop = asyncio.get_running_loop()
            with ThreadPoolExecutor(agents) as pool:
                run: Callable[[int], None] = lambda name: asyncio.run(append(name))  # noqa: E731
                await asyncio.gather(
                    *(loop.run_in_executor(pool, run, name) for name in range(agents))
                )
            return await read()

    assert asyncio.run(main()) == list(range(1, 10 * agents + 1))


async def test_L254_a_session_always_counts_the_rows_it_has(any_state: SteppedAgentState) -> None:
    state = any_state
    agent = agent_on(state)
    conversation = agent.conversation("t")

    async def append(number: int) -> None:
        await conversation.append(
            [{"id": f"{number}-{n}", "role": "user", "parts": []} for n in range(number % 3 + 1)]
        )

    async def compare() -> None:
        def counts(tx: Any) -> tuple[int, int]:
            stored = tx.conversations.get(conversation.key.encode())
            if stored is None:
                return 0, 0
            session = tx.sessions.of_conversation(stored.key, None)
            return session.message_count, stored.last_seq

        counted, last = await state.run_read(counts)
        assert counted == last

    work = [work for n in range(24) for work in (append(n), compare())]
    await asyncio.gather(*work)
    assert len(await rows_of(agent)) == sum(n % 3 + 1 for n in range(24))
    await compare()


async def test_L264_every_connection_waits_for_other_writers(path: Path) -> None:
    async with open_sqlite(f"file:{path}", busy_timeout_ms=1234) as state:
        await rows_of(agent_on(state))
        engine: Any = state._engines[os.getpid()]
        connections = [worker._handle._connection for worker in (engine.writer, engine.reader)]
        found = [each.execute("PRAGMA busy_timeout").fetchone()[0] for each in connections]
    assert found == [1234, 1234]


async def test_L147_messages_that_parallel_tools_write_are_all_saved_in_one_order(
    any_state: SteppedAgentState,
) -> None:
    async def answer(call: DriverCall) -> str:
        async def look(number: int) -> None:
            own = agent.conversation("t")
            await own.append([{"id": f"w{number}", "role": "assistant", "parts": []}])

        await asyncio.gather(*map(look, range(4)))
        return f"re {call.text}"

    agent = agent_on(any_state, answer)
    assert (await say(agent, "A")).status == "complete"
    ids = [row.message.id for row in await rows_of(agent)]
    assert ids[:5] == ["A", "w0", "w1", "w2", "w3"]
    assert [row.seq for row in await rows_of(agent)] == [1, 2, 3, 4, 5, 6]
