"""Plans name what was kept first, and bound what they say of the rest."""

from __future__ import annotations

from vitehub_chat.model.messages import Message
from vitehub_chat.model.plans import MAX_CUT, plan_entries
from vitehub_chat.model.results import SelectionReason
from vitehub_chat.model.selections import Selection


def selection(*reasons: SelectionReason) -> Selection:
    messages = [Message(f"m{number}", "user", ()) for number in range(len(reasons))]
    return Selection(messages, reasons)


def test_kept_messages_come_before_those_that_were_cut() -> None:
    chosen = selection("too_old", "window", "over_count", "retained", "current")
    for given in (chosen, tuple(chosen)):
        entries, left_out = plan_entries(given)
        assert [entry.message_id for entry in entries] == ["m1", "m3", "m4", "m0", "m2"]
        assert left_out == 0


def test_of_many_cut_messages_the_newest_are_named() -> None:
    cut: list[SelectionReason] = ["over_count"] * (MAX_CUT + 3)
    entries, left_out = plan_entries(selection(*cut, "current"))
    assert left_out == 3
    assert [entry.message_id for entry in entries[:2]] == [f"m{MAX_CUT + 3}", "m3"]
    assert len(entries) == MAX_CUT + 1


def test_nothing_selected_is_an_empty_plan() -> None:
    assert plan_entries(()) == ((), 0)
