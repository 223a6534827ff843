"""Processes: killed while they write, forked while they are open, several at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.providers.sqlite_helpers import query, start, stored
from vitehub_chat.state.providers.sqlite import open_sqlite

COMMON = """
import asyncio, os, sys
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.values import NewRow, SessionRequest

SESSION = SessionRequest(conversation=ConversationKey(None, "helper", "portal", "t1"))

async def append(state, name):
    message = Message(name, "user", ({"type": "text", "text": "hi"},))
    [row] = await state.transcripts.append(SESSION, rows=[NewRow(message=message)])
    return row.seq

async def append_many(state, name, count):
    return await asyncio.gather(*(append(state, f"{name}{each}") for each in range(count)))
"""

APPEND_UNTIL_KILLED = (
    COMMON
    + """
async def task(state, name):
    number = 0
    while True:
        message_id = f"{name}-{number}"
        seq = await append(state, message_id)
        os.write(1, f"{seq} {message_id}\\n".encode())
        number += 1

async def main(path, run):
    async with open_sqlite(path) as state:
        await asyncio.gather(*(task(state, f"{run}-{each}") for each in range(4)))

asyncio.run(main(*sys.argv[1:]))
"""
)

APPEND_AND_END = (
    COMMON
    + """
async def main(path, name):
    async with open_sqlite(path) as state:
        await append_many(state, name, 100)

asyncio.run(main(*sys.argv[1:]))
"""
)

FORK = (
    COMMON
    + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
child_is_done, parent_is_closed = os.pipe(), os.pipe()
state = open_sqlite(sys.argv[1])

async def before():
    await state.__aenter__()
    asyncio.ensure_future(append(state, "left behind by the loop"))
    return await append_many(state, "before", 20)

async def in_child():
    await append_many(state, "child", 20)
    os.write(child_is_done[1], b".")
    os.read(parent_is_closed[0], 1)
    # The parent has closed the file as if it were the last one; what it removed must not be ours.
    await append_many(state, "child again", 20)

async def in_parent():
    await append_many(state, "parent", 20)
    os.read(child_is_done[0], 1)
    await append_many(state, "parent again", 20)
    await state.aclose()
    os.write(parent_is_closed[1], b".")

asyncio.run(before())
pid = os.fork()
if pid == 0:
    asyncio.run(in_child())
    os._exit(0)
asyncio.run(in_parent())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
)

FORK_WHILE_WRITING = (
    COMMON
    + """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
state = open_sqlite(sys.argv[1])
asyncio.run(state.__aenter__())

def write(name):
    asyncio.run(append_many(state, name, 60))

def one_after_the_other(name):
    async def main():
        for number in range(60):
            await append(state, f"{name}-{number}")
    asyncio.run(main())

threads = [threading.Thread(target=one_after_the_other, args=(f"thread{n}",)) for n in range(3)]
for thread in threads:
    thread.start()
children = []
for number in range(5):
    pid = os.fork()
    if pid == 0:
        write(f"child{number}")
        os._exit(0)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
for thread in threads:
    thread.join()
asyncio.run(state.aclose())
assert codes == [0] * 5, codes
"""
)

FORK_IN_MEMORY = (
    COMMON
    + """
import warnings
from vitehub_chat.errors import StateClosedError
warnings.simplefilter("ignore", DeprecationWarning)
state = open_sqlite(":memory:")
asyncio.run(state.__aenter__())
pid = os.fork()
if pid == 0:
    try:
        asyncio.run(append(state, "m1"))
    except StateClosedError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert asyncio.run(append(state, "m1")) == 1
"""
)

SEQ_AND_ID = "SELECT id & 4294967295, message_id FROM $rows ORDER BY id"


def finish(script: str, *arguments: object) -> None:
    process = start(script, *arguments)
    process.communicate(timeout=100)
    assert process.returncode == 0


@pytest.mark.slow
def test_p22_every_acknowledged_row_survives_the_kill_of_its_writer(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "x.db", {}
    for run in range(12):
        process = start(APPEND_UNTIL_KILLED, path, run)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5 + 7 * run)]
        process.kill()
        lines += process.communicate()[0].splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                seq, message_id = line.split()
                acknowledged[int(seq)] = message_id
    rows = query(path, SEQ_AND_ID)
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    assert len({message_id for _, message_id in rows}) == len(rows)
    assert acknowledged.items() <= dict(rows).items()
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


def test_four_processes_write_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    processes = [start(APPEND_AND_END, path, f"{name}-") for name in "abcd"]
    for process in processes:
        process.communicate(timeout=100)
    assert [process.returncode for process in processes] == [0] * 4
    assert [seq for seq, _ in query(path, SEQ_AND_ID)] == list(range(1, 401))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_a_child_and_its_parent_go_on_with_the_same_state(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    finish(FORK, path)
    names = {message_id.rstrip("0123456789") for _, message_id in query(path, SEQ_AND_ID)}
    assert names == {
        "before",
        "left behind by the loop",
        "child",
        "parent",
        "child again",
        "parent again",
    }
    assert len(query(path, SEQ_AND_ID)) == 101
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_forks_while_threads_write_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    finish(FORK_WHILE_WRITING, path)
    assert [seq for seq, _ in query(path, SEQ_AND_ID)] == list(range(1, 481))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_a_store_in_memory_ends_with_the_process_that_opened_it() -> None:
    finish(FORK_IN_MEMORY)


async def test_what_one_process_writes_another_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        assert await stored(state) == []
        await asyncio.to_thread(finish, APPEND_AND_END, path, "m")
        assert sorted(message_id or "" for _, message_id in await stored(state)) == sorted(
            f"m{number}" for number in range(100)
        )
