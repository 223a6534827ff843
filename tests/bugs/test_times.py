"""Order, time zones and clocks."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.bugs.support import agent_on, run_script, say, texts_of
from vitehub_chat import open_agent_state
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.testing.clock import FakeClock

WRITE_AND_READ = """
import asyncio, json, sys, time
from vitehub_chat import chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.testing.clock import FakeClock

async def main(url):
    begun = SystemClock().now()
    clock = FakeClock(begun)
    async with open_agent_state(url, clock=clock) as state:
        sessions = {"strategy": "idle-timeout", "idle_timeout_ms": 1_800_000}
        agent = define_agent(
            name="helper", driver="echo", capabilities=[chat(sessions=sessions)], state=state
        )
        ids = []
        for text, later in (("A", 0), ("B", 1800), ("C", 1801)):
            message = {"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}
            message["createdAt"] = clock.advance(seconds=later).replace(tzinfo=None).isoformat()
            given = {"messages": [message], "run": {"threadId": "t"}}
            result = await run_agent_trigger(agent, "chat.message", given)
            ids.append(result.session_id)
        await agent.conversation("t").append([{"role": "user", "parts": []}])
        summary = await agent.conversation("t").save_summary("short")
        rows = (await agent.conversation("t").history(limit=100)).items
        infos = (await agent.conversations().sessions()).items
        print(json.dumps({
            "begun": begun.timestamp(),
            "zone": time.tzname[0],
            "sessions": ids,
            "created": [r.message.created_at and r.message.created_at.timestamp() for r in rows],
            "recorded": [row.recorded_at.timestamp() for row in rows],
            "activity": [[i.started_at.timestamp(), i.last_message_at.timestamp()] for i in infos],
            "summary": summary.created_at.timestamp(),
        }))

asyncio.run(main(sys.argv[1]))
"""


def test_L114_written_times_are_read_the_same_west_of_greenwich(any_url: str) -> None:
    check_times(any_url, "America/New_York", "EST")


def test_L209_every_path_has_the_same_time_base_east_of_greenwich(any_url: str) -> None:
    check_times(any_url, "Asia/Tokyo", "JST")


def check_times(url: str, zone: str, name: str) -> None:
    told = json.loads(run_script(WRITE_AND_READ, url, TZ=zone))
    assert told["zone"] == name
    a, b, c = (told["begun"] + later for later in (0, 1800, 3601))
    assert told["created"][:6] == pytest.approx([a, a, b, b, c, c])
    assert told["recorded"] == pytest.approx([a, a, b, b, c, c, c])
    assert told["activity"] == [pytest.approx([c, c]), pytest.approx([a, b])]
    assert told["summary"] == pytest.approx(c)
    first, second, third = told["sessions"]
    assert (first == second, first == third) == (True, False)


async def test_L211_a_provider_clock_ahead_and_in_another_zone_rejects_nothing(
    any_url: str,
) -> None:
    ahead = FakeClock(SystemClock().now() + timedelta(seconds=15))
    async with open_agent_state(any_url, clock=ahead) as state:
        agent = agent_on(state)
        for number in range(25):
            time = (SystemClock().now() + timedelta(hours=9)).replace(tzinfo=None).isoformat()
            await say(agent, f"m{number}", createdAt=f"{time}+09:00")
        assert await texts_of(agent) == [
            text for number in range(25) for text in (f"m{number}", f"re m{number}")
        ]
