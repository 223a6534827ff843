"""Counters: what messages and tools cost, and under what counts are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokens.texts import TEXTS
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.selection.tokens import BUILT_IN, CHARS4, RUNES, SEGMENTS, estimator_for
from vitehub_chat.selection.tokens_counter import TokenCounter

IMAGE = {"type": "image", "mediaType": "image/png", "data": "QUJD"}
AUDIO = {"type": "audio", "mediaType": "audio/wav", "url": "https://example.org/a"}
FILE = {"type": "file", "mediaType": "application/pdf", "data": "QUJD"}


@attrs.frozen(kw_only=True)
class _Tool:
    name: str
    description: str
    parameters: Mapping[str, Any]


def _message(*parts: Mapping[str, Any], role: str = "user") -> Message:
    return Message("m", role, parts)


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}


def _runes(*parts: Mapping[str, Any]) -> int:
    return RUNES.count_message(_message(*parts))


def test_the_texts_of_a_message_are_rounded_once() -> None:
    message = _message(_text("a"), _text("b"), _text("."))
    assert CHARS4.count_message(message) == 1
    assert SEGMENTS.count_message(message, overhead=0) == 3


def test_texts_are_counted_as_they_stand_and_not_joined() -> None:
    assert SEGMENTS.count_message(_message(_text("word"), _text("word")), overhead=0) == 2


@pytest.mark.parametrize(("name", "overhead"), [("chars4", 0), ("runes", 0), ("segments", 4)])
def test_the_overhead_is_that_of_the_estimator(name: str, overhead: int) -> None:
    assert BUILT_IN[name].count_message(_message()) == overhead
    assert BUILT_IN[name].count_message(_message(), overhead=7) == 7


def test_a_call_costs_its_name_and_its_compact_input() -> None:
    call = {"type": "tool-call", "id": "c", "name": "get", "input": {"city": "Zürich", "n": [1, 2]}}
    assert _runes(call) == len('get{"city":"Zürich","n":[1,2]}')


def test_a_result_costs_its_output_alone() -> None:
    result = {"type": "tool-result", "id": "c", "name": "get"}
    assert _runes({**result, "output": "cold"}) == 4
    assert _runes({**result, "output": {"t": 4}}) == len('{"t":4}')
    assert _runes({**result, "output": None}) == len("null")
    assert _runes(result) == 0


def test_a_failed_result_costs_its_error() -> None:
    failed = {"type": "tool-result", "id": "c", "name": "get", "status": "failed", "error": "gone"}
    assert _runes(failed) == 4


def test_the_part_of_a_client_costs_call_and_result() -> None:
    part = {
        "type": "tool-get",
        "toolCallId": "c",
        "state": "output-available",
        "input": {},
        "output": "cold",
    }
    assert _runes(part) == len("get{}cold")


def test_reasoning_costs_its_text() -> None:
    part = {"type": "reasoning", "provider": "anthropic", "text": "hmm", "signature": "x" * 99}
    assert _runes(part) == 3


def test_data_and_approvals_cost_nothing() -> None:
    data = {"type": "data-chart", "data": {"points": [1, 2, 3]}}
    asked = {
        "type": "tool-get",
        "toolCallId": "c",
        "state": "approval-responded",
        "approval": {"id": "ap", "approved": True, "reason": "because"},
    }
    assert _runes(data) == 0
    assert _runes(asked) == len("get")


@pytest.mark.parametrize(("part", "tokens"), [(IMAGE, 1000), (AUDIO, 1000), (FILE, 2000)])
def test_media_cost_the_same_whatever_their_size(part: Mapping[str, Any], tokens: int) -> None:
    assert CHARS4.count_message(_message(part)) == tokens
    assert SEGMENTS.count_message(_message(part), overhead=0) == tokens
    assert RUNES.count_message(_message(part)) == 2 * tokens


def test_media_in_runes_follow_the_decimal_text_of_the_rate() -> None:
    message = _message(IMAGE)
    assert RUNES.count_message(message, runes_per_token=1.1) == 1100
    assert RUNES.count_message(message, runes_per_token=2.0005) == 2001
    assert CHARS4.count_message(message, runes_per_token=3.0) == 1000


def test_parts_as_values_cost_what_they_cost_as_supplied() -> None:
    supplied = _message(_text("hello"), IMAGE, role="assistant")
    values = attrs.evolve(supplied, parts=read_parts(supplied.parts))
    for counter in BUILT_IN.values():
        assert counter.count_message(values) == counter.count_message(supplied)


def test_a_value_that_is_no_json_is_counted_by_its_text() -> None:
    call = {"type": "tool-call", "id": "c", "name": "get", "input": {"when": float("inf")}}
    assert _runes(call) == len('get{"when":"inf"}')


def test_a_tool_costs_name_description_and_compact_schema() -> None:
    tool = _Tool(name="get", description="Gets it.", parameters={"type": "object"})
    assert RUNES.count_tools([tool]) == len('getGets it.{"type":"object"}')
    assert RUNES.count_tools([tool, tool]) == 2 * RUNES.count_tools([tool])
    assert RUNES.count_tools([]) == 0


PARTS = st.one_of(
    TEXTS.map(_text),
    st.sampled_from([IMAGE, AUDIO, FILE]),
    TEXTS.map(lambda text: {"type": "tool-call", "id": "c", "name": "f", "input": {"q": text}}),
    TEXTS.map(lambda text: {"type": "tool-result", "id": "c", "name": "f", "output": text}),
)
COUNTERS = st.sampled_from([*BUILT_IN.values(), estimator_for(len)])


@given(COUNTERS, st.lists(PARTS, max_size=4), PARTS, st.data())
def test_another_part_never_lowers_a_count(
    counter: TokenCounter,
    parts: list[Mapping[str, Any]],
    part: Mapping[str, Any],
    data: st.DataObject,
) -> None:
    place = data.draw(st.integers(0, len(parts)))
    more = [*parts[:place], part, *parts[place:]]
    assert counter.count_message(_message(*more)) >= counter.count_message(_message(*parts))


@given(COUNTERS, st.lists(PARTS, max_size=3), TEXTS, TEXTS)
def test_a_longer_text_never_lowers_a_count(
    counter: TokenCounter, parts: list[Mapping[str, Any]], text: str, more: str
) -> None:
    short = counter.count_message(_message(*parts, _text(text)))
    assert counter.count_message(_message(*parts, _text(text + more))) >= short
    assert counter.count_message(_message(*parts, _text(more + text))) >= short


def test_counts_are_kept_by_name_version_and_content() -> None:
    message = _message(_text("hello"))
    key = CHARS4.key(message)
    assert key is not None
    assert (key.estimator, key.version, len(key.digest)) == ("chars4", "1", 64)
    assert CHARS4.key(_message(_text("hello"))) == key
    assert CHARS4.key(_message(_text("hello!"))) != key
    assert SEGMENTS.key(message) != key
    assert attrs.evolve(CHARS4, version="2").key(message) != key


def test_the_rate_of_runes_is_part_of_what_is_kept_in_runes() -> None:
    message = _message(IMAGE)
    assert RUNES.key(message, runes_per_token=3.0) != RUNES.key(message)
    assert CHARS4.key(message, runes_per_token=3.0) == CHARS4.key(message)


def test_half_a_surrogate_pair_has_a_key() -> None:
    assert CHARS4.key(_message(_text("\ud800"))) != CHARS4.key(_message(_text("\ufffd")))


def test_what_has_no_version_is_not_kept() -> None:
    assert estimator_for(len).key(_message(_text("hello"))) is None
