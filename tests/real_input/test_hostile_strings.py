"""Hostile strings everywhere: nothing is lost, mixed up, or raised as something unexpected."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.real_input.hostile import OWN, cleaned, everything, is_id, is_visible
from tests.real_input.reading import read_back, text_of
from vitehub_chat import Agent, chat, define_agent, open_agent_state, run_agent_trigger
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.errors import InputError
from vitehub_chat.model.keys import ConversationKey

STORES = pytest.mark.parametrize("kind", ["memory", "file"])


@pytest.fixture(scope="session")
def strings(collected: Path) -> list[str]:
    path = collected / "big-list-of-naughty-strings" / "blns.json"
    return everything(json.loads(path.read_text(encoding="utf-8")))


def answer(call: DriverCall) -> str:
    return f"re {call.text}"


def agent_on(state: Any, **options: Any) -> Agent:
    return define_agent(name="station", driver=answer, capabilities=[chat(options)], state=state)


async def say(agent: Agent, message: dict[str, Any], **given: Any) -> str:
    whole = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}], **message}
    result = await run_agent_trigger(agent, "chat.message", {"messages": [whole], **given})
    assert result.status == "complete"
    return result.text


def test_the_list_of_others_has_461_strings(collected: Path) -> None:
    path = collected / "big-list-of-naughty-strings" / "blns.json"
    assert len(json.loads(path.read_text(encoding="utf-8"))) == 461


test_the_list_of_others_has_461_strings = pytest.mark.service(
    test_the_list_of_others_has_461_strings
)


@pytest.mark.service
async def test_texts_and_metadata_come_back_as_they_were(
    strings: list[str], tmp_path: Path
) -> None:
    url, sent = f"file:{tmp_path}/state.db", []
    async with open_agent_state(url) as state:
        agent = agent_on(state)
        for number, text in enumerate(strings):
            message = {
                "id": f"m{number}",
                "parts": [{"type": "text", "text": text}],
                "metadata": {text: text, "list": [text, {text: [text]}]},
            }
            call = say(agent, message, run={"threadId": "t"})
            if is_visible(text):
                assert await call == cleaned(f"re {text}")
                sent.append(text)
            else:
                with pytest.raises(InputError) as caught:
                    await call
                assert caught.value.code == "empty_message"
        await agent.aclose()
    (rows,) = await asyncio.to_thread(read_back, url, [ConversationKey(None, "station", None, "t")])
    assert [row["seq"] for row in rows] == list(range(1, 2 * len(sent) + 1))
    assert [text_of(row) for row in rows[::2]] == [cleaned(text) for text in sent]
    assert [text_of(row) for row in rows[1::2]] == [cleaned(f"re {text}") for text in sent]
    for row, text in zip(rows[::2], map(cleaned, sent), strict=True):
        assert row["message"]["metadata"] == {text: text, "list": [text, {text: [text]}]}


@pytest.mark.service
@STORES
async def test_every_id_means_itself_alone(strings: list[str], tmp_path: Path, kind: str) -> None:
    """Tenant, channel, thread, session and message all have one id; every id has its own row."""
    url = f"file:{tmp_path}/state.db" if kind == "file" else "memory:"
    ids = [text for text in strings if is_id(text)]
    if kind == "memory":
        ids = [text for text in ids if text in OWN]
    async with open_agent_state(url) as state:
        agent = agent_on(state, sessions=True)
        for text in ids:
            run = {"tenantId": text, "channelId": text, "threadId": text, "runId": text}
            await say(agent, {"id": text}, run=run, session={"id": text}, userKey=text)
            await say(agent, {"id": f"2{text}"[:512]}, run={"threadId": text})
        for text in ids:
            key = ConversationKey(text, "station", text, text)
            rows = (await agent.conversation(key).history()).items
            assert [row.message.id for row in rows[::2]] == [text]
            assert [row.session_id for row in rows] == [text, text]
            assert [row.seq for row in rows] == [1, 2]
            narrowed = agent.conversation(key, session_id=text)
            assert len((await narrowed.history(around=text)).items) == 2
            listed = (await agent.conversations(tenant=text).sessions()).items
            assert [info.session_id for info in listed] == [text]
            owned = (await agent.conversations(tenant=text, user_key=text).sessions()).items
            assert [info.conversation for info in owned] == [key]
            rows = (await agent.conversation(text).history()).items
            assert [row.message.id for row in rows[::2]] == [f"2{text}"[:512]]
        for text in ids[::7]:
            key = ConversationKey(text, "station", text, text)
            assert (await agent.conversation(key).clear())["rows"] == 2
        for number, text in enumerate(ids):
            key = ConversationKey(text, "station", text, text)
            left = (await agent.conversation(key).history()).items
            assert len(left) == (2 if number % 7 else 0)
        await agent.aclose()


@pytest.mark.service
async def test_what_is_no_id_is_refused_before_anything_is_written(strings: list[str]) -> None:
    refused = [text for text in strings if text and not is_id(text)]
    assert len(refused) > 10
    async with open_agent_state("memory:") as state:
        agent = agent_on(state, sessions={"strategy": "manual", "metadata_key": "own"})
        for text in refused:
            run = {"threadId": "t"}
            calls = {
                "messages[0].id": say(agent, {"id": text}, run=run),
                "run.tenant_id": say(agent, {}, run={**run, "tenantId": text}),
                "run.channel_id": say(agent, {}, run={**run, "channelId": text}),
                "run.thread_id": say(agent, {}, run={"threadId": text}),
                "run.run_id": say(agent, {}, run={**run, "runId": text}),
                "run.message_id": say(agent, {}, run={**run, "messageId": text}),
                "session.id": say(agent, {}, run=run, session={"id": text}),
                "chat_id": say(agent, {}, run=run, chatId=text),
                "user_key": say(agent, {}, run=run, userKey=text),
                "messages[0].metadata": say(agent, {"metadata": {"own": text}}, run=run),
            }
            for path, call in calls.items():
                with pytest.raises(InputError) as caught:
                    await call
                assert (caught.value.path or "").startswith(path), (path, text)
                assert len(str(caught.value)) < 300
            with pytest.raises(InputError):
                agent.conversation(text)
        assert (await agent.conversations().sessions()).items == ()
        await agent.aclose()


async def test_a_number_is_a_session_id_as_long_as_its_digits_are_one() -> None:
    async with open_agent_state("memory:") as state:
        agent = agent_on(state, sessions=True)
        given = {"run": {"threadId": "t"}}
        for number, value in enumerate([0, -1, 2**64, 10**400, 10**600]):
            await say(agent, {"id": f"m{number}", "metadata": {"sessionId": value}}, **given)
        with pytest.raises(InputError):
            await say(agent, {"id": "m", "metadata": {"sessionId": 10**5000}}, **given)
        rows = (await agent.conversation("t").history()).items
        assert [row.session_id for row in rows[::2]] == [
            "0",
            "-1",
            str(2**64),
            str(10**400),
            None,
        ]
        await agent.aclose()


@STORES
async def test_ids_of_the_longest_length_work_and_one_more_is_too_long(
    tmp_path: Path, kind: str
) -> None:
    url = f"file:{tmp_path}/state.db" if kind == "file" else "memory:"
    async with open_agent_state(url) as state:
        agent = agent_on(state)
        for letter in ("x", "é", "😀"):
            assert await say(agent, {"id": letter * 512}, run={"threadId": letter * 512}) == "re hi"
            with pytest.raises(InputError):
                await say(agent, {"id": letter * 513}, run={"threadId": "t"})
        await agent.aclose()


@STORES
async def test_ids_that_look_alike_are_different(tmp_path: Path, kind: str) -> None:
    url = f"file:{tmp_path}/state.db" if kind == "file" else "memory:"
    alike = ["\u00e9", "e\u0301", "E\u0301", "\u00c9", " e\u0301", "\u212b", "\u00c5", "A\u030a"]
    async with open_agent_state(url) as state:
        agent = agent_on(state)
        for text in alike:
            await say(agent, {"id": text}, run={"threadId": "t"})
            await say(agent, {"id": "m"}, run={"threadId": text})
        rows = (await agent.conversation("t").history(limit=100)).items
        assert [row.message.id for row in rows[::2]] == alike
        for text in alike:
            assert len((await agent.conversation(text).history()).items) == 2
        await agent.aclose()


@STORES
async def test_a_nul_is_stored_and_a_lone_surrogate_replaced(tmp_path: Path, kind: str) -> None:
    url = f"file:{tmp_path}/state.db" if kind == "file" else "memory:"
    async with open_agent_state(url) as state:
        agent = agent_on(state)
        texts = ["a\x00b", "\\u0000", "a\ud800b", "\ud83d\ude00"]
        for number, text in enumerate(texts):
            message = {"id": f"m{number}", "parts": [{"type": "text", "text": text}]}
            await say(agent, message, run={"threadId": "t"})
        rows = (await agent.conversation("t").history()).items
        assert [row.message.text for row in rows[::2]] == ["a\x00b", "\\u0000", "a\ufffdb", "😀"]
        assert [row.message.text for row in rows[1::2]] == [
            "re a\x00b",
            "re \\u0000",
            "re a\ufffdb",
            "re 😀",
        ]
        await agent.aclose()


async def test_metadata_that_is_not_json_names_its_key_and_writes_nothing() -> None:
    async with open_agent_state("memory:") as state:
        agent = agent_on(state)
        for value in (float("nan"), float("inf"), object(), {1, 2}, b"x", {(1, 2): 3}):
            with pytest.raises(InputError) as caught:
                await say(agent, {"metadata": {"odd": value}}, run={"threadId": "t"})
            assert "metadata.odd" in (caught.value.path or "")
        assert (await agent.conversation("t").history()).items == ()
        await agent.aclose()
