"""What application code does with stored conversations."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from vitehub_chat import Conversation, ConversationKey, Conversations, open_agent_state
from vitehub_chat.errors import ConfigError, InputError, NotFoundError
from vitehub_chat.model.policies import ChatPolicy, PrunePolicy, SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.checks.material import row
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey("acme", "helper", "portal", "t")


def said(message_id: str, role: str = "user", **more: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": more.pop("text", message_id)}]
    return {"id": message_id, "role": role, "parts": parts, **more}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def state(clock: FakeClock) -> AsyncIterator[AgentState]:
    async with open_agent_state("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def conversation(state: AgentState) -> Conversation:
    return Conversation(state, KEY)


async def ids_of(conversation: Conversation, **options: Any) -> list[str | None]:
    return [row.message.id for row in (await conversation.history(**options)).items]


async def test_a_replaced_message_keeps_its_place(conversation: Conversation) -> None:
    await conversation.append([said("m1"), said("m2")], author="ann")
    changed = await conversation.replace_message("m1", said("m1", text="better"))
    assert (changed.seq, changed.author, changed.message.text) == (1, "ann", "better")
    assert await ids_of(conversation) == ["m1", "m2"]


async def test_a_message_is_replaced_under_its_own_id_alone(conversation: Conversation) -> None:
    await conversation.append([said("m1"), said("m2")])
    with pytest.raises(InputError, match=r"message\.id"):
        await conversation.replace_message("m1", said("m2"))
    with pytest.raises(NotFoundError):
        await conversation.replace_message("m3", said("m3"))
    nameless = said("m1", text="new")
    del nameless["id"]
    assert (await conversation.replace_message("m1", nameless)).message.id == "m1"


async def test_a_replaced_message_without_content_is_not_shown(conversation: Conversation) -> None:
    await conversation.append([said("m1")])
    changed = await conversation.replace_message("m1", said("m1", text=" "))
    assert not changed.is_shown


async def test_deleting_a_message_counts_its_unit(conversation: Conversation) -> None:
    call = {"type": "tool-call", "id": "x", "name": "look", "input": {}}
    result = {"type": "tool-result", "id": "x", "name": "look", "output": 1}
    await conversation.append(
        [
            said("m1"),
            {"id": "c", "role": "assistant", "parts": [call]},
            {"id": "r", "role": "tool", "parts": [result]},
        ]
    )
    assert await conversation.delete_message("r") == 2
    assert await ids_of(conversation) == ["m1"]


async def test_a_truncation_is_told_in_the_log(
    conversation: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    await conversation.append([said("m1"), said("m2")])
    with caplog.at_level(logging.INFO, logger="vitehub_chat"):
        done = await conversation.truncate("m2")
    (record,) = [each for each in caplog.records if each.message == "chat.history.truncated"]
    assert (vars(record)["deleted"], vars(record)["generation"]) == (1, done.generation)


async def test_a_truncation_key_is_kept_as_long_as_repeats_are_known(
    state: AgentState, clock: FakeClock
) -> None:
    policy = ChatPolicy(dedupe_ttl=timedelta(minutes=1))
    conversation = Conversation(state, KEY, policy=policy)
    await conversation.append([said("m1"), said("m2")])
    first = await conversation.truncate("m2", idempotency_key="k")
    clock.advance(seconds=59)
    assert await conversation.truncate("m2", idempotency_key="k") == first
    clock.advance(seconds=1)
    with pytest.raises(NotFoundError):
        await conversation.truncate("m2", idempotency_key="k")


@pytest.mark.parametrize("key", ["", "a\0b", "k" * 513])
async def test_a_truncation_key_is_an_id(conversation: Conversation, key: str) -> None:
    await conversation.append([said("m1")])
    if key:
        with pytest.raises(InputError, match="idempotency_key"):
            await conversation.truncate("m1", idempotency_key=key)
    else:
        assert (await conversation.truncate("m1", idempotency_key=key)).deleted == 1


@pytest.mark.parametrize("limit", [0, -1, True, "20", 1.5])
async def test_a_limit_of_turns_is_a_count(conversation: Conversation, limit: Any) -> None:
    with pytest.raises(InputError, match="limit"):
        await conversation.turns(limit=limit)


async def test_at_most_500_turns_come_at_once(conversation: Conversation) -> None:
    for start in range(0, 502, 251):
        await conversation.append([said(f"m{n}") for n in range(start, start + 251)])
    page = await conversation.turns(limit=1000)
    assert len(page.items) == 500
    rest = await conversation.turns(cursor=page.next_cursor)
    assert ([item.turn_no for item in rest.items], rest.next_cursor) == ([501, 502], None)


async def test_a_dry_run_tells_what_pruning_would_take_and_takes_nothing(
    conversation: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    await conversation.append([said(f"m{n}") for n in range(1, 6)])
    policy = PrunePolicy(max_messages=2)
    plan = await conversation.prune(policy, dry_run=True)
    assert plan.removed.count == (1, 2, 3)
    assert await ids_of(conversation) == ["m1", "m2", "m3", "m4", "m5"]
    with caplog.at_level(logging.INFO, logger="vitehub_chat"):
        assert await conversation.prune(policy) == plan
    assert await ids_of(conversation) == ["m4", "m5"]
    (record,) = [each for each in caplog.records if each.message == "chat.history.pruned"]
    assert vars(record)["count"] == 3
    again = await conversation.prune(policy)
    assert again.removed.all == ()


async def test_pruning_an_unknown_conversation_takes_nothing(conversation: Conversation) -> None:
    plan = await conversation.prune()
    assert (plan.kept, plan.removed.all) == ((), ())


async def test_pruning_survives_reopening_and_reads_what_is_left_as_it_was(
    tmp_path: Path, clock: FakeClock
) -> None:
    url = f"file:{tmp_path}/state.db"
    times = [(clock.now() + timedelta(seconds=n)).isoformat() for n in range(6)]
    given = [said(f"m{n}", createdAt=time) for n, time in enumerate(times)]
    async with open_agent_state(url, clock=clock) as state:
        for message in given:
            await Conversation(state, KEY).append([message])
    async with open_agent_state(url, clock=clock) as state:
        conversation = Conversation(state, KEY)
        before = (await conversation.history()).items
        await conversation.prune(PrunePolicy(max_messages=4))
        after = (await conversation.history()).items
        assert [row.message for row in after] == [row.message for row in before[2:]]


async def test_deleting_what_forever_keeps_is_refused_and_hiding_is_not(clock: FakeClock) -> None:
    transcripts = {"retention": "forever"}
    async with open_agent_state("memory:", clock=clock, transcripts=transcripts) as state:
        conversation = Conversation(state, KEY)
        await conversation.append([said("m1"), said("m2")])
        with pytest.raises(ConfigError, match=r"prune.*retention='forever'"):
            await conversation.prune(PrunePolicy(max_messages=1))
        await conversation.prune(PrunePolicy(max_messages=1, mode="hide"))
        assert await ids_of(conversation) == ["m2"]


async def test_what_the_rules_of_the_agent_find_too_old_is_not_read(
    state: AgentState, clock: FakeClock
) -> None:
    policy = ChatPolicy(prune=PrunePolicy(max_age=timedelta(hours=1)))
    conversation = Conversation(state, KEY, policy=policy)
    start = clock.now()
    await conversation.append([said("m1", createdAt=start.isoformat())])
    clock.advance(minutes=1)
    await conversation.append([said("m2")])
    clock.advance(minutes=59)
    assert await ids_of(conversation) == ["m1", "m2"]
    clock.advance(seconds=1)
    assert await ids_of(conversation) == ["m2"]
    assert [item.message_id for item in (await conversation.turns()).items] == ["m2"]
    lines = [json.loads(line) async for line in conversation.export()]
    assert [line["message"]["id"] for line in lines if line["type"] == "message"] == ["m2"]
    assert (await conversation.prune()).removed.age == (1,)


async def test_superseded_rows_come_to_who_asks_for_them(clock: FakeClock) -> None:
    transcripts = {"retention": "forever"}
    async with open_agent_state("memory:", clock=clock, transcripts=transcripts) as state:
        conversation = Conversation(state, KEY)
        await conversation.append([said("m1"), said("m2"), said("m3")])
        await conversation.truncate("m2")
        assert await ids_of(conversation) == ["m1"]
        assert await ids_of(conversation, include_superseded=True) == ["m1", "m2", "m3"]
        page = await conversation.history(include_superseded=True, limit=2)
        assert [row.message.id for row in page.items] == ["m2", "m3"]
        older = await conversation.history(include_superseded=True, cursor=page.older_cursor)
        assert [row.message.id for row in older.items] == ["m1"]


@pytest.mark.parametrize("author", [b"u", ("u",), 5, "", "a\0b"])
async def test_an_author_is_a_text(conversation: Conversation, author: Any) -> None:
    with pytest.raises(InputError, match="author"):
        await conversation.append([said("m1")], author=author)
    assert await ids_of(conversation) == []


async def own_session(state: AgentState, session_id: str, user_key: str) -> None:
    request = SessionRequest(
        conversation=KEY, policy=SessionPolicy(), base=session_id, user_key=user_key
    )
    ids = [f"{session_id} m{n}" for n in range(1, 31)]
    rows = [NewRow(message=row(each).message, author=user_key) for each in ids]
    await state.transcripts.append(request, rows=rows)


async def test_an_owner_sees_renames_and_deletes_their_own_sessions(state: AgentState) -> None:
    for name, owner in (("a", "ann"), ("b", "bob")):
        await own_session(state, name, owner)
    ann = Conversations(state, tenant="acme", agent="helper", user_key="ann")
    assert (await ann.session(KEY, "a")).user_key == "ann"
    assert (await ann.rename(KEY, "a", "Taxes")).title == "Taxes"
    for call in (
        ann.session(KEY, "b"),
        ann.session(KEY, "c"),
        ann.get(KEY, "b"),
        ann.rename(KEY, "b", "x"),
        ann.delete(KEY, "b"),
        Conversations(state, tenant="other", agent="helper").session(KEY, "a"),
        Conversations(state, tenant="acme", agent="other").session(KEY, "a"),
    ):
        with pytest.raises(NotFoundError, match="no session of that id in this conversation"):
            await call
    counts = await ann.delete(KEY, "a")
    assert (counts["rows"], counts["sessions"]) == (30, 1)
    assert set((await ann.delete(KEY, "a")).values()) == {0}
    operator = Conversations(state, tenant="acme", agent="helper")
    assert [info.session_id for info in (await operator.sessions()).items] == ["b"]


async def test_messages_are_got_around_one_and_by_range(state: AgentState) -> None:
    await own_session(state, "a", "ann")
    ann = Conversations(state, tenant="acme", agent="helper", user_key="ann")

    async def seqs(**options: Any) -> tuple[list[int], bool]:
        found = await ann.get(KEY, "a", **options)
        return [row.seq for row in found.items], found.truncated

    assert await seqs() == (list(range(11, 31)), True)
    assert await seqs(max_messages=100) == (list(range(1, 31)), False)
    assert await seqs(around="a m10", max_messages=4) == ([8, 9, 10, 11], False)
    assert await seqs(from_seq=5, to_seq=7) == ([5, 6, 7], False)
    assert await seqs(from_seq=5, max_messages=2) == ([5, 6], True)
    assert await seqs(to_seq=2) == ([1, 2], False)
    assert await seqs(from_seq=9, to_seq=3) == ([], False)
    with pytest.raises(NotFoundError):
        await seqs(around="m99")
    for wrong in (
        {"around": "a m1", "to_seq": 3},
        {"from_seq": -1},
        {"to_seq": True},
        {"max_messages": 0},
    ):
        with pytest.raises(InputError):
            await seqs(**wrong)


async def test_a_person_is_exported_and_erased_by_themselves_or_the_operator(
    state: AgentState,
) -> None:
    for name, owner in (("a", "ann"), ("b", "bob")):
        await own_session(state, name, owner)
    ann = Conversations(state, tenant="acme", agent="helper", user_key="ann")
    operator = Conversations(state, tenant="acme", agent="helper")
    lines = [json.loads(line) async for line in ann.export_person()]
    assert lines[-1] == {"type": "end", "counts": {"message": 30, "session": 1}}
    assert lines == [json.loads(line) async for line in operator.export_person("ann")]
    with pytest.raises(InputError, match="user_key"):
        await ann.erase_person("bob")
    with pytest.raises(InputError, match="user_key: is needed"):
        await operator.erase_person()
    receipt = await operator.erase_person("ann")
    assert (receipt["rows"], receipt["sessions"]) == (30, 1)
    assert set((await ann.erase_person()).values()) == {0}
    assert [info.session_id for info in (await operator.sessions()).items] == ["b"]


@pytest.mark.parametrize("user_key", [b"u", ("u",), pytest.param(10**5000, id="huge"), ""])
async def test_an_owner_is_a_text(state: AgentState, user_key: Any) -> None:
    with pytest.raises(InputError, match="user_key"):
        Conversations(state, tenant=None, agent=None, user_key=user_key)


@pytest.mark.parametrize("title", [5, "x" * 513])
async def test_a_title_is_a_short_text(state: AgentState, title: Any) -> None:
    await own_session(state, "a", "ann")
    operator = Conversations(state, tenant="acme", agent="helper")
    with pytest.raises(InputError, match="title"):
        await operator.rename(KEY, "a", title)


BAD_IDS = ["half a pair \ud800", "a\0b", "x" * 513]


@pytest.mark.parametrize("bad", BAD_IDS)
async def test_ids_that_nothing_can_have_are_refused_by_name(state: AgentState, bad: str) -> None:
    conversations = Conversations(state, tenant=None, agent=None)
    fine = ConversationKey(None, "a", None, "t")
    keys = {
        name: attrs.evolve(fine, **{name: bad}) for name in ("tenant", "agent", "channel", "thread")
    }
    calls = [
        *((name, conversations.get(key, None)) for name, key in keys.items()),
        *((name, conversations.session(key, None)) for name, key in keys.items()),
        *((name, conversations.delete(key, None)) for name, key in keys.items()),
        *((name, conversations.rename(key, None, "title")) for name, key in keys.items()),
        ("session_id", conversations.get(fine, bad)),
        ("session_id", conversations.delete(fine, bad)),
        ("around", conversations.get(fine, None, around=bad)),
    ]
    for name, call in calls:
        with pytest.raises(InputError) as caught:
            await call
        assert caught.value.path == name
