"""Search: what is stored is found, by its text and by nobody else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from vitehub_chat.errors import StateError
from vitehub_chat.model.hits import SearchHit
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.contract_search import SearchIndex, SearchRequest
from vitehub_chat.state.row_requests import AgeLimit, PruneRequest, TruncateRequest
from vitehub_chat.state.values import SessionRequest
from vitehub_chat.testing.checks.expecting import equal, holds, no, present
from vitehub_chat.testing.checks.material import (
    AGENT,
    FOR_AN_HOUR,
    MANUAL,
    new_key,
    new_tenant,
    row,
)
from vitehub_chat.testing.checks.registry import CheckGroup, OpenState
from vitehub_chat.testing.clock import FakeClock

group: Final = CheckGroup("search")
_needs: Final = group.needs("search")

_FOUND: Final = (
    ("We met in Paris", "PARIS"),
    ("We met in Paris", "ari"),
    ("We met in Paris", "in paris met"),
    ("Straße am Fluß", "STRASSE"),
    ("\uff21pp\uff4ce", "apple"),
    ("今天天气很好。我们去公园。", "天气"),
    ("今天天气很好。我们去公园。", "园"),
    ("今天天气很好。我们去公园。", "公园 今天"),
    ("東京タワーに行きました", "タワ"),
    ("東京タワーに行きました", "行き"),
    ("สวัสดีครับผมชื่อสมชาย", "ชื่อ"),
    ("สวัสดีครับผมชื่อสมชาย", "สม"),
    ("안녕하세요 반갑습니다", "반갑"),
    ("see a/b and foo-bar", "a/b"),
    ("see a/b and foo-bar", "foo-bar"),
    ("100% of a_b", "100%"),
    ("100% of a_b", "a_b"),
    ("say 'x'; -- \"y\"", "'x'; \"y\""),
    ("what fun 🎉 it was", "🎉"),
    ("first line\nsecond line", "line second"),
    ("with \x00 inside", "inside"),
)
"""Texts, and queries that find them."""

_NOT_FOUND: Final = (
    ("We met in Paris", "paris rome"),
    ("We met in Paris", "%"),
    ("We met in Paris", "_"),
    ("We met in Paris", "p*"),
    ("We met in Paris", '"we met"'),
    ("We met in Paris", "NOT rome"),
    ("각", "가"),
    ("今天天气很好", "天天很"),
    ("We met in Paris", ""),
    ("We met in Paris", " \t\n"),
    ("We met in Paris", "\x00"),
)
"""Texts, and queries that do not."""

_ODD: Final = (
    "*",
    ":",
    "(",
    ")",
    "^",
    "\\",
    "AND",
    "OR",
    "NEAR(",
    "a*b:c",
    "''",
    "\ud800",
    "x" * 9000,
)
"""Queries that another search takes for something else than words."""


@_needs
async def check_a_word_is_found_in_any_script(open_state: OpenState, clock: FakeClock) -> None:
    """Find every message that has all words of a query, wherever in it and in any case."""
    async with open_state(clock) as state:
        for text, query in _FOUND:
            key = new_key()
            await _store(state, key, m1=text, m2="something else altogether")
            equal(await _ids(state, key, query), ["m1"], f"what {query!r} finds")


@_needs
async def check_no_character_of_a_query_is_syntax(open_state: OpenState, clock: FakeClock) -> None:
    """Take every character of a query as itself, raise for none, and find nothing for a blank."""
    async with open_state(clock) as state:
        for text, query in _NOT_FOUND:
            key = new_key()
            await _store(state, key, m1=text)
            equal(await _ids(state, key, query), [], f"what {query!r} finds")
        key = new_key()
        await _store(state, key, m1="plain text")
        for query in _ODD:
            equal(await _ids(state, key, query), [], f"what {query!r} finds")


@_needs
async def check_search_is_kept_to_its_tenant_agent_and_owner(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Return messages of exactly one tenant, of one agent and of one owner if they are named."""
    tenant = new_tenant()
    async with open_state(clock) as state:
        word = f"zebra{tenant[-9:]}"
        for number, (each, agent, user) in enumerate(
            [
                (tenant, AGENT, "ann"),
                (tenant, AGENT, "bob"),
                (tenant, "other", "ann"),
                (f"{tenant}%", AGENT, "ann"),
            ]
        ):
            key = ConversationKey(each, agent, "portal", new_id())
            session = SessionRequest(conversation=key, user_key=user)
            await state.transcripts.append(session, rows=[row(f"m{number}", word)])
        wanted: tuple[tuple[str | None, str | None, list[str]], ...] = (
            (AGENT, "ann", ["m0"]),
            (AGENT, "bob", ["m1"]),
            (AGENT, "an", []),
            (AGENT, "%", []),
            (AGENT, None, ["m0", "m1"]),
            ("other", None, ["m2"]),
            (None, "ann", ["m0", "m2"]),
            ("othe", None, []),
        )
        for asked_agent, asked_user, expected in wanted:
            request = SearchRequest(query=word)
            page = await _index(state).search(
                tenant, agent=asked_agent, user_key=asked_user, request=request
            )
            found = sorted(hit.message_id for hit in page.items)
            equal(found, expected, f"the hits of {asked_agent!r} and {asked_user!r}")


