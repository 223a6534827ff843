"""64 tasks against a real libSQL server that is killed again and again."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import attrs
import pytest

from tests.providers.sqld_server import SqldServer
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import ids_of, new_key, numbers_of, row

pytestmark = [pytest.mark.service, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("VITEHUB_SOAK_SECONDS", "15"))
"""How long it goes on; more of it finds more."""
TASKS = 64
SHARED = 8
"""How many conversations half of the tasks share; the others have one each."""
BETWEEN_KILLS = 3.0
STUCK = 60.0
"""How long a write may take at most, in seconds, kills and restarts included."""


@attrs.define
class Book:
    """What was acknowledged.

    Attributes:
        ids: By conversation, in the order of the answers.
        slowest: How long a write took at most.
        repeats: How often a write had to be made again.
        progress: Set with every answer.
    """

    ids: dict[ConversationKey, list[str]] = attrs.field(factory=dict)
    slowest: float = 0.0
    repeats: int = 0
    progress: asyncio.Event = attrs.field(factory=asyncio.Event)


async def write(state: AgentState, key: ConversationKey, ids: tuple[str, str], book: Book) -> None:
    """Append two rows, with the same ids until there is an answer, and note it."""
    time = asyncio.get_running_loop().time
    begun = time()
    async with asyncio.timeout(STUCK):
        while True:
            try:
                rows = [row(each) for each in ids]
                await state.transcripts.append(SessionRequest(conversation=key), rows=rows)
                break
            except StateUnavailableError:
                book.repeats += 1
    book.slowest = max(book.slowest, time() - begun)
    book.ids.setdefault(key, []).extend(ids)
    book.progress.set()


async def kill_again_and_again(server: SqldServer, book: Book) -> int:
    """Kill and restart a server; in between it has to take writes."""
    time = asyncio.get_running_loop().time
    end, kills = time() + SECONDS, 0
    while time() < end:
        next_kill = time() + BETWEEN_KILLS
        while time() < next_kill:
            book.progress.clear()
            async with asyncio.timeout(STUCK):
                await book.progress.wait()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        kills += 1
    return kills


async def test_64_tasks_and_a_server_that_is_killed_stick_at_nothing_and_lose_and_double_nothing(
    own_sqld: SqldServer,
) -> None:
    book, is_over = Book(), asyncio.Event()
    shared = [new_key() for _ in range(SHARED)]

    async def work(name: int) -> None:
        key = new_key() if name < TASKS // 2 else shared[name % SHARED]
        number = 0
        while not is_over.is_set():
            await write(state, key, (f"{name}-{number}-a", f"{name}-{number}-b"), book)
            number += 1

    async with open_agent_state(own_sqld.url) as state:
        async with asyncio.TaskGroup() as tasks:
            for name in range(TASKS):
                tasks.create_task(work(name))
            kills = await kill_again_and_again(own_sqld, book)
            is_over.set()
        for key, acknowledged in book.ids.items():
            await check(state, key, acknowledged, is_alone=key not in shared)

    print(
        f"{kills} kills, {sum(map(len, book.ids.values()))} rows, {book.repeats} repeats,"
        f" slowest {book.slowest:.1f} s"
    )
    assert kills >= SECONDS / (BETWEEN_KILLS + STUCK)
    assert len(book.ids) == TASKS // 2 + SHARED


async def check(
    state: AgentState, key: ConversationKey, acknowledged: list[str], *, is_alone: bool
) -> None:
    """Check that exactly what was acknowledged is there, once, and numbered without gap."""
    found = [each async for batch in state.transcripts.export(key) for each in batch.rows]
    assert numbers_of(found) == list(range(1, len(found) + 1))
    ids = ids_of(found)
    assert Counter(ids) == Counter(acknowledged)
    if is_alone:
        assert ids == acknowledged
