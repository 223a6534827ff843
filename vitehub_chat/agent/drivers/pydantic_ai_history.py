"""History for Pydantic AI: prepared messages as its model messages, always acceptable to it.

Imports the extra `models`; the driver `pydantic_ai` is its only user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from vitehub_chat.agent.drivers.pydantic_ai_media import binary, not_shown, user_content
from vitehub_chat.agent.drivers.pydantic_ai_pairing import Call, Entry, Item, Split, pair
from vitehub_chat.model import parts as ours
from vitehub_chat.model.json_text import encode_json
from vitehub_chat.model.messages import Message
from vitehub_chat.model.model_messages import has_visible_text

CONTINUES = "(conversation continues)"
"""What the user says where the model has to go on and nobody said anything."""

NO_TEXT = "(no text)"
"""What the user says when nothing of the current message can be shown to a model."""

INTERRUPTED = "Interrupted: this tool call has no result."
NO_OUTPUT = "(no output)"
_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)

NativePayloads = Mapping[str, Sequence[ModelMessage]]
"""Model messages by the id of the message they were kept with."""


@attrs.frozen(kw_only=True)
class Prepared:
    """What a run is started with.

    Attributes:
        history: What was said before, ending with the request that is answered if `prompt` is None.
        prompt: What the user says now, or None.
        approved: Calls of the last response that somebody approved and that run now.
    """

    history: list[ModelMessage]
    prompt: str | list[UserContent] | None
    approved: tuple[str, ...] = ()


def prepare(
    messages: Sequence[Message], native: NativePayloads, *, provider: str | None = None
) -> Prepared:
    """Turn the messages of a call into what a run is started with.

    Every call gets one result directly behind it: the last one given for it, what somebody decided,
    or a failed one that says it was interrupted. Results without a call, data parts and blank text
    are left out; call ids that come twice are renamed.

    Args:
        messages: The prepared messages, the current one last.
        native: Used for the messages it has instead of their parts.
        provider: The model's provider; reasoning of other ones is left out.
    """
    entries = pair(messages, native)
    if messages and messages[-1].role == "user":
        history = _history(entries[:-1], provider)
        return Prepared(history=history, prompt=_prompt(entries[-1].message) or NO_TEXT)
    if not entries:
        return Prepared(history=[], prompt=CONTINUES)
    earlier = _history(entries[:-1], provider)
    current = _Writer(provider, may_run=True).write(entries[-1])
    approved = _open_calls(current)
    history = [*earlier, *current]
    answers_request = approved or (history and isinstance(history[-1], ModelRequest))
    return Prepared(
        history=history,
        prompt=None if answers_request else CONTINUES,
        approved=approved,
    )


def replay(
    messages: Sequence[Message], native: NativePayloads, *, provider: str | None = None
) -> list[ModelMessage]:
    """Turn all of the messages into history that ends with a request, as for the next request."""
    history = _history(pair(messages, native), provider)
    if not history or isinstance(history[-1], ModelResponse):
        history.append(ModelRequest(parts=[UserPromptPart(CONTINUES, timestamp=_UNDATED)]))
    return history


def _history(entries: Iterable[Entry], provider: str | None) -> list[ModelMessage]:
    writer = _Writer(provider, may_run=False)
    return [message for entry in entries for message in writer.write(entry)]


def _prompt(message: Message) -> str | list[UserContent]:
    content = user_content(message.parts)
    if not content:
        return ""
    only = content[0]
    return only if len(content) == 1 and isinstance(only, str) else content


def _open_calls(messages: Sequence[ModelMessage]) -> tuple[str, ...]:
    """Return the calls that have no result behind them, which only approved ones do not."""
    answered = {
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    return tuple(
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool_call_id not in answered
    )


class _Writer:
    """Writes entries as model messages.

    Args:
        provider: The model's provider; reasoning of other ones is left out.
        may_run: Leave the approved calls of the last response of an entry open.
    """

    def __init__(self, provider: str | None, *, may_run: bool) -> None:
        self._provider = provider
        self._may_run = may_run

    def write(self, entry: Entry) -> list[ModelMessage]:
        time = entry.message.created_at or _UNDATED
        role = entry.message.role
        if entry.native:
            return [*entry.native, *self._returns(entry.items, time, last=True)]
        if role == "user":
            prompt = _prompt(entry.message)
            return [ModelRequest(parts=[UserPromptPart(prompt, timestamp=time)])] if prompt else []
        if role == "system":
            text = "\n\n".join(_texts(entry.message))
            return [ModelRequest(parts=[SystemPromptPart(text, timestamp=time)])] if text else []
        return self._answer(entry.items, time)

    def _answer(self, items: Sequence[Item], time: datetime) -> list[ModelMessage]:
        rounds: list[list[Item]] = [[]]
        for item in items:
            if isinstance(item, Split):
                rounds.append([])
            else:
                rounds[-1].append(item)
        written: list[ModelMessage] = []
        for number, content in enumerate(rounds, 1):
            parts = [part for item in content for part in self._response_parts(item)]
            if parts:
                written.append(ModelResponse(parts=parts, timestamp=time))
                written.extend(self._returns(content, time, last=number == len(rounds)))
        return written

    def _returns(self, items: Sequence[Item], time: datetime, *, last: bool) -> list[ModelMessage]:
        calls = [item for item in items if isinstance(item, Call) and not item.closed]
        runs = self._may_run and last
        returns = [_return(call, time) for call in calls if not (runs and _is_approved(call))]
        return [ModelRequest(parts=returns)] if returns else []

    def _response_parts(self, item: Item) -> list[ModelResponsePart]:
        if isinstance(item, Call):
            return [ToolCallPart(item.name, _args(item.input), item.id)]
        if isinstance(item, ours.TextPart):
            return [TextPart(item.text)] if has_visible_text(item.text) else []
        if isinstance(item, ours.MediaPart):
            content = binary(item)
            return [TextPart(not_shown(item)) if content is None else FilePart(content)]
        if isinstance(item, ours.ReasoningPart) and item.provider:
            return _thinking(item) if item.provider == self._provider else []
        return []


def _texts(message: Message) -> list[str]:
    return [
        part.text
        for part in message.parts
        if isinstance(part, ours.TextPart) and has_visible_text(part.text)
    ]


def _thinking(part: ours.ReasoningPart) -> list[ModelResponsePart]:
    if not (part.text or part.signature):
        return []
    return [
        ThinkingPart(part.text or "", signature=part.signature, provider_name=part.provider),
    ]


def _args(value: Any) -> str | dict[str, Any] | None:
    if value is None or isinstance(value, str):
        return value
    return dict(value) if isinstance(value, Mapping) else encode_json(value, "input")


def _is_approved(call: Call) -> bool:
    return call.result is None and call.decision is not None and call.decision.approved


def _return(call: Call, time: datetime) -> ToolReturnPart:
    result, decision = call.result, call.decision
    if result is not None and result.status == "failed":
        text = result.error if result.error and has_visible_text(result.error) else NO_OUTPUT
        return ToolReturnPart(call.name, text, call.id, timestamp=time, outcome="failed")
    if result is not None:
        return ToolReturnPart(call.name, _output(result.output), call.id, timestamp=time)
    if decision is not None and not decision.approved:
        text = decision.reason or "denied"
        return ToolReturnPart(call.name, text, call.id, timestamp=time, outcome="denied")
    return ToolReturnPart(call.name, INTERRUPTED, call.id, timestamp=time, outcome="interrupted")


def _output(value: Any) -> Any:
    blank = value is ours.ABSENT or (isinstance(value, str) and not has_visible_text(value))
    return NO_OUTPUT if blank else value
