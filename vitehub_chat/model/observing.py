"""Observing: spans and measures of this process, for one observer that listens.

Without an observer nothing is built or measured. What is told are ids, counts and durations, never
the text of a message. The names are those of OpenTelemetry's conventions where there is one.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Concatenate, Final, Literal, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

Fact = str | int | float | bool
Measure = Literal[
    "window.messages",
    "window.tokens",
    "context.utilization",
    "prune.deleted",
    "roll.count",
    "lock.wait",
    "queue.depth",
    "turn.duration",
]
"""What is measured; `queue.depth` is told as changes, times are in seconds."""

AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
OPERATION_NAME: Final = "gen_ai.operation.name"
DB_OPERATION_NAME: Final = "db.operation.name"
DB_SYSTEM_NAME: Final = "db.system.name"
OURS: Final = "vitehub.chat."


class Observer(Protocol):
    """Is told what goes on, from any thread and event loop; raises nothing."""

    def span(
        self, name: str, facts: Mapping[str, Fact], /, *, is_call: bool
    ) -> AbstractContextManager[object]:
        """Return what begins a span when it is entered, and ends it; `is_call`: of a store."""

    def identify(self, conversation_id: str, /) -> None:
        """Name the conversation of the span that is open, and of all that begin within it."""

    def tell(self, facts: Mapping[str, Fact], /) -> None:
        """Add facts to the span that is open."""

    def measure(self, name: Measure, amount: float, facts: Mapping[str, Fact], /) -> None:
        """Take one measure."""


_observer: Observer | None = None


def set_observer(observer: Observer | None) -> None:
    """Let an observer listen from now on, in place of the one before; None ends that."""
    global _observer  # noqa: PLW0603 - one for the process, as with logging
    _observer = observer


def is_observed() -> bool:
    """Tell whether somebody listens, for facts that cost something."""
    return _observer is not None


def span(name: str, facts: Mapping[str, Fact] | None = None) -> AbstractContextManager[object]:
    """Return a context that is one span, such as `chat.turn`."""
    if _observer is None:
        return nullcontext()
    return _observer.span(name, facts or {}, is_call=False)


def turn(agent: str) -> AbstractContextManager[object]:
    """Return a context that is the span of one turn of an agent."""
    return span("chat.turn", {OPERATION_NAME: "invoke_agent", AGENT_NAME: agent})


def identify(conversation_id: str) -> None:
    """Name the conversation of the span that is open, and of all that begin within it."""
    if _observer is not None:
        _observer.identify(conversation_id)


def tell(**facts: Fact | None) -> None:
    """Add facts of ours to the span that is open; None is left out."""
    if _observer is not None:
        _observer.tell({OURS + name: fact for name, fact in facts.items() if fact is not None})


def measure(name: Measure, amount: float, **facts: Fact) -> None:
    """Take one measure."""
    if _observer is not None:
        _observer.measure(name, amount, facts)


@contextmanager
def counted(name: Measure) -> Iterator[None]:
    """Count one more of something while this is entered."""
    measure(name, 1)
    try:
        yield
    finally:
        measure(name, -1)


def observed(
    method: Callable[Concatenate[S, P], Awaitable[T]], operation: str, system: Callable[[S], str]
) -> Callable[Concatenate[S, P], Awaitable[T]]:
    """Return a method of a store that is a span `chat.state <operation>` when somebody listens."""

    @functools.wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        observer = _observer
        if observer is None:
            return await method(self, *args, **kwargs)
        facts = {DB_OPERATION_NAME: operation, DB_SYSTEM_NAME: system(self)}
        with observer.span(f"chat.state {operation}", facts, is_call=True):
            return await method(self, *args, **kwargs)

    return run
