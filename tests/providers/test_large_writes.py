"""A write of many megabytes does not hold small ones up for long."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.providers.sqld_server import SqldServer
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import append, new_key, row, stored_ids

TEXT = "twenty megabytes... " * 200_000
PARTS = [row(f"part{number}", TEXT) for number in range(5)]
MOST_SECONDS = 1.0
ROUNDS = 5
"""A machine that is busy with something else gets another chance."""


@pytest.fixture(params=["file", pytest.param("libsql", marks=pytest.mark.service)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file:{tmp_path}/state.db"
    server: SqldServer = request.getfixturevalue("sqld")
    return server.url


async def longest_wait(state: AgentState, key: ConversationKey) -> float:
    """Write small messages as long as a large write goes on; return how long the slowest took."""
    time = asyncio.get_running_loop().time
    large = asyncio.create_task(
        state.transcripts.append(SessionRequest(conversation=new_key()), rows=PARTS)
    )
    longest, number = 0.0, 0
    while number == 0 or not large.done():
        begun = time()
        await append(state, key, f"m{number}")
        longest = max(longest, time() - begun)
        number += 1
    assert len(await large) == len(PARTS)
    assert await stored_ids(state, key) == [f"m{each}" for each in range(number)][-100:]
    return longest


async def test_p24_small_writes_wait_less_than_a_second_for_one_of_twenty_megabytes(
    url: str,
) -> None:
    time = asyncio.get_running_loop().time
    async with open_agent_state(url, table_prefix="large_") as state:
        begun = time()
        await state.transcripts.append(SessionRequest(conversation=new_key()), rows=PARTS)
        # One alone takes less than half of that where nothing else keeps the machine busy.
        most = max(MOST_SECONDS, 2 * (time() - begun))
        waits: list[float] = []
        while len(waits) < ROUNDS and min(waits, default=most) >= most:
            waits.append(await longest_wait(state, new_key()))

    assert min(waits) < most
