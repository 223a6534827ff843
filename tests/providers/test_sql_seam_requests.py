"""How many requests every call of the Agent State by requests takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.providers.sql_seam import SeamDriver, seam_state
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.lines import Line, new_line, under
from vitehub_chat.testing.checks.material import (
    append,
    new_key,
    numbers_of,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.clock import FakeClock

IDLE = SessionPolicy(strategy="idle-timeout", idle_timeout=timedelta(minutes=30))
HYBRID = SessionPolicy(strategy="hybrid", idle_timeout=timedelta(minutes=30))
ASKED = [(None, None), (SessionPolicy(), "s1"), (IDLE, None), (HYBRID, "s1")]
WINDOW = WindowRequest(limit=20)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def driver(tmp_path: Path) -> SeamDriver:
    return SeamDriver(f"{tmp_path}/state.db")


@pytest.fixture
async def state(driver: SeamDriver, clock: FakeClock) -> AsyncIterator[SqlAgentState]:
    async with seam_state(driver, clock) as opened:
        yield opened


async def requests_of(driver: SeamDriver, call: Awaitable[object]) -> int:
    before = len(driver.requests)
    await call
    return len(driver.requests) - before


async def run_turn(
    line: Line, name: str, session: SessionRequest, window: WindowRequest = WINDOW
) -> None:
    grant = await line.start(name, claim_id=name, wanted_id=session.base)
    rows, ctx = [row(name)], under(grant)
    await line.state.turns.record(
        grant.ticket_id, rows=rows, session=session, window=window, ctx=ctx
    )
    await line.finish(grant)


@pytest.mark.parametrize(("policy", "base"), ASKED)
async def test_a_turn_in_a_known_conversation_takes_three_requests(
    state: SqlAgentState, driver: SeamDriver, policy: SessionPolicy | None, base: str | None
) -> None:
    line = new_line(state)
    session = SessionRequest(conversation=line.key, policy=policy, base=base)
    await run_turn(line, "first", session)
    taken = [await requests_of(driver, run_turn(line, f"m{n}", session)) for n in range(30)]
    assert taken == [3] * 30


@pytest.mark.parametrize(("policy", "base"), ASKED)
async def test_a_turn_behind_a_summary_takes_three_requests_too(
    state: SqlAgentState, driver: SeamDriver, policy: SessionPolicy | None, base: str | None
) -> None:
    line = new_line(state)
    session = SessionRequest(conversation=line.key, policy=policy, base=base)
    window = WindowRequest(limit=500, from_anchor=True)
    await run_turn(line, "first", session, window)
    found = await state.sessions.resolve(session)
    since = await state.summaries.get_rolling(line.key, session_id=found.session_id)
    assert since is not None
    await state.summaries.commit_roll(
        line.key, session_id=found.session_id, since=since, summary="so far", anchor=2
    )
    await run_turn(line, "second", session, window)
    turns = (run_turn(line, f"m{n}", session, window) for n in range(30))
    assert [await requests_of(driver, turn) for turn in turns] == [3] * 30


async def test_the_first_turn_of_a_process_takes_one_request_more_to_look_at_each_thing(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line = new_line(state)
    session = SessionRequest(conversation=line.key)
    await run_turn(line, "m1", session)
    async with seam_state(driver, clock) as other:
        taken = await requests_of(driver, run_turn(line.seen_by(other), "m2", session))
    assert taken == 5


async def test_an_append_takes_one_request(state: SqlAgentState, driver: SeamDriver) -> None:
    key = new_key()
    await append(state, key, "m1")
    assert await requests_of(driver, append(state, key, "m2", "m3")) == 1
    assert await requests_of(driver, append(state, key, "m2")) == 1


async def test_what_another_process_changed_takes_two_requests_more(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    key = new_key()
    await append(state, key, "m1")
    async with seam_state(driver, clock) as other:
        await append(other, key, "m2")
    assert await requests_of(driver, append(state, key, "m3")) == 3
    assert await stored_ids(state, key) == ["m1", "m2", "m3"]


async def test_progress_and_renewal_take_one_request(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    line = new_line(state)
    grant = await line.start("a")
    await line.record(grant)
    answer = row("re a", role="assistant", status="pending")
    progress = state.turns.progress(grant.ticket_id, answer=answer, ctx=under(grant))
    assert await requests_of(driver, progress) == 1
    assert await requests_of(driver, line.renew(grant)) == 1
    assert await requests_of(driver, line.finish(grant)) == 1


async def test_a_turn_that_replaces_messages_takes_few_requests(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    line = new_line(state)
    for name in ("m1", "m2"):
        await line.run(await line.start(name, claim_id=name))
    asked = line.admit("anew", claim_id="m2", replaces="m2")
    admitted = await requests_of(driver, asked)
    grant = (await line.outcome("anew")).grant
    assert grant is not None
    record = state.turns.record(
        grant.ticket_id,
        rows=[row("m2", "better")],
        session=SessionRequest(conversation=line.key),
        window=WINDOW,
        replaces="m2",
        ctx=under(grant),
    )
    recorded = await requests_of(driver, record)
    assert (admitted <= 4, recorded <= 7) == (True, True), (admitted, recorded)
    assert await stored_ids(state, line.key) == ["m1", "re m1", "m2"]


async def test_every_read_takes_one_request(state: SqlAgentState, driver: SeamDriver) -> None:
    line = new_line(state)
    key = line.key
    await run_turn(line, "m1", SessionRequest(conversation=key, policy=HYBRID, base="s1"))
    await append(state, key, *(f"n{n}" for n in range(9)), policy=HYBRID, base="s1")
    newest = await state.transcripts.page(key, request=PageRequest(limit=3))
    middle = await state.transcripts.page(
        key, request=PageRequest(limit=3, cursor=newest.older_cursor)
    )
    asked = SessionRequest(conversation=key, policy=HYBRID, base="s1")
    session = await state.sessions.resolve(asked)
    pages = {
        "newest": PageRequest(limit=3),
        "older": PageRequest(limit=3, cursor=middle.older_cursor),
        "newer": PageRequest(limit=3, cursor=middle.newer_cursor, direction="newer"),
        "edge": PageRequest(limit=3, cursor=newest.newer_cursor, direction="newer"),
        "around": PageRequest(limit=3, around="n4"),
        "session": PageRequest(limit=3, session_id="s1"),
        "unknown session": PageRequest(limit=3, session_id="s2"),
    }
    reads: dict[str, Awaitable[object]] = {
        **{name: state.transcripts.page(key, request=page) for name, page in pages.items()},
        "window": state.transcripts.window(key, session=session, window=WINDOW),
        "unnamed": state.transcripts.window(key, session=None, window=WINDOW),
        "get": state.transcripts.get(key, message_ids=["m1", "n3", "none"]),
        "export": stored(state, key),
        "export session": stored(state, key, "s1"),
        "list": state.sessions.list(key.tenant, agent=None),
        "list one": state.sessions.list(key.tenant, agent=None, conversation=key),
        "get session": state.sessions.get(key, session_id="s1"),
        "summary": state.summaries.get_manual(key, session_id=None),
        "resolve": state.sessions.resolve(asked),
        "outcome": state.turns.outcome(line.ticket("m1")),
        "nothing": stored(state, new_key()),
    }
    taken = {name: await requests_of(driver, call) for name, call in reads.items()}
    assert taken == dict.fromkeys(reads, 1)


async def test_rows_that_are_hidden_while_they_are_recorded_make_room_for_others(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    line = new_line(state)
    await append(state, line.key, *(f"m{n}" for n in range(1, 9)))
    grant = await line.start("a")
    async with seam_state(driver, clock) as other:
        recorded = await line.seen_by(other).record(
            grant,
            given=[row(each, is_shown=False) for each in ("m7", "m8")],
            window=WindowRequest(limit=3),
        )
    assert numbers_of(recorded.window.shown) == [4, 5, 6]


async def test_a_read_writes_nothing(state: SqlAgentState, driver: SeamDriver) -> None:
    key = new_key()
    await append(state, key, "m1")
    driver.requests.clear()
    await stored(state, key)
    await state.sessions.resolve(SessionRequest(conversation=key, policy=IDLE))
    assert {word for words in driver.requests for word in words} == {"SELECT"}


async def test_a_window_asks_for_no_more_rows_than_it_needs(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    key = new_key()
    await append(state, key, *(f"m{n}" for n in range(300)))
    rows: list[int] = []
    answer = driver._transact

    def counted(statements: object) -> object:
        answers = answer(statements)  # type: ignore[arg-type]
        rows.extend(map(len, answers))
        return answers

    driver._transact = counted  # type: ignore[method-assign,assignment]
    await state.transcripts.window(key, session=None, window=WindowRequest(limit=7))
    assert max(rows) == 7


async def test_numbers_for_new_conversations_are_taken_in_blocks(
    state: SqlAgentState, driver: SeamDriver
) -> None:
    await append(state, new_key(), "m1")
    driver.requests.clear()
    for _ in range(15):
        await append(state, new_key(), "m1")
    loads = [words for words in driver.requests if words[0] == "SELECT"]
    assert [words.count("UPDATE") for words in loads] == [0] * 15


async def test_opening_what_is_there_takes_three_requests(
    state: SqlAgentState, driver: SeamDriver, clock: FakeClock
) -> None:
    await append(state, new_key(), "m1")
    again = seam_state(driver, clock)
    assert await requests_of(driver, again.__aenter__()) == 3
    await again.aclose()
