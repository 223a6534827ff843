"""Encoders by name, and the stream of plain events."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from vitehub_chat.errors import InputError
from vitehub_chat.model.events import RunFinished, RunStarted, TextDelta, ToolResult, Usage
from vitehub_chat.streams.encoders import OUTPUTS, encoder_for
from vitehub_chat.streams.events import EventEncoder, event_to_json
from vitehub_chat.streams.ui_message_stream import HEADERS, UIMessageStreamEncoder


def test_an_output_names_its_encoder() -> None:
    assert isinstance(encoder_for("ui-message-stream"), UIMessageStreamEncoder)
    assert encoder_for("ui-message-stream").headers == HEADERS
    assert isinstance(encoder_for("events"), EventEncoder)
    assert all(encoder_for(output) for output in OUTPUTS)


def test_a_continued_run_is_told_to_the_encoder() -> None:
    result = ToolResult("c1", "f", 1)
    assert len(encoder_for("ui-message-stream", continued=True).encode(result)) == 1
    assert len(encoder_for("ui-message-stream").encode(result)) == 2


@pytest.mark.parametrize(
    ("output", "problem"),
    [("event", "'event' is no stream output")],
)
def test_an_output_that_is_not_there_is_refused_with_the_known_ones(
    output: str, problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        encoder_for(output)
    expected = f"output: {problem} (there are 'ui-message-stream', 'events', 'ag-ui')"
    assert str(caught.value) == expected


def test_events_pass_through_unchanged() -> None:
    event = TextDelta("0", "")
    assert encoder_for("events").encode(event) == [event]


def test_an_event_is_a_json_object_of_the_fields_that_are_set() -> None:
    assert event_to_json(TextDelta("0", "a")) == {"event": "TextDelta", "part_id": "0", "text": "a"}
    assert event_to_json(ToolResult("c1", "f")) == {
        "event": "ToolResult",
        "call_id": "c1",
        "name": "f",
        "status": "completed",
    }
    assert event_to_json(RunFinished(usage=Usage(3))) == {
        "event": "RunFinished",
        "status": "complete",
        "usage": {"input_tokens": 3},
    }
    started = RunStarted(message_id="m1", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    frame = encoder_for("events").frame(started)
    assert json.loads(frame.removeprefix("data: ")) == {
        "event": "RunStarted",
        "message_id": "m1",
        "created_at": "2026-01-01T00:00:00.000Z",
    }
