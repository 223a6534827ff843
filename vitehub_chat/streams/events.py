"""The stream of events as they are, for programs in the same process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.parts import ABSENT
from vitehub_chat.streams.sse import DONE_FRAME, SSE_HEADERS, sse_frame


class EventEncoder:
    """Passes events on unchanged; one encoder serves any number of streams.

    Attributes:
        form: The form of the stream, as `output` names it.
        headers: Headers of a response that carries the stream.
        end_frames: What follows the last event.
    """

    form = "events"
    headers: Mapping[str, str] = SSE_HEADERS
    end_frames: Sequence[str] = (DONE_FRAME,)

    def encode(self, event: AgentEvent, /) -> list[AgentEvent]:
        """Return the event, alone in a list."""
        return [event]

    def frame(self, event: AgentEvent, /) -> str:
        """Return an event as a frame of server-sent events, see `event_to_json`.

        Raises:
            InputError: Something in it is not JSON.
        """
        return sse_frame(event_to_json(event))


def event_to_json(event: AgentEvent) -> Json:
    """Return an event as a JSON object: its class name as `event`, and the fields that are set."""
    return {"event": type(event).__name__, **_fields(event)}


def _fields(value: Any) -> dict[str, Json]:
    pairs = ((field.name, getattr(value, field.name)) for field in attrs.fields(type(value)))
    return {name: _plain(fact) for name, fact in pairs if fact is not None and fact is not ABSENT}


def _plain(fact: Any) -> Json:
    if isinstance(fact, datetime):
        return format_time(fact)
    return _fields(fact) if attrs.has(type(fact)) else fact
