"""JSON text: what can be written down, and how."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import (
    decode_json,
    encode_json,
    jsonable,
    replace_surrogates,
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
