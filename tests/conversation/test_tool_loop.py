"""The tool loop of one turn: finished calls become a block when the requests grow too large."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from vitehub_chat.conversation.rolling import Attempts
from vitehub_chat.conversation.sizing import CountCache, Sizer
from vitehub_chat.conversation.summarizing import Summarizing
from vitehub_chat.conversation.tool_loop import ToolLoop
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import ModelPart, TextPart, ToolCallPart, ToolResultPart
from vitehub_chat.selection.limits import limits_for
from vitehub_chat.selection.tokens import RUNES
from vitehub_chat.testing.clock import FakeClock

BASE = [Message("u", "user", (TextPart("q" * 100),))]
LIMIT = 1000


def exchange(number: int, size: int, *, is_complete: bool = True) -> Message:
    """Return a call of a tool, with its result if it has one."""
    parts: list[ModelPart] = [ToolCallPart(f"c{number}", "get")]
    if is_complete:
        parts.append(ToolResultPart(f"c{number}", "get", "r" * (size - 3)))
    return Message(f"step-{number}", "assistant", tuple(parts))


class Desk:
    """A loop of one turn, with its scripted summarizer."""

    def __init__(self, *answers: str | Exception, **policy: Any) -> None:
        self.shown: list[tuple[str, list[str | None]]] = []
        self.sizes: list[int] = []
        self._answers = list(answers) or ["s" * 20]
        given = {"limit": LIMIT, "message_overhead": 0, "retries": 0, "max_loops": 48, **policy}
        chosen = ContextPolicy(**given)
        sizer = Sizer(counter=RUNES, policy=chosen, cache=CountCache())
        limits = limits_for(chosen, "runes", None)
        clock = FakeClock()
        self.summarizing = Summarizing(
            summarizer=self.summarize, sizer=sizer, limits=limits, policy=chosen, clock=clock
        )
        self.attempts = Attempts(most=chosen.max_loops)
        self.loop = ToolLoop(
            base=len(BASE),
            base_used=100,
            sizer=sizer,
            limits=limits,
            summarizing=self.make_summarizing,
            clock=clock,
            attempts=self.attempts,
            correction=Decimal(1),
            changed=self.sizes.append,
            ids={},
        )

    async def make_summarizing(self) -> Summarizing:
        return self.summarizing

    async def summarize(self, previous: str, messages: Sequence[Message], **_limits: object) -> str:
        """Give the next answer; the last one is given again."""
        self.shown.append((previous, [message.id for message in messages]))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self, *exchanges: Message) -> list[str | None]:
        """Ask before a request, and return the ids of what is sent."""
        return [message.id for message in await self.loop([*BASE, *exchanges])]


async def test_what_is_small_is_sent_as_it_is() -> None:
    desk = Desk()
    given = [*BASE, *(exchange(number, 200) for number in range(3))]
    assert await desk.loop(given) is given
    assert (desk.loop.has_changed, desk.shown) == (False, [])


async def test_all_complete_exchanges_but_the_newest_two_become_a_block() -> None:
    desk = Desk()
    sent = await desk.ask(*(exchange(number, 200) for number in range(5)))
    assert sent == ["u", "condensed-steps", "step-3", "step-4"]
    assert desk.shown == [("", ["step-0", "step-1", "step-2"])]
    assert (desk.loop.has_changed, desk.attempts.made) == (True, 1)


async def test_the_block_is_framed_and_stays_in_later_requests() -> None:
    desk = Desk("what was found")
    first = [exchange(number, 200) for number in range(5)]
    await desk.ask(*first)
    sent = await desk.loop([*BASE, *first, exchange(5, 100)])
    assert sent[1].role == "user"
    assert sent[1].text.startswith("<conversation-summary>\n")
    assert "\nwhat was found\n" in sent[1].text
    assert [message.id for message in sent] == [
        *("u", "condensed-steps", "step-3", "step-4", "step-5")
    ]
    assert len(desk.shown) == 1


async def test_an_exchange_without_all_results_stays() -> None:
    desk = Desk()
    open_one = exchange(0, 200, is_complete=False)
    sent = await desk.ask(open_one, *(exchange(number, 250) for number in range(1, 5)))
    assert sent == ["u", "condensed-steps", "step-0", "step-3", "step-4"]


async def test_fewer_than_three_complete_exchanges_are_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "vitehub_chat")
    desk = Desk()
    assert await desk.ask(exchange(0, 400), exchange(1, 390)) == ["u", "step-0", "step-1"]
    (record,) = caplog.records
    assert record.getMessage() == "chat.context.checkpoint_skipped"
    assert (vars(record)["why"], vars(record)["alias"]) == (
        "too_few",
        "chat_agent_context_compact_skipped",
    )


async def test_there_is_one_summary_in_two_requests_at_most() -> None:
    desk = Desk()
    steps = [exchange(number, 170) for number in range(5)]
    await desk.ask(*steps)
    steps += [exchange(number, 100) for number in range(5, 8)]
    assert await desk.ask(*steps[:7]) == [
        *("u", "condensed-steps", "step-3", "step-4", "step-5", "step-6")
    ]
    assert await desk.ask(*steps) == ["u", "condensed-steps", "step-6", "step-7"]
    assert desk.shown[1] == ("s" * 20, ["step-3", "step-4", "step-5"])


async def test_a_batch_that_cannot_gain_a_tenth_is_not_summarized() -> None:
    desk = Desk()
    sent = await desk.ask(exchange(0, 50), exchange(1, 400), exchange(2, 400))
    assert (sent, desk.shown) == (["u", "step-0", "step-1", "step-2"], [])


async def test_a_summary_that_gains_too_little_is_not_used() -> None:
    desk = Desk("s" * 150, summary_max=200)
    sent = await desk.ask(exchange(0, 150), exchange(1, 350), exchange(2, 350))
    assert (sent, len(desk.shown)) == (["u", "step-0", "step-1", "step-2"], 1)
    assert desk.loop.has_changed is False


async def test_after_a_failure_the_oldest_leave_with_a_line_until_it_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk(RuntimeError("secret"))
    given = [*BASE, *(exchange(number, 300) for number in range(5))]
    sent = await desk.loop(given)
    assert [message.id for message in sent] == ["u", "condensed-steps", "step-3", "step-4"]
    assert sent[1].text == "[3 earlier messages are not shown]"
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (
        "WARNING",
        "chat.context.checkpoint_failed",
    )
    assert (vars(record)["error"], vars(record)["left_out"]) == ("RuntimeError", 3)
    assert desk.sizes == [100 + len(sent[1].text) + 600]


async def test_a_failure_leaves_everything_where_it_fits() -> None:
    desk = Desk(RuntimeError())
    steps = [exchange(number, 200) for number in range(4)]
    assert await desk.ask(*steps) == ["u", "step-0", "step-1", "step-2", "step-3"]


async def test_what_does_not_fit_at_all_is_left_to_the_provider() -> None:
    desk = Desk(RuntimeError())
    open_ones = [exchange(number, 0, is_complete=False) for number in range(3)]
    big = Message("step-9", "assistant", (TextPart("t" * 2000),))
    assert await desk.ask(*open_ones, big) == ["u", "step-0", "step-1", "step-2", "step-9"]


async def test_they_count_towards_the_attempts_of_the_turn() -> None:
    desk = Desk(max_loops=1)
    steps = [exchange(number, 200) for number in range(5)]
    desk.attempts.made = 1
    assert await desk.ask(*steps) == [
        "u",
        "condensed-steps",
        "step-1",
        "step-2",
        "step-3",
        "step-4",
    ]
    assert desk.shown == []
