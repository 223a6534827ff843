"""Messages: one utterance of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from vitehub_chat.model.json_text import JsonObject
from vitehub_chat.model.parts import ABSENT, Part, TextPart, part_to_json

NO_METADATA: JsonObject = {}


@attrs.frozen
class Message:
    """One message.

    In input and in stored rows the parts are JSON objects, kept as supplied. In what a driver gets
    they are the values of `vitehub_chat.model.parts`.

    Attributes:
        id: The id that its author gave it, or None.
        role: `user`, `assistant`, `system` or `tool`; in input any text.
        parts: Its parts, in order.
        metadata: Further facts as JSON; empty when there are none.
        created_at: When it was said, aware and in UTC, or None when unknown ("undated").
    """

    id: str | None
    role: str
    parts: tuple[Part, ...]
    metadata: JsonObject = NO_METADATA
    created_at: datetime | None = None

    @property
    def text(self) -> str:
        """Its text parts, joined without a separator."""
        return "".join(_text_of(part) for part in self.parts)

    def to_json(self) -> JsonObject:
        """Return it as a UI message: a JSON object with camelCase keys, absent values left out."""
        fields: dict[str, object] = {} if self.id is None else {"id": self.id}
        fields["role"] = self.role
        fields["parts"] = [part_to_json(part) for part in self.parts]
        if self.metadata:
            fields["metadata"] = self.metadata
        if self.created_at is not None:
            fields["createdAt"] = format_time(self.created_at)
        return fields


def fill_message(
    message_id: str | None,
    role: str,
    parts: tuple[Part, ...],
    metadata: JsonObject,
    created_at: datetime | None,
) -> Message:
    """Return a message, built in three quarters of the time, for threads that are read whole.

    A frozen class looks up each of its slots to fill it; these are looked up once.
    """
    message = _new_object(Message)
    _set_id(message, message_id)
    _set_role(message, role)
    _set_parts(message, parts)
    _set_metadata(message, metadata)
    _set_created_at(message, created_at)
    return message


_new_object = object.__new__
_set_id, _set_role, _set_parts, _set_metadata, _set_created_at = (
    vars(Message)[field.name].__set__ for field in attrs.fields(Message)
)


def format_time(time: datetime) -> str:
    """Return a time as ISO-8601 text in UTC with milliseconds."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_of(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, Mapping) and part.get("type") == "text":
        text = part.get("text", ABSENT)
        return text if isinstance(text, str) else ""
    return ""
