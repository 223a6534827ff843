"""Duplicates, retries and redelivery."""

from __future__ import annotations

import asyncio

import pytest

from tests.bugs.support import agent_on, hear, processes, rows_of, say, tell, texts_of
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import ChatBusyError
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.clock import FakeClock

ROUNDS = 200
CLAIM = """
import asyncio, sys
from datetime import timedelta
from vitehub_chat import open_agent_state
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.values import NewEntry

async def main(url, name):
    async with open_agent_state(url) as state:
        print("ready", flush=True)
        for line in iter(sys.stdin.readline, ""):
            event = line.strip()
            entry = NewEntry(
                ticket_id=f"{name} {event}",
                lock_key=f"lock of {event}",
                conversation=ConversationKey(None, "helper", None, "t"),
                wanted_id=None,
                claim_id=event,
                payload="{}",
                owner=name,
            )
            admission = await state.turns.admit(
                entry,
                policy=ConcurrencyPolicy(),
                lease=timedelta(seconds=30),
                dedupe_ttl=timedelta(minutes=10),
            )
            print(admission.verdict, admission.ticket_id, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def test_L315_of_two_processes_that_claim_one_event_exactly_one_wins(shared_url: str) -> None:
    with processes(CLAIM, [shared_url, "a"], [shared_url, "b"]) as both:
        assert [hear(each) for each in both] == ["ready", "ready"]
        for number in range(ROUNDS):
            for each in both:
                tell(each, f"e{number}")
            answers = sorted(hear(each).split(" ", 1) for each in both)
            assert [verdict for verdict, _ in answers] == ["accepted", "repeat"]
            assert answers[0][1] == answers[1][1]


@pytest.mark.parametrize("strategy", ["drop", "reject"])
async def test_L317_a_message_refused_while_the_thread_was_busy_runs_when_it_comes_again(
    state: SteppedAgentState, strategy: str
) -> None:
    has_begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(call: DriverCall) -> str:
        has_begun.set()
        await go_on.wait()
        return f"re {call.text}"

    agent = agent_on(state, answer, concurrency=strategy)
    first = asyncio.create_task(say(agent, "A"))
    await has_begun.wait()
    if strategy == "drop":
        assert (await say(agent, "M")).status == "dropped"
    else:
        with pytest.raises(ChatBusyError):
            await say(agent, "M")
    go_on.set()
    await first
    assert (await say(agent, "M")).text == "re M"
    assert await texts_of(agent) == ["A", "re A", "M", "re M"]


async def test_L136_a_late_retry_is_handled_once_and_a_first_delivery_marked_as_retry_is_handled(
    state: SteppedAgentState, clock: FakeClock
) -> None:
    calls: list[str] = []

    def answer(call: DriverCall) -> str:
        calls.append(call.text)
        return "fine"

    agent = agent_on(state, answer)
    assert (await say(agent, "A")).prepared is not None
    clock.advance(minutes=5, seconds=5)
    again = await say(agent, "A")
    assert (again.status, again.text, again.prepared) == ("complete", "fine", None)
    first = await say(agent, "B", metadata={"retryNum": 3, "isRetry": True})
    assert first.prepared is not None
    assert calls == ["A", "B"]
    assert len(await rows_of(agent)) == 4
