"""Sessions of stored conversations: where they start, how they are called, what they show."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.agent.support import THREAD, TRANSCRIPT, Recorder, agent_of, run, say, turn
from vitehub_chat import Agent, RunResult, open_agent_state, prepare_agent_trigger
from vitehub_chat.model.rows import SessionInfo
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

MINUTE = 60_000
IDLE = {"strategy": "idle-timeout", "idle_timeout_ms": MINUTE}
HYBRID = {"strategy": "hybrid", "idle_timeout_ms": MINUTE}
MANUAL = {"strategy": "manual"}
NEW = {"action": "new"}
START = FakeClock().now()


def at(seconds: float) -> str:
    """Return the time so many seconds after the clock of the tests starts."""
    return (START + timedelta(seconds=seconds)).isoformat()


def talker(state: Any, sessions: Any, window: Any = TRANSCRIPT, **options: Any) -> Agent:
    return agent_of(Recorder(), state, sessions=sessions, trigger_history=window, **options)


async def tell(agent: Agent, message_id: str, **fields: Any) -> RunResult:
    """Say one message whose text is its id; `at` is its time."""
    facts = {"createdAt": fields.pop("at")} if "at" in fields else {}
    return await run(agent, turn(say(message_id, message_id, **facts), **fields))


def seen(result: RunResult) -> list[str]:
    """Return what the model saw of people's messages; their texts are their ids."""
    assert result.prepared is not None
    return [message.text for message in result.prepared.messages if message.role == "user"]


async def sessions_of(agent: Agent) -> dict[str | None, SessionInfo]:
    page = await agent.conversations().sessions(limit=100)
    return {info.session_id: info for info in page.items}


async def last_activity(agent: Agent) -> datetime:
    [info] = (await sessions_of(agent)).values()
    return info.last_message_at


async def test_off_there_is_one_session_without_a_name(state: AgentState) -> None:
    agent = talker(state, sessions=False)
    first = await tell(agent, "m1", session={"id": "s"})
    second = await tell(agent, "m2", session=NEW)
    assert (first.session_id, second.session_id) == (None, None)
    assert seen(second) == ["m1", "m2"]
    assert (await sessions_of(agent))[None].message_count == 4


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID, IDLE], ids=["manual", "hybrid", "idle"])
async def test_new_starts_a_session_with_the_current_message(
    state: AgentState, sessions: Any
) -> None:
    agent = talker(state, sessions)
    await tell(agent, "m1")
    started = await tell(agent, "m2", session=NEW)
    goes_on = await tell(agent, "m3")
    assert started.session_id == goes_on.session_id == "new:m2"
    assert (seen(started), seen(goes_on)) == (["m2"], ["m2", "m3"])


async def test_manual_without_an_id_has_no_name_until_a_new(state: AgentState) -> None:
    agent = talker(state, MANUAL)
    results = [await tell(agent, f"m{number}") for number in (1, 2)]
    results.append(await tell(agent, "m3", session=NEW))
    results.append(await tell(agent, "m4"))
    assert [result.session_id for result in results] == [None, None, "new:m3", "new:m3"]
    assert seen(results[1]) == ["m1", "m2"]


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID], ids=["manual", "hybrid"])
async def test_an_unused_id_names_its_session_and_a_used_one_gets_a_suffix(
    state: AgentState, sessions: Any
) -> None:
    agent = talker(state, sessions)
    names = [
        (await tell(agent, f"m{number}", session={"action": "new", "id": "s"})).session_id
        for number in (1, 2, 3)
    ]
    assert names == ["s", "s:new:m2", "s:new:m3"]


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID], ids=["manual", "hybrid"])
async def test_the_own_id_of_the_current_message_is_the_base(
    state: AgentState, sessions: Any
) -> None:
    agent = talker(state, sessions)
    message = say("m1", "m1", metadata={"sessionId": "s"})
    assert (await run(agent, turn(message))).session_id == "s"
    assert (await tell(agent, "m2", session={"id": "s"})).session_id == "s"


async def test_an_idle_timeout_looks_at_no_own_id(state: AgentState) -> None:
    agent = talker(state, IDLE)
    message = say("m1", "m1", metadata={"sessionId": "s"})
    assert (await run(agent, turn(message))).session_id == "idle:m1"


@pytest.mark.parametrize("sessions", [IDLE, HYBRID], ids=["idle", "hybrid"])
async def test_silence_equal_to_the_timeout_is_one_session(
    state: AgentState, clock: FakeClock, sessions: Any
) -> None:
    agent = talker(state, sessions)
    await tell(agent, "m1")
    clock.advance(milliseconds=MINUTE)
    result = await tell(agent, "m2")
    assert (result.session_id, seen(result)) == ("idle:m1", ["m1", "m2"])


