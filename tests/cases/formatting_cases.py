"""Cases of formatting, through `format_history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vitehub_chat import errors
from vitehub_chat.formatting.history import format_history, payload_turns
from vitehub_chat.formatting.normaliser.pipeline import normalise
from vitehub_chat.formatting.options import FormatOptions
from vitehub_chat.formatting.payload import build_payload
from vitehub_chat.formatting.profiles import find_profile
from vitehub_chat.formatting.reading import read_turns
from vitehub_chat.formatting.turns import Turn, turns_to_json
from vitehub_chat.model.messages import Message

_FORMAT_OPTIONS = {"speaker_prefix", "thinking", "live_frontier", "split_results", "media"}
_PLACED = {"system", "summary"}


async def run(case: Mapping[str, Any]) -> None:
    """Check one case for each of its profiles."""
    for profile in case["config"]["profiles"]:
        if "error" in case:
            _check_error(case, profile)
        else:
            _check_wire(case, profile)


def _check_error(case: Mapping[str, Any], profile: str) -> None:
    expected = case["error"]
    with pytest.raises(getattr(errors, expected["class"])) as caught:
        _wire(case, profile)
    assert caught.value.code == expected.get("code", caught.value.code)
    assert [word for word in expected.get("mentions", ()) if word not in str(caught.value)] == []


def _check_wire(case: Mapping[str, Any], profile: str) -> None:
    assert _wire(case, profile) == case["expect"]["wire"][profile]
    normalised = _normalised(case, profile)
    options, chosen = _options(case), find_profile(profile)
    assert normalise(normalised, chosen, options) == normalised
    listed = turns_to_json(normalised)
    reread = read_turns([message(entry) for entry in listed])
    assert normalise(reread, chosen, options) == normalised
    expected = case["expect"].get("neutral", {}).get(profile)
    if expected is not None:
        assert _limited(listed, expected) == expected


def _wire(case: Mapping[str, Any], profile: str) -> Mapping[str, Any]:
    options = {name: value for name, value in case["config"].items() if name != "profiles"}
    given = {name: value for name, value in case["input"].items() if name in _PLACED}
    current = case["input"].get("current")
    return format_history(
        [message(entry) for entry in case["input"].get("messages", ())],
        profile,
        current=None if current is None else message(current),
        **options,
        **given,
    )


def _normalised(case: Mapping[str, Any], profile: str) -> tuple[Turn, ...]:
    config, given = case["config"], case["input"]
    current = given.get("current")
    payload = build_payload(
        [message(entry) for entry in given.get("messages", ())],
        current=None if current is None else message(current),
        **{name: value for name, value in given.items() if name in _PLACED},
        **{
            name: value
            for name, value in config.items()
            if name not in _FORMAT_OPTIONS and name != "profiles"
        },
    )
    return normalise(payload_turns(payload), find_profile(profile), _options(case))


def _options(case: Mapping[str, Any]) -> FormatOptions:
    given = {name: value for name, value in case["config"].items() if name in _FORMAT_OPTIONS}
    return FormatOptions(**given)


def message(entry: Mapping[str, Any]) -> Message:
    """Return a message of a case."""
    parts, metadata = tuple(entry["parts"]), entry.get("metadata", {})
    return Message(entry.get("id"), entry["role"], parts, metadata)


def _limited(actual: Any, expected: Any) -> Any:
    """Return what is actual without the keys that nothing is expected of."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return {
            name: _limited(value, expected[name])
            for name, value in actual.items()
            if name in expected
        }
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [_limited(*pair) for pair in zip(actual, expected, strict=True)]
    return actual
