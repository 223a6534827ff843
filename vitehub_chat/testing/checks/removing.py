"""Removing: one message is changed or deleted, and rules take some away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from vitehub_chat.errors import ChatBusyError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import AgeLimit, Pruned, PruneRequest
from vitehub_chat.state.values import NewRow, PageRequest, SessionRequest, TurnEnd, WindowRequest
from vitehub_chat.testing.checks.expecting import equal, present, refused
from vitehub_chat.testing.checks.lines import LEASE, OWNER, answer_to, new_line, under
from vitehub_chat.testing.checks.material import (
    append,
    ids_of,
    new_key,
    numbers_of,
    row,
    stored,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.checks.truncating import call, result
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("removing")


def oldest(count: int) -> Callable[[Sequence[Row]], Sequence[int]]:
    """Return a rule that chooses the oldest rows but some."""

    def choose(rows: Sequence[Row]) -> Sequence[int]:
        return [each.seq for each in rows[: max(len(rows) - count, 0)]]

    return choose


async def prune(state: AgentState, key: ConversationKey, keep: int, **request: object) -> Pruned:
    """Let all rows but the newest ones go."""
    asked = PruneRequest(choose=oldest(keep), **request)  # type: ignore[arg-type]
    return await state.transcripts.prune(key, request=asked)


@group
async def check_a_message_is_replaced_in_its_place(open_state: OpenState, clock: FakeClock) -> None:
    """Change what a message says, and nothing else."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2")
        before = (await stored(state, key))[0]
        clock.advance(seconds=9)
        changed = await state.transcripts.replace(key, row=row("m1", "better"))
        found = await stored(state, key)
        equal(found[0], changed, "the stored row")
        equal(changed.message.text, "better", "the text")
        kept = (before.seq, before.recorded_at, before.turn_no, before.author)
        equal((changed.seq, changed.recorded_at, changed.turn_no, changed.author), kept, "the rest")
        info = await state.sessions.get(key, session_id=None)
        equal(info.message_count, 2, "the count of messages")
        missing = state.transcripts.replace(key, row=row("m3", "new"))
        await refused(NotFoundError, missing, "replacing what is not there")
        equal(await stored_ids(state, key), ["m1", "m2"], "the rows")


@group
async def check_an_answer_that_grows_is_left_alone(open_state: OpenState, clock: FakeClock) -> None:
    """Neither replace nor delete an answer while its turn writes it."""
    async with open_state(clock) as state:
        line = new_line(state)
        grant = await line.start("a")
        await line.record(grant)
        growing = row("re a", "so", role="assistant", status="pending")
        await state.turns.progress(grant.ticket_id, answer=growing, ctx=under(grant))
        changed = row("re a", "no", role="assistant")
        replacing = state.transcripts.replace(line.key, row=changed)
        await refused(ChatBusyError, replacing, "replacing", code="turn_in_progress")
        deleting = state.transcripts.delete(line.key, message_id="re a")
        await refused(ChatBusyError, deleting, "deleting", code="turn_in_progress")
        await line.finish(grant)
        equal(await state.transcripts.delete(line.key, message_id="re a"), 1, "the count")


@group
async def check_the_unit_of_a_message_goes_with_it(open_state: OpenState, clock: FakeClock) -> None:
    """Delete a call with its results and what is between, count them, and keep the generation."""
    async with open_state(clock) as state:
        for message_id, left in (("c1", ["u1", "u3"]), ("r1", ["u1", "u3"]), ("u1", None)):
            key = new_key()
            request = SessionRequest(conversation=key)
            batch = [row("u1"), call("x", "c1"), row("u2"), result("x", "r1"), row("u3")]
            await state.transcripts.append(request, rows=batch)
            count = await state.transcripts.delete(key, message_id=message_id)
            rest = left or ["c1", "u2", "r1", "u3"]
            equal((count, await stored_ids(state, key)), (5 - len(rest), rest), message_id)
            page = await state.transcripts.page(key, request=PageRequest())
            equal(page.generation, 0, "the generation")
            info = await state.sessions.get(key, session_id=None)
            equal(info.message_count, len(rest), "the count of messages")
            gone = state.transcripts.delete(key, message_id=message_id)
            await refused(NotFoundError, gone, "deleting it again")


