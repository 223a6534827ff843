"""Windows of turns on stores by requests: kept, decoded once, and never old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.model.rows import Row
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.values import WindowRequest
from vitehub_chat.testing.checks.lines import Line, new_line
from vitehub_chat.testing.checks.material import append
from vitehub_chat.testing.clock import FakeClock

WINDOW = WindowRequest(limit=20)


@pytest.fixture
def driver(tmp_path: Path) -> SeamDriver:
    return SeamDriver(f"{tmp_path}/state.db")


@pytest.fixture
async def state(driver: SeamDriver) -> AsyncIterator[SqlAgentState]:
    async with seam_state(driver, FakeClock()) as opened:
        yield opened


async def turn(line: Line, name: str) -> tuple[Row, ...]:
    """Run a turn and return what it saw."""
    grant = await line.start(name)
    recorded = await line.record(grant, window=WINDOW)
    await line.finish(grant)
    return recorded.window.shown


def ids_of(rows: tuple[Row, ...]) -> list[str | None]:
    return [row.message.id for row in rows]


async def test_a_row_is_decoded_once(state: SqlAgentState) -> None:
    line = new_line(state)
    await turn(line, "m1")
    first, again = await turn(line, "m2"), await turn(line, "m3")
    assert ids_of(first) == ["m1", "re m1"]
    assert [one is other for one, other in zip(first, again, strict=False)] == [True, True]


async def test_what_is_shared_cannot_be_changed(state: SqlAgentState) -> None:
    line = new_line(state)
    await turn(line, "m1")
    (part, *_) = (await turn(line, "m2"))[0].message.parts
    with pytest.raises(TypeError, match="change a copy"):
        part["text"] = "changed"  # type: ignore[index]


async def test_what_another_process_changed_is_seen_in_the_next_turn(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    line = new_line(state)
    await turn(line, "m1")
    assert ids_of(await turn(line, "m2")) == ["m1", "re m1"]
    async with seam_state(driver, FakeClock()) as other:
        await append(other, line.key, "x1")
        assert ids_of(await turn(line, "m3")) == ["m1", "re m1", "m2", "re m2", "x1"]
        await other.transcripts.truncate(line.key, request=TruncateRequest(message_id="m2"))
        assert ids_of(await turn(line, "m4")) == ["m1", "re m1"]
        await other.sessions.clear(line.key)
        assert ids_of(await turn(line, "m5")) == []
