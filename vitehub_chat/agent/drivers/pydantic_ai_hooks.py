"""Hooks into a run of Pydantic AI: what happens around its requests, and the tools it is given."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.agent.drivers.pydantic_ai_events import (
    Progress,
    to_json,
    tool_call,
    tool_result,
)
from vitehub_chat.agent.drivers.pydantic_ai_history import NativePayloads, replay
from vitehub_chat.model import parts as ours
from vitehub_chat.model.messages import Message


@dataclass
class RunHooks(AbstractCapability[Any]):
    """Asks `before_request` from the second request on, and notes what the model reports.

    Attributes:
        call: The call that the run answers.
        native: The payloads of its messages.
        provider: The model's provider.
        progress: What the translation of the events reads.
        head: What every request begins with.
        resumes: Whether the run begins with approved calls; then nothing is asked.
    """

    call: DriverCall
    native: NativePayloads
    provider: str | None
    progress: Progress
    head: Sequence[ModelMessage] = field(default_factory=list)
    resumes: bool = False

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Let the call replace what this one request sends; the history of the run stays."""
        tools = request_context.model_request_parameters.output_tools
        self.progress.output_tools = frozenset(tool.name for tool in tools)
        rounds = _rounds(request_context.messages, ctx.run_id)
        if not rounds or self.resumes:
            return request_context
        steps = dict(zip(_free_names(self.call.messages), rounds, strict=False))
        given = [*self.call.messages, *(_message(name, made) for name, made in steps.items())]
        wanted = list(await self.call.before_request(given))
        if wanted != given:
            native = {**self.native, **steps}
            sent = replay(wanted, native, provider=self.provider)
            request_context.messages = [*self.head, *sent]
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the signature of the hook
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the same
        response: ModelResponse,
    ) -> ModelResponse:
        """Note what the model reports; the response stays."""
        self.progress.responses.append(response)
        self.progress.finish_reason = response.finish_reason
        return response


class Tools(FunctionToolset[Any]):
    """The tools of a call."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        super().__init__([_tool(spec) for spec in specs])

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a tool; input that is no JSON object goes back to the model."""
        if not isinstance(tool_args, dict):
            raise ModelRetry("The input has to be a JSON object.")
        return await super().call_tool(name, tool_args, ctx, tool)


def _tool(spec: ToolSpec) -> Tool[Any]:
    async def run(**given: Any) -> Any:
        try:
            result = spec.call(**given)
            if inspect.isawaitable(result):
                result = await result
        except (ApprovalRequired, CallDeferred, ModelRetry, ToolFailed):
            raise
        except Exception as error:
            raise ToolFailed(str(error) or type(error).__name__) from error
        return result if isinstance(result, ToolReturn) else to_json(result)

    return Tool.from_schema(run, spec.name, spec.description, dict(spec.parameters))


def _rounds(messages: Sequence[ModelMessage], run_id: str | None) -> list[list[ModelMessage]]:
    """Return what a run has made so far, one list per response of the model."""
    rounds: list[list[ModelMessage]] = []
    for message in messages:
        if message.run_id != run_id:
            continue
        if isinstance(message, ModelResponse):
            rounds.append([message])
        elif rounds:
            rounds[-1].append(message)
    return rounds


def _free_names(messages: Sequence[Message]) -> Iterator[str]:
    """Yield ids for what a run makes, none of which a message of the conversation has."""
    taken = {message.id for message in messages}
    return (name for number in count(1) if (name := f"step-{number}") not in taken)


def _message(name: str, made: Sequence[ModelMessage]) -> Message:
    found = (_part(part) for message in made for part in message.parts)
    return Message(name, "assistant", tuple(part for part in found if part is not None))


def _part(part: object) -> ours.ModelPart | None:
    if isinstance(part, TextPart):
        return ours.TextPart(part.content)
    if isinstance(part, ThinkingPart):
        return ours.ReasoningPart(part.provider_name, part.content, part.signature)
    if isinstance(part, ToolCallPart):
        call = tool_call(part)
        return ours.ToolCallPart(call.call_id, call.name, call.input)
    if isinstance(part, ToolReturnPart):
        done = tool_result(part)
        if done.status == "completed":
            return ours.ToolResultPart(done.call_id, done.name, done.output)
        return ours.ToolResultPart(done.call_id, done.name, status="failed", error=done.error)
    return None
