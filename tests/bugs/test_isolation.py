"""Isolation, injection and deserialisation."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import vitehub_chat
from tests.bugs.support import NAME, WINDOW, agent_on, change, key_of, rows_of, say
from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.stepped import SteppedAgentState


async def say_in(agent: Any, key: ConversationKey, text: str, **more: Any) -> Any:
    run = {"tenantId": key.tenant, "channelId": key.channel, "threadId": key.thread}
    message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
    given = {"messages": [message], "run": run, **more}
    return await run_agent_trigger(agent, "chat.message", given)


async def test_L249_percent_and_underscore_match_nothing_but_themselves(
    state: SteppedAgentState,
) -> None:
    agent = agent_on(state, sessions=True)
    tenants = ["%", "_", "a_", "ab", "a%", "a", "%%", "__"]
    for tenant in tenants:
        key = ConversationKey(tenant, NAME, tenant, tenant)
        await say_in(agent, key, "hi", session={"id": tenant}, userKey=tenant)
    for tenant in tenants:
        key = ConversationKey(tenant, NAME, tenant, tenant)
        for user_key in (None, tenant):
            listed = await agent.conversations(tenant=tenant, user_key=user_key).sessions()
            assert [info.session_id for info in listed.items] == [tenant]
        assert len((await agent.conversation(key, session_id=tenant).history()).items) == 2
        assert [
            r.message.id for r in await state.transcripts.get(key, message_ids=["%", "hi"])
        ] == ["hi"]
    await agent.conversation(ConversationKey("%", NAME, "%", "%")).clear(delete_session=True)
    left = [len((await agent.conversations(tenant=tenant).sessions()).items) for tenant in tenants]
    assert left == [0, 1, 1, 1, 1, 1, 1, 1]


async def test_L113_one_session_id_in_two_places_is_two_histories(
    state: SteppedAgentState,
) -> None:
    seen: list[list[str]] = []

    def answer(call: DriverCall) -> str:
        seen.append([each.text for each in call.messages])
        return "fine"

    options = {"sessions": True, "trigger_history": WINDOW}
    places = [
        ("one", ConversationKey(None, "one", None, "t")),
        ("two", ConversationKey(None, "two", None, "t")),
        ("one", ConversationKey("tenant", "one", None, "t")),
        ("one", ConversationKey(None, "one", "channel", "t")),
    ]
    for number, (name, key) in enumerate(places):
        agent = define_agent(
            name=name, driver={"run": answer}, capabilities=[chat(options)], state=state
        )
        result = await say_in(agent, key, f"m{number}", session={"id": "default"})
        assert result.session_id == "default"
        rows = (await agent.conversation(key, session_id="default").history()).items
        assert [row.message.text for row in rows] == [f"m{number}", "fine"]
    assert seen == [[f"m{number}"] for number in range(4)]


async def test_L132_a_corrupt_row_is_reported_and_never_becomes_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_agent_state(f"file:{path}") as state:
        agent = agent_on(state, trigger_history=WINDOW)
        for text in "ABC":
            await say(agent, text)
        sql = "UPDATE $rows SET body = ? WHERE message_id = 'B'"
        assert await asyncio.to_thread(change, path, sql, '{"v":1,"parts":') == 1
        with pytest.raises(StateError) as caught:
            await state.transcripts.get(key_of(), message_ids=["B"])
        assert caught.value.code == "corrupt"
        with caplog.at_level(logging.WARNING, "vitehub_chat"):
            rows = await rows_of(agent)
            result = await say(agent, "D")
        assert [row.message.text for row in rows] == ["A", "re A", "re B", "C", "re C"]
        assert result.prepared is not None
        assert [each.text for each in result.prepared.messages] == [
            "A",
            "re A",
            "re B",
            "C",
            "re C",
            "D",
        ]
        told = [record.message for record in caplog.records]
        assert told.count("chat.row.quarantined") == 2
        page = await agent.conversation("t").history(limit=2)
        while page.older_cursor is not None:
            page = await agent.conversation("t").history(limit=2, cursor=page.older_cursor)
        assert await asyncio.to_thread(change, path, sql, '{"v":1,"parts":[]}') == 1
        await agent.aclose()


async def test_L326_a_row_that_names_a_class_stays_data(path: Path) -> None:
    body = (
        '{"v":1,"parts":[{"type":"text","text":"hi"},{"__class__":"antigravity.x",'
        '"py/object":"antigravity.x","$type":"antigravity","type":"data-x","data":'
        '{"!!python/object/apply:os.system":["true"],"__reduce__":["os.system"]}}]}'
    )
    async with open_agent_state(f"file:{path}") as state:
        agent = agent_on(state, trigger_history=WINDOW)
        await say(agent, "A")
        sql = "UPDATE $rows SET body = ? WHERE message_id = 'A'"
        assert await asyncio.to_thread(change, path, sql, body) == 1
        (row, _) = await rows_of(agent)
        result = await say(agent, "B")
        await agent.aclose()
    part = row.message.to_json()["parts"][1]
    assert part["__class__"] == part["py/object"] == "antigravity.x"
    assert isinstance(part, dict)
    assert type(part).__module__ in {"builtins", "vitehub_chat.model.frozen_json"}
    assert result.status == "complete"
    assert "antigravity" not in sys.modules
    root = Path(vitehub_chat.__file__).parent
    forbidden = re.compile(r"\b(pickle|marshal|shelve|dill|jsonpickle|eval|exec)\b[.(]")
    found = [
        f"{file.name}: {match.group()}"
        for file in root.rglob("*.py")
        for match in forbidden.finditer(file.read_text(encoding="utf-8"))
    ]
    assert found == []


ALIKE = ["s", " s", "s ", "S", "\u00e9", "e\u0301", "é ", "\u017f", "\u2003s", "\u017f\u0301"]


async def test_L226_a_padded_id_never_overwrites_the_real_one(state: SteppedAgentState) -> None:
    agent = agent_on(state, sessions=True)
    for text in ALIKE:
        await say_in(agent, key_of("t"), f"in {text}", session={"id": text})
    for text in ALIKE:
        rows = (await agent.conversation("t", session_id=text).history()).items
        assert [row.message.text for row in rows] == [f"in {text}", f"re in {text}"]
    for text in (" s\n", "s\t", "\x0bs"):
        with pytest.raises(vitehub_chat.errors.InputError):
            await say_in(agent, key_of("t"), "x", session={"id": text})


async def test_L271_an_id_is_the_same_when_it_is_written_read_listed_and_deleted(
    state: SteppedAgentState,
) -> None:
    agent = agent_on(state, sessions=True)
    for text in ALIKE:
        await say_in(agent, key_of(text), "hi", session={"id": text})
    listed = (await agent.conversations().sessions(limit=100)).items
    assert sorted(info.session_id or "" for info in listed) == sorted(ALIKE)
    for number, text in enumerate(ALIKE):
        found = await state.sessions.get(key_of(text), session_id=text)
        assert (found.session_id, found.message_count) == (text, 2)
        counts = await agent.conversation(text, session_id=text).clear(delete_session=True)
        assert (counts["rows"], counts["sessions"]) == (2, 1)
        left = (await agent.conversations().sessions(limit=100)).items
        assert len(left) == len(ALIKE) - number - 1
