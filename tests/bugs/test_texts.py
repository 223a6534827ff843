"""Unicode, NUL and long texts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import WINDOW, agent_on, change, rows_of, say, texts_of
from vitehub_chat import open_agent_state
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.events import ToolCall, ToolResult
from vitehub_chat.model.parts import ToolResultPart
from vitehub_chat.state.stepped import SteppedAgentState


async def test_L224_a_surrogate_in_a_tool_output_is_replaced_once_and_does_not_grow(
    state: SteppedAgentState,
) -> None:
    seen: list[Any] = []

    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        results = [p for m in call.messages for p in m.parts if isinstance(p, ToolResultPart)]
        seen.append([(part.output, part.error) for part in results])
        yield ToolCall("c1", "look", {"where": "\udc97"})
        yield ToolResult("c1", "look", {"text": "a\udc97b", "\udc97": [1]})
        yield ToolCall("c2", "look")
        yield ToolResult("c2", "look", status="failed", error="bad \udc97")
        yield "fine \udc97"

    agent = agent_on(state, answer, trigger_history=WINDOW)
    for text in "ABC":
        await say(agent, text)
    once = [({"text": "a\ufffdb", "\ufffd": [1]}, None), (None, "bad \ufffd")]
    assert [len(each) for each in seen] == [0, 2, 4]
    assert seen[2][0] == once[0] == seen[1][0]
    assert [each[1] for each in seen[2]] == [None, "bad \ufffd"] * 2
    rows = await rows_of(agent)
    assert [row.message.text for row in rows[1::2]] == ["fine \ufffd"] * 3
    assert json.dumps([row.message.to_json() for row in rows], ensure_ascii=False).encode()
    bodies = {json.dumps(row.message.to_json()["parts"]) for row in rows[1::2]}
    assert len(bodies) == 1


async def test_L272_an_old_row_with_half_a_pair_can_be_read(path: Path) -> None:
    async with open_agent_state(f"file:{path}") as state:
        agent = agent_on(state, trigger_history=WINDOW)
        await say(agent, "old", metadata={"note": "x"})
        body = '{"v":1,"parts":[{"type":"text","text":"a\\udc97b"}],"metadata":{"note":"\\ud83d"}}'
        sql = "UPDATE $rows SET body = ? WHERE message_id = 'old'"
        assert await asyncio.to_thread(change, path, sql, body) == 1
        row = (await rows_of(agent))[0]
        assert (row.message.text, row.message.metadata) == ("a\ufffdb", {"note": "\ufffd"})
        lines = [line async for line in agent.conversation("t").export()]
        assert "".join(lines).encode()
        assert (await say(agent, "new")).status == "complete"
        await agent.aclose()


async def test_L202_a_nul_is_stored_and_returned(state: SteppedAgentState) -> None:
    async def answer(call: DriverCall) -> AsyncIterator[Any]:
        yield ToolCall("c1", "look", {"a\x00": "\x00"})
        yield ToolResult("c1", "look", "x\x00y")
        yield f"re {call.text}"

    agent = agent_on(state, answer)
    await say(agent, "a\x00b", message_id="m", metadata={"k\x00": "v\x00"})
    user, assistant = await rows_of(agent)
    assert (user.message.text, user.message.metadata) == ("a\x00b", {"k\x00": "v\x00"})
    assert assistant.message.text == "re a\x00b"
    part = assistant.message.to_json()["parts"][0]
    assert (part["input"], part["output"]) == ({"a\x00": "\x00"}, "x\x00y")


@pytest.mark.parametrize("way", ["turn", "append"])
async def test_L177_a_nul_and_its_escape_text_stay_two_things_on_every_path(
    state: SteppedAgentState, way: str
) -> None:
    agent = agent_on(state)
    texts = ["\x00x", "\\u0000x", "\\\\u0000x"]
    for number, text in enumerate(texts):
        if way == "turn":
            await say(agent, text, message_id=f"m{number}")
        else:
            parts = [{"type": "text", "text": text}]
            own = {"id": f"m{number}", "role": "user", "parts": parts}
            await agent.conversation("t").append([own])
    assert [text for text in await texts_of(agent) if not text.startswith("re")] == texts


async def test_L170_a_long_message_comes_back_whole_from_every_reading(
    state: SteppedAgentState,
) -> None:
    agent = agent_on(state, trigger_history=WINDOW)
    text = "".join(chr(0x4E00 + number % 5000) for number in range(4096)) + "x" * 60_000
    await say(agent, text, message_id="m")
    assert await texts_of(agent) == [text, f"re {text}"]
    around = await agent.conversation("t").history(around="m", limit=1)
    assert around.items[0].message.text == text
    exported = [json.loads(line) async for line in agent.conversation("t").export()]
    assert exported[1]["message"]["parts"][0]["text"] == text
    result = await say(agent, "next")
    assert result.prepared is not None
    assert result.prepared.messages[0].text == text
