"""The memory of whole agents: what rolls and turns leave in it, and how it goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.memory.notes import TIGHT, WINDOW, ranges, sections_in
from vitehub_chat import (
    Agent,
    chat,
    define_agent,
    open_agent_state,
    prepare_agent_trigger,
    run_agent_trigger,
)
from vitehub_chat.conversation.memory.inventory import NoteInventory
from vitehub_chat.errors import ConfigError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

NAME = "archivist"
KEY = ConversationKey(None, NAME, None, "t")
SAID = "x" * 100


@pytest.fixture(params=["memory", "file"])
async def state(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentState]:
    url = "memory:" if request.param == "memory" else f"file:{tmp_path}/state.db"
    async with open_agent_state(url, clock=FakeClock()) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def agent_on(state: AgentState | None, **memory: Any) -> Agent:
    options: dict[str, Any] = {
        "trigger_history": WINDOW,
        "context": TIGHT,
        "memory": memory,
        "sessions": {"strategy": "manual"},
    }
    if state is None:
        options = {"memory": memory}
    driver: Any = {"run": lambda _call: "an answer"}
    return define_agent(name=NAME, driver=driver, capabilities=[chat(options)], state=state)


def message(text: str, message_id: str | None = None, **more: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"id": message_id or text, "role": "user", "parts": parts, **more}


async def fill(agent: Agent, rows: int = 12, **place: Any) -> None:
    said = [message(SAID, f"m{number}") for number in range(rows)]
    await agent.conversation("t", **place).append(said)


def given(text: str) -> dict[str, Any]:
    return {"messages": [message(text)], "run": {"threadId": "t"}}


async def sections(root: Path) -> list[tuple[int, int]]:
    return ranges(await asyncio.to_thread(sections_in, root))


async def test_what_a_turn_condenses_is_archived_first(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root))
    await fill(agent)
    result = await run_agent_trigger(agent, "chat.message", given("hello"))
    budget = result.context_budget
    assert budget is not None
    assert (budget.flush_status, budget.reason) == ("done", None)
    assert budget.rolled > 0
    found = await sections(root)
    assert found[0] == (1, 4)
    assert found[-1][1] == budget.rolled == budget.summary_through_seq


async def test_a_dry_run_archives_nothing(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root), append_every_turn=True)
    await fill(agent)
    prepared = await prepare_agent_trigger(agent, "chat.message", given("hello"))
    assert prepared.context_budget is not None
    assert prepared.context_budget.flush_status == "off"
    assert not await asyncio.to_thread(root.exists)


async def test_a_folder_that_cannot_be_written_blocks_if_told_to(
    state: AgentState, root: Path
) -> None:
    await asyncio.to_thread(root.write_text, "no folder")
    for on_error, reason in (("block", "flush_failed"), ("continue", None)):
        agent = agent_on(state, root=str(root), on_error=on_error)
        if on_error == "block":
            await fill(agent)
        result = await run_agent_trigger(agent, "chat.message", given(on_error))
        assert result.status == "complete"
        assert result.context_budget is not None
        assert result.context_budget.flush_status == "failed"
        assert result.context_budget.reason == reason


async def test_every_turn_is_appended_if_told_to(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root), append_every_turn=True)
    for text in ("one", "two"):
        await run_agent_trigger(agent, "chat.message", given(text))
    assert await sections(root) == [(1, 2), (3, 4)]
    note = await asyncio.to_thread((root / "2026-01-01.md").read_text, "utf-8")
    headings = [line for line in note.split("\n") if line.startswith("## ")]
    assert headings[0] == "## Turn 2026-01-01 00:00:00+00:00, messages 1-2"
    assert [line for line in note.split("\n") if line.startswith("> ")] == [
        *("> one", "> an answer"),
        *("> two", "> an answer"),
    ]


async def test_a_repeated_message_appends_no_turn(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root), append_every_turn=True)
    for _ in range(2):
        await run_agent_trigger(agent, "chat.message", given("one"))
    assert await sections(root) == [(1, 2)]


async def test_a_turn_is_answered_although_it_cannot_be_appended(
    state: AgentState, root: Path
) -> None:
    await asyncio.to_thread(root.write_text, "no folder")
    agent = agent_on(state, root=str(root), append_every_turn=True)
    result = await run_agent_trigger(agent, "chat.message", given("one"))
    assert (result.status, result.text) == ("complete", "an answer")


async def test_appending_turns_needs_a_state(root: Path) -> None:
    agent = agent_on(None, root=str(root), append_every_turn=True)
    with pytest.raises(ConfigError) as caught:
        await run_agent_trigger(agent, "chat.message", given("one"))
    assert caught.value.path == "memory.append_every_turn"


@pytest.mark.filterwarnings("ignore:a state in memory is lost:RuntimeWarning")
async def test_where_files_do_not_last_a_turn_is_refused(
    state: AgentState, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_on(state, root=str(root))
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    with pytest.raises(ConfigError, match="AWS Lambda"):
        await run_agent_trigger(agent, "chat.message", given("one"))


async def test_notes_outlive_a_truncate(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root))
    await fill(agent)
    await run_agent_trigger(agent, "chat.message", given("hello"))
    before = await sections(root)
    await agent.conversation("t").truncate("m1")
    assert await sections(root) == before


@pytest.mark.parametrize("session_id", [None, "s"])
async def test_deleting_a_session_lists_its_notes(
    state: AgentState, root: Path, session_id: str | None
) -> None:
    agent = agent_on(state, root=str(root))
    await fill(agent, session_id=session_id)
    turn = given("hello")
    if session_id is not None:
        turn["session"] = {"action": "switch", "id": session_id}
    await run_agent_trigger(agent, "chat.message", turn)
    written = await asyncio.to_thread(sections_in, root)
    assert written
    cleared = await agent.conversation("t", session_id=session_id).clear(delete_session=True)
    assert [note.flush_id for note in cleared.notes] == [each.flush_id for each in written]
    assert await asyncio.to_thread(sections_in, root) == written


@pytest.mark.parametrize("sink", ["folder", "state"])
async def test_notes_can_be_deleted_with_their_session(
    state: AgentState, root: Path, sink: str
) -> None:
    where = {"root": str(root)} if sink == "folder" else {"sink": "state"}
    agent = agent_on(state, **where)
    await fill(agent)
    await run_agent_trigger(agent, "chat.message", given("hello"))
    cleared = await agent.conversations().delete(KEY, None, delete_notes=True)
    assert cleared["rows"] == 14
    assert cleared.notes
    assert await sections(root) == []
    values = state.values
    for note in cleared.notes:
        assert await values.get(f"memory.note:{note.flush_id}", scope=KEY) is None
        assert await values.get(f"memory.flush:{note.flush_id}", scope=KEY) is None
    again = await agent.conversations().delete(KEY, None, delete_notes=True)
    assert (set(again.values()), again.notes) == ({0}, ())


async def test_notes_of_other_sessions_stay(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root), append_every_turn=True)
    for session_id in ("a", "b"):
        request = {**given(session_id), "session": {"action": "switch", "id": session_id}}
        await agent.conversation("t", session_id=session_id).append([message(SAID, session_id)])
        await run_agent_trigger(
            agent, "chat.message", {**request, "messages": [message(f"to {session_id}")]}
        )
    assert len(await sections(root)) == 2
    await agent.conversations().delete(KEY, "a", delete_notes=True)
    notes = await asyncio.to_thread((root / "2026-01-01.md").read_text, "utf-8")
    assert ("to a" in notes, "to b" in notes) == (False, True)


async def test_a_deletion_of_notes_that_broke_off_goes_on(state: AgentState, root: Path) -> None:
    agent = agent_on(state, root=str(root))
    await fill(agent)
    await run_agent_trigger(agent, "chat.message", given("hello"))
    inventory = NoteInventory(state.values, KEY)
    notes = [each.note for each in await inventory.listed()]
    await inventory.plan_removal(None, notes)
    await state.sessions.clear(KEY, session_id=None, delete_session=True)
    with pytest.raises(NotFoundError):
        await state.sessions.get(KEY, session_id=None)
    assert await sections(root) != []
    await agent.conversations().delete(KEY, None, delete_notes=True)
    assert await sections(root) == []
    assert await inventory.planned_removal(None) == ()


async def test_notes_are_still_listed_after_the_conversation_was_emptied(
    state: AgentState, root: Path
) -> None:
    agent = agent_on(state, root=str(root), append_every_turn=True)
    await run_agent_trigger(agent, "chat.message", given("one"))
    emptied = await agent.conversation("t").clear()
    assert emptied.notes == ()
    await run_agent_trigger(agent, "chat.message", given("two"))
    cleared = await agent.conversation("t").clear(delete_session=True, delete_notes=True)
    assert len(cleared.notes) == 2
    assert await sections(root) == []


async def test_notes_that_cannot_be_deleted_keep_their_session(state: AgentState) -> None:
    class Sink:
        async def append(self, section: str, /, *, date: object, flush_id: str) -> None:
            """Take a section."""

    agent = agent_on(state, sink=Sink(), append_every_turn=True)
    await run_agent_trigger(agent, "chat.message", given("one"))
    with pytest.raises(ConfigError) as caught:
        await agent.conversation("t").clear(delete_session=True, delete_notes=True)
    assert caught.value.path == "memory.sink"
    assert len((await agent.conversation("t").history()).items) == 2
    without = define_agent(name=NAME, driver="echo", state=state, capabilities=[chat()])
    with pytest.raises(ConfigError) as caught:
        await without.conversation("t").clear(delete_session=True, delete_notes=True)
    assert caught.value.path == "memory"


@pytest.mark.parametrize("sink", ["folder", "state"])
async def test_with_a_person_go_the_notes_that_quote_their_sessions(
    state: AgentState, root: Path, sink: str
) -> None:
    where = {"root": str(root)} if sink == "folder" else {"sink": "state"}
    agent = agent_on(state, append_every_turn=True, **where)
    for person in ("ann", "bob"):
        turn = {**given(f"I am {person}"), "userKey": person}
        turn["run"] = {"threadId": person}
        await run_agent_trigger(agent, "chat.message", turn)
    keys = {person: ConversationKey(None, NAME, None, person) for person in ("ann", "bob")}
    kept = {person: await NoteInventory(state.values, key).listed() for person, key in keys.items()}
    await agent.conversations().erase_person("ann")
    assert await NoteInventory(state.values, keys["ann"]).listed() == ()
    assert await NoteInventory(state.values, keys["bob"]).listed() == kept["bob"]
    values = [
        await state.values.get(f"memory.note:{each.note.flush_id}", scope=keys[person])
        for person, listed in kept.items()
        for each in listed
    ]
    assert ["I am" in repr(value) for value in values] == [False, sink == "state"]
    notes = await asyncio.to_thread(
        lambda: "".join(path.read_text(encoding="utf-8") for path in root.glob("*.md"))
    )
    assert ("I am ann" in notes, "I am bob" in notes) == (False, sink == "folder")
