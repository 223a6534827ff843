"""Wire texts: what all wire shapes write alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitehub_chat.model.json_text import compact_json, jsonable
from vitehub_chat.model.parts import ToolCallPart


def arguments_of(call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call as an object; no input is none, any other is `input`."""
    if call.input is None:
        return {}
    value = jsonable(call.input)
    return dict(value) if isinstance(value, Mapping) else {"input": value}


def arguments_text(call: ToolCallPart) -> str:
    """Return the arguments of a call as compact JSON text."""
    return compact_json(arguments_of(call))
