"""Rolling one session: what is asked in which order, and what stops it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest

from tests.conversation.fit_step import FitStep
from vitehub_chat import open_agent_state, plugins
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.fitting import Fitted
from vitehub_chat.conversation.flushing import FlushBatch
from vitehub_chat.errors import ContextOverflowError, StateUnavailableError
from vitehub_chat.model.context_policy import (
    ContextPolicy,
    FlushStatus,
    Summarizer,
    SummarizerSetting,
)
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rolling import RollingWrite
from vitehub_chat.state.context import Fence, StateContext
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewEntry, NewRow, SessionRequest
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "rolling", None, "t")
SUMMARY = "s" * 20


class Desk:
    """One session on a store in memory, with a summarizer and a memory that keep an account."""

    def __init__(self, state: AgentState, clock: FakeClock) -> None:
        self.state = state
        self.clock = clock
        self.told: list[Any] = []
        self.flush_status: FlushStatus = "done"
        self.blocks = False
        self.summary: str = SUMMARY
        self.takes_seconds = 0
        self.policy = ContextPolicy(
            estimator="runes",
            limit=1000,
            trigger_ratio=Decimal("0.8"),
            target_ratio=Decimal("0.5"),
            min_verbatim=2,
            message_overhead=0,
            frame_overhead=0,
            retries=0,
            summarizer=self.summarize,
        )

    async def flush(self, batch: FlushBatch) -> FlushStatus:
        """Take a batch into the memory."""
        self.told.append(("flush", batch.from_seq, batch.to_seq, len(batch.messages)))
        return self.flush_status

    async def summarize(
        self, _previous: str, messages: Sequence[Message], **_limits: object
    ) -> str:
        """Condense, which may take its time."""
        self.told.append(("summarize", len(messages)))
        self.clock.advance(seconds=self.takes_seconds)
        return self.summary

    async def say(self, *sizes: int, role: str = "user") -> None:
        """Store messages of some sizes."""
        rows = [
            NewRow(message=Message(None, role, ({"type": "text", "text": "x" * size},)))
            for size in sizes
        ]
        await self.state.transcripts.append(
            SessionRequest(conversation=KEY), rows=[_named(row) for row in rows]
        )

    async def fit(self, size: int = 100, **kit: Any) -> Fitted:
        """Fit a current message of a size."""
        current = Message("current", "user", ({"type": "text", "text": "c" * size},))
        return await self.step(**kit).fit(current)

    def step(self, **kit: Any) -> FitStep:
        """Return what fits messages of the session."""
        given: dict[str, Any] = {"policy": self.policy, "clock": self.clock, "state": self.state}
        return FitStep(kit=FitKit(**{**given, **kit}), state=self.state, key=KEY)


_names = iter(range(1_000_000))


def _named(row: NewRow) -> NewRow:
    return attrs.evolve(row, message=attrs.evolve(row.message, id=f"m{next(_names)}"))


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = FakeClock()
    async with open_agent_state("memory:", clock=clock) as state:
        yield Desk(state, clock)


async def test_a_batch_is_flushed_before_it_is_summarized(desk: Desk) -> None:
    await desk.say(*[100] * 9)
    budget = (await desk.fit(make_flush=lambda _setting: desk)).budget
    assert desk.told == [
        ("flush", 1, 4, 4),
        ("summarize", 4),
        ("flush", 5, 7, 3),
        ("summarize", 3),
    ]
    assert (budget.flush_status, budget.rolled, budget.reason) == ("done", 7, None)


async def test_without_a_memory_nothing_is_flushed(desk: Desk) -> None:
    await desk.say(*[100] * 9)
    assert (await desk.fit()).budget.flush_status == "off"


@pytest.mark.parametrize(
    ("blocks", "rolled", "reason"), [(False, 7, None), (True, 0, "flush_failed")]
)
async def test_a_failed_flush_stops_rolling_only_if_it_blocks(
    desk: Desk, *, blocks: bool, rolled: int, reason: str | None
) -> None:
    desk.flush_status, desk.blocks = "failed", blocks
    await desk.say(*[100] * 9)
    budget = (await desk.fit(make_flush=lambda _setting: desk)).budget
    assert (budget.flush_status, budget.rolled, budget.reason) == ("failed", rolled, reason)


async def test_no_attempt_begins_after_the_time_of_the_turn(desk: Desk) -> None:
    desk.takes_seconds = 61
    await desk.say(*[100] * 9)
    budget = (await desk.fit()).budget
    assert (budget.loops, budget.rolled, budget.reason) == (1, 4, "deadline")


async def test_system_messages_below_the_anchor_are_still_sent(desk: Desk) -> None:
    await desk.say(30, role="system")
    await desk.say(*[100] * 5)
    await desk.say(40, role="system")
    await desk.say(*[100] * 4)
    sent = [(await desk.fit()).prepared for _ in range(2)]
    assert [[m.role for m in each.messages] for each in sent] == [
        ["system", "system", "user", "user", "user"]
    ] * 2
    assert sent[0] == attrs.evolve(
        sent[1], context_budget=sent[0].context_budget, selection=sent[0].selection
    )
    assert sent[1].context_budget is not None
    assert sent[1].context_budget.used == 30 + 40 + 200 + 20 + 100


async def test_nothing_is_condensed_across_an_answer_that_is_being_written(desk: Desk) -> None:
    await desk.say(*[100] * 3)
    await _answer_in_another_turn(desk.state)
    await desk.say(*[100] * 6)
    budget = (await desk.fit()).budget
    stored = await desk.state.summaries.get_rolling(KEY, session_id=None)
    assert stored is not None
    assert (budget.rolled, budget.reason, stored.anchor) == (4, "no_safe_unit", 5)


async def _answer_in_another_turn(state: AgentState) -> None:
    """Begin a turn in the same conversation that has written a part of its answer."""
    lease = timedelta(seconds=30)
    entry = NewEntry(
        ticket_id="other",
        lock_key="another lock",
        conversation=KEY,
        wanted_id=None,
        claim_id=None,
        payload="{}",
        owner="somebody",
    )
    admission = await state.turns.admit(
        entry, policy=ConcurrencyPolicy(), lease=lease, dedupe_ttl=lease
    )
    assert admission.grant is not None
    ctx = StateContext(fence=Fence("another lock", admission.grant.token))
    question = Message("q", "user", ({"type": "text", "text": "x" * 100},))
    await state.turns.record(
        "other", rows=[NewRow(message=question)], session=SessionRequest(conversation=KEY), ctx=ctx
    )
    answer = Message("a", "assistant", ({"type": "text", "text": "I be"},))
    await state.turns.progress("other", answer=NewRow(message=answer, status="pending"), ctx=ctx)


@attrs.define
class Faulty:
    """A store of summaries whose commits are not answered, written or not."""

    state: AgentState
    writes: bool

    @property
    def summaries(self) -> Any:
        """Stand for the store of summaries."""
        return self

    @property
    def transcripts(self) -> Any:
        """Return the rows of the store behind it."""
        return self.state.transcripts

    async def commit_roll(self, *args: Any, **options: Any) -> RollingWrite:
        """Write or do not write, and fail in any case."""
        if self.writes:
            await self.state.summaries.commit_roll(*args, **options)
        raise StateUnavailableError("no answer", outcome="unknown")


@pytest.mark.parametrize(("writes", "sent"), [(True, 6), (False, 10)])
async def test_a_commit_without_an_answer_is_built_from_what_is_stored(
    desk: Desk, *, writes: bool, sent: int
) -> None:
    await desk.say(*[90] * 9)
    fitted = await desk.fit(state=Faulty(desk.state, writes=writes))
    assert (fitted.budget.reason, fitted.budget.rolled) == ("conflict", 0)
    assert len(fitted.prepared.messages) == sent
    assert (fitted.prepared.summary_version == 1) is writes


async def test_the_correction_of_a_session_makes_it_roll_earlier(desk: Desk) -> None:
    await desk.say(*[400] * 4)
    policy = attrs.evolve(desk.policy, estimator="chars4")
    assert (await desk.fit(policy=policy)).budget.rolled == 0
    rolling = await desk.state.summaries.get_rolling(KEY, session_id=None)
    assert rolling is not None
    await desk.state.summaries.set_correction(KEY, session_id=None, since=rolling, correction=2.0)
    budget = (await desk.fit(policy=policy)).budget
    assert (budget.rolled, budget.used) == (2, (200 + 5 + 25) * 2)


async def test_a_correction_does_not_count_where_runes_are_counted(desk: Desk) -> None:
    await desk.say(400)
    rolling = await desk.state.summaries.get_rolling(KEY, session_id=None)
    assert rolling is not None
    await desk.state.summaries.set_correction(KEY, session_id=None, since=rolling, correction=2.0)
    assert (await desk.fit()).budget.used == 500


async def test_the_texts_around_a_summary_are_counted_where_nothing_else_is_told(
    desk: Desk,
) -> None:
    await desk.say(*[100] * 9)
    policy = attrs.evolve(desk.policy, frame_overhead=None, target_ratio=Decimal("0.8"))
    fitted = await desk.fit(policy=policy)
    system = fitted.prepared.system or ""
    texts = sum(len(message.text) for message in fitted.prepared.messages)
    assert fitted.budget.used in range(len(system) + texts, len(system) + texts + 5)


async def test_a_summary_that_is_larger_than_what_it_replaces_is_not_kept(desk: Desk) -> None:
    desk.summary = "s" * 150
    await desk.say(*[30] * 8, 600)
    budget = (await desk.fit(size=50)).budget
    assert (budget.loops, budget.rolled, budget.reason) == (2, 7, "min_verbatim")
    assert [told[1] for told in desk.told] == [4, 7]


async def test_the_time_of_a_turn_is_counted_from_its_first_attempt(desk: Desk) -> None:
    desk.policy = attrs.evolve(desk.policy, turn_deadline=timedelta(seconds=10))
    desk.takes_seconds = 6
    await desk.say(*[50] * 30)
    assert (await desk.fit()).budget.loops == 2


async def test_the_summarizer_is_found_once_in_a_turn_and_not_on_its_event_loop(
    desk: Desk,
) -> None:
    threads: list[threading.Thread] = []

    def build(_setting: SummarizerSetting) -> Summarizer:
        threads.append(threading.current_thread())
        return desk.summarize

    desk.policy = attrs.evolve(desk.policy, summarizer="found")
    await desk.say(*[100] * 20)
    current = Message("current", "user", ({"type": "text", "text": "c" * 100},))
    with plugins.summarizers.using(found=build):
        fitter, source = await desk.step().prepare(current)
        fitted = await fitter.fit(source)
        again = await fitter.fit_again(ContextOverflowError())
        await fitter.tool_loop(fitted, lambda _budget: None).summarizing()
    assert again is not None
    assert desk.told.count(("summarize", 4)) > 1
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
