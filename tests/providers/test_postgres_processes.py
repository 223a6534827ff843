"""Processes: killed while they write, forked while they are open, several at once."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.providers.postgres_server import Place
from tests.providers.sqlite_helpers import start, stored

pytestmark = pytest.mark.service

COMMON = """
import asyncio, os, sys
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.providers.postgres import open_postgres
from vitehub_chat.state.values import NewRow, SessionRequest

SESSION = SessionRequest(conversation=ConversationKey(None, "helper", "portal", "t1"))
state = open_postgres(sys.argv[1], table_prefix=sys.argv[2])

async def append(name):
    message = Message(name, "user", ({"type": "text", "text": "hi"},))
    [row] = await state.transcripts.append(SESSION, rows=[NewRow(message=message)])
    return row.seq

async def append_many(name, count):
    return await asyncio.gather(*(append(f"{name}{each}") for each in range(count)))
"""

APPEND_UNTIL_KILLED = (
    COMMON
    + """
async def task(name):
    number = 0
    while True:
        message_id = f"{name}-{number}"
        seq = await append(message_id)
        os.write(1, f"{seq} {message_id}\\n".encode())
        number += 1

async def main(run):
    async with state:
        await asyncio.gather(*(task(f"{run}-{each}") for each in range(4)))

asyncio.run(main(sys.argv[3]))
"""
)

APPEND_AND_END = (
    COMMON
    + """
async def main(name):
    async with state:
        await append_many(name, 25)

asyncio.run(main(sys.argv[3]))
"""
)

FORK = (
    COMMON
    + """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()

def run(call):
    return asyncio.run_coroutine_threadsafe(call, loop).result()

def backends():
    pools = state._driver._own_pools().values()
    return {each.pgconn.backend_pid for pool in pools for each in pool._idle}

async def alive():
    return {pid for (pid,) in await state._driver.execute(sys.argv[3], {})}

async def in_child():
    for pool in pools:
        pool.abort()
    await append_many("child", 10)
    assert not backends() & used, "the child uses a connection of its parent"
    await state.aclose()

run(state.__aenter__())
run(append_many("before", 10))
used, pools = backends(), list(state._driver._own_pools().values())
pid = os.fork()
if pid == 0:
    asyncio.run(in_child())
    sys.exit()  # with everything that is finalised then
run(append_many("parent", 10))
code = os.waitpid(pid, 0)
run(append_many("parent again", 10))
assert used <= run(alive()), "the child has closed a connection of its parent"
run(state.aclose())
loop.call_soon_threadsafe(loop.stop)
sys.exit(os.waitstatus_to_exitcode(code[1]))
"""
)

FORK_WHILE_WRITING = (
    COMMON
    + """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
asyncio.run(state.__aenter__())

def one_after_the_other(name):
    async def main():
        for number in range(20):
            await append(f"{name}-{number}")
    asyncio.run(main())

threads = [threading.Thread(target=one_after_the_other, args=(f"thread{n}",)) for n in range(2)]
for thread in threads:
    thread.start()
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        asyncio.run(append_many(f"child{number}", 20))
        os._exit(0)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
for thread in threads:
    thread.join()
asyncio.run(state.aclose())
assert codes == [0] * 3, codes
"""
)

SEQ_AND_ID = "SELECT id & 4294967295, message_id FROM $rows ORDER BY id"


def finish(script: str, place: Place, *arguments: object) -> None:
    process = start(script, place.server.url, place.prefix, *arguments)
    process.communicate(timeout=100)
    assert process.returncode == 0


def test_p22_every_acknowledged_row_survives_the_kill_of_its_writer(place: Place) -> None:
    acknowledged = {}
    for run in range(3):
        process = start(APPEND_UNTIL_KILLED, place.server.url, place.prefix, run)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5 + 7 * run)]
        process.kill()
        lines += process.communicate()[0].splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                seq, message_id = line.split()
                acknowledged[int(seq)] = message_id
    rows = place.query(SEQ_AND_ID)
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    assert len({message_id for _, message_id in rows}) == len(rows)
    assert len(acknowledged) >= 3 * 5
    assert acknowledged.items() <= dict(rows).items()


def test_four_processes_write_without_an_error(place: Place) -> None:
    url, prefix = place.server.url, place.prefix
    processes = [start(APPEND_AND_END, url, prefix, f"{name}-") for name in "abcd"]
    for process in processes:
        process.communicate(timeout=100)
    assert [process.returncode for process in processes] == [0] * 4
    assert [seq for seq, _ in place.query(SEQ_AND_ID)] == list(range(1, 101))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_a_child_and_its_parent_go_on_with_the_same_state(place: Place) -> None:
    finish(FORK, place, "SELECT pid FROM pg_stat_activity")
    rows = place.query(SEQ_AND_ID)
    assert {message_id.rstrip("0123456789") for _, message_id in rows} == {
        "before",
        "child",
        "parent",
        "parent again",
    }
    assert [seq for seq, _ in rows] == list(range(1, 41))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_forks_while_threads_write_lose_nothing(place: Place) -> None:
    finish(FORK_WHILE_WRITING, place)
    assert [seq for seq, _ in place.query(SEQ_AND_ID)] == list(range(1, 101))


async def test_what_one_process_writes_another_reads(place: Place) -> None:
    async with place.open() as state:
        assert await stored(state) == []
        await asyncio.to_thread(finish, APPEND_AND_END, place, "m")
        assert sorted(message_id or "" for _, message_id in await stored(state)) == sorted(
            f"m{number}" for number in range(25)
        )
