"""Options that this release checks and cannot carry out."""

from __future__ import annotations

import os

import pytest

from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.policies import ChatPolicy


def refusal(options: dict[str, object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        lower_chat_options(options)
    return caught.value


@pytest.mark.parametrize(
    "options",
    [
        {"context": False},
        {"context": None},
        {"memory": None},
        {"memory": {}},
        {"memory": {"daily_note": True, "memory_auto_extract": False}},
        {"transcripts": {}},
        {"transcripts": {"prune": False}},
        {"transcripts": {"prune": None}},
        {"transcripts": {"prune": {"enabled": False, "max_tokens": 5}}},
        {"search_tools": False},
    ],
)
def test_switched_off_they_change_nothing(options: dict[str, object]) -> None:
    assert lower_chat_options(options) == ChatPolicy()


CONTEXT: dict[str, object] = {
    "estimator": "segments",
    "window_tokens": 128_000,
    "reserve_output_tokens": 0,
    "runes_per_token": 2.0,
    "limit": 1,
    "trigger_ratio": 1,
    "target_ratio": 0.29,
    "hard_cap": 1,
    "batch_messages": 4,
    "max_loops": 48,
    "min_verbatim": 0,
    "summary_max": 1500,
    "message_overhead": 0,
    "frame_overhead": 0,
    "retries": 0,
    "summarizer_timeout_ms": 1,
    "turn_deadline_ms": 1,
    "failure_alarm": 1,
    "checkpoints_kept": 1,
    "summary_placement": "user",
    "wrap_current": False,
    "summarizer": "fast",
}


NUMBER_ERRORS: list[object] = [float("nan"), float("inf"), "1", True, -1]


@pytest.mark.parametrize("value", NUMBER_ERRORS, ids=repr)
@pytest.mark.parametrize(
    "path",
    [
        *(f"context.{name}" for name, value in CONTEXT.items() if type(value) in {int, float}),
        *("memory.note_timeout_ms", "memory.extract_timeout_ms"),
        *("transcripts.prune.max_age_hours", "transcripts.prune.max_messages"),
        *("transcripts.prune.max_tokens", "transcripts.prune.message_overhead"),
    ],
)
def test_their_numbers_are_checked_like_all_others(path: str, value: object) -> None:
    options = value
    for name in reversed(path.split(".")):
        options = {name: options}
    assert isinstance(options, dict)
    assert refusal(options).path == path


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"context": {"trigger_ratio": 0}}, "context.trigger_ratio"),
        ({"context": {"trigger_ratio": 1.01}}, "context.trigger_ratio"),
        ({"context": {"target_ratio": 0.89}}, "context.target_ratio"),
        ({"context": {"trigger_ratio": 0.5, "target_ratio": 0.6}}, "context.target_ratio"),
        ({"context": {"window_tokens": 0}}, "context.window_tokens"),
        ({"context": {"limit": 0}}, "context.limit"),
        ({"context": {"estimator": ""}}, "context.estimator"),
        ({"context": {"estimator": 5}}, "context.estimator"),
        ({"context": {"summary_placement": "assistant"}}, "context.summary_placement"),
        ({"context": {"wrap_current": 1}}, "context.wrap_current"),
        ({"memory": {"root": ""}}, "memory.root"),
        ({"memory": {"root": 5}}, "memory.root"),
        ({"memory": {"sink": 5}}, "memory.sink"),
        ({"memory": {"sink": []}}, "memory.sink"),
        ({"memory": {"root": "https://notes.example"}}, "memory.root"),
        ({"memory": {"root": "file://elsewhere/notes"}}, "memory.root"),
        ({"memory": {"root": "a\0b"}}, "memory.root"),
        ({"memory": {"root": "notes", "sink": "state"}}, "memory.sink"),
        ({"memory": {"on_error": "stop"}}, "memory.on_error"),
        ({"memory": {"timezone": "Mars/Olympus"}}, "memory.timezone"),
        ({"memory": {"timezone": "../../etc/passwd"}}, "memory.timezone"),
        ({"memory": {"timezone": "Europe"}}, "memory.timezone"),
        ({"memory": {"timezone": "a\x00b"}}, "memory.timezone"),
        ({"memory": {"timezone": 5}}, "memory.timezone"),
        ({"transcripts": {"prune": {"mode": "archive"}}}, "transcripts.prune.mode"),
        ({"transcripts": {"prune": 1}}, "transcripts.prune"),
        ({"transcripts": {"unknown": 1}}, "transcripts.unknown"),
    ],
)
def test_they_are_checked_before_they_are_refused(options: dict[str, object], path: str) -> None:
    error = refusal(options)
    assert (error.path, "not available" in error.message) == (path, False)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, True, 5.0, "", "d", "0d", "-1d", "1.5h", "30 d", "30D", "1w", "FOREVER"),
        *("\uff19d", "1e3s", 10**20, "9" * 5000 + "d", "999999999999999d", [], os.fspath),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_retention_that_is_none_is_refused(value: object) -> None:
    assert refusal({"transcripts": {"retention": value}}).path == "transcripts.retention"
