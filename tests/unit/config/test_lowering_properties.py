"""Properties of lowering: the spelling never matters, and values are never shown."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.policies import ChatPolicy

COUNTS = st.integers(min_value=1)
MS = st.integers(min_value=1, max_value=10**16)
TEXT = st.text(min_size=1)

WINDOWS = st.fixed_dictionaries(
    {"source": st.sampled_from(["thread", "transcript"]), "max_messages": COUNTS},
    optional={"max_age_ms": MS},
)
SESSIONS = st.fixed_dictionaries({"idle_timeout_ms": MS}, optional={"metadata_key": TEXT})
CONCURRENCY = st.fixed_dictionaries(
    {"strategy": st.sampled_from(["serial", "queue", "parallel", "drop", "reject", "debounce"])},
    optional={
        "max_queue_size": COUNTS,
        "on_queue_full": st.sampled_from(["drop-oldest", "drop-newest", "reject"]),
        "queue_entry_ttl_ms": MS,
        "debounce_ms": MS,
        "max_concurrent": COUNTS,
        "wait_timeout_ms": MS,
        "max_lock_lifetime_ms": MS,
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "trigger_history": st.just("none") | WINDOWS,
        "sessions": st.booleans() | SESSIONS,
        "concurrency": CONCURRENCY,
        "lock_scope": st.sampled_from(["thread", "channel", "agent", "session"]),
        "dedupe_ttl_ms": MS,
        "thread_history": st.fixed_dictionaries({"max_messages": COUNTS, "ttl_ms": MS}),
        "timeout_ms": MS,
        "streaming_update_interval_ms": MS,
        "delivery": st.sampled_from(["automatic", "manual"]),
        "fallback_streaming_placeholder_text": st.none() | TEXT | st.lists(TEXT),
        "error_fallback_text": st.none() | TEXT,
        "transcripts": st.just({"retention": "forever"}),
    },
)
SECRET = "sk-never-to-be-seen"  # noqa: S105  a made-up one


def in_camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(name): in_camel_case(item) for name, item in value.items()}
    return value


def lower(options: dict[str, object]) -> ChatPolicy:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigOverrideWarning)
        return lower_chat_options(options)


@given(OPTIONS)
def test_camel_case_equals_snake_case_after_lowering(options: dict[str, object]) -> None:
    assert lower(in_camel_case(options)) == lower(options)


@given(OPTIONS)
def test_lowering_leaves_what_it_was_given_alone(options: dict[str, object]) -> None:
    before = repr(options)
    lower(options)
    assert repr(options) == before


class Hostile:
    """A value that would give itself away."""

    def __repr__(self) -> str:
        return SECRET

    def __eq__(self, other: object) -> bool:
        raise AssertionError(SECRET)

    __hash__ = None  # type: ignore[assignment]


NAMES = ("context.estimator", "context.summarizer", "memory.sink")
"""Options in which any text may be the name of a plugin."""
PATHS = (
    *("trigger_history", "sessions", "concurrency", "lock_scope", "dedupe_ttl_ms", "filter"),
    *("thread_history", "identity", "search_tools", "timeout_ms", "stream", "delivery"),
    *("loading", "transcripts", "memory", "context", "streaming_update_interval_ms"),
    *("sessions.strategy", "trigger_history.source", "concurrency.debounce_ms"),
    *("transcripts.retention", "transcripts.prune", "memory.timezone"),
    *("context.summary_placement", "context.trigger_ratio", *NAMES),
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (path, value)
        for path in PATHS
        for value in (Hostile(), [SECRET], {SECRET}, f"{SECRET}!", 5.5)
        if not (path in NAMES and isinstance(value, str))
    ],
)
def test_no_error_shows_a_value(path: str, value: object) -> None:
    outer, _, inner = path.partition(".")
    with pytest.raises(ConfigError) as caught:
        lower({outer: {inner: value} if inner else value})
    shown = f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    assert SECRET not in shown
