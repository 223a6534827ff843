"""One conversation whole, its index and its summaries."""

from __future__ import annotations

import asyncio
import json

from tests.cli.helpers import STATE, Invoke, document, store
from vitehub_chat import ConversationKey, define_agent


def summarise(text: str) -> None:
    """Save a summary by hand."""
    agent = define_agent(name="support", state=STATE)
    agent.runtime()

    async def save() -> None:
        async with agent:
            key = ConversationKey(None, "support", None, "cli")
            await agent.conversation(key).save_summary(text)

    asyncio.run(save())


def test_an_export_is_lines_of_json(support: str, invoke: Invoke) -> None:
    store("one", "two \x1b[2J")
    for flags in ([], ["--json"]):
        result = invoke("export", support, *flags)
        assert (result.exit_code, result.stderr) == (0, "")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [line["type"] for line in lines] == ["session", "message", "message", "end"]
        assert "\x1b" not in result.stdout
        assert lines[-1]["messages"] == 2


def test_turns_are_listed_from_the_first(support: str, invoke: Invoke) -> None:
    store(*(f"message {n}" for n in range(5)))
    page = document(invoke("turns", support, "--limit", "2", "--json"))
    assert [item["preview"] for item in page["items"]] == ["message 0", "message 1"]
    rest = document(invoke("turns", support, "--cursor", page["next_cursor"], "--json"))
    assert [item["turn_no"] for item in rest["items"]] == [3, 4, 5]
    whole = document(invoke("turns", support, "--all", "--json"))
    assert (len(whole["items"]), "next_cursor" in whole) == (5, False)
    told = invoke("turns", support, "--limit", "2")
    assert "message 1" in told.stdout
    assert "--cursor " in told.stderr


def test_summaries_are_null_where_there_is_none(support: str, invoke: Invoke) -> None:
    store("one")
    assert document(invoke("summary", support, "--json")) == {"manual": None, "rolling": None}
    assert invoke("summary", support).stdout == "manual: none\nrolling: none\n"
    summarise("They met.\x1b[2J")
    found = document(invoke("summary", support, "--json"))
    assert (found["manual"]["text"], found["rolling"]) == ("They met.\x1b[2J", None)
    told = invoke("summary", support).stdout
    assert "    They met.\\x1b[2J\n" in told


def roll(session_id: str, text: str, anchor: int) -> None:
    """Condense the messages of a session."""
    agent = define_agent(name="support", state=STATE)
    agent.runtime()

    async def commit() -> None:
        async with agent:
            key = ConversationKey(None, "support", None, "cli")
            summaries = (await agent.open_state()).summaries
            since = await summaries.get_rolling(key, session_id=session_id)
            assert since is not None
            await summaries.commit_roll(
                key, session_id=session_id, since=since, summary=text, anchor=anchor, model="small"
            )

    asyncio.run(commit())


def test_a_rolled_summary_tells_its_session_its_range_and_its_model(
    support: str, invoke: Invoke
) -> None:
    store("one", session_id="old")
    store("two", "three", session_id="new")
    roll("new", "They count.", 3)
    found = document(invoke("summary", support, "--json"))["rolling"]
    assert (found["text"], found["through_seq"], found["model"]) == ("They count.", 2, "small")
    shown = invoke("summary", support).stdout
    assert ", through #2, by small:\n    They count.\n" in shown
    assert document(invoke("summary", support, "--session", "old", "--json"))["rolling"] is None
    lines = [json.loads(line) for line in invoke("export", support).stdout.splitlines()]
    (summary,) = [line for line in lines if line["type"] == "summary"]
    assert (summary["session_id"], summary["model"]) == ("new", "small")
