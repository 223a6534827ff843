"""The driver object of `pydantic_ai`: one run of an agent per call.

Imports the extra `models`; `pydantic_ai.create` is its only user.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

import attrs
from pydantic_ai import Agent, AgentRunResultEvent, DeferredToolResults
from pydantic_ai.agent import AbstractAgent, AgentRunEvents
from pydantic_ai.exceptions import ModelContextWindowExceededError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ToolReturnPart,
)
from pydantic_ai.models import Model, infer_model, infer_model_profile
from pydantic_ai.settings import ModelSettings

from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.agent.drivers.pydantic_ai_events import Progress, Translation
from vitehub_chat.agent.drivers.pydantic_ai_history import NativePayloads, Prepared, prepare
from vitehub_chat.agent.drivers.pydantic_ai_hooks import RunHooks, Tools
from vitehub_chat.conversation.overflow import reported_tokens
from vitehub_chat.errors import ConfigError, ContextOverflowError
from vitehub_chat.model.events import DriverEvent, NativeMessages
from vitehub_chat.model.json_text import Json

NATIVE_FORMAT = "pydantic_ai/1"
"""The form of the payloads: the model messages of an answer as JSON, without instructions."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a driver is made from; `model` or `agent` is given.

    Attributes:
        model: Provider and model as `provider:model`, or a model object; replaces the agent's.
        instructions: What the model is told before every conversation.
        model_settings: Settings for every request, such as `temperature`.
        agent: An agent whose tools, instructions and hooks stay; the call's are added.
    """

    model: str | Model[Any] | None = None
    instructions: str | None = None
    model_settings: ModelSettings | None = None
    agent: AbstractAgent[Any, Any] | None = None


class PydanticAIDriver:
    """Answers a call with one run of a Pydantic AI agent.

    The values of `DriverCall.context` are the `deps` of the run. The call's instructions come after
    the driver's own. A tool of the call that raises gives a failed result that the model sees; a
    tool of a given agent that raises ends the run, as always there. Tools that are no coroutine
    functions run on the event loop.

    Attributes:
        model: The model's id as `provider:model`, or None when a given agent has none.
        window_tokens: What the model takes as far as its profile knows, or None.
        instructions: The driver's own instructions, or None.
    """

    kind = "pydantic_ai"
    profile: str | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self, settings: Settings) -> None:
        agent: AbstractAgent[Any, Any] = settings.agent or Agent()
        self._agent = agent
        self._settings = settings
        self._named: Model[Any] | None = None
        self.instructions = settings.instructions
        self.model, self.window_tokens = _facts(settings.model or agent.model)

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        """Answer with one run; its last events are the native messages and the end.

        Raises:
            ConfigError: The model cannot be used: its name, its key or its package is missing, or
                it does not stream.
            ContextOverflowError: The model refused the input as too long.
        """
        model = await self._usable_model()
        _check_streams(model or self._agent.model)
        provider = getattr(model or self._agent.model, "system", None)
        native = _native(call.native)
        prepared = prepare(call.messages, native, provider=provider)
        progress = Progress()
        head = await self._head(call, model, prepared)
        hooks = RunHooks(call, native, provider, progress, head, resumes=bool(prepared.approved))
        translation = Translation(progress)
        try:
            async with self._run(call, model, prepared, hooks) as events:
                async for event in events:
                    for translated in translation.read(event):
                        yield translated
                    if isinstance(event, AgentRunResultEvent):
                        for native_messages in _kept(event.result.new_messages()):
                            yield native_messages
                        yield translation.done(event.result.output)
        except (ModelContextWindowExceededError, ExceptionGroup) as error:
            if not _is_overflow(error):
                raise
            raise ContextOverflowError(reported=reported_tokens(str(error))) from error

    async def ask(self, system: str, prompt: str, /, *, deadline: datetime | None) -> str:  # noqa: ARG002 - who asks cancels
        """Ask the model alone: without the tools, instructions and hooks of an agent.

        Raises:
            ConfigError: The model cannot be used.
            ContextOverflowError: The model refused the question as too long.
        """
        model = await self._usable_model() or self._agent.model
        if model is None:
            raise ConfigError("the agent has no model", path="driver.model")
        asked = Agent(model, instructions=system, model_settings=self._settings.model_settings)
        try:
            result = await asked.run(prompt, infer_name=False)
        except ModelContextWindowExceededError as error:
            raise ContextOverflowError(reported=reported_tokens(str(error))) from error
        return result.output

    async def aclose(self) -> None:
        """Do nothing: model objects and agents belong to who made them."""

    def _run(
        self, call: DriverCall, model: Model[Any] | None, prepared: Prepared, hooks: RunHooks
    ) -> AbstractAsyncContextManager[AgentRunEvents[Any]]:
        approved = DeferredToolResults(approvals=dict.fromkeys(prepared.approved, True))
        options: dict[str, Any] = {
            "message_history": [*hooks.head, *prepared.history],
            "deferred_tool_results": approved if prepared.approved else None,
            "conversation_id": call.conversation_id,
            "model": model,
            "instructions": self._instructions(call.system),
            "deps": call.context,
            "model_settings": self._settings.model_settings,
            "toolsets": [Tools(call.tools)] if call.tools else None,
            "capabilities": [hooks],
            "infer_name": False,
        }
        return self._agent.run_stream_events(prepared.prompt, **options)

    def _instructions(self, system: str | None) -> str | None:
        """Join the driver's own instructions and the call's, which may begin with them."""
        own = self.instructions
        if not own or (system or "").startswith(own):
            return system
        return f"{own}\n\n{system}" if system else own

    async def _head(
        self, call: DriverCall, model: Model[Any] | None, prepared: Prepared
    ) -> list[ModelMessage]:
        """Return the system prompt of a given agent, which adds it itself only without history."""
        if self._settings.agent is None or not prepared.history:
            return []
        parts = await self._agent.system_prompt_parts(
            deps=call.context, model=model, message_history=prepared.history, prompt=prepared.prompt
        )
        return [ModelRequest(parts=parts)] if parts else []

    async def _usable_model(self) -> Model[Any] | None:
        """Return the model of the configuration, or None where a given agent chooses its own."""
        model = self._settings.model
        if not isinstance(model, str):
            return model
        if self._named is None:
            try:
                # Importing the provider's package takes a second that other turns must not wait.
                self._named = await asyncio.to_thread(infer_model, model)
            except (UserError, ImportError) as error:
                raise ConfigError(
                    f"the model {model!r} cannot be used: {error}", path="driver.model"
                ) from error
        return self._named


def _check_streams(model: object) -> None:
    """Refuse a model for tests that can only answer as a whole."""
    if getattr(model, "stream_function", model) is None and model is not None:
        raise ConfigError(
            "answers are asked for as streams, which this model does not give",
            path="driver.model",
            hint="give the FunctionModel a stream_function",
        )


def _facts(model: object) -> tuple[str | None, int | None]:
    if isinstance(model, str):
        try:
            return model, infer_model_profile(model).get("context_window")
        except ImportError:  # the provider's package is missing, which the first call tells
            return model, None
    if isinstance(model, Model):
        return model.model_id, model.context_window
    return None, None


def _native(payloads: Mapping[str, Json]) -> NativePayloads:
    """Return the payloads that are what they should be; the others are not used."""
    found = {}
    for message_id, payload in payloads.items():
        try:
            found[message_id] = ModelMessagesTypeAdapter.validate_json(json.dumps(payload))
        except (TypeError, ValueError):
            continue
    return found


def _kept(new: Sequence[ModelMessage]) -> Iterator[NativeMessages]:
    """Return the messages that the answer is, without what the user said; none if not JSON."""
    start = 0
    while start < len(new) and _is_question(new[start]):
        start += 1
    answer = [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message
        for message in new[start:]
    ]
    try:
        text = ModelMessagesTypeAdapter.dump_json(answer, fallback=str)
    except ValueError:
        return
    yield NativeMessages(NATIVE_FORMAT, json.loads(text))


def _is_question(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and not any(
        isinstance(part, ToolReturnPart) for part in message.parts
    )


def _is_overflow(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_overflow(each) for each in error.exceptions)
    return isinstance(error, ModelContextWindowExceededError)
