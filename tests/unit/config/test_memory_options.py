"""Options of `memory`, and the policy that they mean."""

from __future__ import annotations

from datetime import UTC, date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from vitehub_chat.config.chat_options import lower_chat_options
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.memory_policy import MemoryPolicy


class Sink:
    """A place for notes."""

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Take a note."""


WINDOW = {"source": "transcript", "max_messages": 9}
ALL: dict[str, object] = {
    "root": "notes",
    "daily_note": False,
    "extract": False,
    "append_every_turn": True,
    "on_error": "block",
    "timezone": "Europe/Berlin",
    "note_timeout_ms": 1,
    "extract_timeout_ms": 2,
}


def lower(memory: dict[str, object]) -> MemoryPolicy | None:
    return lower_chat_options({"context": True, "trigger_history": WINDOW, "memory": memory}).memory


@pytest.mark.parametrize("memory", [{}, {"daily_note": True}, {"append_every_turn": True}])
def test_without_folder_and_sink_it_is_off(memory: dict[str, object]) -> None:
    assert lower(memory) is None


def test_all_options_are_lowered() -> None:
    assert lower(ALL) == MemoryPolicy(
        root=Path("notes"),
        daily_note=False,
        extract=False,
        append_every_turn=True,
        on_error="block",
        timezone=ZoneInfo("Europe/Berlin"),
        note_timeout=timedelta(milliseconds=1),
        extract_timeout=timedelta(milliseconds=2),
    )


def test_what_is_not_given_has_its_default() -> None:
    sink = Sink()
    policy = lower({"sink": sink, "timezone": "UTC"})
    assert policy is not None
    assert policy.sink is sink
    assert policy.timezone is UTC
    assert lower({"sink": "state"}) == MemoryPolicy(sink="state")
    assert (policy.daily_note, policy.extract, policy.append_every_turn) == (True, True, False)
    assert (policy.note_timeout, policy.extract_timeout) == (
        timedelta(seconds=5),
        timedelta(seconds=20),
    )


def test_second_names_mean_the_same() -> None:
    given = {"root": "notes", "memory_auto_extract": False, "memoryAutoAppend": True}
    assert lower(given) == MemoryPolicy(root=Path("notes"), extract=False, append_every_turn=True)


@pytest.mark.parametrize(
    ("name", "other"),
    [("extract", "memory_auto_extract"), ("append_every_turn", "memoryAutoAppend")],
)
def test_both_names_of_an_option_at_once_are_refused(name: str, other: str) -> None:
    with pytest.raises(ConfigError, match=name):
        lower({"root": "notes", name: True, other: True})


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        ("notes", "notes"),
        (Path("notes"), "notes"),
        ("file:notes", "notes"),
        ("FILE:/var/notes", "/var/notes"),
        ("file:///var/notes", "/var/notes"),
        ("file://localhost/var/notes", "/var/notes"),
    ],
)
def test_a_folder_may_be_given_as_a_url(root: object, folder: str) -> None:
    assert lower({"root": root}) == MemoryPolicy(root=Path(folder))


def test_a_memory_that_archives_nothing_is_told() -> None:
    with pytest.warns(ConfigOverrideWarning, match="memory archives nothing"):
        lower_chat_options({"memory": {"root": "notes"}})
    lower_chat_options({"memory": {"root": "notes", "append_every_turn": True}})
