"""OpenTelemetry: spans and metrics of turns and of what they store. Needs the extra `otel`.

    from vitehub_chat.integrations.otel import instrument

    instrument()

Nothing is told before that. It goes to the tracer and meter provider of the application; without
one OpenTelemetry drops it. Attributes are ids, counts and durations, never the text of a message,
and of an error only its class.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from vitehub_chat.distributions import our_version
from vitehub_chat.errors import MissingDependencyError
from vitehub_chat.model import observing
from vitehub_chat.model.observing import CONVERSATION_ID, Fact, Measure

try:
    from opentelemetry import baggage, context, metrics, trace
    from opentelemetry.trace import SpanKind, StatusCode
except ModuleNotFoundError as error:
    raise MissingDependencyError("OpenTelemetry", extra="otel") from error

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

SCOPE: Final = "vitehub_chat"
ERROR_TYPE: Final = "error.type"

_HISTOGRAMS: Final[Mapping[Measure, tuple[str, str]]] = {
    "window.messages": ("{message}", "Messages that a call is given, the current one included."),
    "window.tokens": ("{token}", "Estimated tokens that a call is given."),
    "context.utilization": ("1", "Which part of its budget a call uses."),
    "lock.wait": ("s", "How long a caller waited for the lock of its conversation."),
    "turn.duration": ("s", "How long a turn took once it had its lock."),
}
_COUNTERS: Final[Mapping[Measure, tuple[str, str]]] = {
    "prune.deleted": ("{message}", "Stored messages that a rule removed or hid."),
    "roll.count": ("{roll}", "Attempts to condense a conversation."),
}
_LEVELS: Final[Mapping[Measure, tuple[str, str]]] = {
    "queue.depth": ("{caller}", "Callers of this process that wait for a lock."),
}


def instrument(
    *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Tell OpenTelemetry about every agent and Agent State of this process from now on.

    Called again it takes the place of the call before. The conversation of a turn is also put into
    the baggage, so that what the driver calls can know it.

    Args:
        tracer_provider: Where spans go; None is the provider of the application, also one that is
            set later.
        meter_provider: The same for metrics.
    """
    version = our_version()
    tracer = trace.get_tracer(SCOPE, version, tracer_provider)
    meter = metrics.get_meter(SCOPE, version or "", meter_provider)
    observing.set_observer(_Telemetry(tracer=tracer, takes=_instruments(meter)))


def uninstrument() -> None:
    """Tell nothing from now on; no-op if nothing is told."""
    observing.set_observer(None)


@attrs.frozen(kw_only=True)
class _Telemetry:
    """The observer: `takes` has what takes each measure."""

    tracer: Tracer
    takes: Mapping[Measure, Callable[[float, Mapping[str, Fact]], None]]

    def span(
        self, name: str, facts: Mapping[str, Fact], /, *, is_call: bool
    ) -> AbstractContextManager[object]:
        return self._span(name, facts, SpanKind.CLIENT if is_call else SpanKind.INTERNAL)

    def identify(self, conversation_id: str, /) -> None:
        trace.get_current_span().set_attribute(CONVERSATION_ID, conversation_id)
        # The end of the span takes the context back to that of its begin.
        context.attach(baggage.set_baggage(CONVERSATION_ID, conversation_id))

    def tell(self, facts: Mapping[str, Fact], /) -> None:
        trace.get_current_span().set_attributes(facts)

    def measure(self, name: Measure, amount: float, facts: Mapping[str, Fact], /) -> None:
        self.takes[name](amount, facts)

    @contextmanager
    def _span(self, name: str, facts: Mapping[str, Fact], kind: SpanKind) -> Iterator[object]:
        known = baggage.get_baggage(CONVERSATION_ID)
        attributes = {**facts, CONVERSATION_ID: known} if isinstance(known, str) else facts
        with self.tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            # What the text of an error says is nobody's business here.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                _tell_error(span, error)
                raise


def _tell_error(span: Span, error: BaseException) -> None:
    span.set_attribute(ERROR_TYPE, type(error).__qualname__)
    if not isinstance(error, CancelledError | GeneratorExit):
        span.set_status(StatusCode.ERROR)


def _instruments(meter: Meter) -> dict[Measure, Callable[[float, Mapping[str, Fact]], None]]:
    ours: str = observing.OURS
    makers: list[tuple[Mapping[Measure, tuple[str, str]], Any, str]] = [
        (_HISTOGRAMS, meter.create_histogram, "record"),
        (_COUNTERS, meter.create_counter, "add"),
        (_LEVELS, meter.create_up_down_counter, "add"),
    ]
    return {
        name: getattr(make(ours + name, unit=unit, description=about), verb)
        for table, make, verb in makers
        for name, (unit, about) in table.items()
    }
