"""Profiles: by name, of one's own, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import user
from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.history import format_history
from vitehub_chat.formatting.profiles import PROFILES, Profile, find_profile

OWN = Profile(name="own", later_system="note", merge="text")


def test_a_profile_is_its_own_name() -> None:
    assert find_profile(OWN) is OWN


def test_further_profiles_are_found_by_name() -> None:
    fields = format_history([user("a"), user("b")], "own", profiles={"own": OWN})
    assert fields == {"messages": [{"role": "user", "content": "a\n\nb"}]}


def test_an_unknown_name_lists_all_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        find_profile("foo", {"own": OWN})
    assert caught.value.hint == f"known: {', '.join(sorted([*PROFILES, 'own']))}"


@pytest.mark.parametrize(
    "rules",
    [
        {"shape": "anthropic", "later_system": "note"},
        {"shape": "gemini", "merge": "text", "later_system": "note"},
        {"shape": "bedrock", "merge": "blocks"},
        {"shape": "chat", "merge": "blocks"},
    ],
)
def test_rules_that_the_shape_cannot_hold_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="profile 'x'"):
        Profile(name="x", **rules)
