"""Call ids in the form of a provider."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.formatting.said import assistant, call, result, tool
from vitehub_chat.formatting.normaliser.pipeline import normalise
from vitehub_chat.formatting.normaliser.tool_ids import hash_id
from vitehub_chat.formatting.profiles import PROFILES
from vitehub_chat.formatting.reading import read_turns


def ids(profile: str, *given_ids: str) -> list[str]:
    messages = [assistant(*map(call, given_ids)), tool(*map(result, given_ids))]
    turns = normalise(read_turns(messages), PROFILES[profile])
    called = [part.id for turn in turns for part in turn.calls]
    assert [part.id for turn in turns for part in turn.results] == called
    return called


def test_nine_characters_come_from_the_hash() -> None:
    assert ids("mistral", "c1", "abc123XYZ", "call_1") == ["IUK2kuQdX", "abc123XYZ", "zdf4e90uB"]


def test_a_taken_outcome_is_hashed_again() -> None:
    assert ids("mistral", "c1", "IUK2kuQdX") == [hash_id("c1#1", 9), "IUK2kuQdX"]


@pytest.mark.parametrize("profile", ["anthropic", "bedrock"])
def test_unsafe_characters_become_underscores_before_a_hash(profile: str) -> None:
    long = "x" * 65
    assert ids(profile, "call:é 1", long, "call_1", "y" * 64) == [
        f"call___1_{hash_id('call:é 1', 8)}",
        f"{'x' * 55}_{hash_id(long, 8)}",
        "call_1",
        "y" * 64,
    ]


def test_ids_stay_where_any_will_do() -> None:
    assert ids("openai_chat", "é 1", "x" * 99) == ["é 1", "x" * 99]


@given(st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_mapped_ids_are_apart_and_fit(given_ids: list[str]) -> None:
    for profile, form in (("mistral", "[A-Za-z0-9]{9}"), ("anthropic", "[A-Za-z0-9_-]{1,64}")):
        mapped = ids(profile, *given_ids)
        assert len(set(mapped)) == len(given_ids)
        assert [one for one in mapped if not re.fullmatch(form, one)] == []
