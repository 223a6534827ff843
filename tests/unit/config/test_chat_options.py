"""The options of `chat()`: defaults, values, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.policies import (
    UNSET,
    ChatPolicy,
    ConcurrencyPolicy,
    HistoryWindow,
    ReplyPolicy,
    SessionPolicy,
    ThreadHistory,
)

WINDOW = {"source": "thread", "max_messages": 20}
HOUR_MS = 3_600_000


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def call(*_: object) -> None:
    """Stand for any callable of the user."""


def refusal(options: Mapping[str, object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        lower_chat_options(options)
    return caught.value


def lower(**options: object) -> ChatPolicy:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return lower_chat_options(options)


def test_no_options_give_the_documented_defaults() -> None:
    assert lower() == ChatPolicy(
        window=None,
        sessions=None,
        concurrency=ConcurrencyPolicy(
            strategy="serial",
            max_queue_size=None,
            on_queue_full="reject",
            queue_entry_ttl=None,
            debounce=ms(1500),
            max_concurrent=None,
            wait_timeout=None,
            max_lock_lifetime=ms(600_000),
        ),
        lock_scope=None,
        dedupe_ttl=ms(600_000),
        thread_history=ThreadHistory(max_messages=100, ttl=ms(604_800_000)),
        identity=None,
        filter=None,
        timeout=None,
        search_tools=False,
        reply=ReplyPolicy(
            stream=False,
            update_interval=ms(500),
            delivery="automatic",
            loading=None,
            placeholder=UNSET,
            error_text=UNSET,
        ),
        retention=UNSET,
    )


ACCEPTED: list[tuple[dict[str, object], Callable[[ChatPolicy], Any], Any]] = [
    ({"trigger_history": "none"}, lambda p: p.window, None),
    (
        {"trigger_history": WINDOW},
        lambda p: p.window,
        HistoryWindow(source="thread", max_messages=20),
    ),
    (
        {"trigger_history": {"source": "transcript", "max_messages": 1, "max_age_ms": 0}},
        lambda p: p.window,
        HistoryWindow(source="transcript", max_messages=1, max_age=timedelta()),
    ),
    ({"sessions": False}, lambda p: p.sessions, None),
    ({"sessions": True}, lambda p: p.sessions, SessionPolicy(strategy="manual")),
    ({"sessions": {}}, lambda p: p.sessions, SessionPolicy(strategy="manual")),
    (
        {"sessions": {"idle_timeout_ms": 0, "metadata_key": "k"}},
        lambda p: p.sessions,
        SessionPolicy(strategy="manual", metadata_key="k"),
    ),
    (
        {"sessions": {"idle_timeout_ms": HOUR_MS}},
        lambda p: p.sessions,
        SessionPolicy(strategy="idle-timeout", idle_timeout=ms(HOUR_MS)),
    ),
    (
        {"sessions": {"strategy": "hybrid", "idle_timeout_ms": 1}},
        lambda p: p.sessions,
        SessionPolicy(strategy="hybrid", idle_timeout=ms(1)),
    ),
    (
        {"sessions": {"strategy": "manual", "idle_timeout_ms": 0}},
        lambda p: p.sessions,
        SessionPolicy(strategy="manual"),
    ),
    ({"lock_scope": "channel"}, lambda p: p.lock_scope, "channel"),
    ({"lock_scope": call}, lambda p: p.lock_scope, call),
    ({"dedupe_ttl_ms": 40}, lambda p: p.dedupe_ttl, ms(40)),
    (
        {"thread_history": {"max_messages": 7, "ttl_ms": 8}},
        lambda p: p.thread_history,
        ThreadHistory(max_messages=7, ttl=ms(8)),
    ),
    ({"thread_history": {}}, lambda p: p.thread_history, ThreadHistory()),
    ({"identity": call}, lambda p: p.identity, call),
    ({"filter": call}, lambda p: p.filter, call),
    ({"search_tools": False}, lambda p: p.search_tools, False),
    ({"timeout_ms": 1}, lambda p: p.timeout, ms(1)),
    ({"stream": True}, lambda p: p.reply.stream, True),
    ({"streaming_update_interval_ms": 9}, lambda p: p.reply.update_interval, ms(9)),
    ({"delivery": "manual"}, lambda p: p.reply.delivery, "manual"),
    ({"loading": {"text": "One moment"}}, lambda p: p.reply.loading, "One moment"),
    ({"transcripts": {"retention": "forever"}}, lambda p: p.retention, "forever"),
    ({"transcripts": {"retention": "90s"}}, lambda p: p.retention, timedelta(seconds=90)),
    ({"transcripts": {"retention": "12h"}}, lambda p: p.retention, timedelta(hours=12)),
    ({"transcripts": {"retention": "5m"}}, lambda p: p.retention, timedelta(minutes=5)),
    ({"transcripts": {"retention": "30d"}}, lambda p: p.retention, timedelta(days=30)),
    ({"transcripts": {"retention": 1}}, lambda p: p.retention, ms(1)),
    ({"transcripts": {"retention": None}}, lambda p: p.retention, UNSET),
]


@pytest.mark.parametrize(("options", "get", "expected"), ACCEPTED)
def test_an_option_has_the_meaning_it_is_documented_with(
    options: dict[str, object], get: Callable[[ChatPolicy], Any], expected: object
) -> None:
    assert get(lower(**options)) == expected


@pytest.mark.parametrize(
    ("option", "value"),
    [("fallback_streaming_placeholder_text", "..."), ("error_fallback_text", "Oops")],
)
def test_none_is_a_value_of_the_two_fallback_texts(option: str, value: str) -> None:
    field = "placeholder" if option.startswith("fallback") else "error_text"
    found = [
        getattr(lower(**options).reply, field)
        for options in ({}, {option: None}, {option: value}, {option: call}, {option: ""})
    ]
    assert found == [UNSET, None, value, call, ""]


@pytest.mark.parametrize("texts", [["a", "b"], ("a", "b")])
def test_several_placeholders_are_a_tuple(texts: object) -> None:
    assert lower(fallback_streaming_placeholder_text=texts).reply.placeholder == ("a", "b")


def test_none_means_that_an_option_was_not_given() -> None:
    fields = set(ChatModel.model_fields) - ChatModel.keeps_none
    options: dict[str, object] = dict.fromkeys(fields)
    assert lower(**options) == ChatPolicy()


def test_an_option_inside_a_mapping_may_be_none_too() -> None:
    policy = lower(
        trigger_history={**WINDOW, "max_age_ms": None},
        sessions={"strategy": None, "idle_timeout_ms": None, "metadata_key": None},
        concurrency={"strategy": "queue", "max_queue_size": None, "debounce_ms": None},
    )
    assert (policy.window, policy.sessions) == (
        HistoryWindow(source="thread", max_messages=20),
        SessionPolicy(strategy="manual"),
    )


def test_any_mapping_will_do() -> None:
    window = MappingProxyType(WINDOW)
    policy = lower_chat_options(MappingProxyType({"trigger_history": window}))
    assert policy.window == HistoryWindow(source="thread", max_messages=20)


def test_a_number_that_nothing_reaches_still_fits_a_database_and_the_calendar() -> None:
    policy = lower(
        trigger_history={"source": "thread", "max_messages": 10**30}, dedupe_ttl_ms=8 * 10**16
    )
    assert policy.window == HistoryWindow(source="thread", max_messages=2**53 - 1)
    assert policy.dedupe_ttl == ms(10**14)


@pytest.mark.parametrize("strategy", ["queue", "debounce", "parallel", "drop", "reject"])
def test_strategies_other_than_serial_bound_their_queue(strategy: str) -> None:
    policy = lower(concurrency=strategy).concurrency
    assert attrs.asdict(policy) == {
        "strategy": strategy,
        "max_queue_size": 10,
        "on_queue_full": "drop-oldest",
        "queue_entry_ttl": ms(90_000),
        "debounce": ms(1500),
        "max_concurrent": None,
        "wait_timeout": None,
        "max_lock_lifetime": ms(600_000),
    }


def test_a_strategy_alone_is_its_mapping() -> None:
    assert lower(concurrency="queue") == lower(concurrency={"strategy": "queue"})


def test_every_option_of_a_queue_is_taken() -> None:
    policy = lower(
        concurrency={
            "strategy": "debounce",
            "max_queue_size": 1,
            "on_queue_full": "drop-newest",
            "queue_entry_ttl_ms": 2,
            "debounce_ms": 3,
            "wait_timeout_ms": 4,
            "max_lock_lifetime_ms": 5,
        }
    ).concurrency
    assert policy == ConcurrencyPolicy(
        strategy="debounce",
        max_queue_size=1,
        on_queue_full="drop-newest",
        queue_entry_ttl=ms(2),
        debounce=ms(3),
        wait_timeout=ms(4),
        max_lock_lifetime=ms(5),
    )


USED = {
    "max_queue_size": {"serial", "queue", "debounce"},
    "on_queue_full": {"serial", "queue", "debounce"},
    "queue_entry_ttl_ms": {"serial", "queue", "debounce"},
    "debounce_ms": {"debounce"},
    "max_concurrent": {"parallel"},
    "wait_timeout_ms": {"serial", "queue", "debounce", "parallel"},
    "max_lock_lifetime_ms": {"serial", "queue", "debounce", "parallel", "drop", "reject"},
}


@pytest.mark.parametrize("strategy", sorted(USED["max_lock_lifetime_ms"]))
@pytest.mark.parametrize("option", sorted(USED))
def test_an_option_that_the_strategy_does_not_use_warns_and_is_ignored(
    strategy: str, option: str
) -> None:
    value: object = "drop-newest" if option == "on_queue_full" else 17
    field = option.removesuffix("_ms")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy = lower_chat_options({"concurrency": {"strategy": strategy, option: value}})
    default = getattr(lower(concurrency=strategy).concurrency, field)
    changed = getattr(policy.concurrency, field) != default
    assert changed is (strategy in USED[option])
    expected = f"concurrency.{option} has no effect beside strategy={strategy!r}"
    assert [str(item.message) for item in caught] == ([] if changed else [expected])


def test_manual_sessions_ignore_a_timeout_and_say_so() -> None:
    with pytest.warns(ConfigOverrideWarning, match=r"^sessions\.idle_timeout_ms has no effect"):
        policy = lower_chat_options({"sessions": {"strategy": "manual", "idle_timeout_ms": 5}})
    assert policy.sessions == SessionPolicy(strategy="manual")


def test_a_warning_names_the_line_that_called_chat() -> None:
    def chat(**options: object) -> ChatPolicy:
        return lower_chat_options(options)

    with pytest.warns(ConfigOverrideWarning) as caught:
        chat(concurrency={"strategy": "drop", "debounce_ms": 5})
    assert caught[0].filename == __file__


@pytest.mark.parametrize("strategy", ["idle-timeout", "hybrid"])
@pytest.mark.parametrize("timeout", [{}, {"idle_timeout_ms": 0}, {"idle_timeout_ms": None}])
def test_a_strategy_that_needs_a_timeout_says_so(strategy: str, timeout: dict[str, object]) -> None:
    error = refusal({"sessions": {"strategy": strategy, **timeout}})
    assert str(error) == (
        f"sessions.idle_timeout_ms: is required by the strategy {strategy!r}:"
        " an integer >= 1 (0 is unset)"
    )


def test_t30_a_reply_that_grows_cannot_have_a_loading_text() -> None:
    assert refusal({"stream": True, "loading": {"text": "x"}}).path == "stream"


def test_a_reply_that_grows_cannot_be_delivered_by_hand() -> None:
    assert refusal({"stream": True, "delivery": "manual"}).path == "stream"


@pytest.mark.parametrize("other", [{"loading": {"text": "x"}}, {"delivery": "manual"}])
def test_a_reply_that_does_not_grow_can(other: dict[str, object]) -> None:
    assert lower(stream=False, **other).reply.stream is False


class Level(IntEnum):
    ONE = 1


NO_INTEGERS = ["5", 2.0, float("nan"), float("inf"), True, [1], {}, b"5", 1j]
INTEGERS_FROM = {
    "dedupe_ttl_ms": 1,
    "timeout_ms": 1,
    "streaming_update_interval_ms": 1,
    "thread_history.max_messages": 1,
    "thread_history.ttl_ms": 1,
    "trigger_history.max_messages": 1,
    "trigger_history.max_age_ms": 0,
    "sessions.idle_timeout_ms": 0,
    "concurrency.max_queue_size": 1,
    "concurrency.queue_entry_ttl_ms": 1,
    "concurrency.debounce_ms": 1,
    "concurrency.max_concurrent": 1,
    "concurrency.wait_timeout_ms": 1,
    "concurrency.max_lock_lifetime_ms": 1,
}
REQUIRED: dict[str, dict[str, object]] = {
    "trigger_history": WINDOW,
    "concurrency": {"strategy": "queue"},
}


def options_with(path: str, value: object) -> dict[str, object]:
    outer, _, inner = path.partition(".")
    return {outer: {**REQUIRED.get(outer, {}), inner: value} if inner else value}


@pytest.mark.parametrize("path", INTEGERS_FROM)
@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_nothing_is_converted_to_an_integer(path: str, value: object) -> None:
    kind = type(value).__name__
    expected = f"{path}: must be an integer >= {INTEGERS_FROM[path]}, not {kind}"
    assert str(refusal(options_with(path, value))) == expected


@pytest.mark.parametrize("path", INTEGERS_FROM)
def test_an_integer_below_the_least_one_is_refused(path: str) -> None:
    least = INTEGERS_FROM[path]
    errors = [str(refusal(options_with(path, value))) for value in (least - 1, -(10**50))]
    assert errors == [f"{path}: must be an integer >= {least}"] * 2


@pytest.mark.parametrize("path", [path for path in INTEGERS_FROM if path.endswith("_ms")])
@pytest.mark.parametrize("value", [10**17, 10**400, 10**5000], ids=["17", "400", "5000"])
def test_a_duration_that_no_timedelta_holds_is_refused(path: str, value: int) -> None:
    allowed = f"an integer >= {INTEGERS_FROM[path]} and <= {timedelta.max // ms(1)}"
    assert str(refusal(options_with(path, value))) == f"{path}: must be {allowed}"


@pytest.mark.parametrize("value", [0, float("inf"), -1, "5", True])
def test_t31_a_timeout_is_a_positive_integer(value: object) -> None:
    assert refusal({"timeout_ms": value}).path == "timeout_ms"


def test_an_integer_of_an_enumeration_is_one() -> None:
    assert lower(timeout_ms=Level.ONE).timeout == ms(1)


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("trigger_history", "thread", "'none' or a mapping"),
        ("trigger_history", 5, "'none' or a mapping, not int"),
        ("trigger_history.source", "database", "one of 'thread', 'transcript'"),
        ("sessions", "manual", "a bool or a mapping, not str"),
        ("sessions", 1, "a bool or a mapping, not int"),
        ("sessions.strategy", 5, "one of 'manual', 'idle-timeout', 'hybrid'"),
        ("sessions.metadata_key", "", "non-empty text"),
        ("sessions.metadata_key", ["a"], "non-empty text, not list"),
        ("concurrency.on_queue_full", 5, "one of 'drop-oldest', 'drop-newest', 'reject'"),
        ("lock_scope", 5, "one of 'thread', 'channel', 'agent', 'session' or a callable, not int"),
        ("thread_history", 5, "a mapping, not int"),
        ("identity", "name", "a callable, not str"),
        ("filter", True, "a callable, not bool"),
        ("search_tools", 1, "a bool, not int"),
        ("stream", "yes", "a bool, not str"),
        ("stream", 0, "a bool, not int"),
        ("loading", "text", "a mapping, not str"),
        ("loading.text", "", "non-empty text"),
        ("fallback_streaming_placeholder_text", 5, "text, a list of text or a callable, not int"),
        ("fallback_streaming_placeholder_text", ["a", 5], "text, a list of text or a callable"),
        ("error_fallback_text", ["a"], "text or a callable, not list"),
        ("transcripts", True, "a mapping, not bool"),
        ("memory", False, "a mapping, not bool"),
        ("context", 1, "a bool or a mapping, not int"),
    ],
)
def test_a_wrong_value_is_answered_with_what_is_allowed(
    path: str, value: object, allowed: str
) -> None:
    assert str(refusal(options_with(path, value))).startswith(f"{path}: must be {allowed}")


def test_the_nearest_choice_is_suggested() -> None:
    error = refusal({"concurrency": "qeue"})
    assert (error.path, error.hint) == ("concurrency.strategy", "did you mean 'queue'?")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"trigger_history": {"max_messages": 1}}, "trigger_history.source"),
        ({"trigger_history": {"source": "thread"}}, "trigger_history.max_messages"),
        (
            {"trigger_history": {"source": "thread", "max_messages": None}},
            "trigger_history.max_messages",
        ),
        ({"concurrency": {}}, "concurrency.strategy"),
        ({"loading": {}}, "loading.text"),
    ],
)
def test_an_option_that_is_required_says_so(options: dict[str, object], path: str) -> None:
    error = refusal(options)
    assert (error.path, error.message.startswith("is required: ")) == (path, True)


@pytest.mark.parametrize("options", [None, 5, "chat", [("stream", True)]])
def test_options_that_are_no_mapping_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match=r"^must be a mapping, not "):
        lower_chat_options(options)
