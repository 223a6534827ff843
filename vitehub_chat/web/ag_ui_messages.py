"""AG-UI messages: from the form of that protocol to UI messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitehub_chat.errors import InputError
from vitehub_chat.web.ag_ui_resuming import Settled


def read_ag_ui_messages(
    given: Sequence[object], settled: Settled | None = None
) -> list[dict[str, Any]]:
    """Return the messages of users and assistants as UI messages, in order.

    Results of tools at the end make the last message the answer that called them, with what they
    came to; so do decisions, which name that answer. Other messages of other roles, and the tool
    calls of assistants, are left out.

    Raises:
        InputError: One of them is no message, or a new one comes with decisions.
    """
    results = _read_results(given)
    if settled is not None:
        return _with_decisions(given, results, settled)
    if not results:
        last = given[-1] if given else None
        if isinstance(last, Mapping) and last.get("role") != "user":
            raise InputError(
                "needs to end with a message of the user", path="messages", code="no_user_message"
            )
        return _read_spoken(given)
    spoken = _read_spoken(given[: len(given) - len(results)])
    callers = (each["id"] for each in reversed(spoken) if each["role"] == "assistant")
    answer_id = next(callers, None) or results[0]["toolCallId"]
    return [*spoken, {"id": answer_id, "role": "assistant", "parts": results}]


def _with_decisions(
    given: Sequence[object], results: Sequence[dict[str, Any]], settled: Settled
) -> list[dict[str, Any]]:
    spoken = _read_spoken(given[: len(given) - len(results)])
    if spoken and spoken[-1]["role"] == "user":
        raise InputError(
            "comes with a new message", path="resume", hint="send the message afterwards"
        )
    parts = [*results, *settled.parts]
    return [*spoken, {"id": settled.message_id, "role": "assistant", "parts": parts}]


def _read_spoken(given: Sequence[object]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index, message in enumerate(given):
        path = f"messages[{index}]"
        if not isinstance(message, Mapping):
            raise InputError("a message is a mapping", path=path)
        if message.get("role") in {"user", "assistant"}:
            parts = _read_content(message.get("content"), f"{path}.content")
            found.append({"id": message.get("id"), "role": message["role"], "parts": parts})
    return found


def _read_results(given: Sequence[object]) -> list[dict[str, Any]]:
    """Return what the tools came to whose results are at the end, as parts of their calls."""
    results: list[dict[str, Any]] = []
    for message in reversed(given):
        if not isinstance(message, Mapping) or message.get("role") != "tool":
            break
        results.append(_read_result(message, f"messages[{len(given) - 1 - len(results)}]"))
    return results[::-1]


def _read_result(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    names = ("toolCallId", "tool_call_id")
    call_id = next((message[name] for name in names if name in message), None)
    if not isinstance(call_id, str) or not call_id:
        raise InputError("is needed", path=f"{path}.toolCallId")
    error = message.get("error")
    part = {"type": "dynamic-tool", "toolName": "tool", "toolCallId": call_id}
    if isinstance(error, str) and error:
        return {**part, "state": "output-error", "errorText": error}
    return {**part, "state": "output-available", "output": message.get("content")}


def _read_content(content: object, path: str) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise InputError("must be text or a list", path=path)
    parts = [_read_part(part, f"{path}[{index}]") for index, part in enumerate(content)]
    return [part for part in parts if part is not None]


def _read_part(part: object, path: str) -> dict[str, Any] | None:
    """Return a part, or None for a file that only the model's provider could read."""
    if not isinstance(part, Mapping):
        raise InputError("a part is a mapping", path=path)
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text")}
    source = part.get("source")
    value = source.get("value") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or not isinstance(value, str):
        raise InputError("needs a source with a value", path=path)
    given = source.get("mimeType")
    kind = given if isinstance(given, str) else "application/octet-stream"
    if source.get("type") == "url":
        return {"type": "file", "mediaType": kind, "url": value}
    if source.get("type") == "data":
        return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{value}"}
    return None
