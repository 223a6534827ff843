"""Turns that cannot condense: how they are counted, and when that is an error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

import attrs
import pytest

from tests.conversation.test_rolling import KEY, Desk
from vitehub_chat import open_agent_state
from vitehub_chat.errors import ContextOverflowError, StateUnavailableError
from vitehub_chat.model.messages import Message
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock


class FailingDesk(Desk):
    """A desk whose summarizer may raise, and may have the session cleared before that."""

    raises = True
    clears = False

    async def summarize(
        self, _previous: str, messages: Sequence[Message], **_limits: object
    ) -> str:
        """Condense or raise."""
        summary = await super().summarize(_previous, messages, **_limits)
        if self.clears:
            await self.state.sessions.clear(KEY)
        if self.raises:
            raise RuntimeError("it cannot")
        return summary

    async def rolling(self) -> Rolling:
        """Return what is stored."""
        found = await self.state.summaries.get_rolling(KEY, session_id=None)
        assert found is not None
        return found

    async def turn(self, size: int = 100, **kit: Any) -> str | None:
        """Fit a current message of a size, and return why it was not condensed."""
        return (await self.fit(size, **kit)).budget.reason


@pytest.fixture
async def desk() -> AsyncIterator[FailingDesk]:
    clock = FakeClock()
    async with open_agent_state("memory:", clock=clock) as state:
        yield FailingDesk(state, clock)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    """Return the level of every event of a failed turn, and how many in a row it told."""
    found = [each for each in caplog.records if each.getMessage() == "chat.context.roll_failed"]
    return [(each.levelname, vars(each)["failures"]) for each in found]


ALARMED = [("WARNING", 1), ("WARNING", 2), ("ERROR", 3), ("ERROR", 4)]


@pytest.mark.parametrize("retries", [0, 1, 2])
@pytest.mark.parametrize("seconds", [0, 61])
async def test_failed_turns_are_counted_however_many_tries_they_had(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture, retries: int, seconds: int
) -> None:
    desk.policy = attrs.evolve(desk.policy, retries=retries)
    desk.takes_seconds = seconds
    await desk.say(*[100] * 9)
    reasons = [await desk.turn() for _ in range(4)]
    is_late = seconds and retries
    assert reasons == ["deadline" if is_late else "summarizer_failed"] * 4
    assert len(desk.told) == 4 * (1 if seconds else retries + 1)
    assert told(caplog) == ALARMED
    rolling = await desk.rolling()
    assert (rolling.fail_count, rolling.last_error) == (4, "RuntimeError")


async def test_a_flush_that_blocks_is_a_failed_turn(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.flush_status, desk.blocks = "failed", True
    await desk.say(*[100] * 9)
    reasons = [await desk.turn(make_flush=lambda _setting: desk) for _ in range(4)]
    assert reasons == ["flush_failed"] * 4
    assert told(caplog) == ALARMED
    assert (await desk.rolling()).last_error == "flush_failed"


async def test_a_summary_that_gains_nothing_is_a_failed_turn(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.raises, desk.summary = False, "s" * 100
    desk.policy = attrs.evolve(desk.policy, min_verbatim=0, target_ratio=Decimal("0.1"))
    await desk.say(*[10] * 9)
    assert [await desk.turn(900) for _ in range(4)] == ["no_gain"] * 4
    assert told(caplog) == ALARMED
    assert (await desk.rolling()).last_error == "no_gain"


async def test_a_turn_that_condenses_begins_the_count_anew(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.say(*[100] * 9)
    for _ in range(2):
        await desk.turn()
    desk.raises = False
    assert await desk.turn() is None
    assert (await desk.rolling()).fail_count == 0
    desk.raises = True
    await desk.say(*[100] * 9)
    await desk.turn()
    assert told(caplog) == [("WARNING", 1), ("WARNING", 2), ("WARNING", 1)]


async def test_a_turn_that_fails_twice_is_one_failed_turn(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.say(*[100] * 9)
    fitter, source = await desk.step().prepare(
        Message("current", "user", ({"type": "text", "text": "c" * 100},))
    )
    await fitter.fit(source)
    await fitter.fit_again(ContextOverflowError("too long"))
    assert len(desk.told) == 2
    assert told(caplog) == [("WARNING", 1), ("WARNING", 1)]
    assert (await desk.rolling()).fail_count == 1


async def test_nothing_is_tried_again_in_a_session_that_was_cleared_meanwhile(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.policy = attrs.evolve(desk.policy, retries=2)
    desk.clears = True
    await desk.say(*[100] * 9)
    assert await desk.turn() == "session_changed"
    assert len(desk.told) == 1
    assert told(caplog) == []
    assert (await desk.rolling()).fail_count == 0


@attrs.define
class Uncounting:
    """A store that cannot count failures."""

    state: AgentState

    @property
    def summaries(self) -> Any:
        """Stand for the store of summaries."""
        return self

    @property
    def transcripts(self) -> Any:
        """Return the rows of the store behind it."""
        return self.state.transcripts

    async def get_rolling(self, *args: Any, **options: Any) -> Rolling | None:
        """Read as the store behind it."""
        return await self.state.summaries.get_rolling(*args, **options)

    async def note_failure(self, *_args: Any, **_options: Any) -> None:
        """Fail."""
        raise StateUnavailableError("no answer", outcome="unknown")


async def test_a_failed_turn_is_told_although_it_cannot_be_counted(
    desk: FailingDesk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.say(*[100] * 9)
    for _ in range(2):
        await desk.turn()
    assert await desk.turn(state=Uncounting(desk.state)) == "summarizer_failed"
    assert told(caplog) == ALARMED[:3]
    assert (await desk.rolling()).fail_count == 2
