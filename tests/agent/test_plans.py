"""What a turn keeps of what it gave to the model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent.support import TRANSCRIPT, Recorder, agent_of, run, say, turn
from vitehub_chat import Agent
from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.plans import AnsweredBy, TurnPlan


async def newest(agent: Agent, thread: str = "t") -> TurnPlan:
    found = await agent.conversation(thread).plan()
    assert found is not None
    return found


def entries_of(plan: TurnPlan) -> list[tuple[str, bool, str]]:
    return [(entry.message_id or "", entry.kept, entry.reason) for entry in plan.entries]


async def test_each_turn_keeps_its_plan(url: str) -> None:
    async with agent_of("echo", url, trigger_history=TRANSCRIPT) as agent:
        results = [await run(agent, turn(say(f"text {n}", f"m{n}"))) for n in range(3)]
        page = await agent.conversation("t").history()
        answers = [result.message.id or "" for result in results if result.message]
        assert entries_of(await newest(agent)) == [
            ("m0", True, "window"),
            (answers[0], True, "window"),
            ("m1", True, "window"),
            (answers[1], True, "window"),
            ("m2", True, "current"),
        ]
        first = await agent.conversation("t").plan(page.items[0].turn_id)
        assert first is not None
        assert entries_of(first) == [("m0", True, "current")]
        assert first.turn_id == page.items[0].turn_id
        assert (first.status, first.answered_by) == ("complete", AnsweredBy("echo"))


async def test_a_plan_says_why_messages_were_cut(url: str) -> None:
    window = {"source": "thread", "max_messages": 2}
    async with agent_of(Recorder(), url, trigger_history=window) as agent:
        result = await run(agent, turn(*(say(f"{n}", f"m{n}") for n in range(4))))
        plan = await newest(agent)
        assert entries_of(plan) == [
            ("m2", True, "window"),
            ("m3", True, "current"),
            ("m0", False, "over_count"),
            ("m1", False, "over_count"),
        ]
        assert result.prepared is not None
        assert sorted(entries_of(plan)) == sorted(
            (entry.message_id, entry.kept, entry.reason) for entry in result.prepared.selection
        )


async def test_a_turn_that_failed_keeps_its_plan(url: str) -> None:
    async def fail(_call: Any) -> str:
        raise RuntimeError("no answer")

    async with agent_of(fail, url) as agent:
        with pytest.raises(RuntimeError):
            await run(agent, turn(say("hi", "m1")))
        plan = await newest(agent)
        assert (plan.status, plan.answered_by.driver) == ("error", "callable")
        assert entries_of(plan) == [("m1", True, "current")]


async def test_a_turn_that_asked_nobody_has_a_plan_without_a_driver(url: str) -> None:
    async with agent_of(None, url) as agent:
        with pytest.raises(Exception, match="driver"):
            await run(agent, turn(say("hi", "m1")))
        assert (await newest(agent)).answered_by == AnsweredBy()


async def test_a_plan_is_of_one_session(url: str) -> None:
    options = {"trigger_history": TRANSCRIPT, "sessions": {"strategy": "manual"}}
    async with agent_of("echo", url, **options) as agent:
        for name in ("s1", "s2"):
            await run(agent, turn(say("hi", f"m {name}"), session={"id": name}))
        for name in ("s1", "s2"):
            found = await agent.conversation("t", session_id=name).plan()
            assert found is not None
            assert (found.session_id, found.entries[-1].message_id) == (name, f"m {name}")
        assert (await newest(agent)).session_id == "s2"


async def test_a_repeat_leaves_the_plan_of_the_turn(url: str) -> None:
    async with agent_of("echo", url) as agent:
        await run(agent, turn(say("hi", "m1")))
        before = await newest(agent)
        await run(agent, turn(say("hi", "m1")))
        assert await newest(agent) == before


async def test_an_unknown_turn_is_not_found(url: str) -> None:
    async with agent_of("echo", url) as agent:
        conversation = agent.conversation("t")
        assert await conversation.plan() is None
        await run(agent, turn(say("hi", "m1")))
        with pytest.raises(NotFoundError):
            await conversation.plan("unknown")
        turn_id = (await newest(agent)).turn_id
        with pytest.raises(NotFoundError):
            await agent.conversation("other").plan(turn_id)


async def test_clearing_deletes_the_plans(url: str) -> None:
    async with agent_of("echo", url) as agent:
        await run(agent, turn(say("hi", "m1")))
        counts = await agent.conversation("t").clear()
        assert counts["plans"] == 1
        assert await agent.conversation("t").plan() is None
