"""Options of `context` and of pruning: what they mean, and what files and the environment add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vitehub_chat import ContextOptions, PruneOptions, chat
from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.config.context_model import ContextModel
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.context_policy import ContextPolicy

WINDOW = {"source": "transcript", "max_messages": 9}
PREFIX = "VITEHUB_CHAT_CONTEXT_"


def policy_of(context: Any) -> ContextPolicy:
    policy = lower_chat_options({"trigger_history": WINDOW, "context": context}).context
    assert policy is not None
    return policy


def settings_file(folder: Path, content: Any) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("context", [True, {}])
def test_switched_on_it_has_all_defaults(context: Any) -> None:
    assert policy_of(context) == ContextPolicy()


def test_both_spellings_and_all_units_are_lowered() -> None:
    async def condense(*_args: object, **_options: object) -> str:
        return ""

    found = policy_of(
        {
            "triggerRatio": 0.29,
            "target_ratio": 0.1,
            "summarizerTimeoutMs": 1500,
            "turn_deadline_ms": 2000,
            "summarizer": condense,
            "wrapCurrent": False,
            "window_tokens": 10**30,
        }
    )
    assert found == ContextPolicy(
        trigger_ratio=Decimal("0.29"),
        target_ratio=Decimal("0.1"),
        summarizer_timeout=timedelta(milliseconds=1500),
        turn_deadline=timedelta(seconds=2),
        summarizer=condense,
        wrap_current=False,
        window_tokens=2**53 - 1,
    )


def test_the_target_is_never_above_the_trigger() -> None:
    assert policy_of({"trigger_ratio": 0.5}).target_ratio == Decimal("0.5")


@pytest.mark.parametrize("history", [None, "none", {"source": "thread", "max_messages": 3}])
def test_without_a_window_of_stored_rows_it_warns(history: Any) -> None:
    with pytest.warns(ConfigOverrideWarning, match=r"trigger_history\.source"):
        chat({"trigger_history": history, "context": True})


def test_a_settings_file_gives_options_in_either_spelling(tmp_path: Path) -> None:
    path = settings_file(tmp_path, {"chat_context": {"maxLoops": 3, "retries": 0}, "other": 5})
    assert policy_of(ContextOptions.from_settings(path)) == ContextPolicy(max_loops=3, retries=0)


def test_a_settings_file_without_the_object_has_no_options(tmp_path: Path) -> None:
    assert ContextOptions.from_settings(settings_file(tmp_path, {})) == {}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"chat_context": {"maxLoop": 3}}, "chat_context.maxLoop"),
        ({"chat_context": {"retries": -1}}, "chat_context.retries"),
        ({"chat_context": {"retries": 1.0}}, "chat_context.retries"),
        ({"chat_context": 5}, "chat_context"),
    ],
)
def test_a_wrong_option_of_a_file_is_named(tmp_path: Path, content: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ContextOptions.from_settings(settings_file(tmp_path, content))
    assert caught.value.path == path


@pytest.mark.parametrize("text", [None, "{", "[]", "\x00"])
@pytest.mark.parametrize("options", [ContextOptions, PruneOptions])
def test_a_file_that_is_no_json_object_is_named(
    tmp_path: Path, text: str | None, options: type[ContextOptions | PruneOptions]
) -> None:
    path = tmp_path / "settings.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        options.from_settings(path)
    assert caught.value.path == str(path)


def test_code_beats_the_environment_which_beats_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file = {"retries": 1, "max_loops": 1, "min_verbatim": 1}
    path = settings_file(tmp_path, {"chat_context": in_file})
    monkeypatch.setenv(f"{PREFIX}FILE", str(path))
    monkeypatch.setenv(f"{PREFIX}RETRIES", "2")
    monkeypatch.setenv(f"{PREFIX}MAX_LOOPS", "2")
    found = policy_of({"retries": 3})
    assert (found.retries, found.max_loops, found.min_verbatim) == (3, 2, 1)
    other = policy_of(ContextOptions(retries=4, min_verbatim=4))
    assert (other.retries, other.max_loops, other.min_verbatim) == (2, 2, 4)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("TRIGGER_RATIO", "0.8", Decimal("0.8")),
        ("TRIGGER_RATIO", "1", Decimal("1.0")),
        ("LIMIT", " 900 ", 900),
        ("RUNES_PER_TOKEN", ".5", 0.5),
        ("WRAP_CURRENT", "false", False),
        ("WRAP_CURRENT", "0", False),
        ("WRAP_CURRENT", "TRUE", True),
        ("SUMMARY_PLACEMENT", "user", "user"),
        ("ESTIMATOR", "runes", "runes"),
        ("SUMMARIZER", "extractive", "extractive"),
        ("LIMIT", "", None),
        ("LIMIT", "  ", None),
    ],
)
def test_a_variable_sets_an_option_and_a_blank_one_sets_none(
    monkeypatch: pytest.MonkeyPatch, option: str, text: str, value: object
) -> None:
    monkeypatch.setenv(PREFIX + option, text)
    assert getattr(policy_of({}), option.lower()) == value


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("LIMIT", "1e3"),
        ("LIMIT", "-1"),
        ("LIMIT", "0"),
        ("LIMIT", "2.0"),
        ("LIMIT", "true"),
        ("LIMIT", "\u0661"),
        ("TRIGGER_RATIO", "88%"),
        ("TRIGGER_RATIO", "nan"),
        ("TRIGGER_RATIO", "1.1"),
        ("WRAP_CURRENT", "yes"),
        ("SUMMARY_PLACEMENT", "assistant"),
        ("LIMITS", "5"),
    ],
)
def test_any_other_variable_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, option: str, text: str
) -> None:
    monkeypatch.setenv(PREFIX + option, text)
    with pytest.raises(ConfigError) as caught:
        policy_of({})
    assert caught.value.path == PREFIX + option
    assert text not in caught.value.message


def test_the_environment_switches_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}LIMIT", "nonsense")
    assert lower_chat_options({"context": False}).context is None
    assert lower_chat_options({}).context is None


def test_every_option_has_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ContextModel.model_fields:
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", "  ")
    assert policy_of({}) == ContextPolicy()


@pytest.mark.parametrize(
    "content",
    [
        {"chatHistory.maxMessages": 5, "chatHistory.enableAutoPruning": False, "x": 1},
        {"chatHistory": {"maxMessages": 5, "enableAutoPruning": False}},
        {"chatHistory": {"maxMessages": 5}, "chatHistory.enableAutoPruning": False},
    ],
)
def test_prune_options_are_read_dotted_or_nested(tmp_path: Path, content: Any) -> None:
    found = PruneOptions.from_settings(settings_file(tmp_path, content))
    assert found == {"max_messages": 5, "enabled": False}


def test_every_prune_option_of_a_file_has_its_name_here(tmp_path: Path) -> None:
    content = {
        "chatHistory": {
            "enableAutoPruning": True,
            "maxMessages": 1,
            "maxTokens": None,
            "maxAgeHours": 0.5,
            "preserveSystemMessages": False,
        }
    }
    assert PruneOptions.from_settings(settings_file(tmp_path, content)) == {
        "enabled": True,
        "max_messages": 1,
        "max_tokens": None,
        "max_age_hours": 0.5,
        "preserve_system": False,
    }


def test_a_file_without_prune_options_prunes_by_the_defaults(tmp_path: Path) -> None:
    assert PruneOptions.from_settings(settings_file(tmp_path, {"editor": {}})) == {}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"chatHistory.maxMessage": 5}, "chatHistory.maxMessage"),
        ({"chatHistory": {"unknown": 5}}, "chatHistory.unknown"),
        ({"chatHistory": 5}, "chatHistory"),
        ({"chatHistory.maxTokens": "many"}, "chatHistory.maxTokens"),
        ({"chatHistory.maxTokens": 1, "chatHistory": {"maxTokens": 1}}, "chatHistory.maxTokens"),
    ],
)
def test_wrong_prune_options_are_named_as_in_the_file(
    tmp_path: Path, content: Mapping[str, Any], path: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        PruneOptions.from_settings(settings_file(tmp_path, content))
    assert caught.value.path == path