@group
async def check_a_deleted_message_may_be_sent_again(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Give up the claim of a message that was deleted."""
    async with open_state(clock) as state:
        line = new_line(state)
        for name in ("a", "b"):
            await line.run(await line.start(name, claim_id=name))
        await state.transcripts.delete(line.key, message_id="a")
        verdicts = [(await line.admit(f"{n} again", claim_id=n)).verdict for n in "ab"]
        equal(verdicts, ["accepted", "repeat"], "the verdicts")


@group
async def check_pruning_takes_what_the_rule_chooses(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Delete the chosen rows; numbers, generation, activity and claims stay."""
    async with open_state(clock) as state:
        line = new_line(state)
        await line.run(await line.start("a", claim_id="a"))
        await append(state, line.key, "m3", "m4")
        before = await state.sessions.get(line.key, session_id=None)
        pruned = await prune(state, line.key, 1)
        equal(pruned, Pruned(removed=(1, 2, 3)), "what went")
        equal(await stored_ids(state, line.key), ["m4"], "the rows")
        after = await state.sessions.get(line.key, session_id=None)
        equal(after.message_count, 1, "the count of messages")
        kept = (before.generation, before.last_message_at)
        equal((after.generation, after.last_message_at), kept, "generation and activity")
        equal((await line.admit("a again", claim_id="a")).verdict, "repeat", "the verdict")
        equal(numbers_of(await append(state, line.key, "m5")), [5], "the next number")
        equal(await prune(state, line.key, 2), Pruned(), "what goes of what is left")


@group
async def check_hidden_rows_are_out_of_everything(open_state: OpenState, clock: FakeClock) -> None:
    """Hide rows from pages, windows, lookups and exports; clearing still finds them."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3")
        equal((await prune(state, key, 1, hides=True)).removed, (1, 2), "what went")
        for superseded in (False, True):
            asked = PageRequest(include_superseded=superseded)
            page = await state.transcripts.page(key, request=asked)
            equal((ids_of(page.items), page.older_cursor), (["m3"], None), "the page")
        window = WindowRequest(limit=9)
        rows = await state.transcripts.window(key, session=None, window=window)
        equal(ids_of(rows.shown), ["m3"], "the window")
        found = await state.transcripts.get(key, message_ids=["m1", "m3"])
        equal(ids_of(found), ["m3"], "what is found by id")
        equal(await stored_ids(state, key), ["m3"], "the export")
        equal((await state.sessions.clear(key))["rows"], 3, "what clearing deletes")


@group
async def check_no_more_goes_than_allowed_at_once(open_state: OpenState, clock: FakeClock) -> None:
    """Take the oldest of the chosen rows, up to the limit."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", "m2", "m3", "m4")
        equal((await prune(state, key, 1, limit=2)).removed, (1, 2), "what went first")
        equal((await prune(state, key, 1, limit=2)).removed, (3,), "what went then")


@group
async def check_the_end_of_a_turn_prunes(open_state: OpenState, clock: FakeClock) -> None:
    """Prune with the commit of the answer, which the rule sees; a rule that fails fails no turn."""

    def fails(_rows: Sequence[Row]) -> Sequence[int]:
        raise ValueError("broken rule")

    async with open_state(clock) as state:
        line = new_line(state)
        await append(state, line.key, "m1", "m2")
        for name, rule, left in (
            ("a", oldest(2), ["a", "re a"]),
            ("b", fails, ["a", "re a", "b", "re b"]),
        ):
            grant = await line.start(name)
            await line.record(grant)
            answer = answer_to(grant)
            finished = await state.turns.finish(
                grant.ticket_id,
                answer=answer,
                end=TurnEnd(status="complete", finish_reason="stop", message=answer.message),
                owner=OWNER,
                lease=LEASE,
                prune=PruneRequest(choose=rule),
                ctx=under(grant),
            )
            pruned = present(finished.pruned, "what was pruned")
            equal(pruned.removed, (1, 2) if name == "a" else (), "what went")
            equal(type(pruned.error), type(None) if name == "a" else ValueError, "what failed")
            equal(await stored_ids(state, line.key), left, "the rows")


@group
async def check_reads_leave_out_what_is_too_old(open_state: OpenState, clock: FakeClock) -> None:
    """Return no row that the age rule would remove now; undated ones are as old as their record."""
    key, now = new_key(), clock.now()
    old, limit = now - timedelta(hours=2), now - timedelta(hours=1)
    batch: list[NewRow] = [
        row("s1", role="system", created_at=old),
        row("m1", created_at=old),
        row("m2"),
        row("m3", created_at=limit),
        row("m4", created_at=limit - timedelta(microseconds=1)),
        row("m5", created_at=now),
    ]
    age = AgeLimit(since=limit)
    left = ["s1", "m2", "m3", "m5"]
    async with open_state(clock) as state:
        await state.transcripts.append(SessionRequest(conversation=key), rows=batch)
        page = await state.transcripts.page(key, request=PageRequest(not_older_than=age))
        equal(ids_of(page.items), left, "the page")
        one = await state.transcripts.page(key, request=PageRequest(limit=3, not_older_than=age))
        equal(ids_of(one.items), left[1:], "the short page")
        asked = PageRequest(limit=3, cursor=one.older_cursor, not_older_than=age)
        rest = await state.transcripts.page(key, request=asked)
        equal((ids_of(rest.items), rest.older_cursor), (["s1"], None), "the page before")
        window = WindowRequest(limit=9, not_older_than=age)
        rows = await state.transcripts.window(key, session=None, window=window)
        equal(ids_of(rows.shown), left, "the window")
        found = await state.transcripts.get(key, message_ids=["m1", "m2"], not_older_than=age)
        equal(ids_of(found), ["m2"], "what is found by id")
        strict = AgeLimit(since=limit, spares_system=False)
        page = await state.transcripts.page(key, request=PageRequest(not_older_than=strict))
        equal(ids_of(page.items), left[1:], "the page without old system messages")
        later = AgeLimit(since=now + timedelta(microseconds=1))
        page = await state.transcripts.page(key, request=PageRequest(not_older_than=later))
        equal(ids_of(page.items), ["s1"], "the page of what is said later")
        equal(len(await stored_ids(state, key)), 6, "what is still stored")
