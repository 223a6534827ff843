"""JSON text: what can be written down, and how."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import (
    MAX_NESTING,
    MAX_WRITTEN,
    decode_json,
    encode_json,
    jsonable,
    replace_surrogates,
    show_json,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


class Odd:
    """Is no JSON."""

    def __repr__(self) -> str:
        return "odd"


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@given(JSON)
def test_json_comes_back(value: Any) -> None:
    assert decode_json(encode_json(value, "x")) == value
    assert jsonable(value) is value


@given(st.text())
def test_every_text_can_be_stored_without_lone_surrogates(text: str) -> None:
    clean = replace_surrogates(text)
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert replace_surrogates(clean) == clean


def test_halves_of_a_pair_become_the_character_they_mean() -> None:
    assert replace_surrogates("a\ud83d\ude00b") == "a😀b"
    assert replace_surrogates("\ud83dx\ude00") == "\ufffdx\ufffd"


def test_text_is_compact_and_unescaped() -> None:
    assert encode_json({"a": ["ä", 1.5]}, "x") == '{"a":["ä",1.5]}'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Odd(), "x"),
        ({"a": [1, {"b": Odd()}]}, "x.a[1].b"),
        ([math.nan], "x[0]"),
        ({"a": math.inf}, "x.a"),
        ({"a": {1, 2}}, "x.a"),
        ({"a": b"x"}, "x.a"),
        ({(1, 2): 1}, "x"),
    ],
)
def test_what_is_no_json_is_named_by_its_place(value: Any, path: str) -> None:
    with pytest.raises(InputError) as caught:
        encode_json(value, path="x")
    assert caught.value.path == path


def test_a_circle_is_no_json() -> None:
    with pytest.raises(InputError):
        encode_json(circle(), "x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Odd(), "odd"),
        ({"a": Odd(), 1: (1, 2)}, {"a": "odd", "1": [1, 2]}),
        ([math.nan, math.inf], ["nan", "inf"]),
        ([{1}], [[1]]),
    ],
)
def test_values_of_others_become_as_close_to_json_as_can_be(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected


def test_a_circle_ends_somewhere() -> None:
    encode_json(jsonable(circle()), "x")


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("most", [MAX_NESTING, MAX_WRITTEN])
def test_so_many_levels_are_written_and_one_more_is_refused(most: int) -> None:
    assert decode_json(encode_json(nest(most), "x", most)) == nest(most)
    with pytest.raises(InputError, match=f"x: is nested deeper than {most} levels"):
        encode_json(nest(most + 1), "x", most)


def test_there_is_room_around_the_deepest_message() -> None:
    encode_json({"around": [nest(MAX_NESTING)]}, "x")


def test_what_is_too_deep_to_be_written_is_shown_as_close_as_can_be() -> None:
    assert decode_json(show_json(nest(400), "x")) == nest(400)
    shown = decode_json(show_json({"near": [1], "far": nest(100_000)}, "x"))
    assert (shown["near"], isinstance(shown["far"], list)) == ([1], True)
    with pytest.raises(InputError, match="is not a JSON value"):
        show_json({"a": math.nan}, "x")


def test_brackets_in_text_are_no_levels() -> None:
    text = '[{"' * 300 + '\\"' * 300
    assert decode_json(encode_json([text], "x")) == [text]
    assert encode_json([[], {}] * 300, "x").count("[") == 301


def test_text_that_is_too_deep_to_be_read_is_none() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        decode_json("[" * 100_000 + "]" * 100_000)


@dataclasses.dataclass
class Point:
    x: int
    y: object


@attrs.frozen
class Place:
    at: Point


class Model:
    def __init__(self, dumped: object) -> None:
        self.dumped = dumped

    def __repr__(self) -> str:
        return "model"

    def model_dump(self, *, mode: str) -> object:
        assert mode == "json"
        if isinstance(self.dumped, Exception):
            raise self.dumped
        return self.dumped


class Long:
    def __repr__(self) -> str:
        return "long " * 1000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, Point(2, Odd())), {"x": 1, "y": {"x": 2, "y": "odd"}}),
        (Place(Point(1, None)), {"at": {"x": 1, "y": None}}),
        (Model({"a": Odd()}), {"a": "odd"}),
        (Model(ValueError()), "model"),
        (Point, repr(Point)),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Long(), "<Long>"),
        (pytest.param(-(10**5000), "<int of 16610 bits>", id="huge")),
    ],
)
def test_what_has_fields_becomes_an_object_and_no_text_is_cut(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected


def test_what_is_too_deep_ends_in_the_name_of_a_type() -> None:
    value = jsonable(nest(400))
    for _ in range(20):
        (value,) = value
    assert value == "<list>"
