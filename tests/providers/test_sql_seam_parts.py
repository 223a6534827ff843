"""The parts of the Agent State by requests: lines, cache, coverage, texts."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.state.sql import cache
from vitehub_chat.state.sql.coverage import EDGE, Coverage, Span
from vitehub_chat.state.sql.lines import Lines
from vitehub_chat.state.sql.texts import load_texts
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.material import append, new_key, numbers_of, row, stored
from vitehub_chat.testing.clock import FakeClock


async def test_a_line_is_first_come_first_served() -> None:
    lines, served = Lines(), list[int]()

    async def work(number: int) -> None:
        async with lines.hold("x"):
            await asyncio.sleep(0)
            served.append(number)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert served == list(range(20))
    assert lines._lines == {}


async def test_lines_of_other_names_do_not_wait() -> None:
    lines = Lines()
    async with lines.hold("x"), lines.hold("y"):
        assert set(lines._lines) == {"x", "y"}


@pytest.mark.parametrize("cancelled", [1, 2, 3])
async def test_who_is_cancelled_in_a_line_holds_nobody_up(cancelled: int) -> None:
    lines, served = Lines(), list[int]()

    async def work(number: int) -> None:
        async with lines.hold("x"):
            served.append(number)

    async with lines.hold("x"):
        tasks = [asyncio.ensure_future(work(number)) for number in range(1, 4)]
        await asyncio.sleep(0)
        tasks[cancelled - 1].cancel()
        await asyncio.sleep(0)
    await asyncio.wait(tasks)
    assert served == [number for number in (1, 2, 3) if number != cancelled]
    assert lines._lines == {}


async def test_who_is_cancelled_when_its_turn_comes_passes_it_on() -> None:
    lines, served = Lines(), list[int]()

    async def work(number: int) -> None:
        async with lines.hold("x"):
            served.append(number)

    async with lines.hold("x"):
        tasks = [asyncio.ensure_future(work(number)) for number in (1, 2)]
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert served[-1] == 2
    assert lines._lines == {}


async def test_a_line_serves_other_event_loops() -> None:
    lines, served = Lines(), list[str]()
    entered = threading.Event()

    async def work() -> None:
        entered.set()
        async with lines.hold("x"):
            served.append("there")

    async with lines.hold("x"):
        there = asyncio.ensure_future(asyncio.to_thread(asyncio.run, work()))
        await asyncio.to_thread(entered.wait)
        served.append("here")
    await there
    assert served == ["here", "there"]


seqs = st.integers(0, 9)
selections = st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, True, False]))


@given(st.lists(st.tuples(selections, seqs, seqs), max_size=6), seqs)
def test_what_is_covered_after_forgetting_was_covered_before(
    spans: Sequence[tuple[tuple[int | None, bool | None], int, int]], cut: int
) -> None:
    coverage = Coverage()
    for selection, above, below in spans:
        coverage.add(selection, Span(above, below))
    before = coverage.copy()
    coverage.forget_below(cut)
    for selection in [(1, True), (2, None), (None, False), (None, None)]:
        known = {n for span in before.of(selection) for n in range(span.above + 1, span.below)}
        left = {n for span in coverage.of(selection) for n in range(span.above + 1, span.below)}
        assert left == {number for number in known if number > cut}


def test_what_is_known_of_all_rows_is_known_of_some() -> None:
    coverage = Coverage()
    coverage.add((None, None), Span(0, EDGE))
    assert list(coverage.of((1, True))) == [Span(0, EDGE)]
    coverage = Coverage()
    coverage.add((1, True), Span(0, EDGE))
    assert list(coverage.of((1, None))) == []
    assert list(coverage.of((None, True))) == []


async def test_a_long_conversation_is_kept_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROWS_KEPT", 5)
    driver, key = SeamDriver(":memory:"), new_key()
    async with seam_state(driver, FakeClock()) as state:
        for number in range(1, 40):
            assert numbers_of(await append(state, key, f"m{number}")) == [number]
        engine = state._engine
        assert engine is not None
        kept = engine.shop.cache._kept[f"conversation:{key.encode()}"].part
        assert len(kept.rows) <= 10  # type: ignore[union-attr]
        assert numbers_of(await append(state, key, "m3")) == [3]
        assert numbers_of(await stored(state, key)) == list(range(1, 40))


async def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_CHARACTERS", 20_000)
    driver = SeamDriver(":memory:")
    async with seam_state(driver, FakeClock()) as state:
        keys = [new_key() for _ in range(20)]
        for key in keys:
            big = [row("m1"), row("m2", "x" * 4000)]
            await state.transcripts.append(SessionRequest(conversation=key), rows=big)
        engine = state._engine
        assert engine is not None
        kept = engine.shop.cache
        assert kept._size <= 20_000
        assert kept._size == sum(each.size for each in kept._kept.values())
        assert len(kept._kept) < 6
        for key in keys:
            assert numbers_of(await append(state, key, "m3")) == [3]


def test_every_statement_has_only_names_of_tables_with_the_prefix() -> None:
    texts = load_texts("sqlite", "prefix_")
    unprefixed = [name for name, text in texts.statements.items() if "{" in text]
    assert unprefixed == []
    assert ":conversation_key" not in "".join(
        text for name, text in texts.by_encoded.items() if name.startswith("rows.conversation")
    )


def test_no_statement_of_a_call_looks_at_a_whole_table() -> None:
    texts = load_texts("sqlite", "p_")
    connection = sqlite3.connect(":memory:")
    for migration in (*texts.migrations, *texts.migrations_for_requests):
        for text in migration.statements:
            connection.execute(text, {"secret": b"secret"})
    loads = {name: text for name, text in texts.statements.items() if is_run(name, text)}
    for name, text in {**texts.by_encoded, **loads}.items():
        whole = text.replace(":message_ids", ":a, :b")
        if whole.startswith("SELECT") and not name.endswith(FRAGMENTS) and is_of_a_call(name):
            assert (name, scans_of(connection, whole)) == (name, [])
    connection.close()


def is_of_a_call(name: str) -> bool:
    """Tell whether a statement is one of a call, not of whoever looks after the store."""
    return not name.startswith("admin.")


FRAGMENTS = ("select_document", "select_row", "select_entry", "select_session")


def is_run(name: str, text: str) -> bool:
    """Tell whether a statement is run with calls, and not only when the state is opened."""
    return text.startswith("SELECT") and not name.startswith(("meta.", "versions."))


def scans_of(connection: sqlite3.Connection, text: str) -> list[str]:
    values = dict.fromkeys(re.findall(r":(\w+)", text))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    scans = [step for step in plan if step.startswith("SCAN ") and step.split()[1] in TABLES]
    return [step for step in scans if not step.endswith(OF_WHAT_IS_OPEN)]


OF_WHAT_IS_OPEN = ("p_entries_waiting", "p_entries_run")
"""Indexes of what waits and runs now, which is little."""


TABLES = tuple(
    f"p_{name}" for name in ("locks", "entries", "conversations", "sessions", "rows", "scopes")
)
