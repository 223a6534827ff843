"""OpenTelemetry: what a real SDK is told of turns, and that nobody else is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.integrations.otel import instrument, uninstrument
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.testing.clock import FakeClock

SAID = "the text of a message"
WINDOW = {"source": "transcript", "max_messages": 50}
TIGHT = {
    "estimator": "runes",
    "limit": 1000,
    "message_overhead": 0,
    "frame_overhead": 0,
    "min_verbatim": 4,
    "summary_max": 200,
    "summarizer": "extractive",
}


class BoomError(Exception):
    """What the driver raises."""


@attrs.frozen
class Ears:
    """What is heard."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader

    def all(self) -> tuple[ReadableSpan, ...]:
        return self.spans.get_finished_spans()

    def names(self) -> list[str]:
        return [span.name for span in self.all()]

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.all() if span.name == name]
        return found

    def points(self) -> dict[str, dict[tuple[tuple[str, object], ...], Any]]:
        """Return the points of every metric by attributes: sums, or counts and sums."""
        data = self.reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return {
            metric.name: {
                tuple(sorted((point.attributes or {}).items())): _figure(point)
                for point in metric.data.data_points
            }
            for metric in metrics
        }


def _figure(point: Any) -> Any:
    return point.value if hasattr(point, "value") else (point.count, point.sum)


@pytest.fixture
def ears() -> Iterator[Ears]:
    """Listen while a test runs."""
    heard = Ears(InMemorySpanExporter(), InMemoryMetricReader())
    tracers, meters = TracerProvider(), MeterProvider([heard.reader])
    tracers.add_span_processor(SimpleSpanProcessor(heard.spans))
    instrument(tracer_provider=tracers, meter_provider=meters)
    yield heard
    uninstrument()
    tracers.shutdown()
    meters.shutdown()


def make_agent(state: Any, driver: Any = "echo", **options: Any) -> Agent:
    settings = {"trigger_history": WINDOW, **options}
    return define_agent(name="told", driver=driver, capabilities=[chat(settings)], state=state)


async def say(agent: Agent, message_id: str, text: str = SAID, **fields: Any) -> Any:
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
    given = {"messages": [message], "run": {"threadId": "t"}, **fields}
    return await run_agent_trigger(agent, "chat.message", given)


async def test_a_turn_is_one_span_with_what_it_did_inside(ears: Ears) -> None:
    async with open_agent_state("memory:") as state:
        await say(make_agent(state), "m1")

    turn = ears.span("chat.turn")
    assert dict(turn.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "told",
        "gen_ai.conversation.id": "-4:told-1:t",
        "vitehub.chat.status": "complete",
        "vitehub.chat.finish_reason": "stop",
    }
    assert turn.context is not None
    inside = [span for span in ears.all() if span.parent and span.parent == turn.context]
    assert [span.name for span in inside] == [
        "chat.state turns.record",
        "chat.window",
        "chat.state turns.finish",
    ]
    window = ears.span("chat.window").attributes or {}
    assert (window["vitehub.chat.messages"], window["vitehub.chat.cut"]) == (1, 0)
    assert ears.names()[0] == "chat.state turns.admit"


@pytest.mark.parametrize(("url", "system"), [("memory:", "memory"), ("file:{}", "sqlite")])
async def test_a_call_of_the_state_is_a_span_of_its_database(
    ears: Ears, tmp_path: Path, url: str, system: str
) -> None:
    async with open_agent_state(url.format(tmp_path / "state.db")) as state:
        await state.values.get("nothing")

    span = ears.span("chat.state values.get")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes or {}) == {
        "db.operation.name": "values.get",
        "db.system.name": system,
    }


async def test_the_conversation_is_the_session_and_reaches_the_driver_as_baggage(
    ears: Ears,
) -> None:
    seen: list[object] = []

    def driver(_call: DriverCall) -> str:
        seen.append(baggage.get_baggage("gen_ai.conversation.id"))
        seen.append(trace.get_current_span().get_span_context())
        return "done"

    async with open_agent_state("memory:") as state:
        agent = make_agent(state, driver, sessions={"strategy": "manual"})
        result = await say(agent, "m1", session={"action": "new", "id": "s1"})

    turn = ears.span("chat.turn")
    assert result.session_id == "s1"
    assert seen == ["s1", turn.context]
    # Whoever called goes on without it.
    assert baggage.get_baggage("gen_ai.conversation.id") is None
    named = [s.name for s in ears.all() if (s.attributes or {}).get("gen_ai.conversation.id")]
    assert named == ["chat.window", "chat.state turns.finish", "chat.turn"]


