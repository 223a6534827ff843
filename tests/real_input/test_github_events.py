"""Real GitHub events, all kinds of them, as messages in the threads of their repositories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.real_input.reading import read_back, text_of
from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import format_time

pytestmark = pytest.mark.service

SUBJECTS = ("comment", "review", "answer", "discussion", "issue", "pull_request", "release")
WINDOW = 20


@attrs.frozen(kw_only=True)
class Event:
    """One event, as a message."""

    id: str
    kind: str
    thread: str
    text: str
    time: Any
    payload: Mapping[str, Any]

    @property
    def message(self) -> dict[str, Any]:
        """The event as a UI message; what it lacks is left as it comes."""
        sender = self.payload.get("sender") or {}
        return {
            "id": self.id,
            "role": "user",
            "parts": [
                {"type": "text", "text": self.text},
                {"type": "data-event", "data": self.payload},
            ],
            "metadata": {
                "event": self.kind,
                "action": self.payload.get("action"),
                "login": sender.get("login"),
            },
            "createdAt": self.time,
        }


def read_events(folder: Path) -> Iterator[Event]:
    """Yield the events in their order."""
    index = folder / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"
    for kind in json.loads(index.read_text(encoding="utf-8")):
        for number, payload in enumerate(kind["examples"]):
            subject: Mapping[str, Any] = next(
                (payload[name] for name in SUBJECTS if payload.get(name)), {}
            )
            words = (kind["name"], payload.get("action"))
            yield Event(
                id=f"{kind['name']}-{number}",
                kind=kind["name"],
                thread=(payload.get("repository") or {}).get("full_name", f"event {kind['name']}"),
                text=subject.get("body")
                or subject.get("title")
                or " ".join(word for word in words if word),
                time=subject.get("created_at", subject.get("submitted_at")),
                payload=payload,
            )


@pytest.fixture(scope="session")
def events(collected: Path) -> list[Event]:
    return list(read_events(collected))


def answer(call: DriverCall) -> str:
    return f"{len(call.messages)} {call.messages[-1].id} {call.text}"


async def replay(agent: Agent, events: list[Event]) -> None:
    for event in events:
        run = {"threadId": event.thread, "channelId": "github", "origin": "github"}
        given = {"messages": [event.message], "run": run}
        result = await run_agent_trigger(agent, "chat.message", given)
        assert result.status == "complete"
        assert result.text.split(" ", 2)[1:] == [event.id, event.text]


def test_there_are_329_events_of_58_kinds(events: list[Event]) -> None:
    assert len(events) == 329
    assert len({event.kind for event in events}) == 58
    assert len({event.id for event in events}) == 329


@pytest.mark.parametrize("is_mixed", [False, True])
async def test_every_event_is_answered_and_read_back_as_it_was(
    events: list[Event],
    tmp_path: Path,
    is_mixed: bool,  # noqa: FBT001
) -> None:
    """One thread after the other, or all of them at once."""
    url = f"file:{tmp_path}/state.db"
    threads: dict[str, list[Event]] = {}
    for event in events:
        threads.setdefault(event.thread, []).append(event)
    assert len(threads) > 20
    async with open_agent_state(url) as state:
        agent = define_agent(
            name="station",
            driver=answer,
            capabilities=[chat(trigger_history={"source": "transcript", "max_messages": WINDOW})],
            state=state,
        )
        if is_mixed:
            await asyncio.gather(*(replay(agent, mine) for mine in threads.values()))
        else:
            await replay(agent, events)
        await agent.aclose()

    keys = [ConversationKey(None, "station", "github", thread) for thread in threads]
    exports = await asyncio.to_thread(read_back, url, keys)
    assert sum(map(len, exports)) == 2 * 329
    for rows, mine in zip(exports, threads.values(), strict=True):
        assert [row["seq"] for row in rows] == list(range(1, 2 * len(mine) + 1))
        assert [row["status"] for row in rows] == ["complete"] * len(rows)
        for number, event in enumerate(mine):
            said, answered = rows[2 * number : 2 * number + 2]
            assert text_of(said).encode() == event.text.encode()
            assert said["message"]["parts"] == event.message["parts"]
            assert said["message"]["metadata"] == event.message["metadata"]
            time = read_time(event.time)
            assert said["message"].get("createdAt") == (time and format_time(time))
            seen = min(2 * number + 1, WINDOW)
            assert text_of(answered).encode() == f"{seen} {event.id} {event.text}".encode()
