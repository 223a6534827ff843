"""Damage: what cannot be read is told and left alone, and what could not be read is refused."""

from __future__ import annotations

from typing import Any, Final

import attrs

from vitehub_chat.errors import InputError, StateError
from vitehub_chat.model.clock import to_epoch_us
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import RangeRequest, TurnsRequest
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import Transaction
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.expecting import equal, holds, refused
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import append, ids_of, new_key, row, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("damaged")

DEEP: Final = 100_000


class Thing:
    """Is no JSON."""


def stepped(state: AgentState) -> SteppedAgentState:
    """Return a state that has steps."""
    if not isinstance(state, SteppedAgentState):
        raise TypeError("the state has no steps")
    return state


async def damage(state: AgentState, key: ConversationKey, message_id: str, **changes: Any) -> None:
    """Change a stored row as only a fault could."""
    running = stepped(state)
    now = to_epoch_us(running.clock.now())

    def step(tx: Transaction) -> None:
        conversation = tx.conversations.get(key.encode())
        if conversation is not None:
            found = tx.rows.by_message(conversation.key, message_id, now)
            if found is not None:
                tx.rows.replace(attrs.evolve(found, **changes))

    await running.run_write(step)


@group.needs("steps")
async def check_a_row_that_cannot_be_read_is_told_and_left_out(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Raise for a direct read, leave it out of all others and name it there, and keep it stored."""
    deep = '{"v":1,"parts":' + "[" * DEEP + "]" * DEEP + "}"
    bodies = ('{"v":1,"par', "", "null", "[]", '{"v":2,"parts":[]}', '{"v":1,"parts":"ab"}', deep)
    async with open_state(clock) as state:
        for body in bodies:
            key = new_key()
            await append(state, key, "m1", "m2", "m3")
            await damage(state, key, "m2", body=body)
            direct = state.transcripts.get(key, message_ids=["m1", "m2"])
            await refused(StateError, direct, "reading it directly", code="corrupt")
            page = await state.transcripts.page(key, request=PageRequest())
            equal((ids_of(page.items), page.unreadable), (["m1", "m3"], (2,)), "the page")
            window = WindowRequest(limit=9)
            rows = await state.transcripts.window(key, session=None, window=window)
            equal((ids_of(rows.shown), rows.unreadable), (["m1", "m3"], (2,)), "the window")
            some = await state.transcripts.range(key, request=RangeRequest())
            equal((ids_of(some.items), some.unreadable), (["m1", "m3"], (2,)), "the range")
            index = await state.transcripts.turns(key, request=TurnsRequest())
            found = [each.message_id for each in index.items]
            equal((found, index.unreadable), (["m1", "m3"], (2,)), "the index of turns")
            exported = [batch async for batch in state.transcripts.export(key)]
            equal([each.unreadable for each in exported], [(2,)], "the export")
            problems = (await state.admin.check_integrity()).problems
            holds(problems.get("unreadable_rows", 0) >= 1, f"the problems: {problems}")
            counts = await state.sessions.clear(key)
            equal(counts["rows"], 3, "what clearing still finds")


@group.needs("steps")
async def check_every_fact_of_a_row_may_be_damaged(open_state: OpenState, clock: FakeClock) -> None:
    """Tell rows whose facts are none, also times beyond what can be told."""
    async with open_state(clock) as state:
        for changes in ({"status": "done"}, {"created_at": 2**62}, {"extra": '{"usage'}):
            key = new_key()
            await append(state, key, "m1", "m2")
            await damage(state, key, "m1", **changes)
            page = await state.transcripts.page(key, request=PageRequest())
            equal((ids_of(page.items), page.unreadable), (["m2"], (1,)), f"with {changes}")
            await state.sessions.clear(key)


@group.needs("steps")
async def check_an_end_that_cannot_be_read_is_told(open_state: OpenState, clock: FakeClock) -> None:
    """Raise when it is asked how a turn ended and that cannot be read."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("a"))
        for end in ('{"v":1', "{}", '{"v":1}', "[]"):

            def step(tx: Transaction, text: str = end) -> None:
                entry = tx.entries.get(line.ticket("a"))
                if entry is not None:
                    tx.entries.update(attrs.evolve(entry, end=text))

            await stepped(state).run_write(step)
            await refused(StateError, line.outcome("a"), f"the end {end}", code="corrupt")


@group
async def check_what_could_not_be_read_again_is_refused(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Refuse values that are no JSON or nested too deep, and store nothing of the batch."""
    key = new_key()
    nested: Any = []
    for _ in range(DEEP):
        nested = [nested]
    text = {"type": "text", "text": "x"}
    wrong: dict[str, Any] = {
        "bytes": (b"x",),
        "a tuple": (("text", "x"),),
        "an object": (Thing(),),
        "text": ("x",),
        "an object inside": ({"type": "data-x", "data": Thing()},),
        "bytes inside": ({"type": "data-x", "data": b"x"},),
        "a huge number": ({"type": "data-x", "data": 10**5000},),
        "too deep": ({"type": "data-x", "data": nested},),
        "300 levels": ({"type": "data-x", "data": _nest(300)},),
        "no finite number": ({"type": "data-x", "data": float("nan")},),
    }
    async with open_state(clock) as state:
        request = SessionRequest(conversation=key)
        for what, parts in wrong.items():
            batch = [row("m1"), NewRow(message=Message("m2", "user", parts))]
            await refused(InputError, state.transcripts.append(request, rows=batch), what)
            equal(await stored_ids(state, key), [], f"what is stored beside {what}")
        good = Message("m3", "user", (text, {"type": "data-x", "data": _nest(100)}))
        await state.transcripts.append(request, rows=[NewRow(message=good)])
        found = await state.transcripts.get(key, message_ids=["m3"])
        equal(found[0].message, good, "what is nested less deep")


@group
async def check_people_are_named_by_text(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse authors and owners that are no text, and store nothing."""
    key = new_key()
    people: tuple[Any, ...] = (b"u", ("u",), Thing(), 10**5000, True)
    async with open_state(clock) as state:
        for person in people:
            what = type(person).__name__
            message = NewRow(message=row("m1").message, author=person)
            request = SessionRequest(conversation=key)
            await refused(InputError, state.transcripts.append(request, rows=[message]), what)
            owned = SessionRequest(conversation=key, user_key=person)
            await refused(InputError, state.transcripts.append(owned, rows=[row("m1")]), what)
        equal(await stored_ids(state, key), [], "what is stored")


def _nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value
