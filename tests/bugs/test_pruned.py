"""What pruning must leave alone: tools in whole, system messages, histories under every limit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.bugs.support import agent_on, rows_of
from vitehub_chat.formatting.history import format_history
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import PrunePolicy
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.trimming import trim
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def tool_call(call_id: str) -> dict[str, Any]:
    return {"type": "tool-call", "id": call_id, "name": "look", "input": {}}


def tool_result(call_id: str) -> dict[str, Any]:
    return {"type": "tool-result", "id": call_id, "name": "look", "output": "x" * 400}


PARALLEL: list[dict[str, Any]] = [
    {"id": "u1", "role": "user", "parts": [text("look")]},
    {"id": "a1", "role": "assistant", "parts": [tool_call(f"c{n}") for n in range(3)]},
    *({"id": f"r{n}", "role": "tool", "parts": [tool_result(f"c{n}")]} for n in range(3)),
    {"id": "a2", "role": "assistant", "parts": [text("done")]},
]


def ids_of(rows: tuple[Row, ...]) -> list[str | None]:
    return [row.message.id for row in rows]


async def test_L206_a_history_under_every_limit_stays_as_it_is(state: SteppedAgentState) -> None:
    agent = agent_on(state)
    conversation = agent.conversation("t")
    await conversation.append(PARALLEL)
    before = await rows_of(agent)
    payload = await conversation.format("openai_chat")
    plan = await conversation.prune(PrunePolicy(max_messages=6, max_tokens=1000))
    assert (plan.removed.all, plan.over_budget) == ((), False)
    assert await rows_of(agent) == before
    assert await conversation.format("openai_chat") == payload
    assert [each["role"] for each in payload["messages"]] == [
        "user",
        "assistant",
        *["tool"] * 3,
        "assistant",
    ]


@pytest.mark.parametrize("room", [50, 150, 250, 350])
async def test_L262_parallel_calls_go_with_all_of_their_results(
    state: SteppedAgentState, room: int
) -> None:
    agent = agent_on(state)
    conversation = agent.conversation("t")
    await conversation.append(PARALLEL)
    await conversation.prune(PrunePolicy(max_messages=None, max_tokens=room))
    whole = ids_of(await rows_of(agent))
    assert whole == (["a2"] if room < 300 else ["u1", "a1", "r0", "r1", "r2", "a2"])


@pytest.mark.parametrize("room", [1, 2, 3, 4, 5])
def test_L262_what_does_not_fit_is_trimmed_with_all_of_its_results(room: int) -> None:
    messages = [Message(each["id"], each["role"], tuple(each["parts"])) for each in PARALLEL]
    cut = trim(messages, lambda count: len(messages) - count, room)
    kept = messages[cut.dropped :]
    assert [each.id for each in kept] in ([], ["a2"], ["a1", "r0", "r1", "r2", "a2"])
    assert len(kept) <= room


@pytest.mark.parametrize("rule", ["max_age", "max_messages", "max_tokens"])
async def test_L164_system_messages_stay_in_their_places(
    state: SteppedAgentState, clock: FakeClock, rule: str
) -> None:
    agent = agent_on(state)
    conversation = agent.conversation("t")
    rows = [
        {"id": "s1", "role": "system", "parts": [text("be brief")]},
        {"id": "m1", "role": "user", "parts": [text("first")]},
        {"id": "s2", "role": "system", "parts": [text("be kind")]},
        {"id": "m2", "role": "user", "parts": [text("second")]},
    ]
    at = clock.now().isoformat()
    await conversation.append([{**row, "createdAt": at} for row in rows])
    clock.advance(hours=2)
    await conversation.append([{"id": "m3", "role": "user", "parts": [text("third")]}])
    off: dict[str, Any] = {"max_age": None, "max_messages": None, "max_tokens": None}
    limits = {"max_age": timedelta(hours=1), "max_messages": 1, "max_tokens": 1}
    await conversation.prune(PrunePolicy(**{**off, rule: limits[rule]}))
    assert ids_of(await rows_of(agent)) == ["s1", "s2", "m3"]
    payload = format_history([row.message for row in await rows_of(agent)], "anthropic")
    assert payload["system"] == "be brief\n\nbe kind"
