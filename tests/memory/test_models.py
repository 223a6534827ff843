"""Entries that the model of the driver finds, through a whole turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as ModelAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.memory.notes import TIGHT, WINDOW, sections_in
from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.testing.clock import FakeClock


def condense(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked = f"{messages!r} {info.instructions}"
    is_extraction = "long-term memory" in asked
    text = "- [fact] Lives in Oslo\n- [rumour] no" if is_extraction else "a summary"
    return ModelResponse(parts=[TextPart(text)])


async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    yield "an answer"


@pytest.mark.parametrize(("extract", "entries"), [(True, ["Lives in Oslo"]), (False, [])])
async def test_the_model_of_the_driver_extracts(
    tmp_path: Path, extract: object, entries: list[str]
) -> None:
    options: dict[str, Any] = {
        "trigger_history": WINDOW,
        "context": {**TIGHT, "summarizer": "driver"},
        "memory": {"root": str(tmp_path), "extract": extract},
    }
    model = FunctionModel(condense, stream_function=answer, model_name="script")
    driver: Any = {"use": "pydantic_ai", "agent": ModelAgent(model)}
    async with open_agent_state("memory:", clock=FakeClock()) as state:
        agent = define_agent(name="m", driver=driver, capabilities=[chat(options)], state=state)
        parts = [{"type": "text", "text": "x" * 100}]
        rows = [{"id": f"m{number}", "role": "user", "parts": parts} for number in range(12)]
        await agent.conversation("t").append(rows)
        hello = {"id": "h", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
        given = {"messages": [hello], "run": {"threadId": "t"}}
        result = await run_agent_trigger(agent, "chat.message", given)
    assert result.context_budget is not None
    assert result.context_budget.flush_status == "done"
    found = await asyncio.to_thread(
        lambda: [path.read_text(encoding="utf-8") for path in (tmp_path / "entries").glob("*.md")]
    )
    assert [text.split("\n")[-2] for text in found] == entries
    assert await asyncio.to_thread(sections_in, tmp_path)