@pytest.mark.parametrize("sessions", [IDLE, HYBRID], ids=["idle", "hybrid"])
async def test_silence_longer_than_the_timeout_starts_a_session(
    state: AgentState, clock: FakeClock, sessions: Any
) -> None:
    agent = talker(state, sessions)
    await tell(agent, "m1")
    clock.advance(milliseconds=MINUTE, microseconds=1)
    result = await tell(agent, "m2")
    assert (result.session_id, seen(result)) == ("idle:m2", ["m2"])


async def test_silence_in_a_named_session_starts_one_of_the_same_base(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, HYBRID)
    names = []
    for number in (1, 2, 3):
        names.append((await tell(agent, f"m{number}", session={"id": "s"})).session_id)
        clock.advance(minutes=2 if number < 2 else 0)
    assert names == ["s", "s:idle:m2", "s:idle:m2"]


async def test_silence_does_not_end_a_manual_session(state: AgentState, clock: FakeClock) -> None:
    agent = talker(state, MANUAL)
    await tell(agent, "m1", session={"id": "s"})
    clock.advance(days=400)
    assert seen(await tell(agent, "m2", session={"id": "s"})) == ["m1", "m2"]


async def test_silence_is_measured_to_the_time_of_the_message(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, IDLE)
    await tell(agent, "m1", at=at(0))
    clock.advance(hours=1)
    assert (await tell(agent, "m2", at=at(59))).session_id == "idle:m1"
    assert (await tell(agent, "m3", at=at(7200))).session_id == "idle:m3"


async def test_silence_before_the_first_message_of_the_array_counts(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, IDLE, THREAD)
    await tell(agent, "m1", at=at(0))
    clock.advance(minutes=3)
    bridge = [say(f"b{n}", f"b{n}", createdAt=at(50 * n)) for n in (1, 2, 3)]
    result = await run(agent, turn(*bridge, say("m2", "m2", createdAt=at(180))))
    assert result.session_id == "idle:m1"


async def test_a_gap_in_the_array_starts_a_session_with_what_follows_it(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, IDLE, THREAD)
    await tell(agent, "m1", at=at(0))
    clock.advance(minutes=3)
    array = [say("m1", "m1", createdAt=at(0)), say("x", "x", createdAt=at(170))]
    result = await run(agent, turn(*array, say("m2", "m2", createdAt=at(180))))
    assert (result.session_id, seen(result)) == ("idle:x", ["x", "m2"])


async def test_an_id_of_a_stored_session_means_that_session(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, HYBRID)
    await tell(agent, "m1")
    await tell(agent, "m2", session={"id": "idle:m1"})
    clock.advance(minutes=2)
    await tell(agent, "m3", session={"id": "s"})
    clock.advance(minutes=2)
    assert (await tell(agent, "m4", session={"id": "s"})).session_id == "s:idle:m4"
    result = await tell(agent, "m5", session={"id": "s:idle:m4"})
    assert (result.session_id, seen(result)) == ("s:idle:m4", ["m4", "m5"])
    assert (await sessions_of(agent))["idle:m1"].message_count == 4


@pytest.mark.parametrize(
    ("place", "is_same"),
    [
        ({"thread_id": "t2"}, True),
        ({"thread_id": "t", "channel_id": "c"}, False),
        ({"thread_id": "t", "tenant_id": "x"}, False),
    ],
    ids=["thread", "channel", "tenant"],
)
async def test_a_named_session_crosses_threads_alone(
    state: AgentState, place: dict[str, str], *, is_same: bool
) -> None:
    agent = talker(state, MANUAL)
    await tell(agent, "m1", session={"id": "s"})
    given = {"messages": [say("m2", "m2")], "run": place, "session": {"id": "s"}}
    assert seen(await run(agent, given)) == (["m1", "m2"] if is_same else ["m2"])


async def test_a_named_session_never_crosses_agents(state: AgentState) -> None:
    other = talker(state, MANUAL)
    other.name = "b"
    await tell(talker(state, MANUAL), "m1", session={"id": "s"})
    assert seen(await tell(other, "m2", session={"id": "s"})) == ["m2"]


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID, IDLE], ids=["manual", "hybrid", "idle"])
async def test_a_session_without_a_base_stays_in_its_conversation(
    state: AgentState, sessions: Any
) -> None:
    agent = talker(state, sessions)
    await tell(agent, "m1")
    result = await tell(agent, "m2", thread="t2")
    assert seen(result) == ["m2"]
    assert len((await agent.conversation("t2").history()).items) == 2


