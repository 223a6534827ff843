"""Reading messages from JSON, and their times."""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

from vitehub_chat.errors import InputError
from vitehub_chat.model.clock import (
    from_epoch_us,
    in_us,
    read_time,
    to_epoch_ms,
    to_epoch_us,
)
from vitehub_chat.model.messages import Message, format_time
from vitehub_chat.model.parts import MediaPart, TextPart, ToolResultPart
from vitehub_chat.model.ui_messages import read_message, read_messages

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1_767_268_800_000
TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:00:00.000Z",
        "2026-01-01T12:00:00",
        "2026-01-01 12:00:00+00:00",
        "2026-01-01T13:30:00+01:30",
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=-5))),
        NOON_MS,
        float(NOON_MS),
    ],
)
def test_a_readable_time_is_aware_and_in_utc(value: object) -> None:
    found = read_time(value)
    assert found == NOON
    assert found.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "value",
    [None, "", "noon", "12:00", True, math.nan, math.inf, -math.inf, 1e30, [], {}, b"2026-01-01"],
)
def test_what_is_no_time_is_none(value: object) -> None:
    assert read_time(value) is None


def test_times_are_counted_in_whole_units() -> None:
    moment = NOON + timedelta(microseconds=1_999)
    assert from_epoch_us(to_epoch_us(moment)) == moment
    assert to_epoch_ms(moment) == NOON_MS + 1
    assert in_us(timedelta(milliseconds=1)) == 1000
    assert format_time(moment) == "2026-01-01T12:00:00.001Z"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"createdAt": "x", "created_at": NOON_MS}, NOON),
        ({"createdAt": NOON_MS, "created_at": 0}, NOON),
        ({"created_at": NOON_MS, "metadata": {"createdAt": 0}}, NOON),
        ({"metadata": {"createdAt": NOON_MS, "created_at": 0}}, NOON),
        ({"metadata": {"created_at": NOON_MS, "updatedAt": 0}}, NOON),
        ({"metadata": {"updatedAt": NOON_MS, "updated_at": 0}}, NOON),
        ({"metadata": {"createdAt": None, "updated_at": NOON_MS}}, NOON),
        ({"updatedAt": NOON_MS}, None),
        ({"createdAt": True}, None),
        ({}, None),
    ],
)
def test_the_first_readable_time_counts(facts: dict[str, Any], expected: datetime | None) -> None:
    message = read_message({"role": "user", "parts": [TEXT], **facts})
    assert message.created_at == expected


def test_a_message_keeps_what_it_has_and_nothing_else() -> None:
    given = {
        "id": "m1",
        "role": "developer",
        "parts": [TEXT, {"type": "odd", "x": [1]}],
        "metadata": {"x": 1},
        "createdAt": NOON_MS,
        "content": "hi",
    }
    assert read_message(given) == Message(
        "m1", "developer", (TEXT, {"type": "odd", "x": [1]}), {"x": 1}, NOON
    )


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_id_is_none(empty: str | None) -> None:
    assert read_message({"id": empty, "role": "user", "parts": [TEXT]}).id is None


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_mapping_is_a_message_and_any_mapping_a_part(kind: Any) -> None:
    message = read_message(kind({"role": "user", "parts": (kind(TEXT),), "metadata": kind({})}))
    assert message.text == "hi"


def test_values_are_taken_as_they_are() -> None:
    message = Message("m1", "user", (TextPart("hi"),))
    assert read_messages([message]) == (message,)
    assert read_messages([message])[0] is message


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "messages[1]"),
        ("hi", "messages[1]"),
        ({"parts": []}, "messages[1].role"),
        ({"role": 5, "parts": []}, "messages[1].role"),
        ({"role": "user"}, "messages[1].parts"),
        ({"role": "user", "parts": "hi"}, "messages[1].parts"),
        ({"role": "user", "parts": {}}, "messages[1].parts"),
        ({"role": "user", "parts": [TEXT, "hi"]}, "messages[1].parts[1]"),
        ({"role": "user", "parts": [None]}, "messages[1].parts[0]"),
        ({"role": "user", "parts": [[]]}, "messages[1].parts[0]"),
        ({"role": "user", "parts": [], "metadata": []}, "messages[1].metadata"),
        ({"id": 5, "role": "user", "parts": []}, "messages[1].id"),
        ({"id": "a\nb", "role": "user", "parts": []}, "messages[1].id"),
        ({"id": "a\ud800", "role": "user", "parts": []}, "messages[1].id"),
        ({"id": "a" * 513, "role": "user", "parts": []}, "messages[1].id"),
        (Message("a\x00", "user", ()), "messages[1].id"),
        (Message("a", "user", ("hi",)), "messages[1].parts[0]"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_is_refused_with_its_place(value: object, path: str) -> None:
    with pytest.raises(InputError) as caught:
        read_messages([{"role": "user", "parts": []}, value])
    assert caught.value.path == path


@pytest.mark.parametrize("message_id", ["a" * 512, "a b", "ä", "😀", "a/b%_'; --"])
def test_any_printable_id_is_taken(message_id: str) -> None:
    assert read_message({"id": message_id, "role": "user", "parts": []}).id == message_id


def test_the_text_of_a_message_is_its_text_parts_joined() -> None:
    parts = (TEXT, TextPart("!"), {"type": "data", "text": "no"}, {"type": "text", "text": 5})
    assert Message(None, "user", parts).text == "hi!"


def test_a_message_is_written_with_what_it_has() -> None:
    assert Message(None, "user", (TEXT,)).to_json() == {"role": "user", "parts": [TEXT]}
    parts = (
        MediaPart("image", "image/png", url="https://x"),
        ToolResultPart("t1", "pay", None),
    )
    assert Message("m1", "assistant", parts, {"x": 1}, NOON).to_json() == {
        "id": "m1",
        "role": "assistant",
        "parts": [
            {"type": "image", "mediaType": "image/png", "url": "https://x"},
            {
                "type": "tool-result",
                "id": "t1",
                "name": "pay",
                "output": None,
                "status": "completed",
            },
        ],
        "metadata": {"x": 1},
        "createdAt": "2026-01-01T12:00:00.000Z",
    }


def test_a_message_comes_back_from_what_it_was_written_as() -> None:
    message = Message("m1", "user", (TEXT,), {"x": [1]}, NOON)
    assert read_message(message.to_json()) == message
