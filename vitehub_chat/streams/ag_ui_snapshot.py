"""AG-UI snapshots: stored messages as the messages that an AG-UI client keeps.

An answer becomes what a client has of it after its stream: reasoning, speech, calls and their
results in order, under the ids that `AgUiEncoder` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vitehub_chat.errors import InputError
from vitehub_chat.model.events import (
    AgentEvent,
    ApprovalRequested,
    ReasoningDelta,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolResult,
)
from vitehub_chat.model.json_text import Json, encode_json, jsonable
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import read_parts
from vitehub_chat.model.parts import (
    ABSENT,
    ApprovalDecisionPart,
    ApprovalRequestPart,
    MediaPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_of_result,
)
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.chunks import Chunk

_WAITING: Final = frozenset({"input-available", "input-streaming"})
_MEDIA: Final = frozenset({"image", "audio", "video"})


def encode_snapshot(messages: Sequence[Message], *, thread_id: str, run_id: str) -> list[Chunk]:
    """Return the events of a run that tells what is stored, and nothing else.

    If the last message is an answer that waits for decisions, the run ends with its interrupts, so
    that a client can decide that was not there when they were asked for.

    Args:
        messages: What is stored, oldest first.
        thread_id: The client's name of the conversation.
        run_id: The client's name of the run.
    """
    encoder = AgUiEncoder(thread_id=thread_id, run_id=run_id)
    events: list[AgentEvent] = []
    if messages and messages[-1].role == "assistant":
        said = _events_of(messages[-1].parts)
        events = [event for event in said if isinstance(event, ApprovalRequested)]
    started = encoder.encode(RunStarted(message_id=""))
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": to_ag_ui_messages(messages)}
    ends = [chunk for event in [*events, RunFinished()] for chunk in encoder.encode(event)]
    return [*started, snapshot, *ends]


def to_ag_ui_messages(messages: Sequence[Message]) -> list[Chunk]:
    """Return stored messages as those of AG-UI, in order.

    What has no place there is left out: data, sources, files of answers, metadata. Ids are those of
    the stored messages; what further messages an answer comes to have ids made from its own.
    """
    taken = {message.id for message in messages}
    found: list[Chunk] = []
    for message in messages:
        for each in _read_message(message):
            if each["id"] != message.id:
                each["id"] = _free_id(each["id"], taken)
                taken.add(each["id"])
            found.append(each)
    return found


def _free_id(wanted: str, taken: set[str | None]) -> str:
    """Return an id that no message has; calls of several answers may have one id."""
    free, number = wanted, 1
    while free in taken:
        number += 1
        free = f"{wanted}:{number}"
    return free


def _read_message(message: Message) -> list[Chunk]:
    if message.role == "assistant":
        return _read_answer(message)
    if message.role == "tool":
        return _read_results(message)
    if message.role == "user":
        return [{"id": message.id or "", "role": "user", "content": _content_of(message)}]
    if message.role == "system":
        return [{"id": message.id or "", "role": "system", "content": message.text}]
    return []


def _content_of(message: Message) -> str | list[Chunk]:
    """Return what a user said: text where there is nothing else, or a list."""
    parts = [part for part in read_parts(message.parts) if isinstance(part, TextPart | MediaPart)]
    if all(isinstance(part, TextPart) for part in parts):
        return message.text
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else _media_of(part)
        for part in parts
    ]


def _media_of(part: MediaPart) -> Chunk:
    family = part.media_type.partition("/")[0].lower()
    kind, value = ("data", part.data) if part.url is None else ("url", part.url)
    source = {"type": kind, "value": value, "mimeType": part.media_type}
    return {"type": family if family in _MEDIA else "document", "source": source}


def _read_results(message: Message) -> list[Chunk]:
    """Return the results of a message that has no others; the first has its id."""
    results = [part for part in read_parts(message.parts) if isinstance(part, ToolResultPart)]
    found: list[Chunk] = []
    for part in results:
        text = text_of_result(part)
        message_id = f"{part.id}:result" if found else message.id or ""
        failed = {"error": text} if part.status == "failed" else {}
        facts = {"id": message_id, "role": "tool", "toolCallId": part.id, "content": text}
        found.append(facts | failed)
    return found


def _read_answer(message: Message) -> list[Chunk]:
    """Return what a client has of an answer that it followed; an empty one is a message, too."""
    encoder, fold = AgUiEncoder(), _Fold()
    for event in (
        RunStarted(message_id=message.id or ""),
        *_events_of(message.parts),
        RunFinished(),
    ):
        for chunk in encoder.encode(event):
            fold.take(chunk)
        if isinstance(event, ToolResult) and event.status == "failed":
            fold.messages[-1]["error"] = fold.messages[-1]["content"]
    if all(each["role"] == "reasoning" for each in fold.messages):
        fold.messages.append({"id": message.id or "", "role": "assistant", "content": ""})
    return fold.messages


class _Fold:
    """Makes messages of the chunks of a stream, as a client does."""

    def __init__(self) -> None:
        self.messages: list[Chunk] = []
        self._function: Chunk = {}

    def take(self, chunk: Chunk) -> None:
        """Begin a message, or add to the one that is being made."""
        match chunk["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                self._begin(chunk["messageId"], chunk["role"], content="")
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                self.messages[-1]["content"] += chunk["delta"]
            case "TOOL_CALL_START":
                self._call(chunk)
            case "TOOL_CALL_ARGS":
                self._function["arguments"] += chunk["delta"]
            case "TOOL_CALL_RESULT":
                facts = {name: chunk[name] for name in ("toolCallId", "content")}
                self._begin(chunk["messageId"], "tool", **facts)

    def _begin(self, message_id: str, role: str, **facts: Any) -> Chunk:
        message = {"id": message_id, "role": role, **facts}
        self.messages.append(message)
        return message

    def _call(self, chunk: Chunk) -> None:
        parent_id = chunk["parentMessageId"]
        known = (each for each in self.messages if each["id"] == parent_id)
        parent = next(known, None) or self._begin(parent_id, "assistant")
        self._function = {"name": chunk["toolCallName"], "arguments": ""}
        call = {"id": chunk["toolCallId"], "type": "function", "function": self._function}
        parent.setdefault("toolCalls", []).append(call)


def _events_of(parts: Sequence[Part]) -> Iterator[AgentEvent]:
    """Yield what an answer says as events; of calls side by side the results come behind them."""
    results: list[AgentEvent] = []
    for index, part in enumerate(parts):
        calls = list(_tool_events(part))
        if not calls:
            yield from results
            results = []
            yield from _spoken(part, str(index))
        yield from (event for event in calls if isinstance(event, ToolCall))
        results += [event for event in calls if not isinstance(event, ToolCall)]
    yield from results


def _spoken(part: Part, part_id: str) -> Iterator[AgentEvent]:
    text = part.get("text") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and isinstance(text, str):
        if part.get("type") == "text":
            yield TextDelta(part_id, text)
        elif part.get("type") == "reasoning":
            yield ReasoningDelta(part_id, text)


def _tool_events(part: Part) -> Iterator[AgentEvent]:
    if isinstance(part, Mapping) and part.get("state") in _WAITING:
        # A model is not shown a call without a result, a client is.
        part = {**part, "state": "output-available", "output": None}
        yield from (each for each in _tool_events(part) if isinstance(each, ToolCall))
        return
    found = read_parts([part])
    is_decided = any(isinstance(each, ApprovalDecisionPart) for each in found)
    for each in found:
        match each:
            case ToolCallPart(call_id, name, given):
                yield ToolCall(call_id, name, _shown(given))
            case ToolResultPart(call_id, name, output, status, error):
                shown = output if output is ABSENT else _shown(output)
                yield ToolResult(call_id, name, shown, status, error)
            case ApprovalRequestPart(approval_id, call_id) if not is_decided:
                yield ApprovalRequested(approval_id, call_id)


def _shown(value: Json) -> Json:
    """Return a value that somebody stored, as close as can be where it is too deep to be told."""
    try:
        encode_json(value, "value")
    except InputError:
        return jsonable(value)
    return value