async def test_rows_are_where_the_session_began_with_the_thread_they_came_through(
    state: AgentState,
) -> None:
    agent = talker(state, MANUAL)
    await tell(agent, "m1", session={"id": "s"})
    await tell(agent, "m2", thread="t2", session={"id": "s"})
    page = await agent.conversation("t").history()
    assert [(row.message.text, row.thread_id) for row in page.items] == [
        ("m1", "t"),
        ("answer 1", "t"),
        ("m2", "t2"),
        ("answer 2", "t2"),
    ]
    assert (await agent.conversation("t2").history()).items == ()
    assert list(await sessions_of(agent)) == ["s"]


async def test_without_a_thread_the_session_id_names_the_conversation(state: AgentState) -> None:
    agent = talker(state, MANUAL)
    for number in (1, 2):
        result = await tell(agent, f"m{number}", thread=None, session={"id": "s"})
    assert seen(result) == ["m1", "m2"]
    assert len((await agent.conversation("s").history()).items) == 4


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID, IDLE], ids=["manual", "hybrid", "idle"])
@pytest.mark.parametrize("base", [None, "s"])
async def test_concurrent_turns_agree(tmp_path: Path, sessions: Any, base: str | None) -> None:
    url = f"file:{tmp_path}/state.db"
    session = {} if base is None else {"session": {"id": base}}
    async with (
        talker(url, sessions, concurrency="parallel") as one,
        talker(url, sessions, concurrency="parallel") as two,
    ):
        results = await asyncio.gather(
            *(tell((one, two)[n % 2], f"m{n}", thread="t", **session) for n in range(10))
        )
        infos = await sessions_of(one)
    assert {result.session_id for result in results} == set(infos)
    assert [info.message_count for info in infos.values()] == [20]


async def test_the_activity_rises_to_the_time_of_a_message(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, HYBRID)
    await tell(agent, "m1", at=at(-10))
    assert await last_activity(agent) == START
    clock.advance(seconds=30)
    await tell(agent, "m2", at=at(20))
    assert await last_activity(agent) == clock.now()


async def test_the_activity_never_falls(state: AgentState, clock: FakeClock) -> None:
    agent = talker(state, HYBRID)
    clock.advance(seconds=30)
    await tell(agent, "m1")
    clock.advance(seconds=-20)
    await tell(agent, "m2", at=at(5))
    assert await last_activity(agent) == START + timedelta(seconds=30)


async def test_a_message_from_the_future_counts_as_now(state: AgentState, clock: FakeClock) -> None:
    agent = talker(state, HYBRID)
    await tell(agent, "m1", at=at(10**6))
    assert await last_activity(agent) == clock.now()
    clock.advance(minutes=2)
    assert (await tell(agent, "m2")).session_id == "idle:m2"


async def test_reads_and_summaries_do_not_move_the_activity(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, HYBRID)
    await tell(agent, "m1")
    before = await last_activity(agent)
    clock.advance(seconds=50)
    conversation = agent.conversation("t", session_id="idle:m1")
    await conversation.history()
    await conversation.save_summary("short")
    await prepare_agent_trigger(agent, "chat.message", turn(say("m2", "m2")))
    assert await last_activity(agent) == before


async def test_a_repeated_row_does_not_move_the_activity(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, HYBRID)
    await tell(agent, "m1")
    before = await last_activity(agent)
    clock.advance(seconds=50)
    await agent.conversation("t", session_id="idle:m1").append([say("edited", "m1")])
    assert await last_activity(agent) == before


async def test_the_array_is_cut_before_the_first_message_of_the_session(
    state: AgentState,
) -> None:
    agent = talker(state, MANUAL, THREAD)
    await tell(agent, "m3", session=NEW)
    array = [say(name, name) for name in ("m1", "m2", "m3", "m4")]
    result = await run(agent, turn(*array))
    assert (result.session_id, seen(result)) == ("new:m3", ["m3", "m4"])
    assert [entry.reason for entry in result.prepared.selection] == [  # type: ignore[union-attr]
        "before_session",
        "before_session",
        "window",
        "current",
    ]


async def test_an_array_without_the_first_message_is_cut_by_its_time(
    state: AgentState, clock: FakeClock
) -> None:
    agent = talker(state, MANUAL, THREAD)
    clock.advance(seconds=100)
    await tell(agent, "m3", at=at(90), session=NEW)
    array = [
        say("old", "old", createdAt=at(80)),
        say("undated", "undated"),
        say("same", "same", createdAt=at(90)),
        say("m4", "m4", createdAt=at(95)),
    ]
    result = await run(agent, turn(*array))
    assert seen(result) == ["undated", "same", "m4"]


