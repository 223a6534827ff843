"""Summaries: what people wrote down beside the history."""

from __future__ import annotations

from typing import Final

from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.checks.contents import TEXTS
from vitehub_chat.testing.checks.expecting import equal, holds, present, refused
from vitehub_chat.testing.checks.material import MANUAL, append, new_key, stored_ids
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("summaries")


@group
async def check_the_last_summary_counts(open_state: OpenState, clock: FakeClock) -> None:
    """Return the summary that was saved last, with its time."""
    key = new_key()
    async with open_state(clock) as state:
        equal(await state.summaries.get_manual(key, session_id=None), None, "no summary")
        for text in ("first", "last"):
            clock.advance(seconds=1)
            saved = await state.summaries.save_manual(key, session_id=None, text=text)
            equal((saved.text, saved.created_at), (text, clock.now()), "what was saved")
        equal(await state.summaries.get_manual(key, session_id=None), saved, "the summary")


@group
async def check_summaries_of_sessions_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Keep the summary of the conversation and those of its sessions apart."""
    key = new_key()
    names = (None, "s1", "s2")
    async with open_state(clock) as state:
        for base in ("s1", "s2"):
            await append(state, key, f"m {base}", base=base, policy=MANUAL)
        for name in names:
            await state.summaries.save_manual(key, session_id=name, text=f"of {name}")
        found = [await _text(state, key, name) for name in names]
        equal(found, [f"of {name}" for name in names], "the summaries")


@group
async def check_an_unknown_session_gets_no_summary(open_state: OpenState, clock: FakeClock) -> None:
    """Refuse the summary of a session that does not exist."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1")
        call = state.summaries.save_manual(key, session_id="s1", text="so far")
        await refused(NotFoundError, call, "a summary of an unknown session")
        equal(await state.summaries.get_manual(key, session_id="s1"), None, "the summary")


@group
async def check_a_summary_comes_back_exactly(open_state: OpenState, clock: FakeClock) -> None:
    """Return every character of a summary; half of a surrogate pair is U+FFFD."""
    key = new_key()
    async with open_state(clock) as state:
        for text in TEXTS:
            await state.summaries.save_manual(key, session_id=None, text=text)
            equal(await _text(state, key, None), text, "the text")
        await state.summaries.save_manual(key, session_id=None, text="a\ud800b")
        equal(await _text(state, key, None), "a\ufffdb", "the text with half of a pair")
        large = "0123456789abcde😀" * 65536
        await state.summaries.save_manual(key, session_id=None, text=large)
        holds(await _text(state, key, None) == large, "a text of 1 MB is another one")


@group
async def check_a_summary_is_no_message(open_state: OpenState, clock: FakeClock) -> None:
    """Keep summaries out of the rows and out of the lists of sessions."""
    key = new_key()
    async with open_state(clock) as state:
        await state.summaries.save_manual(key, session_id=None, text="so far")
        equal(await stored_ids(state, key), [], "the rows")
        equal((await state.sessions.list(key.tenant, agent=None)).items, (), "the sessions")


async def _text(state: AgentState, key: ConversationKey, session_id: str | None) -> str:
    found = await state.summaries.get_manual(key, session_id=session_id)
    return present(found, "the summary").text
