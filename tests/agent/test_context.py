"""Turns of an agent that condenses: what the driver gets, and what is told and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.agent.support import THREAD, TRANSCRIPT, Recorder, agent_of, run, say, turn
from vitehub_chat import (
    Agent,
    Capability,
    DriverCall,
    RunResult,
    ToolSpec,
    chat,
    define_agent,
    prepare_agent_trigger,
    stream_agent_trigger,
)
from vitehub_chat.agent.capability import InvocationContext
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning, ContextOverflowError
from vitehub_chat.formatting.cleaning import BACKGROUND
from vitehub_chat.model.events import (
    BudgetChanged,
    Done,
    DriverEvent,
    RunFinished,
    TextDelta,
    Usage,
)
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import TextPart
from vitehub_chat.model.plans import PlanSummary

WINDOW = {**TRANSCRIPT, "max_messages": 1000}
CONTEXT: dict[str, Any] = {
    "estimator": "runes",
    "message_overhead": 0,
    "frame_overhead": 0,
    "limit": 1000,
    "target_ratio": 0.5,
    "min_verbatim": 2,
    "summary_max": 100,
    "retries": 0,
}


class Summarizer:
    """Answers with the first word of each message it is shown, after an event if one is given."""

    def __init__(self, *errors: Exception, gate: asyncio.Event | None = None) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self.arrivals = asyncio.Queue[int]()
        self._errors = list(errors)
        self._gate = gate

    async def __call__(self, previous: str, messages: Sequence[Message], **_limits: object) -> str:
        self.calls.append((previous, [message.text for message in messages]))
        await self.arrivals.put(len(self.calls))
        if self._gate is not None:
            await self._gate.wait()
        if self._errors:
            raise self._errors.pop(0)
        return f"summary {len(self.calls)}"


def condensing(driver: Any, summarizer: Any = None, **options: Any) -> Agent:
    context = {**CONTEXT, "summarizer": summarizer, **options}
    return agent_of(driver, "memory:", trigger_history=WINDOW, context=context)


async def talk(agent: Agent, *sizes: int, thread: str = "t") -> list[RunResult]:
    """Say texts of some sizes, one after the other."""
    return [await run(agent, turn(say("u" * size), thread=thread)) for size in sizes]


def budgets(results: Sequence[RunResult]) -> list[tuple[int, int, int, str | None]]:
    found = [result.context_budget for result in results]
    return [(b.used, b.rolled, b.trimmed, b.reason) for b in found if b is not None]


async def test_the_oldest_messages_become_a_summary_when_the_rest_no_longer_fits() -> None:
    driver, summarizer = Recorder(), Summarizer()
    async with condensing(driver, summarizer) as agent:
        results = await talk(agent, *[200] * 6)
        plan = await agent.conversation("t").plan()
        stored = await agent.conversation("t").history(limit=100)
        summary = await agent.conversation("t").get_summary("rolling")
    assert budgets(results) == [
        (200, 0, 0, None),
        (408, 0, 0, None),
        (616, 0, 0, None),
        (824, 0, 0, None),
        (417, 6, 0, None),
        (625, 0, 0, None),
    ]
    assert summarizer.calls[0] == ("", ["u" * 200, "answer 1", "u" * 200, "answer 2"])
    assert summarizer.calls[1][0] == "summary 1"
    assert driver.calls[3].system is None
    assert driver.calls[4].system == (
        f"<conversation-summary>\n{BACKGROUND}\n\nsummary 2\n</conversation-summary>"
    )
    current = f"<current-message>\n{'u' * 200}\n</current-message>"
    assert driver.texts[4] == ["u" * 200, "answer 4", current]
    assert [call.text for call in driver.calls] == ["u" * 200] * 6
    assert [row.message.text for row in stored.items[:2]] == ["u" * 200, "answer 1"]
    assert len(stored.items) == 12
    assert plan is not None
    assert plan.summary == PlanSummary(2, 6)
    assert summary is not None
    assert (summary.text, summary.through_seq) == ("summary 2", 6)


async def test_every_result_tells_the_budget_and_streams_tell_it_before_the_answer() -> None:
    async with condensing(Recorder(), Summarizer()) as agent:
        await talk(agent, *[200] * 4)
        given = turn(say("u" * 200))
        stream = stream_agent_trigger(agent, "chat.message", given, output="events")
        events = [event async for event in stream]
        result = await stream.result()
    budget = result.context_budget
    assert budget is not None
    assert result.prepared is not None
    assert result.prepared.context_budget == budget
    kinds = [type(event) for event in events]
    assert kinds.index(BudgetChanged) < kinds.index(TextDelta)
    assert [event.budget for event in events if isinstance(event, BudgetChanged | RunFinished)] == [
        budget,
        budget,
    ]
    assert budget.to_json() == {
        "used": 417,
        "limit": 1000,
        "used_pct": 41.7,
        "unit": "runes",
        "estimator": "runes",
        "loops": 2,
        "rolled": 6,
        "trimmed": 0,
        "over": False,
        "reason": None,
        "summary_through_seq": 6,
        "flush_status": "off",
        "resolved_window": True,
        "used_runes": 417,
        "limit_runes": 1000,
    }


async def test_the_selection_says_what_was_condensed_and_how_large_the_rest_is() -> None:
    async with condensing(Recorder(), Summarizer()) as agent:
        results = await talk(agent, *[200] * 5)
    assert results[-1].prepared is not None
    assert [(e.seq, e.reason, e.tokens) for e in results[-1].prepared.selection] == [
        *((seq, "rolled", 200 if seq % 2 else 8) for seq in range(1, 7)),
        (7, "window", 200),
        (8, "window", 8),
        (None, "current", 200),
    ]


async def test_a_dry_run_condenses_nothing_and_tells_what_would_not_fit() -> None:
    summarizer = Summarizer()
    async with condensing(Recorder(), summarizer) as agent:
        await talk(agent, *[200] * 4)
        prepared = await prepare_agent_trigger(agent, "chat.message", turn(say("u" * 400)))
        again = await prepare_agent_trigger(agent, "chat.message", turn(say("u" * 400)))
        rolling = await agent.conversation("t").get_summary("rolling")
    assert (summarizer.calls, rolling, again) == ([], None, prepared)
    assert prepared.context_budget is not None
    assert (prepared.context_budget.used, prepared.context_budget.trimmed) == (824, 3)
    assert [e.reason for e in prepared.selection] == ["trimmed"] * 3 + ["window"] * 5 + ["current"]
    assert prepared.system == "[3 earlier messages are not shown]"


async def test_a_summary_may_stand_in_a_message_of_the_user() -> None:
    driver = Recorder()
    async with condensing(
        driver, Summarizer(), summary_placement="user", wrap_current=False
    ) as agent:
        await talk(agent, *[200] * 5)
    assert driver.calls[-1].system is None
    assert [message.role for message in driver.calls[-1].messages] == [
        *("user", "user", "assistant", "user")
    ]
    assert driver.texts[-1][0].startswith("<conversation-summary>")
    assert driver.texts[-1][-1] == "u" * 200


async def test_supplied_history_is_only_trimmed_and_the_option_warns() -> None:
    driver, summarizer = Recorder(), Summarizer()
    context = {**CONTEXT, "summarizer": summarizer}
    with pytest.warns(ConfigOverrideWarning, match="condenses nothing"):
        capability = chat({"trigger_history": THREAD, "context": context})
    agent = define_agent(name="a", driver=driver, capabilities=[capability])
    async with agent:
        result = await run(agent, turn(*(say("u" * 300, f"m{n}") for n in range(4)), say("now")))
    assert budgets([result]) == [(903, 0, 1, None)]
    assert (len(driver.texts[0]), summarizer.calls) == (4, [])
    assert driver.calls[0].system == "[1 earlier messages are not shown]"


async def test_a_summarizer_that_fails_changes_nothing_but_what_does_not_fit() -> None:
    driver = Recorder()
    summarizer = Summarizer(*[RuntimeError("no")] * 10)
    async with condensing(driver, summarizer) as agent:
        results = await talk(agent, *[200] * 6)
        stored = await agent.conversation("t").history(limit=100)
    assert budgets(results)[4:] == [
        (816 + 16, 0, 1, "summarizer_failed"),
        (832, 0, 3, "summarizer_failed"),
    ]
    assert [result.status for result in results] == ["complete"] * 6
    assert len(stored.items) == 12


async def test_ten_failures_leave_the_history_that_the_model_sees_as_large_as_it_was() -> None:
    driver = Recorder()
    summarizer = Summarizer(*[RuntimeError("no")] * 10)
    async with condensing(driver, summarizer, trigger_ratio=0.6) as agent:
        await talk(agent, *[40] * 20)
        stored = await agent.conversation("t").history(limit=100)
    assert len(summarizer.calls) == 8
    assert len(driver.texts[-1]) == len(stored.items) - 1


class Model:
    """A driver with a model, that refuses some calls and reports usage."""

    kind = "model"
    profile = None
    model: str | None = "test:model"
    window_tokens: int | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self, *refusals: Exception, usage: Usage | None = None, text: str = "") -> None:
        self.calls: list[DriverCall] = []
        self.refusals = list(refusals)
        self.usage = usage
        self._text = text

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        """Answer one call, or refuse it."""
        self.calls.append(call)
        if self._text:
            yield TextDelta("text", self._text)
        if self.refusals:
            raise self.refusals.pop(0)
        yield TextDelta("text", f"answer {len(self.calls)}")
        if self.usage is not None:
            yield self.usage
        yield Done("stop")

    async def aclose(self) -> None:
        """Hold nothing."""


async def test_by_default_the_driver_s_model_condenses_without_tools_and_history() -> None:
    driver = Model()
    async with condensing(driver) as agent:
        results = await talk(agent, *[200] * 5)
        summary = await agent.conversation("t").get_summary("rolling")
    asked = [call for call in driver.calls if (call.system or "").startswith("You keep")]
    assert [(call.tools, len(call.messages), call.native) for call in asked] == [((), 1, {})] * 3
    assert f'<m n="1" role="user">{"u" * 200}</m>' in asked[0].text
    assert summary is not None
    assert summary.text == "answer 7"
    assert results[-1].context_budget is not None
    assert results[-1].context_budget.rolled == 6


async def test_a_driver_without_a_model_gets_an_extract() -> None:
    async with condensing(Recorder()) as agent:
        await talk(agent, *[200] * 5)
        summary = await agent.conversation("t").get_summary("rolling")
    assert summary is not None
    assert summary.text == "- assistant: answer 3"


async def test_a_named_summarizer_without_a_model_is_an_error_that_names_the_option() -> None:
    async with condensing(Recorder(), "driver") as agent:
        with pytest.raises(ConfigError) as caught:
            await talk(agent, *[200] * 5)
    assert caught.value.path == "context.summarizer"


async def test_a_call_that_the_model_refuses_is_made_smaller_and_tried_once_more() -> None:
    driver = Model()
    async with condensing(driver, Summarizer(), estimator="chars4") as agent:
        await talk(agent, *[800] * 3)
        driver.refusals = [ContextOverflowError(reported=1612)]
        (result,) = await talk(agent, 800)
    assert [len(call.messages) for call in driver.calls] == [1, 3, 5, 7, 3]
    assert budgets([result]) == [((200 + 2 + 200 + 3) * 2, 4, 0, "min_verbatim")]
    assert result.text == "answer 5"


async def test_estimates_stay_corrected_in_the_session() -> None:
    driver = Model(ContextOverflowError(reported=600))
    async with condensing(driver, Summarizer(), estimator="chars4") as agent:
        first, second = await talk(agent, 800, 4)
    assert first.context_budget is not None
    assert second.context_budget is not None
    assert first.context_budget.used == 600
    assert second.context_budget.used == (200 + 2 + 1) * 3


async def test_a_second_refusal_goes_to_the_caller() -> None:
    driver = Model(*(ContextOverflowError(reported=2000) for _ in range(2)))
    async with condensing(driver, Summarizer(), estimator="chars4") as agent:
        with pytest.raises(ContextOverflowError):
            await talk(agent, 100)
    assert len(driver.calls) == 2


async def test_a_refusal_after_something_was_said_is_not_tried_again() -> None:
    driver = Model(ContextOverflowError(reported=2000), text="I begin")
    async with condensing(driver, Summarizer(), estimator="chars4") as agent:
        with pytest.raises(ContextOverflowError):
            await talk(agent, 800)
        (after,) = await talk(agent, 4)
    assert len(driver.calls) == 2
    assert after.context_budget is not None
    assert (after.context_budget.used, after.context_budget.trimmed) == (10, 1)


async def test_a_report_of_the_model_counts_instead_of_the_estimate_until_something_changes() -> (
    None
):
    driver = Model(usage=Usage(700, 50, "test:model"))
    async with condensing(driver, Summarizer(), estimator="chars4") as agent:
        first, second = await talk(agent, 40, 40)
        driver.model = "test:other"
        (third,) = await talk(agent, 40)
    used = [each.context_budget.used for each in (first, second, third) if each.context_budget]
    assert used == [10, 760, 10 + 2 + 10 + 2 + 10]


class Instructing(Capability):
    """Puts a message before the others, and instructions."""

    name = "instructing"

    async def prepare(self, ctx: InvocationContext, /) -> None:
        """Change what the driver gets."""
        ctx.instructions = "Be brief."
        ctx.messages.insert(0, Message("facts", "user", (TextPart("f" * 50),)))


async def test_what_capabilities_add_is_counted_sent_and_never_condensed() -> None:
    driver, summarizer = Recorder(), Summarizer()
    context = {**CONTEXT, "summarizer": summarizer}
    capability = chat({"trigger_history": WINDOW, "context": context})
    agent = define_agent(
        name="a", driver=driver, capabilities=[capability, Instructing()], state="memory:"
    )
    async with agent:
        results = await talk(agent, *[200] * 5)
    assert budgets(results)[0] == (200 + 50 + len("Be brief."), 0, 0, None)
    assert driver.calls[-1].messages[0].id == "facts"
    assert (driver.calls[-1].system or "").startswith("Be brief.\n\n<conversation-summary>")
    assert all("f" * 50 not in texts for _, texts in summarizer.calls)


async def test_a_turn_that_is_stopped_while_it_condenses_leaves_the_summary_as_it_was() -> None:
    gate = asyncio.Event()
    summarizer = Summarizer(gate=gate)
    async with condensing(Recorder(), summarizer) as agent:
        await talk(agent, *[200] * 4)
        stream = stream_agent_trigger(agent, "chat.message", turn(say("u" * 200)), output="events")
        reader = asyncio.create_task(_read(stream))
        await summarizer.arrivals.get()
        stream.stop()
        await reader
        result = await stream.result()
        summary = await agent.conversation("t").get_summary("rolling")
        gate.set()
        (after,) = await talk(agent, 10)
    assert (result.status, summary) == ("interrupted", None)
    assert after.context_budget is not None
    assert after.context_budget.rolled == 7


async def _read(stream: AsyncIterator[object]) -> None:
    async for _ in stream:
        pass


async def test_two_turns_at_once_keep_one_roll_and_answer_both() -> None:
    gate = asyncio.Event()
    summarizer = Summarizer(gate=gate)
    context = {**CONTEXT, "summarizer": summarizer, "target_ratio": 0.88}
    agent = agent_of(
        Recorder(), "memory:", trigger_history=WINDOW, context=context, concurrency="parallel"
    )
    async with agent:
        gate.set()
        await talk(agent, *[200] * 4)
        gate.clear()
        both = [asyncio.create_task(talk(agent, 100 + n)) for n in range(2)]
        assert [await summarizer.arrivals.get() for _ in both] == [1, 2]
        gate.set()
        results = [result for (result,) in await asyncio.gather(*both)]
        checkpoints = await (await agent.open_state()).summaries.get_checkpoints(
            agent.conversation("t").key, session_id=None
        )
    assert [result.status for result in results] == ["complete"] * 2
    found = [result.context_budget for result in results if result.context_budget]
    assert sorted(str(budget.reason) for budget in found) == ["None", "conflict"]
    assert [each.summary_through_seq for each in found] == [4, 4]
    assert [each.through_seq for each in checkpoints] == [4]


async def test_events_tell_counts_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "vitehub_chat")
    summarizer = Summarizer(*[RuntimeError("secret")] * 3)
    async with condensing(Recorder(), summarizer, failure_alarm=2) as agent:
        await talk(agent, *[200] * 8)
    told = [(r.levelname, r.getMessage()) for r in caplog.records if "context." in r.getMessage()]
    assert told == [
        ("WARNING", "chat.context.roll_failed"),
        ("WARNING", "chat.context.trimmed"),
        ("ERROR", "chat.context.roll_failed"),
        ("WARNING", "chat.context.trimmed"),
        ("ERROR", "chat.context.roll_failed"),
        ("WARNING", "chat.context.trimmed"),
        ("INFO", "chat.context.rolled"),
    ]
    rolled = next(r for r in caplog.records if r.getMessage() == "chat.context.rolled")
    assert vars(rolled)["rolled"] == 12
    assert "secret" not in caplog.text
    assert "uuuu" not in caplog.text
