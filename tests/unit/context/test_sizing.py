"""Sizing: a message is counted once, and never by the count of another estimator."""

from __future__ import annotations

from typing import Any

import pytest

from vitehub_chat import plugins
from vitehub_chat.conversation.sizing import CountCache, Sizer, counter_for
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import MediaPart, TextPart
from vitehub_chat.selection.tokens import RUNES


class Counting:
    """An estimator that counts how often it counts."""

    name = "counting"
    unit = "tokens"

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.texts: list[str] = []

    def count_text(self, text: str) -> int:
        """Count characters."""
        self.texts.append(text)
        return len(text)


def said(text: str) -> Message:
    return Message(None, "user", (TextPart(text),))


def sizer_of(estimator: Any, cache: CountCache, **policy: Any) -> Sizer:
    return Sizer(counter=counter_for(estimator), policy=ContextPolicy(**policy), cache=cache)


def test_a_message_is_counted_once_whoever_says_it_again() -> None:
    estimator, cache = Counting(), CountCache()
    sizer = sizer_of(estimator, cache)
    assert [sizer.message(said("hello")) for _ in range(3)] == [5, 5, 5]
    assert estimator.texts == ["hello"]


def test_a_count_of_another_version_is_not_used() -> None:
    cache = CountCache()
    first, second = Counting("1"), Counting("2")
    sizer_of(first, cache).message(said("hello"))
    sizer_of(second, cache).message(said("hello"))
    assert (first.texts, second.texts) == (["hello"], ["hello"])


def test_a_callable_without_a_version_counts_every_time() -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return 1

    sizer = sizer_of(count, CountCache())
    assert [sizer.message(said("hello")) for _ in range(2)] == [1, 1]
    assert texts == ["hello", "hello"]


def test_the_least_used_counts_are_forgotten() -> None:
    estimator, cache = Counting(), CountCache(most=2)
    sizer = sizer_of(estimator, cache)
    for text in ("a", "b", "a", "c", "a", "b"):
        sizer.message(said(text))
    assert estimator.texts == ["a", "b", "c", "b"]
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


def test_the_overhead_of_the_policy_replaces_that_of_the_estimator() -> None:
    cache = CountCache()
    assert sizer_of("segments", cache).message(said("hello")) == 1 + 4
    assert sizer_of("segments", cache, message_overhead=7).message(said("hello")) == 1 + 7


def test_media_cost_runes_by_the_rate_of_the_policy() -> None:
    image = Message(None, "user", (MediaPart("image", "image/png", "eA=="),))
    cache = CountCache()
    sizes = [
        Sizer(counter=RUNES, policy=ContextPolicy(runes_per_token=rate), cache=cache).message(image)
        for rate in (2.0, 3.5)
    ]
    assert sizes == [2000, 3500]


def test_fixed_texts_cost_what_was_told_once_if_any_is_used() -> None:
    texts = sizer_of("runes", CountCache(), frame_overhead=50).fixed_texts(wraps=True)
    used = [(False, 0), (True, 0), (False, 3), (True, 3)]
    assert [texts.size(has_summary=has, not_shown=n) for has, n in used] == [0, 50, 50, 50]


def test_fixed_texts_are_measured_where_nothing_is_told() -> None:
    texts = sizer_of("runes", CountCache()).fixed_texts(wraps=True)
    frame, wrapper = texts.frame, texts.wrapper
    line = len("[12 earlier messages are not shown]")
    assert wrapper == len("<current-message>\n\n</current-message>")
    assert texts.size(has_summary=True, not_shown=12) == frame + wrapper + line
    assert texts.size(has_summary=False, not_shown=12) == line


def test_an_estimator_of_another_distribution_is_found_by_its_name() -> None:
    with plugins.token_estimators.using(mine=Counting):
        assert counter_for("mine").count_text("hello") == 5


@pytest.mark.parametrize("made", ["segments", 5])
def test_a_factory_that_builds_no_estimator_is_an_error(made: object) -> None:
    with (
        plugins.token_estimators.using(mine=lambda: made),
        pytest.raises(ConfigError) as caught,
    ):
        counter_for("mine")
    assert caught.value.path == "context.estimator"


def test_an_unknown_estimator_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="segments"):
        counter_for("segment")
