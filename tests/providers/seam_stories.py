"""Stories: random calls, made to two states of one database and to one in memory alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from vitehub_chat.errors import ChatError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy, SessionPolicy
from vitehub_chat.state.contract import NO_CONTEXT, AgentState, Fence, StateContext
from vitehub_chat.state.providers.memory import MemoryAgentState
from vitehub_chat.state.values import (
    Grant,
    NewEntry,
    NewRow,
    PageRequest,
    SessionRequest,
    TurnEnd,
    WindowRequest,
)
from vitehub_chat.testing.clock import FakeClock

LEASE: Final = timedelta(seconds=30)
TTL: Final = timedelta(seconds=60)
KEYS: Final = tuple(ConversationKey("acme", "helper", "portal", thread) for thread in ("t1", "t2"))
POLICIES: Final = (
    ConcurrencyPolicy(),
    ConcurrencyPolicy(strategy="queue", max_queue_size=2, on_queue_full="drop-oldest"),
    ConcurrencyPolicy(strategy="reject"),
    ConcurrencyPolicy(strategy="queue", queue_entry_ttl=timedelta(seconds=20)),
)
SESSIONS: Final = (
    None,
    SessionPolicy(),
    SessionPolicy(strategy="idle-timeout", idle_timeout=timedelta(seconds=25)),
    SessionPolicy(strategy="hybrid", idle_timeout=timedelta(seconds=25)),
)
TICKETS: Final = tuple(f"t{n}" for n in range(12))
MESSAGES: Final = ("m1", "m2", "m3", "m4", "m5")
HIDDEN: Final = {"token", "key", "cursor", "older_cursor", "newer_cursor", "next_cursor", "started"}

Call = Callable[["Side"], Awaitable[object]]

messages = st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=3, unique=True)
keys = st.sampled_from(KEYS)
tickets = st.sampled_from(TICKETS)
locks = st.sampled_from(("lock", "lock "))
session_ids = st.sampled_from((None, "s1", "m1"))


@attrs.define
class Side:
    """One store that is told a story.

    Attributes:
        states: The objects that are called in turn.
        turn: How many calls were made.
        grants: The last run of each ticket, which knows its token.
        used: The tickets that were admitted; each serves once.
    """

    states: Sequence[AgentState]
    turn: int = 0
    grants: dict[str, Grant] = attrs.field(factory=dict)
    used: set[str] = attrs.field(factory=set)

    def beside(self) -> Side:
        """Return the same side as it is now, with the object whose turn it is not."""
        return Side(self.states, self.turn + 1, dict(self.grants), set(self.used))

    @property
    def state(self) -> AgentState:
        """The object whose turn it is."""
        return self.states[self.turn % len(self.states)]

    def fence(self, ticket_id: str) -> StateContext:
        """Return the context of the run of a ticket."""
        grant = self.grants.get(ticket_id)
        return (
            NO_CONTEXT if grant is None else StateContext(fence=Fence(grant.lock_key, grant.token))
        )

    def ticket(self, number: int) -> str:
        """Return one of the tickets that were admitted, if any was."""
        used = sorted(self.used & set(TICKETS))
        return used[number % len(used)] if used else "unknown"

    async def tell(self, call: Call) -> object:
        """Make one call and return what came of it, in the words that all stores share."""
        self.turn += 1
        try:
            answer = await call(self)
        except ChatError as error:
            return type(error).__name__, error.code
        self._learn(answer)
        return plain(answer)

    def _learn(self, answer: object) -> None:
        found = [answer, *(getattr(answer, name, None) for name in ("grant", "next"))]
        for grant in found:
            if isinstance(grant, Grant):
                self.grants[grant.ticket_id] = grant


def plain(value: Any) -> Any:
    """Return a value without what every store chooses for itself."""
    if attrs.has(type(value)):
        fields = attrs.fields_dict(type(value))
        return {name: _shown(name, getattr(value, name)) for name in fields}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return value


def _shown(name: str, value: Any) -> Any:
    return value is not None if name in HIDDEN else plain(value)


def _rows(ids: Sequence[str], role: str = "user", **fields: Any) -> list[NewRow]:
    return [NewRow(message=Message(each, role, ()), **fields) for each in ids]


@st.composite
def requests(draw: st.DrawFn) -> SessionRequest:
    """Draw which session is asked for."""
    policy = draw(st.sampled_from(SESSIONS))
    return SessionRequest(
        conversation=draw(keys),
        policy=policy,
        base=None if policy is None else draw(session_ids),
        starts_new=policy is not None and draw(st.integers(0, 4)) == 0,
        begins_with=draw(st.none() | st.sampled_from(MESSAGES)),
    )


@st.composite
def admissions(draw: st.DrawFn, names: st.SearchStrategy[str] = tickets) -> Call:
    """Draw a message that asks to be run."""
    ticket_id, claim = draw(names), draw(st.none() | st.sampled_from(MESSAGES))
    entry = NewEntry(
        ticket_id=ticket_id,
        lock_key=draw(locks),
        conversation=draw(keys),
        wanted_id=draw(session_ids),
        claim_id=claim,
        payload=f'"{ticket_id}"',
        starts_session=draw(st.booleans()),
        owner=draw(st.sampled_from((None, "first", "second"))),
    )
    policy = draw(st.sampled_from(POLICIES))

    async def call(side: Side) -> object:
        if ticket_id in side.used:
            return None
        side.used.add(ticket_id)
        return await side.state.turns.admit(entry, policy=policy, lease=LEASE, dedupe_ttl=TTL)

    return call


@st.composite
def runs(draw: st.DrawFn) -> Call:
    """Draw a step of a run."""
    number, ids, request = draw(st.integers(0, 60)), draw(messages), draw(requests())
    shown, status = draw(st.booleans()), draw(st.sampled_from(("complete", "pending")))
    window = draw(st.none() | st.builds(WindowRequest, limit=st.integers(0, 4)))
    asked = draw(st.none() | st.just(request))
    answer = _rows([draw(st.sampled_from(["a1", "a2"]))], "assistant", status=status)[0]
    given = draw(st.none() | st.just(answer))
    passing: dict[str, Any] = {"owner": "first", "lease": LEASE}
    kind = draw(st.sampled_from(("record", "record", "progress", "finish", "finish", "renew")))

    async def call(side: Side) -> object:
        ticket_id = side.ticket(number)
        turns, ctx = side.state.turns, side.fence(ticket_id)
        if kind == "record":
            rows = _rows(ids, is_shown=shown)
            return await turns.record(ticket_id, rows=rows, session=asked, window=window, ctx=ctx)
        if kind == "progress":
            return await turns.progress(ticket_id, answer=answer, ctx=ctx)
        if kind == "renew":
            return await turns.renew(ticket_id, lease=LEASE, ctx=ctx)
        end = TurnEnd(status="complete", message=None if given is None else given.message)
        return await turns.finish(ticket_id, answer=given, end=end, ctx=ctx, **passing)

    return call


@st.composite
def lookups(draw: st.DrawFn) -> Call:
    """Draw a step beside the runs."""
    number, lock_key, key = draw(st.integers(0, 60)), draw(locks), draw(keys)
    request, ids, session_id = draw(requests()), draw(messages), draw(session_ids)
    kind = draw(st.sampled_from(("take", "outcome", "withdraw", "append", "resolve", "clear")))
    deletes = draw(st.booleans())

    async def call(side: Side) -> object:
        state, ticket_id = side.state, side.ticket(number)
        if kind == "take":
            return await state.turns.take(lock_key, owner="second", lease=LEASE)
        if kind == "outcome":
            return await state.turns.outcome(ticket_id)
        if kind == "withdraw":
            return await state.turns.withdraw(ticket_id, owner="second", lease=LEASE)
        if kind == "append":
            return await state.transcripts.append(request, rows=_rows(ids))
        if kind == "resolve":
            return await state.sessions.resolve(request)
        return await state.sessions.clear(key, session_id=session_id, delete_session=deletes)

    return call


@st.composite
def readings(draw: st.DrawFn) -> Call:
    """Draw a read."""
    key, session_id, ids = draw(keys), draw(session_ids), draw(messages)
    limit, whole = draw(st.integers(1, 4)), draw(st.booleans())
    kind = draw(st.sampled_from(("pages", "window", "get", "list", "session", "around", "summary")))

    async def call(side: Side) -> object:
        state = side.state
        if kind == "pages":
            return await _pages(state, key, session_id, limit)
        if kind == "window":
            window = WindowRequest(limit=limit, besides=frozenset(ids), whole_conversation=whole)
            return await state.transcripts.window(key, session=None, window=window)
        if kind == "get":
            return await state.transcripts.get(key, message_ids=ids)
        if kind == "list":
            only = key if whole else None
            return await state.sessions.list("acme", agent="helper", conversation=only, limit=limit)
        if kind == "session":
            return await state.sessions.get(key, session_id=session_id)
        if kind == "summary":
            await state.summaries.save_manual(key, session_id=session_id, text=ids[0])
            return await state.summaries.get_manual(key, session_id=session_id)
        around = PageRequest(limit=limit, around=ids[0], session_id=session_id)
        return await state.transcripts.page(key, request=around)

    return call


async def _pages(
    state: AgentState, key: ConversationKey, session_id: str | None, limit: int
) -> object:
    """Walk to the oldest page and one back, and export the same."""
    request = PageRequest(limit=limit, session_id=session_id)
    pages = [await state.transcripts.page(key, request=request)]
    while pages[-1].older_cursor is not None and len(pages) < 20:
        older = attrs.evolve(request, cursor=pages[-1].older_cursor)
        pages.append(await state.transcripts.page(key, request=older))
    newer = attrs.evolve(request, cursor=pages[-1].newer_cursor, direction="newer")
    pages.append(await state.transcripts.page(key, request=newer))
    exported = [each async for each in state.transcripts.export(key, session_id=session_id)]
    return pages, [row for batch in exported for row in batch.rows]


def calls(name: str) -> st.SearchStrategy[Call]:
    """Draw a call; a message that it brings has this ticket."""
    return admissions(st.just(name)) | runs() | runs() | lookups() | lookups()


steps = admissions() | admissions() | runs() | runs() | runs() | lookups() | readings()
stories = st.lists(
    st.tuples(steps, st.sampled_from((0, 0, 0, 1, 12, 31))), min_size=12, max_size=60
)
"""Calls, and how many seconds pass before each."""


async def tell_alike(
    story: Sequence[tuple[Call, int]], clock: FakeClock, memory: MemoryAgentState, other: Side
) -> None:
    """Tell a story to both and compare what comes of every call."""
    side = Side([memory])
    for call, seconds in story:
        pass_time(clock, memory, seconds)
        expected = await side.tell(call)
        assert await other.tell(call) == expected


def pass_time(clock: FakeClock, memory: MemoryAgentState, seconds: int) -> None:
    """Move the clock, and remove from memory what is over: it is hidden at once elsewhere."""
    clock.advance(seconds=seconds, microseconds=1)
    now = to_epoch_us(clock.now())
    memory._store.write(lambda tables: tables.entries.purge(now, 1000))
    memory._store.write(lambda tables: tables.rows.purge(now, 1000))
