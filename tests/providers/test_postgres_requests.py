"""How many requests every call of the Agent State in PostgreSQL takes, and what one is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.providers.postgres_server import CountingDriver, Place, PostgresServer
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.driver import PostgresDriver
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.sql import SqlAgentState
from vitehub_chat.state.sql.numbers import BLOCK
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.lines import Line, new_line, under
from vitehub_chat.testing.checks.material import append, new_key, row, stored, stored_ids
from vitehub_chat.testing.clock import FakeClock

pytestmark = pytest.mark.service

IDLE = SessionPolicy(strategy="idle-timeout", idle_timeout=timedelta(minutes=30))
HYBRID = SessionPolicy(strategy="hybrid", idle_timeout=timedelta(minutes=30))
ASKED = [(None, None), (SessionPolicy(), "s1"), (IDLE, None), (HYBRID, "s1")]
WINDOW = WindowRequest(limit=20)
BYTES = 65536


@pytest.fixture
def driver(postgres: PostgresServer) -> CountingDriver:
    return CountingDriver(postgres)


@pytest.fixture
async def state(driver: CountingDriver, place: Place) -> AsyncIterator[SqlAgentState]:
    async with place.open_over(driver, FakeClock()) as opened:
        yield opened


async def run_turn(line: Line, name: str, session: SessionRequest) -> None:
    grant = await line.start(name, claim_id=name, wanted_id=session.base)
    rows, ctx = [row(name)], under(grant)
    await line.state.turns.record(
        grant.ticket_id, rows=rows, session=session, window=WINDOW, ctx=ctx
    )
    await line.finish(grant)


class Wire:
    """The way to a server, which counts how often who speaks changes to the client."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._speaker = "server"
        self._tasks: list[asyncio.Task[None]] = []
        self.turns = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Give the port where it begins, until all that was connected is closed."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._tasks.append(asyncio.ensure_future(self._accept(reader, writer)))

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]
            await asyncio.gather(*self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(
            self._pass_on(reader, requests, "client"), self._pass_on(answers, writer, "server")
        )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, speaker: str
    ) -> None:
        while data := await reader.read(BYTES):
            self.turns += (self._speaker, speaker) == ("server", "client")
            self._speaker = speaker
            writer.write(data)
        writer.close()
        await writer.wait_closed()


async def test_a_batch_is_one_round_trip(postgres: PostgresServer) -> None:
    wire = Wire(postgres.port)
    async with wire.open() as port:
        url = postgres.url.replace(str(postgres.port), str(port))
        driver = PostgresDriver(parse_target(url), StateOptions())
        await driver.execute("SELECT 1", {})
        taken = []
        for _ in range(3):
            before = wire.turns
            numbers = await driver.batch([("SELECT :a::bigint", {"a": n}) for n in range(50)])
            assert [row for (row,) in numbers] == [[n] for n in range(50)]
            taken.append(wire.turns - before)
        await driver.aclose()
    assert taken == [1] * 3


@pytest.mark.parametrize(("policy", "base"), ASKED)
async def test_a_turn_in_a_known_conversation_takes_three_requests(
    state: SqlAgentState, driver: CountingDriver, policy: SessionPolicy | None, base: str | None
) -> None:
    line = new_line(state)
    session = SessionRequest(conversation=line.key, policy=policy, base=base)
    await run_turn(line, "first", session)
    taken = [await driver.count(run_turn(line, f"m{n}", session)) for n in range(10)]
    assert taken == [3] * 10


async def test_the_first_turn_of_a_process_takes_one_request_more_to_look_at_each_thing(
    state: SqlAgentState, place: Place, postgres: PostgresServer
) -> None:
    line = new_line(state)
    session = SessionRequest(conversation=line.key)
    await run_turn(line, "m1", session)
    driver = CountingDriver(postgres)
    async with place.open_over(driver, FakeClock()) as other:
        assert await driver.count(run_turn(line.seen_by(other), "m2", session)) == 5


async def test_an_append_takes_one_request(state: SqlAgentState, driver: CountingDriver) -> None:
    key = new_key()
    await append(state, key, "m1")
    assert await driver.count(append(state, key, "m2", "m3")) == 1
    assert await driver.count(append(state, key, "m2")) == 1


async def test_what_another_process_changed_takes_two_requests_more(
    state: SqlAgentState, driver: CountingDriver, place: Place
) -> None:
    key = new_key()
    await append(state, key, "m1")
    async with place.open(clock=FakeClock()) as other:
        await append(other, key, "m2")
    assert await driver.count(append(state, key, "m3")) == 3
    assert await stored_ids(state, key) == ["m1", "m2", "m3"]


async def test_progress_and_renewal_take_one_request(
    state: SqlAgentState, driver: CountingDriver
) -> None:
    line = new_line(state)
    grant = await line.start("a")
    await line.record(grant)
    answer = row("re a", role="assistant", status="pending")
    progress = state.turns.progress(grant.ticket_id, answer=answer, ctx=under(grant))
    assert await driver.count(progress) == 1
    assert await driver.count(line.renew(grant)) == 1
    assert await driver.count(line.finish(grant)) == 1


async def test_every_read_takes_one_request_that_writes_nothing(
    state: SqlAgentState, driver: CountingDriver
) -> None:
    line = new_line(state)
    key = line.key
    asked = SessionRequest(conversation=key, policy=HYBRID, base="s1")
    await run_turn(line, "m1", asked)
    await append(state, key, *(f"n{n}" for n in range(9)), policy=HYBRID, base="s1")
    newest = await state.transcripts.page(key, request=PageRequest(limit=3))
    middle = await state.transcripts.page(
        key, request=PageRequest(limit=3, cursor=newest.older_cursor)
    )
    session = await state.sessions.resolve(asked)
    pages = {
        "newest": PageRequest(limit=3),
        "older": PageRequest(limit=3, cursor=middle.older_cursor),
        "newer": PageRequest(limit=3, cursor=middle.newer_cursor, direction="newer"),
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
        "list": state.sessions.list(key.tenant, agent=None),
        "list one": state.sessions.list(key.tenant, agent=None, conversation=key),
        "get session": state.sessions.get(key, session_id="s1"),
        "summary": state.summaries.get_manual(key, session_id=None),
        "resolve": state.sessions.resolve(asked),
        "outcome": state.turns.outcome(line.ticket("m1")),
        "nothing": stored(state, new_key()),
    }
    driver.requests.clear()
    taken = {name: await driver.count(call) for name, call in reads.items()}
    assert taken == dict.fromkeys(reads, 1)
    assert {word for words in driver.requests for word in words} == {"SELECT"}


async def test_numbers_for_new_conversations_are_taken_in_blocks(
    state: SqlAgentState, place: Place
) -> None:
    for _ in range(BLOCK + 1):
        await append(state, new_key(), "m1")
    for kind in ("conversation", "session"):
        taken = f"SELECT last_value, last_value / {BLOCK} FROM ${kind}_numbers"  # noqa: S608
        assert place.query(taken) == [(2 * BLOCK, 2)]
    used = place.query("SELECT key FROM $conversations ORDER BY key")
    assert used == [(number,) for number in range(1, BLOCK + 2)]


async def test_opening_what_is_there_takes_three_requests(
    state: SqlAgentState, place: Place, postgres: PostgresServer
) -> None:
    await append(state, new_key(), "m1")
    driver = CountingDriver(postgres)
    again = place.open_over(driver, FakeClock())
    assert await driver.count(again.__aenter__()) == 3
    await again.aclose()
