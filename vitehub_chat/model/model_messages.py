"""Model messages: turning supplied and stored messages into what a driver gets."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import replace_surrogates
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import (
    ABSENT,
    ApprovalDecisionPart,
    ApprovalRequestPart,
    DataPart,
    MediaPart,
    ModelPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

ROLES = frozenset({"user", "assistant", "system", "tool"})
_FAILED = frozenset({"output-error", "output-denied"})
_BLANK = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def to_model_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages as a driver gets them, in the same order.

    Parts become values, parts that a driver cannot use are left out, an unknown role becomes
    `user`, and a message without id is called `ui-<index>`.
    """
    return tuple(
        Message(
            message.id or f"ui-{index}",
            message.role if message.role in ROLES else "user",
            read_parts(message.parts),
            message.metadata,
            message.created_at,
        )
        for index, message in enumerate(messages)
    )


def read_parts(parts: Sequence[Part]) -> tuple[ModelPart, ...]:
    """Return the parts that a driver gets, in order; parts that are values already stay."""
    found: list[ModelPart] = []
    for index, part in enumerate(parts):
        if not (type(part) is dict or isinstance(part, Mapping)):  # the first is told faster
            found.append(part)
        elif part.get("type") != "text":
            found.extend(_read_part(part, index))
        elif isinstance(text := part.get("text"), str):
            found.append(TextPart(replace_surrogates(text), f"text-{index}"))
    return tuple(found)


def check_not_empty(message: Message, path: str = "messages") -> None:
    """Refuse a message that says nothing.

    Raises:
        InputError: No visible text, media, data, tool or approval part (`empty_message`).
    """
    if not any(_says_something(part) for part in read_parts(message.parts)):
        _check_texts(message, path)
        unknown = sorted(
            {
                str(part.get("type"))
                for part in message.parts
                if isinstance(part, Mapping) and not read_parts([part])
            }
        )
        seen = f", not parts of type {', '.join(map(repr, unknown))}" if unknown else ""
        raise InputError(
            "the current message is empty",
            path=path,
            code="empty_message",
            hint=f"it needs visible text, media, data, or a tool or approval part{seen}",
        )


def _check_texts(message: Message, path: str) -> None:
    """Refuse a part that is to be text and has none."""
    for index, part in enumerate(message.parts):
        if isinstance(part, Mapping) and part.get("type") == "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise InputError(
                    f"`text` of part {index} of the current message must be text, "
                    f"not {type(text).__name__}",
                    path=path,
                    code="empty_message",
                )


def is_blank(message: Message) -> bool:
    """Tell whether a message has nothing that a model could be shown."""
    return not any(_says_something(part) for part in read_parts(message.parts))


def is_only_tool_results(message: Message) -> bool:
    """Tell whether a message consists of tool results alone."""
    parts = read_parts(message.parts)
    return bool(parts) and all(isinstance(part, ToolResultPart) for part in parts)


def has_visible_text(text: str) -> bool:
    """Tell whether a text has a character that can be seen."""
    return any(unicodedata.category(character) not in _BLANK for character in text)


def _says_something(part: ModelPart) -> bool:
    if isinstance(part, TextPart):
        return has_visible_text(part.text)
    return not isinstance(part, ReasoningPart)


def _read_part(part: Mapping[str, Any], index: int) -> Iterator[ModelPart]:
    kind = part.get("type")
    if not isinstance(kind, str):
        return
    if kind == "data" or kind.startswith("data-"):
        if "data" in part:
            yield DataPart(kind, part["data"], _text(part, "id"))
    elif kind in {"audio", "file", "image"}:
        yield from _read_media(part, kind)
    elif kind == "reasoning":
        yield from _read_reasoning(part)
    elif kind in {"tool-call", "tool-result"} and "state" not in part:
        yield from _read_plain_tool(part, kind)
    elif kind == "dynamic-tool" or kind.startswith("tool-"):
        yield from _read_ui_tool(part, kind, index)


def _read_media(part: Mapping[str, Any], kind: str) -> Iterator[ModelPart]:
    media_type = _text(part, "mediaType", "media_type")
    data, url = _text(part, "data"), _text(part, "url")
    if media_type is None or (data is None and url is None):
        return
    if url is not None and url.startswith("data:"):
        data, url = _base64_of(url), None
    family = media_type.partition("/")[0].lower()
    shown: Any = family if family in {"audio", "image"} else kind
    yield MediaPart(shown, media_type, data, url, _text(part, "name", "filename"))


def _base64_of(data_url: str) -> str:
    header, _, payload = data_url.partition(",")
    if header.lower().endswith(";base64"):
        return payload
    return base64.b64encode(unquote_to_bytes(replace_surrogates(payload))).decode("ascii")


def _read_reasoning(part: Mapping[str, Any]) -> Iterator[ModelPart]:
    provider = _text(part, "provider")
    item = part.get("item")
    if provider is not None:
        yield ReasoningPart(
            provider,
            _text(part, "text"),
            _text(part, "signature"),
            item if isinstance(item, Mapping) else None,
        )


def _read_plain_tool(part: Mapping[str, Any], kind: str) -> Iterator[ModelPart]:
    call_id, name = _text(part, "id"), _text(part, "name")
    if call_id is None or name is None:
        return
    if kind == "tool-call":
        yield ToolCallPart(call_id, name, part.get("input"))
    elif part.get("status") == "failed":
        yield ToolResultPart(
            call_id, name, part.get("output", ABSENT), "failed", _text(part, "error")
        )
    else:
        yield ToolResultPart(call_id, name, part.get("output", ABSENT))


def _read_ui_tool(part: Mapping[str, Any], kind: str, index: int) -> Iterator[ModelPart]:
    suffix = "" if kind == "dynamic-tool" else kind.removeprefix("tool-")
    name = _text(part, "toolName", "name") or suffix
    if not name:
        return
    call_id = _text(part, "toolCallId", "id") or f"{name}-{index + 1}"
    call = ToolCallPart(call_id, name, part.get("input"))
    state, approval = _text(part, "state"), part.get("approval")
    approval_id = _text(approval, "id") if isinstance(approval, Mapping) else None
    if state == "approval-requested" and approval_id is not None:
        yield from (call, ApprovalRequestPart(approval_id, call_id))
    elif state == "approval-responded" and approval_id is not None:
        approved = approval.get("approved")  # type: ignore[union-attr]
        if isinstance(approved, bool):
            reason = _text(approval, "reason")  # type: ignore[arg-type]
            yield from (call, ApprovalRequestPart(approval_id, call_id))
            yield ApprovalDecisionPart(approval_id, approved, reason)
    elif state == "output-available" or state in _FAILED or {"output", "errorText"} & part.keys():
        yield from (call, _result_of(part, call, approval))


def _result_of(part: Mapping[str, Any], call: ToolCallPart, approval: Any) -> ToolResultPart:
    output = part.get("output", ABSENT)
    state, error = _text(part, "state"), _text(part, "errorText")
    if state == "output-denied":
        reason = _text(approval, "reason") if isinstance(approval, Mapping) else None
        return ToolResultPart(call.id, call.name, output, "failed", error or reason or "denied")
    if state == "output-error" or (state != "output-available" and error is not None):
        return ToolResultPart(call.id, call.name, output, "failed", error or "failed")
    return ToolResultPart(call.id, call.name, output)


def _text(part: Mapping[str, Any], *names: str) -> str | None:
    """Return the first non-empty text among some keys."""
    for name in names:
        value = part.get(name)
        if isinstance(value, str) and value:
            return value
    return None
