"""Answer: what a driver said so far, gathered outside of it so that nothing is lost with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

import attrs

from vitehub_chat.conversation.continuing import is_approved
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.events import (
    ApprovalRequested,
    Done,
    DriverEvent,
    FileProduced,
    NativeMessages,
    ReasoningDelta,
    SourceFound,
    StepStarted,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from vitehub_chat.model.json_text import jsonable, replace_surrogates
from vitehub_chat.model.messages import NO_METADATA, Message
from vitehub_chat.model.model_messages import is_blank
from vitehub_chat.model.parts import ABSENT, part_to_json
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.state.values import NewRow

INTERRUPTED = "interrupted"


class Answer:
    """The answer of one turn while it grows, as the UI message that is stored.

    Attributes:
        message_id: The id under which it is stored.
        finish_reason: Why the driver stopped, once it said so.
        usage: What the model reported for all of its requests together.
        basis: Gives what a report about the size of the conversation is valid for, or None.
        created_at: When it began.

    Args:
        message_id: The id under which it is stored.
        created_at: When it began.
        earlier: The stored answer that goes on here, or None.
    """

    def __init__(
        self, message_id: str, created_at: datetime | None, earlier: Message | None = None
    ) -> None:
        self.message_id = message_id
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.basis: Callable[[], str | None] = _no_basis
        self.created_at = created_at
        self._last_usage: Usage | None = None
        self._native: NativeMessages | None = None
        self._metadata = NO_METADATA if earlier is None else earlier.metadata
        self._parts = [] if earlier is None else [dict(part_to_json(p)) for p in earlier.parts]
        self._earlier = len(self._parts)
        if earlier is not None:
            self._parts.append({"type": "step-start"})
        self._texts: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
        self._calls = {
            call_id: part
            for part in self._parts
            if isinstance(call_id := part.get("toolCallId"), str)
        }

    def add(self, event: DriverEvent) -> None:
        """Take in one event of the driver; those that say nothing about the answer are ignored."""
        for kind in type(event).__mro__:
            if (take := self._takes.get(kind)) is not None:
                take(self, event)
                return

    @staticmethod
    def check(event: DriverEvent) -> DriverEvent:
        """Return an event as it can be stored and shown: values of tools become JSON.

        Raises:
            ConfigError: It is no event, or a field that is text is something else.
        """
        kind = type(event).__name__
        if not isinstance(event, DriverEvent):
            raise ConfigError(f"emitted a {kind}, which is no driver event", path="driver")
        event_type: Any = type(event)
        for name, is_optional in _text_fields(event_type):
            value = getattr(event, name)
            if not isinstance(value, str) and not (is_optional and value is None):
                raise ConfigError(
                    f"emitted {kind}.{name} as {type(value).__name__}, not text", path="driver"
                )
        if isinstance(event, ToolCall) and jsonable(event.input) is not event.input:
            return attrs.evolve(event, input=jsonable(event.input))
        if isinstance(event, ToolResult) and event.output is not ABSENT:
            output = jsonable(event.output)
            return event if output is event.output else attrs.evolve(event, output=output)
        return event

    def close_calls(self) -> list[ToolResult]:
        """Give every call without a result a failed one, so that the history stays acceptable.

        Of an answer that goes on those stay open that still wait for its client. Returns what the
        others came to, which nobody was told.
        """
        told: list[ToolResult] = []
        earlier = {id(part) for part in self._parts[: self._earlier]}
        for call_id, part in self._calls.items():
            if id(part) not in earlier and part["state"] == "input-available":
                part.update(state="output-error", errorText=INTERRUPTED)
            elif is_approved(part):
                part.update(state="output-error", errorText=INTERRUPTED)
                name = str(part.get("toolName", ""))
                told.append(ToolResult(call_id, name, status="failed", error=INTERRUPTED))
        return told

    def message(self) -> Message:
        """Return the answer so far."""
        self._join_texts()
        parts = tuple(dict(part) for part in self._parts if part.get("text") != "")
        return Message(self.message_id, "assistant", parts, self._metadata, self.created_at)

    def row(self, status: RowStatus, *, author: str | None, thread_id: str | None) -> NewRow:
        """Return the answer so far as the row to store."""
        message = self.message()
        # A driver knows its part of an answer that goes on, which is less than the whole.
        is_whole = status == "complete" and not self._earlier
        native = self._native if is_whole else None
        last = self._last_usage
        return NewRow(
            message=message,
            status=status,
            author=author,
            thread_id=thread_id,
            is_shown=(status != "error" or self._earlier > 0) and not is_blank(message),
            # The last request had all the others in it: it tells the size of the conversation.
            usage=None if last is None else jsonable(self._facts_of(last)),
            native=None if native is None else _native_of(native),
        )

    @property
    def is_empty(self) -> bool:
        """Whether the driver has said nothing yet that an answer is made of."""
        added = self._parts[self._earlier :]
        return all(part.get("type") == "step-start" for part in added)

    def _facts_of(self, usage: Usage) -> dict[str, Any]:
        return _without_none({**attrs.asdict(usage), "basis": self.basis()})

    def _join_texts(self) -> None:
        for part, pieces in self._texts.values():
            part["text"] = replace_surrogates("".join(pieces))
            pieces[:] = [part["text"]]

    def _text(self, event: TextDelta) -> None:
        self._grow("text", event.part_id, event.text)

    def _grow(self, kind: str, part_id: str, text: str) -> dict[str, Any]:
        found = self._texts.get((kind, part_id))
        if found is None:
            found = ({"type": kind, "text": ""}, [])
            self._texts[kind, part_id] = found
            self._parts.append(found[0])
        found[1].append(text)
        return found[0]

    def _reason(self, event: ReasoningDelta) -> None:
        part = self._grow("reasoning", event.part_id, event.text)
        item = None if event.item is None else jsonable(dict(event.item))
        facts = {"provider": event.provider, "signature": event.signature, "item": item}
        part.update(_without_none(facts))

    def _call(self, event: ToolCall) -> None:
        if event.call_id in self._calls and self._earlier:
            return  # it goes on with a call that somebody approved
        part: dict[str, Any] = {
            "type": "dynamic-tool",
            "toolName": event.name,
            "toolCallId": event.call_id,
            "state": "input-available",
            "input": event.input,
        }
        if event.error is not None:
            part.update(state="output-error", errorText=replace_surrogates(event.error))
        self._calls[event.call_id] = part
        self._parts.append(part)

    def _settle(self, event: ToolResult) -> None:
        part = self._calls.get(event.call_id)
        if part is None:
            self._call(ToolCall(event.call_id, event.name))
            part = self._calls[event.call_id]
        if event.status == "completed":
            part.update(state="output-available", output=None)
        elif event.status == "denied":
            part.update(state="output-denied")
        else:
            part.update(state="output-error", errorText=event.error or "failed")
        if event.output is not ABSENT:
            part["output"] = event.output

    def _ask(self, event: ApprovalRequested) -> None:
        if (part := self._calls.get(event.call_id)) is not None:
            part.update(state="approval-requested", approval={"id": event.approval_id})

    def _cite(self, event: SourceFound) -> None:
        self._parts.append(_source_part(event))

    def _attach(self, event: FileProduced) -> None:
        facts = {"mediaType": event.media_type, "url": event.url, "filename": event.name}
        self._parts.append({"type": "file", **_without_none(facts)})

    def _begin_step(self, _event: StepStarted) -> None:
        self._join_texts()
        self._texts.clear()
        # An answer that goes on has begun its step already.
        if not self._earlier or self._parts[self._earlier :] != [{"type": "step-start"}]:
            self._parts.append({"type": "step-start"})

    def _count(self, event: Usage) -> None:
        self.usage = _sum(self.usage, event)
        self._last_usage = event

    def _keep_native(self, event: NativeMessages) -> None:
        self._native = event

    def _end(self, event: Done) -> None:
        self.finish_reason = event.finish_reason

    # Not a singledispatchmethod, which keeps what it was called on alive in Python 3.13.0.
    _takes: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        TextDelta: _text,
        ReasoningDelta: _reason,
        ToolCall: _call,
        ToolResult: _settle,
        ApprovalRequested: _ask,
        SourceFound: _cite,
        FileProduced: _attach,
        StepStarted: _begin_step,
        Usage: _count,
        NativeMessages: _keep_native,
        Done: _end,
    }


def _no_basis() -> str | None:
    return None


@cache
def _text_fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of an event that are text, and whether None is one of their values."""
    types = {field.name: str(field.type) for field in attrs.fields(kind)}
    return tuple((name, wanted != "str") for name, wanted in types.items() if wanted in _TEXT_TYPES)


_TEXT_TYPES = frozenset({"str", "str | None"})


def _source_part(event: SourceFound) -> dict[str, Any]:
    kind = "source-url" if event.url is not None else "source-document"
    facts = {"url": event.url, "title": event.title, "mediaType": event.media_type}
    return {"type": kind, "sourceId": event.source_id, **_without_none(facts)}


def _native_of(native: NativeMessages) -> dict[str, Any]:
    return {"format": native.format, "payload": jsonable(native.payload)}


def _without_none(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value is not None}


def _sum(earlier: Usage | None, later: Usage) -> Usage:
    if earlier is None:
        return later
    return Usage(
        _add(earlier.input_tokens, later.input_tokens),
        _add(earlier.output_tokens, later.output_tokens),
        later.model or earlier.model,
    )


def _add(first: int | None, second: int | None) -> int | None:
    return second if first is None else first + (second or 0)
