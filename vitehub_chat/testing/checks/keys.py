"""Keys: conversations, sessions and messages are told apart exactly, whatever their names."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import product
from typing import Final

from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import PageRequest, SessionRequest, WindowRequest
from vitehub_chat.testing.checks.expecting import equal, holds, present, refused
from vitehub_chat.testing.checks.lines import new_line
from vitehub_chat.testing.checks.material import (
    AGENT,
    MANUAL,
    append,
    ids_of,
    new_key,
    new_tenant,
    stored_ids,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("keys")

NAMES: Final[Sequence[str]] = (
    "",
    "%",
    "_",
    "*",
    "?",
    "a",
    "A",
    "a ",
    " a",
    "ab",
    "a:b",
    "a/b",
    "a\\b",
    "1:a",
    "-",
    "'; --",
    '"',
    "{prefix}",
    "None",
    "0",
    "../a",
    "😀",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "x" * 512,
    "x" * 511 + "y",
    "😀" * 512,
)
"""Names that a careless store takes for a pattern, a path, a part of SQL, or for one another."""


@group
async def check_conversations_whose_parts_join_alike_stay_apart(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Tell keys apart whose parts are the same text when they are joined, or are absent."""
    tenant = new_tenant()
    parts = (None, "", "-", "a", "a:", ":a", "1:a", "aa")
    keys = [ConversationKey(tenant, AGENT, *pair) for pair in product(parts, parts)]
    async with open_state(clock) as state:
        await _check_apart(state, keys)