async def test_a_failure_is_told_by_its_class_alone(ears: Ears) -> None:
    def driver(_call: DriverCall) -> str:
        raise BoomError(SAID)

    async with open_agent_state("memory:") as state:
        with pytest.raises(BoomError):
            await say(make_agent(state, driver), "m1")

    turn = ears.span("chat.turn")
    assert turn.status.status_code is StatusCode.ERROR
    assert turn.status.description is None
    assert list(turn.events) == []
    assert (turn.attributes or {})["error.type"] == "BoomError"
    assert (turn.attributes or {})["vitehub.chat.status"] == "error"


async def test_condensing_archiving_and_pruning_are_spans_and_metrics(
    ears: Ears, tmp_path: Path
) -> None:
    clock = FakeClock(SystemClock().now())
    async with open_agent_state("memory:", clock=clock) as state:
        agent = make_agent(
            state,
            context=TIGHT,
            memory={"root": str(tmp_path)},
            transcripts={"prune": {"max_messages": 6}},
        )
        parts = [{"type": "text", "text": SAID * 5}]
        rows = [{"id": f"m{number}", "role": "user", "parts": parts} for number in range(14)]
        await agent.conversation("t").append(rows)
        result = await say(agent, "h")

    budget = result.context_budget
    assert budget.rolled > 0
    assert budget.flush_status == "done"
    roll, prune = ears.span("chat.roll"), ears.span("chat.prune")
    flush = next(span for span in ears.all() if span.name == "chat.flush")
    assert (roll.attributes or {})["vitehub.chat.rolled"] == budget.rolled
    assert (flush.attributes or {})["vitehub.chat.status"] == "done"
    assert [flush.parent, roll.parent, prune.parent] == [
        roll.context,
        ears.span("chat.window").context,
        ears.span("chat.turn").context,
    ]
    points = ears.points()
    assert points["vitehub.chat.roll.count"] == {(("outcome", "rolled"),): 1}
    assert points["vitehub.chat.prune.deleted"][("mode", "delete"), ("rule", "count")] > 0
    assert points["vitehub.chat.context.utilization"] == {(): (1, budget.used_pct / 100)}
    assert "vitehub.chat.window.tokens" not in points  # it counts runes
    told = "".join(span.to_json() for span in ears.all()) + repr(points)
    assert "the text" not in told


async def test_tokens_are_measured_where_tokens_are_counted(ears: Ears) -> None:
    async with open_agent_state("memory:") as state:
        result = await say(make_agent(state, context={"limit": 1000}), "m1")

    assert ears.points()["vitehub.chat.window.tokens"] == {(): (1, result.context_budget.used)}


async def test_waiting_turns_are_counted_and_measured(ears: Ears) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def driver(_call: DriverCall) -> str:
        begun.set()
        await release.wait()
        return "done"

    async with open_agent_state("memory:") as state:
        agent = make_agent(state, driver, concurrency="serial")
        first = asyncio.create_task(say(agent, "m1"))
        await begun.wait()
        second = asyncio.create_task(say(agent, "m2"))
        while ears.points().get("vitehub.chat.queue.depth") != {(): 1}:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, second)

    points = ears.points()
    assert points["vitehub.chat.queue.depth"] == {(): 0}
    waits, seconds = points["vitehub.chat.lock.wait"][()]
    assert waits == 2
    assert seconds > 0
    assert points["vitehub.chat.window.messages"] == {(): (2, 1 + 3)}
    assert points["vitehub.chat.turn.duration"].keys() == {(("status", "complete"),)}


async def test_nothing_is_told_after_it_was_ended(ears: Ears) -> None:
    uninstrument()
    async with open_agent_state("memory:") as state:
        await say(make_agent(state), "m1")

    assert ears.names() == []
    assert ears.points() == {}


def run_python(source: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


TURN = """
import asyncio, sys
from vitehub_chat import chat, define_agent, run_agent_trigger
agent = define_agent(name="a", driver="echo", capabilities=[chat()], state="memory:")
part = {"type": "text", "text": "hello"}
given = {"messages": [{"id": "m", "role": "user", "parts": [part]}], "run": {"threadId": "t"}}
async def main():
    async with agent:
        print((await run_agent_trigger(agent, "chat.message", given)).text)
"""


def test_a_program_that_does_not_ask_for_it_does_not_load_opentelemetry() -> None:
    loaded = "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    assert run_python(f"{TURN}\nasyncio.run(main())\n{loaded}") == "You said: hello\n[]\n"


def test_without_a_provider_of_the_application_all_is_silent() -> None:
    enabled = "from vitehub_chat.integrations.otel import instrument\ninstrument()\n"
    assert run_python(f"{TURN}\n{enabled}asyncio.run(main())\n") == "You said: hello\n"


def test_the_missing_extra_is_named() -> None:
    source = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from vitehub_chat.errors import MissingDependencyError\n"
        "try:\n"
        "    import vitehub_chat.integrations.otel\n"
        "except MissingDependencyError as error:\n"
        "    print(error)\n"
    )
    assert "vitehub-chat[otel]" in run_python(source)
