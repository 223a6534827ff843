"""Encoders by name: which forms a stream of events can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from vitehub_chat.errors import InputError
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.events import EventEncoder
from vitehub_chat.streams.ui_message_stream import UIMessageStreamEncoder

OUTPUTS: Final = ("ui-message-stream", "events", "ag-ui")
"""The forms that there are, as `output` names them."""


class Encoder(Protocol):
    """Turns the events of one stream into the items of its form."""

    @property
    def form(self) -> str:
        """The form, as `output` names it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of an HTTP response that carries the stream."""

    @property
    def end_frames(self) -> Sequence[str]:
        """What follows the last item; nothing where the last item itself is the end."""

    def encode(self, event: AgentEvent, /) -> Sequence[Any]:
        """Return the items of an event, in order; may be none."""

    def frame(self, item: Any, /) -> str:
        """Return an item as a frame of server-sent events."""


def encoder_for(output: str, *, continued: bool = False) -> Encoder:
    """Return a new encoder of the form that `output` names.

    Args:
        output: One of `OUTPUTS`.
        continued: The run goes on with an answer that the client already has.

    Raises:
        InputError: There is no such form.
    """
    if output == "ui-message-stream":
        return UIMessageStreamEncoder(continued=continued)
    if output == "events":
        return EventEncoder()
    if output == "ag-ui":
        return AgUiEncoder(continued=continued)
    known = ", ".join(repr(name) for name in OUTPUTS)
    raise InputError(f"{output!r} is no stream output", path="output", hint=f"there are {known}")
