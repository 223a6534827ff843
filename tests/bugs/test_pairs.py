"""Tool calls and their results: never one without the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given as with_examples
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.bugs.support import NAME, message, rows_of, say
from vitehub_chat import Capability, chat, define_agent, prepare_agent_trigger
from vitehub_chat.agent.capability import InvocationContext
from vitehub_chat.agent.driver import ToolSpec
from vitehub_chat.agent.drivers.pydantic_ai import create
from vitehub_chat.model.messages import Message
from vitehub_chat.model.parts import ToolResultPart
from vitehub_chat.model.policies import HistoryWindow
from vitehub_chat.selection.window import select_window
from vitehub_chat.state.stepped import SteppedAgentState


def tool_part(call_id: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "dynamic-tool",
        "toolName": "look",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {},
        "output": "seen",
        **more,
    }


async def test_L219_an_answer_with_its_tools_counts_once_and_stays_whole() -> None:
    parts = [tool_part(f"c{n}") for n in range(6)] + [{"type": "text", "text": "done"}]
    answer = {"id": "a1", "role": "assistant", "parts": parts}
    thread = [message("u1"), answer, message("u2")]
    agent = define_agent(name=NAME, capabilities=[chat()])
    for limit, kept in ((1, ["u2"]), (2, ["a1", "u2"]), (3, ["u1", "a1", "u2"])):
        prepared = await prepare_agent_trigger(
            agent,
            "chat.message",
            {
                "messages": thread,
                "triggerHistory": {"source": "thread", "maxMessages": limit},
                "run": {"threadId": "t"},
            },
        )
        assert [each.id for each in prepared.messages] == kept
        if limit > 1:
            assert len(prepared.messages[-2].parts) == 13


async def test_L219_results_whose_call_was_cut_go_from_the_front() -> None:
    call = {"type": "tool-call", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool-result", "id": "c1", "name": "look", "output": "seen"}
    thread = [
        message("u1"),
        {"id": "a1", "role": "assistant", "parts": [call]},
        {"id": "r1", "role": "tool", "parts": [result]},
        {"id": "r2", "role": "tool", "parts": [result]},
        {"id": "a2", "role": "assistant", "parts": [{"type": "text", "text": "done"}]},
        message("u2"),
    ]
    agent = define_agent(name=NAME, capabilities=[chat()])
    given = {
        "messages": thread,
        "triggerHistory": {"source": "thread", "maxMessages": 4},
        "run": {"threadId": "t"},
    }
    prepared = await prepare_agent_trigger(agent, "chat.message", given)
    assert [each.id for each in prepared.messages] == ["a2", "u2"]
    reasons = {each.message_id: each.reason for each in prepared.selection}
    assert reasons["r1"] == reasons["r2"] == "orphan_tool_result"


@with_examples(st.data())
def test_L285_no_window_begins_with_results_alone(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from("uarc"), min_size=1, max_size=30))
    limit = data.draw(st.integers(1, 12))
    messages = [_of_kind(kind, index) for index, kind in enumerate(kinds)]
    chosen = select_window(
        messages, range(len(messages)), HistoryWindow(source="thread", max_messages=limit), ()
    )
    assert chosen.kept[-1] == len(messages) - 1
    first = messages[chosen.kept[0]]
    is_orphan = {part["type"] for part in first.to_json()["parts"]} == {"tool-result"}
    assert not is_orphan or len(chosen.kept) == 1


def _of_kind(kind: str, index: int) -> Message:
    parts: dict[str, Sequence[dict[str, Any]]] = {
        "u": [{"type": "text", "text": "hi"}],
        "a": [{"type": "text", "text": "fine"}],
        "r": [{"type": "tool-result", "id": f"c{index - 1}", "name": "look", "output": 1}],
        "c": [{"type": "tool-call", "id": f"c{index}", "name": "look", "input": {}}],
    }
    return Message(f"m{index}", "user" if kind == "u" else "assistant", tuple(parts[kind]))


class SlowTool(Capability):
    """A tool that never ends."""

    name = "slow"

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    def tools(self, _ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        async def wait() -> str:
            self.has_begun.set()
            await asyncio.Event().wait()
            return "never"

        parameters = {"type": "object", "properties": {}}
        return [ToolSpec(name="wait", description="Waits.", parameters=parameters, call=wait)]


async def test_L161_after_a_turn_that_was_cancelled_in_a_tool_a_new_message_is_accepted(
    state: SteppedAgentState,
) -> None:
    asked: list[list[ModelMessage]] = []

    async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        asked.append(messages)
        if len(asked) == 1:
            yield {0: DeltaToolCall(name="wait", json_args="{}", tool_call_id="c1")}
        else:
            yield "fine"

    slow = SlowTool()
    agent = define_agent(
        name=NAME,
        driver=create({"model": FunctionModel(stream_function=answer)}),
        capabilities=[chat(trigger_history={"source": "transcript", "max_messages": 9}), slow],
        state=state,
    )
    turn = asyncio.create_task(say(agent, "A"))
    await slow.has_begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    result = await say(agent, "B")
    assert (result.status, result.text) == ("complete", "fine")
    assert [row.status for row in await rows_of(agent)] == [
        "complete",
        "interrupted",
        "complete",
        "complete",
    ]
    found = [
        part for request in asked[-1] for part in request.parts if isinstance(part, ToolReturnPart)
    ]
    assert [(part.tool_call_id, part.outcome) for part in found] == [("c1", "failed")]
    assert "interrupted" in str(found[0].content)
    assert result.prepared is not None
    (kept,) = [
        part
        for each in result.prepared.messages
        for part in each.parts
        if isinstance(part, ToolResultPart)
    ]
    assert (kept.status, kept.error) == ("failed", "interrupted")