@_needs
async def check_search_narrows_by_place_role_and_time(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Narrow a search to a conversation, a session, a role and times; all together."""
    key = new_key()
    other = ConversationKey(key.tenant, key.agent, key.channel, new_id())
    begin = clock.now()
    async with open_state(clock) as state:
        for number, role in enumerate(["user", "assistant", "system"]):
            said = begin + timedelta(hours=number)
            request = SessionRequest(conversation=key, base=f"s{number % 2}", policy=MANUAL)
            rows = [row(f"m{number}", "tea", role=role, created_at=said)]
            await state.transcripts.append(request, rows=rows)
        await _store(state, other, o1="tea")
        hour = timedelta(hours=1)
        age = AgeLimit(since=begin + 2 * hour, spares_system=True)
        for narrowed, expected in (
            ({"conversation": other}, ["o1"]),
            ({"conversation": key}, ["m0", "m1", "m2"]),
            ({"session_id": "s1"}, ["m1"]),
            ({"session_id": "s"}, []),
            ({"role": "assistant"}, ["m1"]),
            ({"role": "a%"}, []),
            ({"conversation": key, "after": begin + hour}, ["m1", "m2"]),
            ({"conversation": key, "before": begin + hour}, ["m0"]),
            ({"session_id": "s0", "before": begin + hour}, ["m0"]),
            ({"conversation": key, "not_older_than": age}, ["m2"]),
            ({"conversation": other, "not_older_than": AgeLimit(since=begin)}, ["o1"]),
            ({"conversation": other, "not_older_than": AgeLimit(since=begin + hour)}, []),
            ({"conversation": ConversationKey(key.tenant, key.agent, None, "no")}, []),
        ):
            found = sorted(await _ids(state, key, "tea", **narrowed))
            equal(found, expected, f"the hits with {sorted(narrowed)}")


@_needs
async def check_the_newest_hits_come_first(open_state: OpenState, clock: FakeClock) -> None:
    """Return so many hits as are asked for: of the sessions used last, the newest messages."""
    key = new_key()
    older = ConversationKey(key.tenant, key.agent, key.channel, new_id())
    async with open_state(clock) as state:
        for number in range(4):
            clock.advance(seconds=1)
            for each, name in ((older, "o"), (key, "k")):
                await _store(state, each, **{f"{name}{number}": "tea", f"{name}x{number}": "milk"})
        expected = ["k3", "k2", "k1", "k0", "o3", "o2", "o1", "o0"]
        for limit in (1, 3, 4, 6, 8, 50):
            found = await _ids(state, key, "tea", limit=limit)
            equal(found, expected[:limit], f"{limit} hits")


@_needs
async def check_a_hit_says_where_it_is(open_state: OpenState, clock: FakeClock) -> None:
    """Tell of a hit where it is and who said it when, with the text around it, marked."""
    key = new_key()
    async with open_state(clock) as state:
        session = SessionRequest(
            conversation=key, base="s1", policy=MANUAL, user_key="ann", chat_id="chat 1"
        )
        rows = [row("m1", "hello"), row("m2", f"{'so ' * 200}Green tea, green!{' and' * 200}")]
        await state.transcripts.append(session, rows=rows)
        await state.sessions.rename(key, session_id="s1", title="Drinks")
        hit = (await _hits(state, key, "GREEN tea"))[0]
        equal((hit.id, hit.conversation, hit.session_id), ("chat 1", key, "s1"), "the place")
        equal((hit.title, hit.message_id, hit.seq), ("Drinks", "m2", 2), "the message")
        equal((hit.role, hit.created_at, hit.score), ("user", clock.now(), 3), "the facts")
        holds("**Green** **tea**, **green**!" in hit.snippet, "the snippet has no marks")
        holds(len(hit.snippet) <= 300, "the snippet is too long")
        holds(hit.snippet.startswith("…") and hit.snippet.endswith("…"), "the snippet has no ends")


@_needs
async def check_search_follows_every_change(open_state: OpenState, clock: FakeClock) -> None:
    """Find what a message says now, and nothing of what was replaced, deleted or cut off."""
    key = new_key()
    async with open_state(clock) as state:
        await _store(state, key, m1="tea one", m2="tea two", m3="tea three", m4="tea four")
        await state.transcripts.replace(key, row=row("m1", "milk one"))
        equal(await _ids(state, key, "tea"), ["m4", "m3", "m2"], "the hits after a replacement")
        equal(await _ids(state, key, "milk"), ["m1"], "the hits of the new text")
        await _store(state, key, m2="milk two")
        equal(await _ids(state, key, "tea"), ["m4", "m3"], "the hits after it came again")
        await state.transcripts.delete(key, message_id="m3")
        equal(await _ids(state, key, "tea"), ["m4"], "the hits after a deletion")
        await state.transcripts.truncate(key, request=TruncateRequest(message_id="m4"))
        equal(await _ids(state, key, "tea"), [], "the hits after a truncation")
        hides = PruneRequest(choose=lambda rows: [each.seq for each in rows][:1], hides=True)
        await state.transcripts.prune(key, request=hides)
        equal(await _ids(state, key, "milk"), ["m2"], "the hits after pruning")
        await state.sessions.clear(key)
        equal(await _ids(state, key, "milk"), [], "the hits after clearing")


@_needs
async def check_an_erased_person_is_not_found(open_state: OpenState, clock: FakeClock) -> None:
    """Find nothing of a session that was erased, nor of a person."""
    key = new_key()
    async with open_state(clock) as state:
        for user in ("ann", "bob"):
            each = ConversationKey(key.tenant, key.agent, key.channel, user)
            session = SessionRequest(conversation=each, user_key=user)
            await state.transcripts.append(session, rows=[row(f"by {user}", "tea")])
        await state.admin.erase_person(key.tenant, "ann")
        equal(await _ids(state, key, "tea"), ["by bob"], "the hits after the erasure")
        each = ConversationKey(key.tenant, key.agent, key.channel, "bob")
        await state.sessions.clear(each, delete_session=True)
        equal(await _ids(state, key, "tea"), [], "the hits without sessions")


@group.needs("search", "options", "one_store")
async def check_expired_messages_are_not_found(open_state: OpenState, clock: FakeClock) -> None:
    """Find no message from the moment on at which it has expired."""
    key = new_key()
    async with open_state(clock, **FOR_AN_HOUR) as state:
        await _store(state, key, m1="tea")
        clock.advance(hours=1, microseconds=-1)
        equal(await _ids(state, key, "tea"), ["m1"], "the hits before")
        clock.advance(microseconds=1)
        equal(await _ids(state, key, "tea"), [], "the hits after")


@group.needs("search", "options", "one_store")
async def check_messages_stored_without_search_are_found(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Find also what was stored or changed while the option `search` was off."""
    key = new_key()
    async with open_state(clock) as state:
        await state.admin.migrate()
        await _store(state, key, m1="tea", m2="tea")
        async with open_state(clock, search=False) as without:
            no("search" in without.features, "the feature without the option")
            equal(without.search, None, "the search without the option")
            await _store(without, key, m3="tea")
            await without.transcripts.replace(key, row=row("m2", "milk"))
            await _store(without, key, **{f"n{number}": "water" for number in range(30)})
        for _ in range(2):
            equal(await _ids(state, key, "tea", limit=5), ["m3", "m1"], "the hits")
            equal(await _ids(state, key, "milk", limit=1), ["m2"], "the hits of the change")
        migrated = await state.admin.migrate()
        equal(migrated.texts, 0, "the texts left to keep after a search")


@_needs
async def check_hits_are_complete_in_a_long_conversation(
    open_state: OpenState, clock: FakeClock
) -> None:
    """Find the oldest message of a long conversation as well as those around it."""
    key = new_key()
    async with open_state(clock) as state:
        texts = {f"m{number}": "milk and sugar" for number in range(300)}
        await _store(state, key, **{**texts, "m0": "rare tea", "m150": "Tea, rare", "m299": "tea"})
        equal(await _ids(state, key, "tea"), ["m299", "m150", "m0"], "the hits")
        equal(await _ids(state, key, "rare tea", limit=1), ["m150"], "the hits of two words")
        equal(len(await _ids(state, key, "milk", limit=50)), 50, "how many hits there are")


def _index(state: AgentState) -> SearchIndex:
    return present(state.search, "the search")


async def _store(state: AgentState, key: ConversationKey, **texts: str) -> None:
    rows = [row(message_id, text) for message_id, text in texts.items()]
    await state.transcripts.append(SessionRequest(conversation=key), rows=rows)


async def _hits(
    state: AgentState, key: ConversationKey, query: str, **narrowed: Any
) -> list[SearchHit]:
    request = SearchRequest(query=query, **narrowed)
    page = await _index(state).search(key.tenant, agent=key.agent, request=request)
    if page.unreadable:
        raise StateError(f"{len(page.unreadable)} rows cannot be read")
    return list(page.items)


async def _ids(state: AgentState, key: ConversationKey, query: str, **narrowed: Any) -> list[str]:
    return [hit.message_id for hit in await _hits(state, key, query, **narrowed)]
