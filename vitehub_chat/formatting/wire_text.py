"""Wire texts: what all wire shapes write alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitehub_chat.model.json_text import encode_json, jsonable
from vitehub_chat.model.parts import ToolCallPart, ToolResultPart


def json_text(value: object) -> str:
    """Return compact JSON text, not ASCII-escaped, keys in their order."""
    return encode_json(jsonable(value), "output")


def arguments_of(call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call as an object; no input is none, any other is `input`."""
    if call.input is None:
        return {}
    value = jsonable(call.input)
    return dict(value) if isinstance(value, Mapping) else {"input": value}


def arguments_text(call: ToolCallPart) -> str:
    """Return the arguments of a call as compact JSON text."""
    return json_text(arguments_of(call))


def result_text(result: ToolResultPart) -> str:
    """Return the error of a failed result, else the output: a text as it is, else as JSON text."""
    if result.status == "failed":
        return result.error or ""
    return result.output if isinstance(result.output, str) else json_text(result.output)
