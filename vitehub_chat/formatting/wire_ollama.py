"""The wire shape of Ollama's chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitehub_chat.formatting.turns import Turn
from vitehub_chat.formatting.wire_text import arguments_of
from vitehub_chat.model.parts import MediaPart, text_of_result


def write_ollama(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return `messages` of normalised turns."""
    return {"messages": [message for turn in turns for message in _write(turn)]}


def _write(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [
            {"role": "tool", "tool_name": result.name, "content": text_of_result(result)}
            for result in turn.results
        ]
    fields: dict[str, Any] = {"role": turn.role, "content": turn.text}
    images = [part.data for part in turn.parts if isinstance(part, MediaPart)]
    if images:
        fields["images"] = images
    if turn.calls:
        fields["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_of(call)}}
            for call in turn.calls
        ]
    return [fields]
