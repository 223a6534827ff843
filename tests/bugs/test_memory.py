"""Notes of the memory: no id of a client leads anywhere, and nothing that is deleted is left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.bugs.support import NAME, WINDOW
from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import InputError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

HOSTILE = ("../../out", "..", "a/b", "ok\n", "a\u2215b", "\uff0e\uff0e\uff0fout", "C:\\out", "~")


def agent_on(state: AgentState, root: Path) -> Agent:
    capability = chat(
        trigger_history=WINDOW,  # type: ignore[arg-type]
        sessions={"strategy": "manual"},
        memory={"root": str(root), "append_every_turn": True},
    )
    return define_agent(name=NAME, driver="echo", capabilities=[capability], state=state)


def turn(session_id: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": "a marker"}]
    return {
        "messages": [{"id": "m", "role": "user", "parts": parts}],
        "run": {"threadId": session_id},
        "session": {"action": "new"},
    }


@pytest.mark.parametrize("name", HOSTILE)
async def test_L217_no_id_of_a_conversation_leads_out_of_the_folder_of_notes(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / "deep" / "notes"
    async with open_agent_state("memory:", clock=FakeClock()) as state:
        agent = agent_on(state, root)
        try:
            await run_agent_trigger(agent, "chat.message", turn(name))
        except InputError as error:
            assert "run" in (error.path or "")  # noqa: PT017 - refused is as good
    found = await asyncio.to_thread(
        lambda: sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md"))
    )
    assert found in ([], ["deep/notes/2026-01-01.md"])


async def test_L288_what_was_deleted_with_its_notes_is_in_no_file(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    async with open_agent_state(f"file:{tmp_path}/state.db", clock=FakeClock()) as state:
        agent = agent_on(state, root)
        await run_agent_trigger(agent, "chat.message", turn("t"))
        note = root / "2026-01-01.md"
        assert "a marker" in await asyncio.to_thread(note.read_text, "utf-8")
        key = ConversationKey(None, NAME, None, "t")
        sessions = (await agent.conversations().sessions()).items
        cleared = await agent.conversations().delete(key, sessions[0].session_id, delete_notes=True)
        assert len(cleared.notes) == 1
        assert not await asyncio.to_thread(note.exists)
