"""Segments: what a text costs by its runs of similar characters, without any vocabulary."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

THOUSANDTHS: Final = 1000
"""How many thousandths one token is."""

_BLANK: Final = "\t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f"
_CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U000323af"
_RUN: Final = re.compile(
    rf" ?[A-Za-z]+|[!-/:-@[-`{{-~]+|[0-9]+|[ {_BLANK}]{{2,}}|[{_BLANK}]|[{_CJK}]+"
    rf"|[^!-~ {_BLANK}{_CJK}]+"
)
"""A run. A single space costs nothing: it is passed over, or comes along with the word behind it,
which halves the number of matches."""

_IS_BLANK: Final = re.compile(rf"[ {_BLANK}]").match
_IS_CJK: Final = re.compile(rf"[{_CJK}]").match
_WINDOW: Final = 65_536
"""How many characters are split at once, so that a long text takes little memory."""

_OTHERS_FROM: Final = (0x0900, 0x2000, 0x2E80)
_OTHERS_COST: Final = (350, 450, 700, 2600)

_DENSE: Final = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_SHORTEST_DENSE: Final = b"x" * 20
_DENSE_SIGNS: Final = (digits + ascii_lowercase + ascii_uppercase + "+/=_-").encode()
_MARK_DENSE: Final = bytes.maketrans(_DENSE_SIGNS, b"x" * len(_DENSE_SIGNS))
_MARK_KIND: Final = bytes.maketrans(_DENSE_SIGNS, b"d" * 10 + b"l" * 26 + b"u" * 26 + b"o" * 5)
_CHANGES: Final = (b"dl", b"du", b"do", b"ld", b"ud", b"od", b"lu")


def count_thousandths(text: str) -> int:
    """Return what a text costs, in thousandths of a token; more text never costs less."""
    return _plain_cost(text) + sum(map(_surcharge, _dense_runs(text)))


def _plain_cost(text: str) -> int:
    cost_of = _CostOfRun().__getitem__
    return sum(sum(map(cost_of, runs)) for runs in _split(text))


def _split(text: str) -> Iterator[list[str]]:
    """Give the runs of a text, a window at a time; a window ends where a run does."""
    begin = 0
    while begin < len(text):
        last = _RUN.search(text, begin + _WINDOW)
        end = len(text) if last is None else last.end()
        yield _RUN.findall(text, begin, end)
        begin = end


class _CostOfRun(dict[str, int]):
    """Costs of runs in thousandths, each worked out once, as texts repeat their words."""

    def __missing__(self, run: str) -> int:
        cost = self[run] = _cost_by(run[-1])(run)
        return cost


def _cost_by(character: str) -> Callable[[str], int]:
    """Return what gives the cost of a run of characters like this one."""
    if _IS_CJK(character):
        return _cost_of_cjk
    if _IS_BLANK(character):
        return _cost_of_blanks
    if not "!" <= character <= "~":
        return _cost_of_others
    if character.isalpha():
        return _cost_of_letters
    return _cost_of_digits if character.isdecimal() else _cost_of_punctuation


def _cost_of_letters(run: str) -> int:
    count = len(run) - run.startswith(" ")
    return 1000 if count <= 7 else _ratio_up(2000 * count, 9)


def _cost_of_digits(run: str) -> int:
    return 1000 * _ratio_up(len(run), 3)


def _cost_of_cjk(run: str) -> int:
    return 850 * len(run)


def _cost_of_blanks(run: str) -> int:
    if "\n" not in run and len(run) < 40:
        return 250
    return max(600, 25 * len(run))


def _cost_of_punctuation(run: str) -> int:
    return 550 if len(run) == 1 else max(750, 300 * len(run))


def _cost_of_others(run: str) -> int:
    return sum(_OTHERS_COST[bisect_right(_OTHERS_FROM, ord(character))] for character in run)


def _dense_runs(text: str) -> Iterator[str]:
    """Give every longest run of at least 20 characters of base64 and its like.

    Most texts have none, which looking at one byte per character tells fast.
    """
    marks = text.encode("ascii", "replace").translate(_MARK_DENSE)
    if _SHORTEST_DENSE in marks:
        for found in _DENSE.finditer(text):
            yield found[0]


def _surcharge(run: str) -> int:
    """Return what a dense run costs above its plain cost: it has few tokens of many letters."""
    kinds = run.encode("ascii").translate(_MARK_KIND)
    changes = sum(map(kinds.count, _CHANGES))
    dense_cost = min(_ratio_up(20_000 * len(run), 29), 1650 * changes)
    return max(0, dense_cost - _plain_cost(run))


def _ratio_up(value: int, divisor: int) -> int:
    return -(-value // divisor)