@group
async def check_conversations_of_any_name_stay_apart(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Compare names of conversations exactly: no pattern, no folding, no trimming."""
    tenant = new_tenant()
    async with open_state(clock) as state:
        await _check_apart(state, [ConversationKey(tenant, AGENT, None, name) for name in NAMES])


@group
async def check_messages_of_any_id_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Compare message ids exactly."""
    key = new_key()
    names = NAMES[1:]
    async with open_state(clock) as state:
        await append(state, key, *names)
        equal(await stored_ids(state, key), list(names), "the ids of the rows")
        for number, name in enumerate(names, 1):
            found = await state.transcripts.get(key, message_ids=[name])
            equal([(each.message.id, each.seq) for each in found], [(name, number)], "one row")


@group
async def check_sessions_of_any_name_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Compare session ids exactly, in what is read and in what is deleted."""
    key = new_key()
    names = NAMES[1:]
    async with open_state(clock) as state:
        for number, name in enumerate(names):
            await append(state, key, f"m{number}", base=name, policy=MANUAL)
        await state.sessions.clear(key, session_id="%")
        for number, name in enumerate(names):
            expected = [] if name == "%" else [f"m{number}"]
            equal(await stored_ids(state, key, name), expected, f"the rows of {name!r:.20}")


@group
async def check_tenants_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Show a tenant its own sessions in every list, and nothing of others."""
    base = new_tenant()
    tenants = [f"{base}{name}"[:512] for name in NAMES[:-3]]
    async with open_state(clock) as state:
        for number, tenant in enumerate(tenants):
            await append(state, ConversationKey(tenant, AGENT, None, "t1"), f"m{number}")
        for tenant in tenants:
            page = await state.sessions.list(tenant, agent=None)
            found = [each.conversation.tenant for each in page.items]
            equal(found, [tenant], f"the sessions of {tenant!r:.80}")


@group
async def check_an_absent_tenant_is_one_of_its_own(open_state: OpenState, clock: FakeClock) -> None:
    """Tell the absent tenant from every text, the empty one too."""
    agent = new_tenant()
    async with open_state(clock) as state:
        for tenant in (None, "", "-", "None"):
            await append(state, ConversationKey(tenant, agent, None, "t1"), "m1")
        for tenant in (None, "", "-", "None"):
            page = await state.sessions.list(tenant, agent=agent)
            equal([each.conversation.tenant for each in page.items], [tenant], "the sessions")


@group
async def check_owners_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Narrow a list to exactly one owner."""
    tenant = new_tenant()
    names = NAMES[1:]
    async with open_state(clock) as state:
        for number, name in enumerate(names):
            key = ConversationKey(tenant, AGENT, None, f"t{number}")
            await append(state, key, "m1", user_key=name)
        for name in names:
            page = await state.sessions.list(tenant, agent=AGENT, user_key=name)
            equal([each.user_key for each in page.items], [name], f"the owner {name!r:.20}")


@group
async def check_claims_stay_apart(open_state: OpenState, clock: FakeClock) -> None:
    """Claim an id in its conversation alone, and exactly."""
    async with open_state(clock) as state:
        line = new_line(state, "parallel")
        other = new_key()
        for number, name in enumerate(NAMES):
            lock = f"{line.lock_key} {number}"
            mine = await line.admit(f"a{number}", claim_id=name, lock_key=lock)
            holds(mine.grant is not None, f"the claim of {name!r:.20} is taken for another")
        twin = await line.admit("b", claim_id="a", conversation=other, lock_key="b")
        equal(twin.verdict, "accepted", "the verdict on the same id elsewhere")


@group
async def check_what_is_unknown_is_empty(open_state: OpenState, clock: FakeClock) -> None:
    """Answer reads of an unknown conversation with nothing, and create nothing by reading."""
    key, unknown = new_key(), WindowRequest(limit=5)
    async with open_state(clock) as state:
        equal(list(await state.transcripts.get(key, message_ids=["m1"])), [], "the rows")
        window = await state.transcripts.window(key, session=None, window=unknown)
        equal((window.shown, window.not_shown), ((), ()), "the window")
        page = await state.transcripts.page(key, request=PageRequest())
        equal((page.items, page.older_cursor, page.at_live_edge), ((), None, True), "the page")
        equal(await stored_ids(state, key), [], "the export")
        await refused(NotFoundError, state.sessions.get(key, session_id=None), "the session")
        equal(await state.summaries.get_manual(key, session_id=None), None, "the summary")
        cleared = await state.sessions.clear(key)
        equal(set(cleared.values()), {0}, "the counts of clearing")
        equal((await state.turns.outcome(new_tenant())).state, "unknown", "the outcome")
        listed = await state.sessions.list(key.tenant, agent=None)
        equal((listed.items, listed.next_cursor), ((), None), "the sessions after all that")


@group
async def check_an_unknown_session_is_empty(open_state: OpenState, clock: FakeClock) -> None:
    """Answer reads of an unknown session with nothing, beside one that exists."""
    key = new_key()
    async with open_state(clock) as state:
        await append(state, key, "m1", base="s1", policy=MANUAL)
        await state.summaries.save_manual(key, session_id="s1", text="so far")
        equal(await stored_ids(state, key, "s2"), [], "the export")
        page = await state.transcripts.page(key, request=PageRequest(session_id="s2"))
        equal(ids_of(page.items), [], "the page")
        equal(await state.summaries.get_manual(key, session_id="s2"), None, "the summary")
        await refused(NotFoundError, state.sessions.get(key, session_id="s2"), "the session")
        cleared = await state.sessions.clear(key, session_id="s2")
        equal(set(cleared.values()), {0}, "the counts of clearing")
        equal(await stored_ids(state, key), ["m1"], "what is stored")


@group
async def check_resolving_writes_nothing(open_state: OpenState, clock: FakeClock) -> None:
    """Tell which session a turn would get, and leave no trace."""
    key = new_key()
    asked = SessionRequest(conversation=key, policy=MANUAL, base="s1")
    async with open_state(clock) as state:
        first = await state.sessions.resolve(asked)
        equal((first.session_id, first.key, first.is_new), ("s1", 0, True), "the session to be")
        equal((await state.sessions.list(key.tenant, agent=None)).items, (), "the sessions")
        await append(state, key, "m1", base="s1", policy=MANUAL)
        second = await state.sessions.resolve(asked)
        equal((second.session_id, second.is_new), ("s1", False), "the session that is")
        holds(second.key > 0, "the session has no number")


async def _check_apart(state: AgentState, keys: Sequence[ConversationKey]) -> None:
    """Store one message in each conversation, read each, and delete each."""
    for number, key in enumerate(keys):
        await append(state, key, f"m{number}")
        await state.summaries.save_manual(key, session_id=None, text=f"s{number}")
    for number, key in enumerate(keys):
        await _check_own(state, key, number)
    for key in keys:
        counts = await state.sessions.clear(key, delete_session=True)
        equal((counts["rows"], counts["sessions"]), (1, 1), f"what clearing {key!r:.80} deleted")


async def _check_own(state: AgentState, key: ConversationKey, number: int) -> None:
    what, own = f"of {key!r:.80}", [f"m{number}"]
    equal(await stored_ids(state, key), own, f"the rows {what}")
    window = await state.transcripts.window(key, session=None, window=WindowRequest(limit=5))
    equal(ids_of(window.shown), own, f"the window {what}")
    page = await state.transcripts.page(key, request=PageRequest())
    equal(ids_of(page.items), own, f"the page {what}")
    equal((await state.sessions.get(key, session_id=None)).conversation, key, f"the key {what}")
    summary = await state.summaries.get_manual(key, session_id=None)
    equal(present(summary, f"the summary {what}").text, f"s{number}", f"the summary {what}")
