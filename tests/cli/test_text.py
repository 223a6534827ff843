"""Text of others, made safe for a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.cli.text import json_line, safe_line, safe_text, shorten

ANY_TEXT = st.text(st.characters())
DANGEROUS = {"Cc", "Cs", "Zl", "Zp"}


@given(ANY_TEXT)
def test_no_control_character_is_left_in_a_line(text: str) -> None:
    assert {unicodedata.category(each) for each in safe_line(text)} & DANGEROUS == set()


@given(ANY_TEXT)
def test_a_text_keeps_its_lines_and_tabs_alone(text: str) -> None:
    left = safe_text(text).replace("\n", "").replace("\t", "")
    assert {unicodedata.category(each) for each in left} & DANGEROUS == set()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\rb"),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("Grüße, 漢字 👩\u200d👩\u200d👧", "Grüße, 漢字 👩\u200d👩\u200d👧"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text: str, safe: str) -> None:
    assert safe_line(text) == safe


def test_a_line_break_cannot_start_a_line_of_ours() -> None:
    assert safe_line("a\nb\tc") == "a\\nb\\tc"


def test_a_shortened_text_says_how_much_is_missing() -> None:
    assert shorten("abcdef", 4) == "abcd… [2 more characters]"
    assert shorten("abcd", 4) == "abcd"


@given(ANY_TEXT)
def test_json_is_printable_ascii_and_loses_nothing(text: str) -> None:
    line = json_line([text])
    assert line.isascii()
    assert line.isprintable()
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert json.loads(line) == [expected]
