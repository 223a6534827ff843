"""Tools of clients, parallel parts and approvals: one message, one order, nothing lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from tests.bugs.support import NAME, agent_on, key_of, message, rows_of, say
from vitehub_chat import Capability, chat, define_agent, run_agent_trigger, stream_agent_trigger
from vitehub_chat.agent.capability import InvocationContext
from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.model.events import (
    ApprovalRequested,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
)
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.pruning import PrunePolicy, plan_prune
from vitehub_chat.selection.tokens import CHARS4
from vitehub_chat.state.row_requests import PruneRequest
from vitehub_chat.state.stepped import SteppedAgentState

WINDOW = {"source": "transcript", "max_messages": 50}


def settled(call_id: str, name: str, **more: Any) -> dict[str, Any]:
    """Return the part of a call as a client sends it back."""
    return {"type": f"tool-{name}", "toolCallId": call_id, "input": {}, **more}


async def test_L104_the_output_of_a_clients_tool_joins_the_message_that_called_it(
    state: SteppedAgentState,
) -> None:
    seen: list[DriverCall] = []

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        seen.append(call)
        if len(seen) == 1:
            yield ToolCall("X", "locate", {})
        else:
            yield TextDelta("t", "you are in Rome")

    agent = agent_on(state, answer, trigger_history=WINDOW)
    await say(agent, "where am I?")
    [_, asked] = await rows_of(agent)
    output = settled("X", "locate", state="output-available", output="Rome")
    sent = {"id": asked.message.id, "role": "assistant", "parts": [output]}
    result = await run_agent_trigger(
        agent, "chat.message", {"messages": [sent], "run": {"threadId": "t"}}
    )
    [question, owner, answered] = await rows_of(agent)
    assert (question.seq, owner.seq, answered.seq) == (1, 2, 3)
    assert (question.message.text, owner.message.id) == ("where am I?", asked.message.id)
    assert result.text == answered.message.text == "you are in Rome"
    [part] = [each for each in owner.message.to_json()["parts"] if each.get("toolCallId") == "X"]
    assert (part["state"], part["output"]) == ("output-available", "Rome")
    repeated = await run_agent_trigger(
        agent, "chat.message", {"messages": [sent], "run": {"threadId": "t"}}
    )
    assert (repeated.text, len(seen)) == ("you are in Rome", 2)
    assert len(await rows_of(agent)) == 3


async def test_L150_parts_are_in_the_order_in_which_they_began_live_and_on_reload(
    state: SteppedAgentState,
) -> None:
    async def answer(_call: DriverCall) -> AsyncIterator[Any]:
        yield ReasoningDelta("thinking", "first ")
        yield ToolCall("c1", "look", {})
        yield TextDelta("answer", "I ")
        yield ToolCall("c2", "look", {})
        yield ToolResult("c2", "look", "second")
        yield TextDelta("answer", "see")
        yield ReasoningDelta("thinking", "to last")
        yield ToolResult("c1", "look", "first")

    agent = agent_on(state, answer)
    stream = stream_agent_trigger(
        agent,
        "chat.message",
        {"messages": [message("A")], "run": {"threadId": "t"}},
    )
    begun = [
        chunk.get("toolCallId") or chunk["type"].partition("-")[0]
        for chunk in [chunk async for chunk in stream]
        if chunk["type"] in {"reasoning-start", "text-start", "tool-input-available"}
    ]
    [_, row] = await rows_of(agent)
    kept = [part.get("toolCallId") or part["type"] for part in row.message.to_json()["parts"]]
    assert begun == kept == ["reasoning", "c1", "text", "c2"]
    assert row.message.text == "I see"
    [thought] = [p for p in row.message.to_json()["parts"] if p["type"] == "reasoning"]
    assert thought["text"] == "first to last"


class Saving(Capability):
    """A tool that saves a message itself."""

    name = "saving"

    def __init__(self) -> None:
        self.save: Any = None

    def tools(self, _ctx: InvocationContext, /) -> Sequence[ToolSpec]:
        async def note(text: str) -> str:
            await self.save(text)
            return f"noted {text}"

        parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
        return [ToolSpec(name="note", description="Notes.", parameters=parameters, call=note)]


async def test_L310_a_tool_saves_a_message_while_its_call_is_open_twice_in_one_step(
    state: SteppedAgentState,
) -> None:
    seen: list[list[Any]] = []

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        seen.append([(each.role, each.parts) for each in call.messages])
        if call.text != "A":
            yield TextDelta("t", "fine")
            return
        [tool] = call.tools
        yield ToolCall("c1", "note", {"text": "n1"})
        yield ToolCall("c2", "note", {"text": "n2"})
        for number in (1, 2):
            result = await tool.call(text=f"n{number}")
            yield ToolResult(f"c{number}", "note", result)
        yield TextDelta("t", "done")

    saving = Saving()
    agent = define_agent(
        name=NAME,
        driver={"run": answer},
        capabilities=[chat({"trigger_history": WINDOW}), saving],
        state=state,
    )

    async def save(text: str) -> None:
        note = {"id": text, "role": "assistant", "parts": [{"type": "text", "text": text}]}
        await agent.conversation("t").append([note])

    saving.save = save
    assert (await say(agent, "A")).status == "complete"
    await say(agent, "B")
    assert {row.message.id for row in await rows_of(agent)} >= {"A", "n1", "n2", "B"}
    kinds = [type(part).__name__ for _, parts in seen[-1] for part in parts]
    calls = [
        place for place, kind in enumerate(kinds) if kind in {"ToolCallPart", "ToolResultPart"}
    ]
    assert len(calls) == 4
    assert calls == list(range(calls[0], calls[0] + 4))


async def test_L115_pruning_keeps_the_call_that_waits_for_an_approval(
    state: SteppedAgentState,
) -> None:
    seen: list[DriverCall] = []

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        seen.append(call)
        if len(seen) == 1:
            for call_id in ("c1", "c2"):
                yield ToolCall(call_id, "pay", {})
                yield ApprovalRequested(f"a-{call_id}", call_id)
        else:
            yield TextDelta("t", "fine")

    agent = agent_on(state, answer, trigger_history=WINDOW)
    await say(agent, "pay both")
    [_, asked] = await rows_of(agent)
    conversation = agent.conversation("t")
    for number in range(12):
        note = {"id": f"n{number}", "role": "user", "parts": [{"type": "text", "text": "note"}]}
        await conversation.append([note])
    policy = PrunePolicy(max_age=None, max_messages=2, max_tokens=None)

    def choose(rows: Sequence[Row]) -> Sequence[int]:
        plan = plan_prune(rows, policy, state.clock.now(), CHARS4)
        return plan.removed.all

    pruned = await state.transcripts.prune(key_of(), request=PruneRequest(choose=choose))
    assert len(pruned.removed) >= 10
    assert asked.message.id in [row.message.id for row in await rows_of(agent)]
    decided = [
        settled(
            call_id,
            "pay",
            state="approval-responded",
            approval={"id": f"a-{call_id}", "approved": True},
        )
        for call_id in ("c1", "c2")
    ]
    sent = {"id": asked.message.id, "role": "assistant", "parts": decided}
    result = await run_agent_trigger(
        agent, "chat.message", {"messages": [sent], "run": {"threadId": "t"}}
    )
    assert result.status == "complete"
    given = [part for each in seen[-1].messages for part in each.parts]
    kinds = [type(part).__name__ for part in given]
    assert kinds.count("ToolCallPart") == kinds.count("ApprovalDecisionPart") == 2
