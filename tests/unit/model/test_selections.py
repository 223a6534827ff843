"""A selection is a sequence of entries that are built when they are looked at."""

from __future__ import annotations

import pytest

from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import SelectionEntry
from vitehub_chat.model.selections import Selection

MESSAGES = [Message("a", "bot", ()), Message(None, "user", ()), Message("c", "user", ())]
SELECTION = Selection(MESSAGES, ["too_old", "window", "current"], {1: 7})


def test_every_message_has_an_entry_in_order() -> None:
    assert list(SELECTION) == [
        SelectionEntry("a", None, "bot", kept=False, reason="too_old"),
        SelectionEntry(None, 7, "user", kept=True, reason="window"),
        SelectionEntry("c", None, "user", kept=True, reason="current"),
    ]


def test_it_is_a_sequence() -> None:
    assert len(SELECTION) == 3
    assert SELECTION[-1].message_id == "c"
    assert [entry.message_id for entry in SELECTION[::2]] == ["a", "c"]
    assert SELECTION[1] in SELECTION
    with pytest.raises(IndexError):
        SELECTION[3]


def test_it_equals_any_sequence_of_its_entries() -> None:
    assert list(SELECTION) == SELECTION
    assert tuple(SELECTION) == SELECTION
    assert tuple(SELECTION)[:-1] != SELECTION


def test_it_counts_by_reason() -> None:
    assert SELECTION.counts() == {"too_old": 1, "window": 1, "current": 1}
    assert "too_old" in repr(SELECTION)
