"""Event loops, threads and forks."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.bugs.support import agent_on, rows_of, run_script, say
from vitehub_chat import open_agent_state
from vitehub_chat.state.providers.sqlite import open_sqlite

FORK = """
import asyncio, os, sys
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey

async def append(state, name):
    key = ConversationKey(name, "helper", None, "t")
    for number in range(20):
        message = {"id": f"{name}{number}", "role": "user", "parts": []}
        await Conversation(state, key).append([message])
    rows = (await Conversation(state, key).history(limit=100)).items
    assert [row.message.id for row in rows] == [f"{name}{number}" for number in range(20)]

async def open_and_read(state):
    await state.__aenter__()
    key = ConversationKey(None, "helper", None, "t")
    await Conversation(state, key).append([{"id": "first", "role": "user", "parts": []}])

state = open_agent_state(sys.argv[1])
asyncio.run(open_and_read(state))
pid = os.fork()
asyncio.run(append(state, "child" if not pid else "parent"))
if not pid:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
asyncio.run(state.aclose())
"""


def test_L297_three_loops_in_three_threads_share_a_store_in_memory(path: Path) -> None:
    url, loops, count = f"memory:{path}", 3, 40

    async def hammer(name: int) -> None:
        async with open_agent_state(url) as state:
            agent = agent_on(state)
            for number in range(count):
                await say(agent, f"{name}-{number}", f"t{number % 2}")

    async def main() -> list[int]:
        async with open_agent_state(url) as state:
            loop = asyncio.get_running_loop()
            with ThreadPoolExecutor(loops) as pool:
                runs = (
                    loop.run_in_executor(pool, lambda n=n: asyncio.run(hammer(n)))  # type: ignore[misc]
                    for n in range(loops)
                )
                async with asyncio.timeout(30):
                    await asyncio.gather(*runs)
            listed = (await agent_on(state).conversations().sessions()).items
            return [info.message_count for info in listed]

    assert asyncio.run(main()) == [loops * count, loops * count]


async def test_L175_a_forked_process_opens_a_connection_of_its_own(
    shared_url: str, path: Path
) -> None:
    await asyncio.to_thread(run_script, FORK, shared_url)
    async with open_agent_state(shared_url) as state:
        agent = agent_on(state)
        assert [row.message.id for row in await rows_of(agent)] == ["first"]
    if shared_url.startswith("file:"):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_L110_opening_a_store_that_is_busy_does_not_stop_the_loop(path: Path) -> None:
    turns = 0
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("PRAGMA journal_mode = WAL")
        holder.execute("BEGIN IMMEDIATE")
        state = open_sqlite(f"file:{path}")
        opening = asyncio.create_task(state.__aenter__())
        # Waiting for the file on the loop would not come to an end before the opening does.
        while turns < 500:
            await asyncio.sleep(0)
            turns += 1
        assert not opening.done()
        holder.execute("ROLLBACK")
        await opening
    await say(agent_on(state), "A")
    await state.aclose()
