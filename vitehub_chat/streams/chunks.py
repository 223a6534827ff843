"""Chunks: the JSON objects that streams are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.json_text import Json, replace_surrogates
from vitehub_chat.streams.sse import SSE_HEADERS, sse_frame

Chunk = dict[str, Any]
"""One part of a stream: a JSON object with a `type`."""


class ChunkEncoder:
    """Turns the events of one run into chunks; one encoder serves one stream.

    A form of streams names what makes the chunks of each kind of event, and says when the run has
    ended.

    Attributes:
        form: The form of the chunks, as `output` names it.
        headers: Headers of a response that carries the stream.
        end_frames: What follows the last chunk.
    """

    form: str
    headers: Mapping[str, str] = SSE_HEADERS
    end_frames: Sequence[str] = ()
    _encoders: ClassVar[Mapping[type, Callable[[Any, Any], Iterator[Chunk]]]]

    def __init__(self) -> None:
        self._is_ended = False

    def encode(self, event: AgentEvent, /) -> list[Chunk]:
        """Return the chunks of an event, in order; none for events that clients do not see.

        Nothing follows the end of the run.

        Raises:
            InputError: The input or output of a tool is not JSON.
        """
        encode = self._encoders.get(type(event))
        if encode is None or self._is_ended:
            return []
        return [_readable(chunk) for chunk in encode(self, event)]

    def frame(self, chunk: Chunk, /) -> str:
        """Return a chunk as a frame of server-sent events."""
        return sse_frame(chunk)


def join_halves(held: str, text: str) -> tuple[str, str]:
    """Return text that can go out, and the half of a surrogate pair that has to wait for more."""
    text = held + text
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""


def facts_of(value: Any) -> Chunk | None:
    """Return the fields of a value that are set, in camelCase, or None for no value."""
    if value is None:
        return None
    pairs = ((field.name, getattr(value, field.name)) for field in attrs.fields(type(value)))
    return {_camel(name): fact for name, fact in pairs if fact is not None}


def present(**facts: Json) -> Chunk:
    """Return the facts that are not None."""
    return {name: fact for name, fact in facts.items() if fact is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _readable(chunk: Chunk) -> Chunk:
    """Return a chunk whose texts have no lone surrogates."""
    return {
        key: replace_surrogates(value) if isinstance(value, str) else value
        for key, value in chunk.items()
    }
