"""Tokens: the estimators that need no files, and how a choice becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import attrs

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.estimates import (
    Estimator,
    EstimatorChoice,
    MessageEstimator,
    SizeUnit,
    ToolsEstimator,
)
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.selection.tokens_segments import THOUSANDTHS, count_thousandths

CHARS4: Final = TokenCounter(name="chars4", version="1", unit="tokens", measure=len, divisor=4)
"""Four code points are a token. Undercounts text without spaces, JSON and base64."""

RUNES: Final = TokenCounter(name="runes", version="1", unit="runes", measure=len)
"""Code points."""

SEGMENTS: Final = TokenCounter(
    name="segments",
    version="1",
    unit="tokens",
    message_overhead=4,
    measure=count_thousandths,
    divisor=THOUSANDTHS,
)
"""Close to real tokenisers in any script, in code and in base64, without their files."""

BUILT_IN: Final[Mapping[str, TokenCounter]] = {
    counter.name: counter for counter in (CHARS4, RUNES, SEGMENTS)
}


def create_chars4() -> TokenCounter:
    """Return `CHARS4`, for the registry."""
    return CHARS4


def create_runes() -> TokenCounter:
    """Return `RUNES`, for the registry."""
    return RUNES


def create_segments() -> TokenCounter:
    """Return `SEGMENTS`, for the registry."""
    return SEGMENTS


def estimator_for(choice: EstimatorChoice, /, *, path: str = "estimator") -> TokenCounter:
    """Return the counter that a choice means.

    A name is one of `BUILT_IN`. An estimator keeps its name, version and unit, and its own way
    with messages and tools if it has one; its attribute `message_overhead` counts, else 0. A plain
    callable counts tokens under its own name; without an attribute `version` no count is kept.

    Raises:
        ConfigError: The name is unknown, naming the nearest one, or the choice is no estimator.
    """
    if isinstance(choice, str):
        if (known := BUILT_IN.get(choice)) is None:
            raise ConfigError.unknown_name(choice, BUILT_IN, path=path, what="estimator")
        return known
    if isinstance(choice, TokenCounter):
        return choice
    if isinstance(choice, Estimator):
        return _counter_of_estimator(choice, path)
    if callable(getattr(choice, "count_text", None)):
        raise ConfigError("an estimator has a name, a version and a unit", path=path)
    if callable(choice):
        return _counter_of_callable(choice, path)
    raise ConfigError("must be a name, a callable or an estimator", path=path)


def _counter_of_estimator(estimator: Estimator, path: str) -> TokenCounter:
    units = get_args(SizeUnit)
    if estimator.unit not in units:
        problem = f"the unit of an estimator must be one of {', '.join(map(repr, units))}"
        raise ConfigError(problem, path=path)
    own_message = own_tools = None
    if isinstance(estimator, MessageEstimator):
        own_message = _Checked(estimator.count_message, path)
    if isinstance(estimator, ToolsEstimator):
        own_tools = _Checked(estimator.count_tools, path)
    return TokenCounter(
        name=estimator.name,
        version=estimator.version,
        unit=estimator.unit,
        message_overhead=getattr(estimator, "message_overhead", 0),
        measure=_Checked(estimator.count_text, path),
        own_message=own_message,
        own_tools=own_tools,
    )


def _counter_of_callable(count: Callable[[str], int], path: str) -> TokenCounter:
    name = getattr(count, "__qualname__", type(count).__qualname__)
    version = getattr(count, "version", None)
    return TokenCounter(
        name=name,
        version=version if isinstance(version, str) else "",
        unit="tokens",
        measure=_Checked(count, path),
    )


@attrs.frozen
class _Checked:
    """Foreign code that counts, with a check of each size that it returns."""

    count: Callable[[Any], object]
    path: str

    def __call__(self, counted: Any) -> int:
        size = self.count(counted)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ConfigError("an estimator must return integers >= 0", path=self.path)
        return size
