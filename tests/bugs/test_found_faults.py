"""Faults that were found by attacks on the public interface, on every provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.bugs.support import agent_on, key_of, say
from vitehub_chat import ConversationKey, open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.errors import CursorError, InputError
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.steps.scopes import find_session
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.material import MANUAL, append, row


async def test_the_newest_plan_is_read_while_the_clock_goes_on(any_url: str) -> None:
    # By a clock that stands still, what a read asks for again is the same anyway.
    async with open_agent_state(any_url) as state:
        agent = agent_on(state)
        await say(agent, "Hello")

        plan = await agent.conversation("t").plan()

        assert plan is not None
        assert plan.turn_id


async def test_superseded_rows_are_read_while_the_clock_goes_on(any_url: str) -> None:
    async with open_agent_state(any_url) as state:
        agent = agent_on(state)
        await say(agent, "Hello")

        page = await agent.conversation("t").history(include_superseded=True)

        assert len(page.items) == 2


@pytest.mark.parametrize("nobody", [None, "", 7])
async def test_erasing_nobody_in_particular_erases_nobody(any_url: str, nobody: Any) -> None:
    async with open_agent_state(any_url) as state:
        agent = agent_on(state)
        await say(agent, "Hello")

        with pytest.raises(InputError, match="user_key"):
            await state.admin.erase_person(None, nobody)
        with pytest.raises(InputError, match="user_key"):
            _ = [each async for each in state.admin.export_person(None, nobody)]

        assert len((await agent.conversation("t").history()).items) == 2


async def test_a_message_that_is_named_like_a_session_is_exported(any_url: str) -> None:
    async with open_agent_state(any_url) as state:
        assert isinstance(state, SteppedAgentState)
        key = key_of()
        await append(state, key, "own", base="s1", policy=MANUAL, user_key="ann")
        own = await state.run_read(lambda tx: find_session(tx, key, "s1"))
        assert own is not None
        written = NewRow(message=row(f"session {own.key}").message, author="ann")
        theirs = SessionRequest(conversation=key, policy=MANUAL, base="s2", user_key="bob")
        await state.transcripts.append(theirs, rows=[written])

        found = [each async for each in state.admin.export_person(None, "ann")]

        messages = [each.fields["message"] for each in found if each.kind == "message"]
        assert [each["id"] for each in messages] == ["own", f"session {own.key}"]


@pytest.mark.parametrize("bad", ["\ud800", "a\x00b", "x" * 513])
async def test_ids_that_cannot_be_stored_are_refused_where_they_are_read(bad: str) -> None:
    async with open_agent_state("memory:") as state:
        key = ConversationKey(None, "a", None, "t")
        conversation = Conversation(state, key)
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: conversation.truncate(bad),
            lambda: conversation.delete_message(bad),
            lambda: conversation.replace_message(bad, {"role": "user", "parts": []}),
            lambda: conversation.history(around=bad),
            lambda: conversation.plan(bad),
            lambda: state.admin.erase_person(None, bad),
            lambda: state.admin.erase_person(bad, "u1"),
        ]
        for call in calls:
            with pytest.raises(InputError):
                await call()
    with pytest.raises(InputError, match="session_id"):
        Conversation(state, key, session_id=bad)


@pytest.mark.parametrize("bad", [1, b"x", 1.5])
async def test_a_cursor_that_is_no_text_is_no_cursor(bad: Any) -> None:
    async with open_agent_state("memory:") as state:
        conversation = Conversation(state, ConversationKey(None, "a", None, "t"))
        with pytest.raises(CursorError):
            await conversation.history(cursor=bad)
