"""Usage: what a model reported takes the place of estimates, while it holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from vitehub_chat.model.messages import Message
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.tokens import CHARS4, RUNES
from vitehub_chat.selection.tokens_usage import estimate_rows

NOW = datetime(2026, 5, 1, tzinfo=UTC)
USAGE = {"input_tokens": 900, "output_tokens": 100, "model": "m1"}


def _row(seq: int, role: str, text: str = "", usage: Mapping[str, Any] | None = None) -> Row:
    message = Message(f"m{seq}", role, ({"type": "text", "text": text},))
    return Row(message=message, seq=seq, recorded_at=NOW, usage=usage)


ASKED, ANSWERED = _row(1, "user", "h" * 8), _row(2, "assistant", "a" * 8, USAGE)
THANKED, WELCOMED = _row(3, "user", "t" * 400), _row(4, "assistant", "w" * 8)
ROWS = [ASKED, ANSWERED, THANKED, WELCOMED]
ESTIMATED = 5 + 2 + 2 + 100 + 2


def test_later_rows_are_estimated_on_top_of_the_report() -> None:
    assert estimate_rows(ROWS, CHARS4, model="m1", fixed=5) == 1000 + 100 + 2


def test_the_newest_report_counts() -> None:
    newest = attrs.evolve(WELCOMED, usage={**USAGE, "input_tokens": 1200})
    assert estimate_rows([*ROWS[:-1], newest], CHARS4, model="m1") == 1300


def test_without_a_report_everything_is_estimated() -> None:
    assert estimate_rows([ASKED, THANKED], CHARS4, model="m1", fixed=5) == 5 + 2 + 100
    assert estimate_rows([], CHARS4, model="m1", fixed=5) == 5


@pytest.mark.parametrize("model", ["m2", None])
def test_the_report_of_another_model_does_not_count(model: str | None) -> None:
    assert estimate_rows(ROWS, CHARS4, model=model, fixed=5) == ESTIMATED


def test_an_older_report_of_the_same_model_counts_behind_one_of_another() -> None:
    other = attrs.evolve(WELCOMED, usage={**USAGE, "model": "m2"})
    assert estimate_rows([*ROWS[:-1], other], CHARS4, model="m1") == 1000 + 100 + 2


def test_a_report_is_void_up_to_the_last_change() -> None:
    assert estimate_rows(ROWS, CHARS4, model="m1", void_through=2, fixed=5) == ESTIMATED
    assert estimate_rows(ROWS, CHARS4, model="m1", void_through=1) == 1000 + 100 + 2


@pytest.mark.parametrize(
    "change",
    [
        {"usage": {"input_tokens": 900, "model": "m1"}},
        {"usage": {"input_tokens": 0, "output_tokens": 0, "model": "m1"}},
        {"usage": {"input_tokens": "900", "output_tokens": 100, "model": "m1"}},
        {"status": "interrupted"},
    ],
)
def test_half_a_report_does_not_count(change: Mapping[str, Any]) -> None:
    rows = [ASKED, attrs.evolve(ANSWERED, **change), THANKED, WELCOMED]
    assert estimate_rows(rows, CHARS4, model="m1", fixed=5) == ESTIMATED


def test_reports_are_tokens_and_do_not_count_in_runes() -> None:
    assert estimate_rows(ROWS, RUNES, model="m1") == 8 + 8 + 400 + 8


def test_the_overhead_is_added_for_each_estimated_row() -> None:
    assert estimate_rows(ROWS, CHARS4, model="m1", overhead=10) == 1000 + 100 + 2 + 20
