"""What holds for every history, profile and option."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import attrs
import pytest
from hypothesis import given, settings

from tests.unit.formatting.histories import MESSAGES, OPTIONS
from tests.unit.formatting.sdk_types import refusals
from tests.unit.formatting.validity import complaints
from vitehub_chat.formatting.history import write_turns
from vitehub_chat.formatting.normaliser.pipeline import normalise
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.profiles import PROFILES
from vitehub_chat.formatting.reading import read_turns
from vitehub_chat.formatting.turns import Turn, turns_to_json
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text
from vitehub_chat.model.parts import ModelPart, TextPart

ALL = list(PROFILES.values())


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=1000)
@given(MESSAGES, OPTIONS)
def test_every_profile_gives_what_its_provider_accepts(
    messages: list[Message], options: FormatOptions
) -> None:
    turns = read_turns(messages)
    settled = attrs.evolve(options, live_frontier=False)
    for profile in ALL:
        fields = write_turns(normalise(turns, profile, settled), profile)
        assert (profile.name, complaints(profile, fields)) == (profile.name, [])


@settings(max_examples=100)
@given(MESSAGES, OPTIONS)
def test_every_profile_gives_what_the_official_types_describe(
    messages: list[Message], options: FormatOptions
) -> None:
    turns = read_turns(messages)
    for profile in ALL:
        fields = write_turns(normalise(turns, profile, options), profile)
        assert (profile.name, refusals(profile, fields)) == (profile.name, [])


@settings(max_examples=150)
@given(MESSAGES, OPTIONS)
def test_normalising_twice_is_normalising_once(
    messages: list[Message], options: FormatOptions
) -> None:
    turns = read_turns(messages)
    for profile in ALL:
        once = normalise(turns, profile, options)
        assert normalise(once, profile, options) == once


@settings(max_examples=100)
@given(MESSAGES, OPTIONS)
def test_a_normalised_list_survives_json(messages: list[Message], options: FormatOptions) -> None:
    for profile in ALL:
        once = normalise(read_turns(messages), profile, options)
        listed = json.loads(json.dumps(turns_to_json(once)))
        again = read_turns([as_message(entry) for entry in listed])
        assert normalise(again, profile, options) == once


@settings(max_examples=150)
@given(MESSAGES, OPTIONS)
def test_no_visible_text_of_user_or_assistant_is_lost(
    messages: list[Message], options: FormatOptions
) -> None:
    turns = numbered(read_turns(messages))
    for profile in ALL:
        once = normalise(turns, profile, options)
        for role in ("user", "assistant"):
            assert lost(texts_of(turns, role), "\0".join(texts_of(once, role))) == []


@settings(max_examples=100)
@given(MESSAGES, OPTIONS)
def test_no_system_role_is_added(messages: list[Message], options: FormatOptions) -> None:
    before = sum(message.role == "system" for message in messages)
    for profile in ALL:
        once = normalise(read_turns(messages), profile, options)
        assert sum(turn.role == "system" for turn in once) <= before


@settings(max_examples=100)
@given(MESSAGES, OPTIONS)
def test_the_same_input_gives_the_same_bytes(
    messages: list[Message], options: FormatOptions
) -> None:
    for profile in ALL:
        first, second = (
            json.dumps(write_turns(normalise(read_turns(messages), profile, options), profile))
            for _ in range(2)
        )
        assert first == second


def as_message(entry: Mapping[str, Any]) -> Message:
    return Message(None, entry["role"], tuple(entry["parts"]), entry.get("metadata", {}))


def numbered(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Make every visible text one of its own."""
    numbers = count()

    def parts_of(turn: Turn) -> Iterator[ModelPart]:
        for part in turn.parts:
            if isinstance(part, TextPart) and has_visible_text(part.text):
                yield attrs.evolve(part, text=f"({next(numbers)}) {part.text}")
            else:
                yield part

    return tuple(attrs.evolve(turn, parts=tuple(parts_of(turn))) for turn in turns)


def texts_of(turns: Sequence[Turn], role: str) -> list[str]:
    return [
        part.text
        for turn in turns
        if turn.role == role
        for part in turn.parts
        if isinstance(part, TextPart) and has_visible_text(part.text)
    ]


def lost(texts: Sequence[str], whole: str) -> list[str]:
    """Return the texts that are not found in their order; white space at ends does not count."""
    missing, position = [], 0
    for text in map(str.rstrip, texts):
        found = whole.find(text, position)
        if found < 0:
            missing.append(text)
        else:
            position = found + len(text)
    return missing
