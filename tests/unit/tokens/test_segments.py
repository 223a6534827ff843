"""Segments: the cost of every kind of run, and of dense ones."""

from __future__ import annotations

import math
import re
import string
from fractions import Fraction
from itertools import groupby, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.tokens.texts import TEXTS
from vitehub_chat.selection import tokens_segments
from vitehub_chat.selection.tokens_segments import count_thousandths


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("a", 1000),
        ("sevenup", 1000),
        ("eightfun", 1778),
        ("ninechars", 2000),
        ("1", 1000),
        ("123", 1000),
        ("1234", 2000),
        ("a1", 2000),
        ("中", 850),
        ("中文가Ａ\U00020000", 5 * 850),
        (" ", 0),
        ("  ", 250),
        ("\t", 250),
        ("\u00a0", 250),
        ("\r", 250),
        (" " * 39, 250),
        (" " * 40, 1000),
        ("\n", 600),
        ("\n" + " " * 24, 625),
        (".", 550),
        ("..", 750),
        ("...", 900),
        ("\x00", 350),
        ("\x1c", 350),
        ("é", 350),
        ("\u08ff", 350),
        ("\u0900", 450),
        ("\u1fff", 450),
        ("\u2010", 700),
        ("\u2e7f", 700),
        ("\ua000", 2600),
        ("\U0001f600", 2600),
        ("éЖ\u2010", 350 + 350 + 700),
        ("two words", 2000),
        ("two  words", 2250),
        ("a .b", 2550),
    ],
)
def test_a_run_costs_what_its_row_says(text: str, cost: int) -> None:
    assert count_thousandths(text) == cost


def test_an_ideographic_space_is_no_white_space() -> None:
    assert count_thousandths("\u3000") == 850


def test_a_dense_run_of_19_has_no_surcharge() -> None:
    assert count_thousandths("aB3" * 6 + "a") == 19 * 1000 - 6 * 1000


@pytest.mark.parametrize("text", ["-" * 40, "a" * 40, "4" * 40])
def test_a_dense_run_without_changes_has_no_surcharge(text: str) -> None:
    assert count_thousandths(text) == _reference(text) == _plain(text)


def test_few_changes_cap_the_surcharge() -> None:
    text = "a" * 7 + "1" * 3 + "B" * 7 + "1" * 3
    assert _plain(text) == 4000
    assert count_thousandths(text) == 3 * 1650


@given(TEXTS)
@example("." + "-" * 20 + "aB3" * 20 + "-" * 3 + ".")
@example("word " * 5 + " \n word")
def test_the_cost_is_that_of_the_table(text: str) -> None:
    assert count_thousandths(text) == _reference(text)


@given(TEXTS)
def test_where_a_long_text_is_split_changes_nothing(text: str) -> None:
    whole = count_thousandths(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens_segments, "_WINDOW", 3)
        assert count_thousandths(text) == whole


@given(TEXTS, st.one_of(TEXTS, st.characters()))
def test_text_behind_a_text_never_lowers_its_cost(text: str, more: str) -> None:
    assert count_thousandths(text + more) >= count_thousandths(text)


@given(TEXTS, st.one_of(TEXTS, st.characters()))
def test_text_before_a_text_never_lowers_its_cost(text: str, more: str) -> None:
    assert count_thousandths(more + text) >= count_thousandths(text)


def _reference(text: str) -> int:
    """Return the cost by the table, one character after the other."""
    dense = re.findall(r"[A-Za-z0-9+/=_-]{20,}", text)
    return _plain(text) + sum(map(_surcharge, dense))


def _plain(text: str) -> int:
    runs = [(row, "".join(run)) for row, run in groupby(text, key=_row)]
    return sum(_cost(row, run) for row, run in runs)


def _row(character: str) -> str:
    code = ord(character)
    if character in string.ascii_letters:
        return "letters"
    if character in string.digits:
        return "digits"
    ideographs = [(0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF)]
    if any(first <= code <= last for first, last in [*ideographs, (0x20000, 0x323AF)]):
        return "ideographs"
    if character.isspace() and not 0x1C <= code <= 0x1F:
        return "blanks"
    return "punctuation" if character in string.punctuation else "others"


def _cost(row: str, run: str) -> int:
    count = len(run)
    match row:
        case "letters":
            return 1000 if count <= 7 else math.ceil(Fraction(2000 * count, 9))
        case "digits":
            return 1000 * math.ceil(Fraction(count, 3))
        case "ideographs":
            return 850 * count
        case "blanks" if run == " ":
            return 0
        case "blanks":
            is_narrow = "\n" not in run and count < 40
            return 250 if is_narrow else max(600, 25 * count)
        case "punctuation":
            return 550 if count == 1 else max(750, 300 * count)
        case _:
            return sum(_cost_of_other(ord(character)) for character in run)


def _cost_of_other(code: int) -> int:
    if code < 0x0900:
        return 350
    if code < 0x2000:
        return 450
    return 700 if code < 0x2E80 else 2600


def _surcharge(run: str) -> int:
    changes = sum(
        first.isdigit() != second.isdigit() or (first.islower() and second.isupper())
        for first, second in pairwise(run)
    )
    dense = min(math.ceil(Fraction(20_000 * len(run), 29)), 1650 * changes)
    return max(0, dense - _plain(run))
