"""Condensing with the Pydantic AI driver: its model condenses, and its tool loop is kept small."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic_ai import Agent as ModelAgent
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.agent.support import TRANSCRIPT, run, say, turn
from vitehub_chat import Agent, Capability, ToolSpec, chat, define_agent
from vitehub_chat.agent.capability import InvocationContext

WINDOW = {**TRANSCRIPT, "max_messages": 1000}
CONTEXT: Mapping[str, Any] = {
    "estimator": "runes",
    "message_overhead": 0,
    "limit": 2000,
    "target_ratio": 0.5,
    "min_verbatim": 2,
}


class Script:
    """A model that calls a tool some times and then answers; asked without tools it condenses."""

    def __init__(self, *, calls: int = 0, refusals: int = 0) -> None:
        self.asked: list[list[ModelMessage]] = []
        self.condensed: list[tuple[list[ModelMessage], AgentInfo]] = []
        self._calls = calls
        self._refusals = refusals
        self.model = FunctionModel(
            self._condense, stream_function=self._stream, model_name="script"
        )

    def _condense(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.condensed.append((messages, info))
        return ModelResponse(parts=[TextPart("what was said")])

    async def _stream(
        self, messages: list[ModelMessage], _info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        self.asked.append(messages)
        if self._refusals:
            self._refusals -= 1
            raise ModelContextWindowExceededError("script", "prompt is too long: 9000 tokens")
        if len(self.asked) <= self._calls:
            number = len(self.asked)
            name = f"call-{number}"
            yield {0: DeltaToolCall(name="look", json_args="{}", tool_call_id=name)}
        else:
            yield "done"


class Looking(Capability):
    """Has a tool with a long result."""

    name = "looking"

    def tools(self, ctx: InvocationContext, /) -> list[ToolSpec]:  # noqa: ARG002 - an override
        """Return the tool."""
        return [ToolSpec(name="look", description="", parameters={}, call=lambda: "r" * 400)]


def agent_of(driver: Mapping[str, Any], **context: Any) -> Agent:
    options: Any = {"trigger_history": WINDOW, "context": {**CONTEXT, **context}}
    return define_agent(
        name="a",
        driver={"use": "pydantic_ai", **driver},
        capabilities=[chat(**options), Looking()],
        state="memory:",
    )


def returns_in(messages: list[ModelMessage]) -> int:
    return sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)


async def test_the_model_condenses_without_the_tools_and_instructions_of_its_agent() -> None:
    script = Script()
    asked = ModelAgent(script.model, instructions="Sell things.", tools=[])
    async with agent_of({"agent": asked}) as agent:
        for _ in range(6):
            await run(agent, turn(say("u" * 350)))
        summary = await agent.conversation("t").get_summary("rolling")
        rolling = await (await agent.open_state()).summaries.get_rolling(
            agent.conversation("t").key, session_id=None
        )
    assert summary is not None
    assert summary.text == "what was said"
    (messages, info), *_ = script.condensed
    assert (info.function_tools, len(messages)) == ([], 1)
    (request,) = messages
    assert isinstance(request, ModelRequest)
    assert (request.instructions or "").startswith("You keep the summary of a conversation")
    assert "Sell things." not in (request.instructions or "")
    (prompt,) = request.parts
    assert isinstance(prompt, UserPromptPart)
    assert f'<m n="1" role="user">{"u" * 350}</m>' in str(prompt.content)
    assert rolling is not None
    assert rolling.model == "function:script"


async def test_a_summary_comes_after_the_instructions() -> None:
    script = Script()
    async with agent_of({"model": script.model, "instructions": "Be kind."}) as agent:
        for _ in range(6):
            await run(agent, turn(say("u" * 350)))
    request = script.asked[-1][-1]
    assert isinstance(request, ModelRequest)
    assert (request.instructions or "").startswith("Be kind.\n\n<conversation-summary>\n")


async def test_finished_calls_of_a_long_turn_are_condensed_and_stored_whole() -> None:
    script = Script(calls=6)
    async with agent_of({"model": script.model}) as agent:
        result = await run(agent, turn(say("u" * 100)))
        page = await agent.conversation("t").history()
    assert [returns_in(messages) for messages in script.asked] == [0, 1, 2, 3, 4, 2, 3]
    assert script.condensed != []
    assert result.status == "complete"
    parts = page.items[-1].message.to_json()["parts"]
    outputs = [part["output"] for part in parts if part["type"] == "dynamic-tool"]
    assert outputs == ["r" * 400] * 6


async def test_what_a_shortened_request_took_is_no_measure_of_the_next_turn() -> None:
    script = Script(calls=6)
    async with agent_of(
        {"model": script.model}, estimator="chars4", limit=700, target_ratio=0.88
    ) as agent:
        await run(agent, turn(say("u" * 100)))
        page = await agent.conversation("t").history()
    assert script.condensed != []
    usage = page.items[-1].usage
    assert usage is not None
    assert "basis" not in usage


async def test_a_refused_call_is_made_smaller_once() -> None:
    script = Script()
    async with agent_of({"model": script.model}, estimator="chars4") as agent:
        for _ in range(4):
            await run(agent, turn(say("u" * 1000)))
        script._refusals = 1
        result = await run(agent, turn(say("u" * 1000)))
    assert (result.status, result.text) == ("complete", "done")
    budget = result.context_budget
    assert budget is not None
    assert budget.rolled > 0
    assert len(script.asked) == 6
