"""Tool ids: call ids in the form that a provider takes, the same in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from vitehub_chat.formatting.turns import Turn
from vitehub_chat.model.parts import ModelPart, ToolCallPart, ToolResultPart

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE: Final = len(_DIGITS)
_MAX_READABLE: Final = 55
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


@attrs.frozen
class _Form:
    fits: Callable[[str], object]
    fit: Callable[[str, str], str]


def fit_ids(turns: Sequence[Turn], form: str) -> tuple[Turn, ...]:
    """Return turns in which every call id has the form, equally in calls and results.

    Ids that fit stay. Others are mapped by their hash alone, and by that of `<id>#1`, `<id>#2` and
    so on where an outcome is taken in this list.
    """
    if form not in _FORMS:
        return tuple(turns)
    ids = list(dict.fromkeys(call.id for turn in turns for call in turn.calls))
    mapping = _map_ids(ids, _FORMS[form])
    return tuple(_renamed(turn, mapping) for turn in turns) if mapping else tuple(turns)


def hash_id(text: str, width: int) -> str:
    """Return the first 8 bytes of the text's SHA-256 as base-62 digits, `width` of them."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, _BASE)
        digits = _DIGITS[digit] + digits
    return digits


def _map_ids(ids: Sequence[str], form: _Form) -> Mapping[str, str]:
    taken = {call_id for call_id in ids if form.fits(call_id)}
    mapping: dict[str, str] = {}
    for call_id in ids:
        if form.fits(call_id):
            continue
        number, outcome = 0, form.fit(call_id, call_id)
        while outcome in taken:
            number += 1
            outcome = form.fit(call_id, f"{call_id}#{number}")
        taken.add(outcome)
        mapping[call_id] = outcome
    return mapping


def _renamed(turn: Turn, mapping: Mapping[str, str]) -> Turn:
    def rename(part: ModelPart) -> ModelPart:
        if isinstance(part, ToolCallPart | ToolResultPart):
            return attrs.evolve(part, id=mapping.get(part.id, part.id))
        return part

    return attrs.evolve(turn, parts=tuple(rename(part) for part in turn.parts))


def _nine(_: str, source: str) -> str:
    return hash_id(source, 9)


def _readable(call_id: str, source: str) -> str:
    return f"{_UNSAFE.sub('_', call_id)[:_MAX_READABLE]}_{hash_id(source, 8)}"


_FORMS: Final[Mapping[str, _Form]] = {
    "alnum9": _Form(re.compile(r"[A-Za-z0-9]{9}").fullmatch, _nine),
    "safe64": _Form(re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch, _readable),
}