async def test_a_manual_session_without_new_is_the_partition_alone(state: AgentState) -> None:
    agent = talker(state, MANUAL, THREAD)
    named = {"metadata": {"sessionId": "s"}}
    await run(agent, turn(say("m3", "m3", **named)))
    array = [say("m1", "m1", **named), say("m2", "m2"), say("m3", "m3", **named)]
    result = await run(agent, turn(*array, say("m4", "m4", **named)))
    assert (result.session_id, seen(result)) == ("s", ["m1", "m3", "m4"])


async def test_the_transcript_of_a_session_has_its_own_rows_alone(state: AgentState) -> None:
    agent = talker(state, MANUAL)
    for number, session in enumerate(["a", "b", None, "a", "b", None], start=1):
        fields = {} if session is None else {"session": {"id": session}}
        result = await tell(agent, f"m{number}", **fields)
        expected = {"a": ["m1", "m4"], "b": ["m2", "m5"], None: ["m3", "m6"]}[session]
        assert seen(result) == expected[: 1 + number // 4]


async def test_off_the_transcript_is_every_row_of_the_conversation(state: AgentState) -> None:
    for number, session in enumerate(["a", "b"], start=1):
        await tell(talker(state, MANUAL), f"m{number}", session={"id": session})
    agent = talker(state, sessions=False)
    given = turn(say("m3", "m3"))
    prepared = await prepare_agent_trigger(agent, "chat.message", given)
    result = await run(agent, given)
    assert seen(result) == ["m1", "m2", "m3"]
    assert result.prepared is not None
    assert [message.text for message in prepared.messages] == [
        message.text for message in result.prepared.messages
    ]


@pytest.mark.parametrize("sessions", [MANUAL, HYBRID, IDLE, False])
@pytest.mark.parametrize("window", [TRANSCRIPT, THREAD], ids=["transcript", "thread"])
@pytest.mark.parametrize("session", [None, NEW, {"id": "s"}, {"action": "new", "id": "s"}])
async def test_preparing_tells_the_session_that_the_turn_gets(
    state: AgentState, clock: FakeClock, sessions: Any, window: Any, session: Any
) -> None:
    agent = talker(state, sessions, window)
    fields = {} if session is None else {"session": session}
    for number in range(1, 4):
        given = turn(say("text", f"m{number}"), **fields)
        prepared = await prepare_agent_trigger(agent, "chat.message", given)
        result = await run(agent, given)
        assert result.prepared is not None
        assert (prepared.session_id, prepared.context) == (
            result.session_id,
            result.prepared.context,
        )
        assert [m.text for m in prepared.messages] == [m.text for m in result.prepared.messages]
        clock.advance(minutes=number)


async def test_a_session_lives_on_after_a_restart(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/state.db"
    for number in (1, 2):
        async with talker(url, HYBRID) as agent:
            result = await tell(agent, f"m{number}")
    assert (result.session_id, seen(result)) == ("idle:m1", ["m1", "m2"])


async def test_a_session_has_owner_and_name_of_the_call_that_started_it(
    state: AgentState,
) -> None:
    agent = talker(state, MANUAL)
    await tell(agent, "m1", session={"id": "s"}, user_key="ann", chat_id="c1")
    await tell(agent, "m2", session={"id": "s"}, user_key="bob", chat_id="c2")
    info = (await sessions_of(agent))["s"]
    assert (info.user_key, info.id, info.started_at) == ("ann", "c1", START)
    page = await agent.conversations(user_key="ann").sessions()
    assert [each.session_id for each in page.items] == ["s"]
    assert (await agent.conversations(user_key="bob").sessions()).items == ()


async def test_a_cleared_session_goes_on_empty(state: AgentState) -> None:
    agent = talker(state, MANUAL)
    await tell(agent, "m1", session={"id": "s"})
    await agent.conversation("t", session_id="s").clear()
    result = await tell(agent, "m2", session={"id": "s"})
    assert (result.session_id, seen(result)) == ("s", ["m2"])


async def test_two_states_of_one_name_share_sessions() -> None:
    async with (
        open_agent_state("memory:of-two-objects") as one,
        open_agent_state("memory:of-two-objects") as two,
    ):
        await tell(talker(one, MANUAL), "m1", session={"id": "s"})
        assert seen(await tell(talker(two, MANUAL), "m2", session={"id": "s"})) == ["m1", "m2"]
