"""Rows that go with the end of a turn, by the rules of the agent."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from vitehub_chat import RunResult, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.steps import pruning
from vitehub_chat.state.steps.visible import decode_readable
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "keeper", None, "t")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def state(clock: FakeClock) -> AsyncIterator[AgentState]:
    async with open_agent_state("memory:", clock=clock) as opened:
        yield opened


def _repeat(call: DriverCall) -> str:
    return call.messages[-1].text


def keeper(state: AgentState | str, prune: Any, **options: Any) -> Agent:
    """Return an agent that repeats what it is told and prunes."""
    return define_agent(
        name="keeper",
        driver=_repeat,
        capabilities=[chat(transcripts={"prune": prune}, **options)],
        state=state,
    )


async def say(agent: Agent, message_id: str, **fields: Any) -> RunResult:
    """Run the turn of one message."""
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": message_id}]}
    given = {"messages": [message], "run": {"threadId": "t"}, **fields}
    return await run_agent_trigger(agent, "chat.message", given)


async def texts(state: AgentState) -> list[str]:
    """Return what is stored, whatever an agent finds too old."""
    page = await Conversation(state, KEY).history(limit=100)
    return [row.message.text for row in page.items]


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[Mapping[str, Any]]:
    """Return the records of an event."""
    return [vars(each) for each in caplog.records if each.message == event]


@pytest.mark.parametrize("url", ["memory:", "file:"])
async def test_the_end_of_a_turn_takes_what_is_over_the_count(
    url: str, tmp_path: Any, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"file:{tmp_path}/state.db" if url == "file:" else url
    async with open_agent_state(url, clock=clock) as state:
        agent = keeper(state, {"max_messages": 2})
        await say(agent, "m1")
        with caplog.at_level(logging.INFO, logger="vitehub_chat"):
            result = await say(agent, "m2")
        assert (result.status, await texts(state)) == ("complete", ["m2", "m2"])
        (record,) = told(caplog, "chat.history.pruned")
        assert (record["count"], record["age"], record["tokens"]) == (2, 0, 0)
        await agent.aclose()


async def test_a_turn_that_takes_nothing_tells_nothing(
    state: AgentState, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="vitehub_chat"):
        await say(keeper(state, True), "m1")  # noqa: FBT003 - that is the option
    assert (told(caplog, "chat.history.pruned"), await texts(state)) == ([], ["m1", "m1"])


async def test_hidden_rows_are_in_no_window(state: AgentState) -> None:
    window = {"source": "transcript", "max_messages": 9}
    agent = keeper(state, {"mode": "hide", "max_messages": 1}, trigger_history=window)
    for name in ("m1", "m2"):
        await say(agent, name)
    result = await say(agent, "m3")
    assert result.prepared is not None
    assert [message.text for message in result.prepared.messages] == ["m2", "m3"]


async def test_a_window_has_nothing_that_is_too_old_although_it_is_stored(
    state: AgentState, clock: FakeClock
) -> None:
    window = {"source": "transcript", "max_messages": 9}
    agent = keeper(state, {"max_age_hours": 1}, trigger_history=window)
    await Conversation(state, KEY).append(
        [
            {"role": "user", "parts": [{"type": "text", "text": "old"}], "createdAt": at}
            for at in [clock.now().isoformat()]
        ]
    )
    clock.advance(hours=1, seconds=1)
    assert await texts(state) == ["old"]
    result = await say(agent, "m1")
    assert result.prepared is not None
    assert [message.text for message in result.prepared.messages] == ["m1"]
    assert await texts(state) == ["m1", "m1"]


async def test_what_the_age_rule_takes_costs_what_it_takes(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def counted(tx: Any, records: Any, *rest: Any) -> Any:
        decoded.append(len(records))
        return decode_readable(tx, records, *rest)

    monkeypatch.setattr(pruning, "decode_readable", counted)
    rules = {"max_age_hours": 1, "max_messages": 0, "max_tokens": 0}
    async with open_agent_state("memory:", clock=clock) as state:
        agent = keeper(state, rules)
        conversation = Conversation(state, KEY)
        said = {"role": "user", "parts": [{"type": "text", "text": "old"}]}
        await conversation.append([said] * 30)
        clock.advance(minutes=59)
        await conversation.append([said] * 2000)
        await say(agent, "m1")
        clock.advance(minutes=2)
        await say(agent, "m2")
        left = [row.seq for row in (await conversation.history(limit=100)).items]
        await say(agent, "m3")
        plan = await agent.conversation("t").prune(dry_run=True)
    assert decoded == [0, 130, 0]
    assert (min(plan.kept), max(left)) == (31, 2034)


@pytest.mark.parametrize("mode", ["delete", "hide"])
async def test_what_came_without_a_time_is_as_old_as_its_record(
    state: AgentState, clock: FakeClock, mode: str
) -> None:
    window = {"source": "transcript", "max_messages": 9}
    agent = keeper(state, {"mode": mode, "max_age_hours": 1}, trigger_history=window)
    await say(agent, "m1")
    clock.advance(hours=1, seconds=1)
    result = await say(agent, "m2")
    assert result.prepared is not None
    assert [message.text for message in result.prepared.messages] == ["m2"]
    assert await texts(state) == ["m2", "m2"]


@pytest.mark.parametrize("estimator", ["nobody-has-it", lambda _text: -1])
async def test_rules_that_cannot_be_used_fail_no_turn(
    state: AgentState, caplog: pytest.LogCaptureFixture, estimator: object
) -> None:
    agent = keeper(state, {"estimator": estimator, "max_messages": 1})
    with caplog.at_level(logging.WARNING, logger="vitehub_chat"):
        results = [await say(agent, name) for name in ("m1", "m2")]
    assert [result.status for result in results] == ["complete", "complete"]
    assert len(told(caplog, "chat.history.prune_failed")) == 2
    assert await texts(state) == ["m1", "m1", "m2", "m2"]


async def test_a_pruning_that_breaks_off_leaves_the_answer_and_all_rows(
    state: AgentState, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = keeper(state, {"max_messages": 1})
    await say(agent, "m1")

    def breaks_off(*_given: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, logger="vitehub_chat"):
        patch.setattr(pruning, "forget_rows", breaks_off)
        assert (await say(agent, "m2")).status == "complete"
    (record,) = [each for each in caplog.records if each.message == "chat.history.prune_failed"]
    assert vars(record)["error"] == "OSError"
    assert await texts(state) == ["m1", "m2", "m2"]
    assert (await say(agent, "m3")).status == "complete"
    assert await texts(state) == ["m3"]


async def test_a_repeat_of_a_pruned_message_is_still_one(state: AgentState) -> None:
    agent = keeper(state, {"max_messages": 1})
    for name in ("m1", "m2"):
        await say(agent, name)
    assert await texts(state) == ["m2"]
    again = await say(agent, "m1")
    assert (again.status, again.prepared) == ("complete", None)
    assert await texts(state) == ["m2"]


async def test_while_nothing_is_condensed_only_age_takes_rows(state: AgentState) -> None:
    options: dict[str, Any] = {
        "trigger_history": {"source": "transcript", "max_messages": 50},
        "context": {"limit": 100_000, "summarizer": "extractive"},
    }
    agent = keeper(state, {"max_messages": 1, "max_tokens": 1}, **options)
    for name in ("m1", "m2", "m3"):
        await say(agent, name)
    assert await texts(state) == ["m1", "m1", "m2", "m2", "m3", "m3"]


async def test_what_is_condensed_may_go_and_its_summary_stays(state: AgentState) -> None:
    options: dict[str, Any] = {
        "trigger_history": {"source": "transcript", "max_messages": 50},
        "context": {"limit": 400, "batch_messages": 4, "summarizer": "extractive"},
    }
    agent = keeper(state, {"max_messages": 1, "max_tokens": 1}, **options)
    budget = None
    for name in range(30):
        result = await say(agent, f"message number {name} " + "word " * 20)
        budget = result.context_budget
        if budget is not None and budget.summary_through_seq:
            break
    assert budget is not None
    assert budget.summary_through_seq
    page = await Conversation(state, KEY).history(limit=100)
    assert next(row.seq for row in page.items) == budget.summary_through_seq + 1
    assert await Conversation(state, KEY).get_summary("rolling") is not None


async def test_a_state_that_keeps_forever_is_not_pruned_for_good(clock: FakeClock) -> None:
    transcripts = {"retention": "forever"}
    async with open_agent_state("memory:", clock=clock, transcripts=transcripts) as state:
        with pytest.raises(ConfigError, match=r"retention='forever'") as caught:
            await say(keeper(state, {"max_messages": 1}), "m1")
        assert caught.value.path == "transcripts.prune.mode"
        agent = keeper(state, {"max_messages": 1, "mode": "hide"})
        assert (await say(agent, "m1")).status == "complete"
