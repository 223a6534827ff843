"""`transcripts.prune`: from what was given to the policy that it means."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.config.prune_options import PruneOptions
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.policies import PrunePolicy


def lowered(prune: object, **transcripts: object) -> PrunePolicy | None:
    return lower_chat_options({"transcripts": {"prune": prune, **transcripts}}).prune


@pytest.mark.parametrize("prune", [True, {}, {"enabled": True}])
def test_asked_for_it_has_all_defaults(prune: object) -> None:
    assert lowered(prune) == PrunePolicy()


@pytest.mark.parametrize("prune", [False, None, {"enabled": False, "max_messages": 1}])
def test_switched_off_nothing_is_pruned(prune: object) -> None:
    assert lowered(prune) is None


def test_every_option_has_its_place() -> None:
    prune = {
        "mode": "hide",
        "maxAgeHours": 0.5,
        "maxMessages": 3,
        "maxTokens": 9,
        "preserveSystem": False,
        "estimator": "segments",
        "messageOverhead": 4,
    }
    assert lowered(prune, retention="forever") == PrunePolicy(
        mode="hide",
        max_age=timedelta(minutes=30),
        max_messages=3,
        max_tokens=9,
        preserve_system=False,
        estimator="segments",
        message_overhead=4,
    )


@pytest.mark.parametrize("off", [0, None])
def test_none_and_zero_switch_a_rule_off(off: int | None) -> None:
    found = lowered({"max_age_hours": off, "max_messages": off, "max_tokens": off})
    assert found == PrunePolicy(max_age=None, max_messages=None, max_tokens=None)


def test_the_shortest_age_is_none_that_is_off() -> None:
    found = lowered({"max_age_hours": 1e-300})
    assert found is not None
    assert found.max_age == timedelta(microseconds=1)


def test_the_longest_age_is_still_a_date() -> None:
    found = lowered({"max_age_hours": 1e300})
    assert found is not None
    assert found.max_age is not None
    assert (datetime(2026, 1, 1, tzinfo=UTC) - found.max_age).year < 1100


@pytest.mark.parametrize("prune", [True, {}, {"mode": "delete"}])
def test_what_is_kept_forever_cannot_be_pruned(prune: object) -> None:
    with pytest.raises(ConfigError, match=r"transcripts\.retention") as caught:
        lowered(prune, retention="forever")
    assert caught.value.path == "transcripts.prune.mode"


def test_beside_a_memory_it_needs_no_context() -> None:
    policy = lower_chat_options({"transcripts": {"prune": True}, "memory": {"root": "n"}})
    assert policy.prune == PrunePolicy()
    assert policy.memory is not None


def test_the_options_of_a_settings_file_are_options(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"chatHistory.maxMessages": 7, "chatHistory.maxAgeHours": 0}))
    found = lowered(PruneOptions.from_settings(path))
    assert found == PrunePolicy(max_messages=7, max_age=None)
