"""Estimators: how a name, a callable or an object becomes a counter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.estimates import DescribedTool, SizeUnit
from vitehub_chat.model.messages import Message
from vitehub_chat.selection.tokens import BUILT_IN, CHARS4, RUNES, SEGMENTS, estimator_for

MESSAGE = Message("m", "user", ({"type": "text", "text": "hello"}, {"type": "text", "text": "you"}))


@attrs.frozen
class _Words:
    name: str = "words"
    version: str = "3"
    unit: SizeUnit = "tokens"

    def count_text(self, text: str, /) -> int:
        return len(text.split())


@attrs.frozen
class _Whole(_Words):
    message_overhead: int = 2

    def count_message(self, message: Message, /) -> int:
        return 10 * len(message.parts)

    def count_tools(self, tools: Sequence[DescribedTool], /) -> int:
        return 100 * len(tools)


def test_a_name_is_a_built_in_estimator() -> None:
    assert [estimator_for(name) for name in ("chars4", "runes", "segments")] == [
        CHARS4,
        RUNES,
        SEGMENTS,
    ]
    assert {name: counter.unit for name, counter in BUILT_IN.items()} == {
        "chars4": "tokens",
        "runes": "runes",
        "segments": "tokens",
    }


def test_an_unknown_name_tells_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'segments'") as caught:
        estimator_for("segment", path="context.estimator")
    assert caught.value.path == "context.estimator"


def test_a_counter_is_taken_as_it_is() -> None:
    assert estimator_for(SEGMENTS) is SEGMENTS


def test_an_estimator_keeps_its_name_version_and_unit() -> None:
    counter = estimator_for(_Words())
    assert (counter.name, counter.version, counter.unit) == ("words", "3", "tokens")
    assert counter.count_message(MESSAGE) == 2


def test_an_estimator_may_count_messages_and_tools_itself() -> None:
    counter = estimator_for(_Whole())
    assert counter.count_text("one two three") == 3
    assert counter.count_message(MESSAGE) == 20 + 2
    assert counter.count_message(MESSAGE, overhead=0) == 20
    assert counter.count_tools([]) == 0


def test_a_callable_counts_tokens_under_its_own_name() -> None:
    def letters(text: str) -> int:
        return len(text)

    counter = estimator_for(letters)
    assert counter.name.endswith("letters")
    assert (counter.version, counter.unit, counter.message_overhead) == ("", "tokens", 0)
    assert counter.count_message(MESSAGE) == 8


def test_a_callable_object_may_have_a_version() -> None:
    @attrs.frozen
    class Letters:
        version: str = "7"

        def __call__(self, text: str) -> int:
            return len(text)

    counter = estimator_for(Letters())
    assert counter.name.endswith("Letters")
    assert counter.version == "7"


@pytest.mark.parametrize("size", [1.5, "2", True, None, -1])
def test_a_size_that_is_no_count_is_an_error(size: Any) -> None:
    counter = estimator_for(lambda _text: size, path="context.estimator")
    with pytest.raises(ConfigError, match="integers >= 0") as caught:
        counter.count_text("hello")
    assert caught.value.path == "context.estimator"


def test_an_unknown_unit_is_an_error() -> None:
    unit: Any = "bytes"
    with pytest.raises(ConfigError, match="'tokens', 'runes'"):
        estimator_for(_Words(unit=unit))


def test_an_object_without_name_version_and_unit_is_no_estimator() -> None:
    class Nameless:
        def count_text(self, text: str) -> int:
            return len(text)

    nameless: Any = Nameless()
    with pytest.raises(ConfigError, match="a name, a version and a unit"):
        estimator_for(nameless)


@pytest.mark.parametrize("choice", [5, None, ["chars4"]])
def test_anything_else_is_no_estimator(choice: Any) -> None:
    with pytest.raises(ConfigError, match="a name, a callable or an estimator"):
        estimator_for(choice)
