"""Rolling under crashes, failures, races and truncations: what always holds, on two stores."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Sequence
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

import attrs
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.conversation.fit_step import FitStep
from vitehub_chat import open_agent_state
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.fitting import Fitted
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.rolling import Checkpoint, Rolling
from vitehub_chat.model.rows import Row, Truncated
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.values import NewRow, SessionRequest, WindowRequest
from vitehub_chat.testing.clock import FakeClock

T = TypeVar("T")
KEY = ConversationKey(None, "machine", None, "t")
LIMIT, CAP, SUMMARY_MAX, MIN_VERBATIM, MAX_LOOPS = 600, 560, 80, 2, 5

SIZES = st.integers(1, 120)
CURRENT_SIZES = st.integers(100, 400) | st.integers(1, 700)
PLACES = st.floats(0, 1, exclude_max=True)
TEXTS = {"short": "s" * 10, "long": "s" * 80, "far too long": "s" * 400, "blank": " \n"}
ANSWERS = st.sampled_from(["short"] * 4 + ["long", "far too long", "blank", "raises", "dies"])
MEANWHILE = st.sampled_from([None, None, None, "truncate", "clear", "erase", "append", "roll"])


class Killed(BaseException):
    """The process ends where this is raised."""


@attrs.frozen
class Stored:
    """What is stored of the session: its state, its checkpoints and its rows."""

    rolling: Rolling | None
    checkpoints: Sequence[Checkpoint]
    rows: Sequence[Row]


class RollingMachine(RuleBasedStateMachine):
    """One session that is talked in, rolled, cut, cleared and left by dying processes."""

    url: ClassVar[str] = "memory:"

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.mkdtemp()
        self._loop = asyncio.new_event_loop()
        self._count = 0
        self._answers: list[str] = []
        self._meanwhile: str | None = None
        self._calls = 0
        self._late: set[str | None] = set()
        self._clock = FakeClock()
        self._policy = ContextPolicy(
            estimator="runes",
            limit=LIMIT,
            hard_cap=CAP,
            trigger_ratio=Decimal("0.8"),
            target_ratio=Decimal("0.5"),
            batch_messages=2,
            min_verbatim=MIN_VERBATIM,
            max_loops=MAX_LOOPS,
            summary_max=SUMMARY_MAX,
            checkpoints_kept=3,
            frame_overhead=0,
            message_overhead=1,
            retries=1,
            summarizer=self._summarize,
        )
        self._state = self._open()
        self._last = self._wait(self._look())

    def teardown(self) -> None:
        """Close the store and delete its file."""
        self._wait(self._state.aclose())
        self._loop.close()
        shutil.rmtree(self._folder)

    @initialize(sizes=st.lists(SIZES, min_size=6, max_size=8))
    def begin(self, sizes: Sequence[int]) -> None:
        """Begin with some messages."""
        self._say(sizes)

    @rule(sizes=st.lists(SIZES, min_size=2, max_size=8))
    def say(self, sizes: Sequence[int]) -> None:
        """Store a question and its answer, of some sizes."""
        self._say(sizes)

    def _say(self, sizes: Sequence[int]) -> None:
        roles = ["user", "assistant"] * 4
        self._append([(role, [text(size)]) for role, size in zip(roles, sizes, strict=False)])

    @rule(size=SIZES, results=st.integers(0, 2))
    def call_tools(self, size: int, results: int) -> None:
        """Store two calls of a tool in one message, and some of their results in others."""
        names = [f"call-{self._count}-{number}" for number in range(2)]
        called = [{"type": "tool-call", "id": each, "name": "get", "input": {}} for each in names]
        done = [
            {"type": "tool-result", "id": each, "name": "get", "output": "r" * size}
            for each in names[:results]
        ]
        self._append([("assistant", called), *(("tool", [each]) for each in done)])

    @rule(size=st.integers(1, 60))
    def instruct(self, size: int) -> None:
        """Store a system message."""
        self._append([("system", [text(size)])])

    @rule(
        size=CURRENT_SIZES,
        answers=st.lists(ANSWERS, min_size=1, max_size=3),
        meanwhile=MEANWHILE,
    )
    def prepare(self, size: int, answers: list[str], meanwhile: str | None) -> None:
        """Prepare a turn, while something may happen or the process may die."""
        self._answers, self._meanwhile, self._calls, self._late = answers, meanwhile, 0, set()
        fitted: Fitted | None = None
        try:
            fitted = self._wait(self._fit(size))
        except Killed:
            self._go_on_in_another_process()
        self._meanwhile = None
        after = self._wait(self._look())
        if fitted is not None:
            self._check_payload(fitted, after)
        if meanwhile in {None, "append"}:
            self._check_rolled(self._last, after, fitted)

    @precondition(lambda self: self._last.rows)
    @rule(place=PLACES)
    def truncate(self, place: float) -> None:
        """Cut the conversation off somewhere."""
        before = self._last
        row = before.rows[int(place * len(before.rows))]
        cut = self._wait(self._truncate(row))
        after = self._wait(self._look())
        self._check_nothing_covers_what_is_gone(before, after)
        self._check_restored(before, after, cut.summary)

    @precondition(lambda self: self._last.rows)
    @rule(place=PLACES)
    def delete_one(self, place: float) -> None:
        """Delete one message with what belongs to its calls."""
        before = self._last
        row = before.rows[int(place * len(before.rows))]
        self._wait(self._state.transcripts.delete(KEY, message_id=row.message.id or ""))
        self._check_nothing_covers_what_is_gone(before, self._wait(self._look()))

    @precondition(lambda self: self._count % 4 == 0)
    @rule(erases=st.booleans())
    def clear(self, *, erases: bool) -> None:
        """Clear the session, or delete it."""
        self._wait(self._clear(erases=erases))
        after = self._wait(self._look())
        assert (after.rows, after.checkpoints) == ((), ())
        assert after.rolling is None or (after.rolling.summary, after.rolling.anchor) == ("", 1)

    @invariant()
    def what_is_stored_is_sound(self) -> None:
        """Check what is stored, and note it."""
        self._last = self._wait(self._look())
        rolling, throughs = self._last.rolling, [c.through_seq for c in self._last.checkpoints]
        if rolling is None:
            return
        assert len(rolling.summary) <= SUMMARY_MAX
        assert (rolling.anchor == 1) == (not rolling.summary)
        assert throughs == sorted(set(throughs))
        assert [each for each in throughs if each >= rolling.anchor] == []
        earlier = [row for row in self._last.rows if row.seq < rolling.anchor]
        verbatim = [row for row in self._last.rows if row.seq >= rolling.anchor]
        assert ids_of(earlier, "tool-call") & ids_of(verbatim, "tool-result") == set()

    def _check_payload(self, fitted: Fitted, stored: Stored) -> None:
        budget = fitted.budget
        anchor = 1 if stored.rolling is None else stored.rolling.anchor
        known = [row for row in stored.rows if row.message.id not in self._late]
        system = {row.message.id for row in known if row.message.role == "system"}
        verbatim = [row for row in known if row.message.id not in system and row.seq >= anchor]
        sent = [message.id for message in fitted.prepared.messages[:-1]]
        assert {each for each in sent if each in system} == system
        assert [each for each in sent if each not in system] == [
            row.message.id for row in verbatim[budget.trimmed :]
        ]
        assert budget.over or budget.used <= CAP
        assert budget.loops <= MAX_LOOPS

    def _check_rolled(self, before: Stored, after: Stored, fitted: Fitted | None) -> None:
        """Check what a roll did that nothing else came between."""
        assert [row for row in after.rows if row.message.id not in self._late] == list(before.rows)
        old, new = before.rolling, after.rolling
        if old is None or new is None:
            assert (old, new) == (None, None)
            return
        assert new.generation == old.generation
        if (new.anchor, new.summary) == (old.anchor, old.summary):
            assert (new.version, after.checkpoints) == (old.version, before.checkpoints)
            assert fitted is None or fitted.budget.rolled == 0
            return
        assert (new.anchor > old.anchor, new.version > old.version) == (True, True)
        last = after.checkpoints[-1]
        assert (last.through_seq, last.summary) == (new.anchor - 1, new.summary)
        verbatim = [r for r in before.rows if r.message.role != "system" and r.seq >= new.anchor]
        assert len(verbatim) >= MIN_VERBATIM

    @staticmethod
    def _check_nothing_covers_what_is_gone(before: Stored, after: Stored) -> None:
        left = {row.seq for row in after.rows}
        first = min(row.seq for row in before.rows if row.seq not in left)
        assert after.rolling is not None
        assert after.rolling.anchor <= first
        assert [each for each in after.checkpoints if each.through_seq >= first] == []

    @staticmethod
    def _check_restored(before: Stored, after: Stored, told: str) -> None:
        old, new = before.rolling, after.rolling
        assert old is not None
        assert new is not None
        if told == "kept":
            assert (new.summary, new.anchor, new.version) == (old.summary, old.anchor, old.version)
            return
        known = {each.through_seq: each.summary for each in before.checkpoints}
        expected = known[new.anchor - 1] if told == "restored" else ""
        assert (new.summary, new.version) == (expected, old.version + 1)

    async def _fit(self, size: int) -> Fitted:
        kit = FitKit(policy=self._policy, clock=self._clock, state=self._state)
        current = Message("current", "user", ({"type": "text", "text": "c" * size},))
        return await FitStep(kit=kit, state=self._state, key=KEY).fit(current)

    async def _summarize(
        self, _previous: str, messages: Sequence[Message], **_limits: object
    ) -> str:
        assert messages
        answer = self._answers[min(self._calls, len(self._answers) - 1)]
        self._calls += 1
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await self._happen(meanwhile)
        if answer == "dies":
            raise Killed
        if answer == "raises":
            raise RuntimeError("no summary today")
        return TEXTS[answer]

    async def _happen(self, what: str) -> None:
        """Do something while a summary is being written."""
        if what == "append":
            late = [self._row("user", [text(30)]), self._row("system", [text(5)])]
            self._late = {row.message.id for row in late}
            await self._state.transcripts.append(SessionRequest(conversation=KEY), rows=late)
        elif what == "roll":
            answers, calls = self._answers, self._calls
            self._answers, self._calls = ["short"], 0
            await self._fit(300)
            self._answers, self._calls = answers, calls
        elif what == "truncate":
            rows = (await self._look()).rows
            if rows:
                await self._truncate(rows[len(rows) // 2])
        else:
            await self._clear(erases=what == "erase")

    async def _truncate(self, row: Row) -> Truncated:
        request = TruncateRequest(message_id=row.message.id or "")
        return await self._state.transcripts.truncate(KEY, request=request)

    async def _clear(self, *, erases: bool) -> None:
        await self._state.sessions.clear(KEY, session_id=None, delete_session=erases)

    def _append(self, messages: Sequence[tuple[str, list[dict[str, Any]]]]) -> None:
        rows = [self._row(role, parts) for role, parts in messages]
        self._wait(self._state.transcripts.append(SessionRequest(conversation=KEY), rows=rows))

    def _row(self, role: str, parts: list[dict[str, Any]]) -> NewRow:
        self._count += 1
        return NewRow(message=Message(f"m{self._count}", role, tuple(parts)))

    async def _look(self) -> Stored:
        everything = WindowRequest(limit=10_000, whole_conversation=True)
        window = await self._state.transcripts.window(KEY, session=None, window=everything)
        rolling = await self._state.summaries.get_rolling(KEY, session_id=None)
        checkpoints = await self._state.summaries.get_checkpoints(KEY, session_id=None)
        return Stored(rolling, tuple(checkpoints), window.shown)

    def _go_on_in_another_process(self) -> None:
        """Leave what is in memory behind; a store in memory lives as long as its process."""
        if self.url.startswith("file:"):
            self._wait(self._state.aclose())
            self._state = self._open()

    def _open(self) -> AgentState:
        url = self.url.format(folder=self._folder)
        state = open_agent_state(url, clock=self._clock)
        self._wait(state.__aenter__())
        return state

    def _wait(self, awaitable: Awaitable[T]) -> T:
        async def wait() -> T:
            return await awaitable

        return self._loop.run_until_complete(wait())


def text(size: int) -> dict[str, Any]:
    """Return a text part of a size."""
    return {"type": "text", "text": "x" * size}


def ids_of(rows: Sequence[Row], kind: str) -> set[str]:
    """Return the ids of the calls or results in some rows."""
    parts = (part for row in rows for part in row.message.to_json()["parts"])
    return {part["id"] for part in parts if part["type"] == kind}


class OnMemory(RollingMachine):
    """In memory; a process that dies leaves what it had written."""


class OnFile(RollingMachine):
    """In a file, which the next process opens."""

    url = "file:{folder}/state.db"


BOUNDS = settings(
    max_examples=120,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestRollingOnMemory = OnMemory.TestCase
TestRollingOnMemory.settings = BOUNDS
TestRollingOnFile = OnFile.TestCase
TestRollingOnFile.settings = settings(BOUNDS, max_examples=50)
