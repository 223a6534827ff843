"""What the tests of the memory share: a look into notes, and messages to archive."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from vitehub_chat.model.messages import Message

MARK = re.compile(r"^<!-- vitehub-flush: ([0-9a-f]{32}) -->$", re.MULTILINE)
HEADING = re.compile(
    r"^## (?:Context compaction archive|Turn) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d,"
    r" messages (\d+)-(\d+)$",
    re.MULTILINE,
)
WINDOW = {"source": "transcript", "max_messages": 1000}
TIGHT: dict[str, Any] = {
    "estimator": "runes",
    "limit": 1000,
    "message_overhead": 0,
    "frame_overhead": 0,
    "min_verbatim": 4,
    "summary_max": 200,
    "summarizer": "extractive",
}
"""Condenses from the ninth message of a hundred characters on."""


@attrs.frozen
class Section:
    """One section as it stands in a note."""

    flush_id: str
    first: int
    last: int


def sections_of(text: str) -> list[Section]:
    """Return the sections of a note, checking that each is whole and nothing else is there."""
    headings, ids = HEADING.findall(text), MARK.findall(text)
    lines = text.split("\n")
    assert sum(line.startswith("#") for line in lines) == len(headings)
    assert text.count("<!-- vitehub-flush") == len(ids) == len(headings)
    assert not [line for line in lines if line.startswith(("```", "---"))]
    found = [
        Section(flush_id, int(first), int(last))
        for flush_id, (first, last) in zip(ids, headings, strict=True)
    ]
    shown = sum(line.startswith("**") for line in lines)
    assert shown == sum(each.last - each.first + 1 for each in found)
    return found


def sections_in(root: Path) -> list[Section]:
    """Return the sections of all notes of a folder, by day; no id is there twice."""
    notes = sorted(root.glob("*.md"))
    found = [each for note in notes for each in sections_of(note.read_text(encoding="utf-8"))]
    assert len({each.flush_id for each in found}) == len(found)
    return found


def texts(*said: str) -> list[Message]:
    """Return messages of one text each, of user and assistant in turn."""
    roles = ("user", "assistant")
    return [
        Message(f"m{number}", roles[number % 2], ({"type": "text", "text": text},))
        for number, text in enumerate(said)
    ]


def ranges(sections: Iterable[Section]) -> list[tuple[int, int]]:
    """Return which messages sections have."""
    return [(each.first, each.last) for each in sections]
