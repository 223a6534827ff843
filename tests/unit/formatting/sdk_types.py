"""Request fields held against the types of the official SDKs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import botocore.session
import pydantic
from anthropic.types import MessageParam
from botocore.validate import ParamValidator
from google.genai import types as genai
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from vitehub_chat.formatting.profiles import Profile

Fields = Mapping[str, Any]


def refusals(profile: Profile, fields: Fields) -> list[str]:
    """Return what the official types of the profile's shape say against these fields.

    Shapes without an installed official type have nothing said against them.
    """
    check = _CHECKS.get(profile.shape)
    return [] if check is None else check(fields)


@cache
def _typed(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(list[kind])


def _check_typed(kind: Any, value: Any) -> list[str]:
    """Validate against typed dictionaries; a key that they do not know is missing afterwards."""
    try:
        read = _typed(kind).validate_python(value)
        drained = _drain(read)
    except pydantic.ValidationError as exc:
        return [str(error["loc"]) + error["msg"] for error in exc.errors(include_input=False)]
    return [] if drained == value else [f"not described: {value} read as {drained}"]


def _drain(value: Any) -> Any:
    """Read lazily validated iterables to their end."""
    if isinstance(value, Mapping):
        return {name: _drain(item) for name, item in value.items()}
    if isinstance(value, str | bytes | int | float | None):
        return value
    return [_drain(item) for item in value]


def _check_chat(fields: Fields) -> list[str]:
    known = [_without_reasoning(message) for message in fields["messages"]]
    return _check_typed(ChatCompletionMessageParam, known)


def _without_reasoning(message: Fields) -> Fields:
    """Leave out DeepSeek's own field, which OpenAI's types do not have."""
    return {name: value for name, value in message.items() if name != "reasoning_content"}


def _check_responses(fields: Fields) -> list[str]:
    return _check_typed(ResponseInputItemParam, fields["input"])


def _check_anthropic(fields: Fields) -> list[str]:
    return _check_typed(MessageParam, fields["messages"])


def _check_gemini(fields: Fields) -> list[str]:
    instruction = fields.get("systemInstruction")
    contents = [*([] if instruction is None else [instruction]), *fields["contents"]]
    try:
        pydantic.TypeAdapter(list[genai.Content]).validate_python(contents)
    except pydantic.ValidationError as exc:
        return [str(error["loc"]) + error["msg"] for error in exc.errors(include_input=False)]
    return []


@cache
def _converse() -> Any:
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return service.operation_model("Converse").input_shape


def _check_bedrock(fields: Fields) -> list[str]:
    request = {"modelId": "m", **_with_bytes(dict(fields))}
    report = ParamValidator().validate(request, _converse())
    return [report.generate_report()] if report.has_errors() else []


def _with_bytes(value: Any) -> Any:
    """Decode media as the AWS SDK takes them."""
    if isinstance(value, Mapping):
        return {
            name: base64.b64decode(item) if name == "bytes" else _with_bytes(item)
            for name, item in value.items()
        }
    return [_with_bytes(item) for item in value] if isinstance(value, list) else value


_CHECKS: Mapping[str, Callable[[Fields], list[str]]] = {
    "chat": _check_chat,
    "responses": _check_responses,
    "anthropic": _check_anthropic,
    "gemini": _check_gemini,
    "bedrock": _check_bedrock,
}
