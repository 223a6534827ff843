"""Runs of other processes on one state: they are followed and stopped from everywhere."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conversation.station import LIMIT_S
from tests.web.site import SetSite, Site, is_chunk, read_frame, read_stream, text_of, turn
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.contract_documents import KeyValue
from vitehub_chat.web import elsewhere, mirroring
from vitehub_chat.web.access import Place
from vitehub_chat.web.elsewhere import FarRun
from vitehub_chat.web.mirroring import RunFacts, Shelf

CHILD = Path(__file__).with_name("far_process.py")
BEGUN = {"type": "start", "messageId": "a1"}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, so that tests do not wait."""
    monkeypatch.setattr(mirroring, "FLUSH_S", 0.01)
    monkeypatch.setattr(elsewhere, "LOOK_S", 0.01)
    monkeypatch.setattr(elsewhere, "ASK_S", 0.05)


async def two(set_site: SetSite, **options: Any) -> tuple[Site, Site]:
    """Set up two sites on one store, whose drivers wait."""
    settings = {"replay": "state", "stops": True, **options}
    return await set_site(**settings), await set_site(**settings)


def shelf_of(site: Site, session_id: str | None = None) -> Shelf:
    assert site.state is not None
    place = Place(chat_id="c1", key=site.key(), session_id=session_id)
    return Shelf(state=site.state, place=place)


async def settled(site: Site) -> None:
    """Wait until nothing goes on beside the turns of a site any more."""
    async with asyncio.timeout(LIMIT_S):
        while beside := list(site.mounted._runs._accompanying):
            await asyncio.wait(beside)
            await asyncio.sleep(0)


async def test_a_run_is_followed_from_another_process(set_site: SetSite) -> None:
    here, there = await two(set_site)
    first = here.follow("POST", "", turn("m1", "A"))
    start = await first.until("start")
    second = there.follow("GET", "/c1/stream")
    assert await second.begun() == 200
    assert second.headers == first.headers
    assert await second.until("start") == start
    here.release("A")
    rest = await second.chunks()
    assert (text_of(rest), rest[-1]["type"]) == ("A[]", "finish")
    assert rest == await first.chunks()
    await settled(here)
    assert (await there.get("/c1/stream")).status_code == 204


async def test_a_replay_of_another_process_ends_with_the_end_mark(set_site: SetSite) -> None:
    here, there = await two(set_site)
    first = here.follow("POST", "", turn("m1", "A"))
    start = await first.until("start")
    await told(here, start["messageId"])
    second = there.follow("GET", "/c1/stream")
    await second.until("start")
    here.release("A")
    assert [frame async for frame in second.frames()][-1] == "data: [DONE]\n\n"
    await first.hang_up()


@pytest.mark.parametrize("by", ["answer", "message", "nothing"])
async def test_a_run_is_stopped_from_another_process(set_site: SetSite, by: str) -> None:
    here, there = await two(set_site)
    first = here.follow("POST", "", turn("m1", "A"))
    start = await first.until("start")
    await here.begun("A")
    ids = {"answer": {"messageId": start["messageId"]}, "message": {"messageId": "m1"}}
    if by == "answer":
        await told(here, start["messageId"])
    response = await there.send("POST", "/c1/stop", ids.get(by, {}))
    assert response.json() == {"stopped": True, "message_id": start["messageId"]}
    assert [row.status for row in await there.rows()] == ["complete", "interrupted"]
    assert (await first.chunks())[-1]["type"] == "abort"


async def told(site: Site, message_id: str) -> None:
    """Wait until other processes know a run by the id of its answer."""
    shelf = shelf_of(site)
    async with asyncio.timeout(LIMIT_S):
        while True:
            found = [await shelf.facts(run_id) for run_id in await shelf.run_ids()]
            if any(facts is not None and facts.message_id == message_id for facts in found):
                return
            await asyncio.sleep(0)


async def test_a_late_stop_from_another_process_does_not_kill_the_next_turn(
    set_site: SetSite,
) -> None:
    here, there = await two(set_site)
    here.release("A")
    await here.post(turn("m1", "A"))
    following = here.follow("POST", "", turn("m2", "B"))
    await here.begun("B")
    response = await there.send("POST", "/c1/stop", {"messageId": "m1"})
    assert response.json() == {"stopped": False}
    here.release("B")
    assert (await following.chunks())[-1]["type"] == "finish"


async def test_who_is_somebody_else_neither_sees_nor_stops_it(set_site: SetSite) -> None:
    here, there = await two(set_site)
    following = here.follow("POST", "", turn("m1", "A"))
    await following.until("start")
    assert (await there.get("/c1/stream", user="bob")).status_code == 204
    stopped = await there.send("POST", "/c1/stop", {}, user="bob")
    assert stopped.json() == {"stopped": False}
    here.release("A")
    assert (await following.chunks())[-1]["type"] == "finish"


async def test_the_run_of_an_ag_ui_client_keeps_its_form(set_site: SetSite) -> None:
    here, there = await two(set_site, ag_ui=True)
    message = {"id": "m1", "role": "user", "content": "A"}
    body = {"threadId": "c1", "runId": "r1", "messages": [message]}
    first = here.follow("POST", "/ag-ui", body)
    await first.until("RUN_STARTED")
    second = there.follow("GET", "/c1/stream")
    await second.until("RUN_STARTED")
    here.release("A")
    assert [chunk["type"] for chunk in await second.chunks()][-1] == "RUN_FINISHED"
    await first.hang_up()


async def test_an_answer_that_is_too_large_cannot_be_begun_elsewhere(
    set_site: SetSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitehub_chat.web.replay.MAX_REPLAYED", 10)
    here, there = await two(set_site)
    first = here.follow("POST", "", turn("m1", "A"))
    start = await first.until("start")
    await told(here, start["messageId"])
    assert (await there.get("/c1/stream")).status_code == 204
    here.release("A")
    await first.hang_up()


async def test_a_run_whose_process_died_before_it_began_is_not_found(set_site: SetSite) -> None:
    _, there = await two(set_site)
    shelf = shelf_of(there)
    await shelf.set_facts("r1", RunFacts(form="ui-message-stream"))
    await shelf.list_run("r1")
    assert (await there.get("/c1/stream")).status_code == 204
    assert (await there.send("POST", "/c1/stop", {})).json() == {"stopped": False}


@pytest.mark.parametrize("form", ["ui-message-stream", "ag-ui"])
async def test_a_run_whose_process_dies_ends_with_nothing_left_open(
    set_site: SetSite, form: str
) -> None:
    _, there = await two(set_site)
    shelf, facts = shelf_of(there), RunFacts(form=form, message_id="a1")
    said = [BEGUN, {"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0"}]
    await shelf.set_facts("r1", facts)
    await shelf.set_block("r1", 0, said, is_last=False)
    async with asyncio.timeout(LIMIT_S):
        chunks = [chunk async for chunk in FarRun(shelf, "r1", facts).follow()]
    assert chunks[:3] == said
    lost = [chunk["type"] for chunk in chunks[3:] if chunk is not None]
    if form == "ag-ui":
        assert lost == ["RUN_ERROR"]
    else:
        assert lost == ["text-end", "message-metadata", "abort"]


async def test_a_silent_run_of_another_process_is_told_as_idle(set_site: SetSite) -> None:
    here, there = await two(set_site)
    first = here.follow("POST", "", turn("m1", "A"))
    start = await first.until("start")
    await told(here, start["messageId"])
    (run_id,) = await shelf_of(here).run_ids()
    run = FarRun(shelf_of(there), run_id, RunFacts(form="ui-message-stream"))
    chunks = run.follow(0.01)
    async with asyncio.timeout(LIMIT_S):
        while await anext(chunks) is not None:
            pass
    await chunks.aclose()
    here.release("A")
    await first.hang_up()


async def test_what_was_said_while_the_state_was_away_arrives_once_and_in_order(
    set_site: SetSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = await two(set_site)
    assert here.state is not None
    original, failures = type(here.state.values).set, [True, True, False, True]

    async def set_sometimes(self: KeyValue, key: str, /, **facts: Any) -> None:
        if "block" not in key or not failures or not failures.pop(0):
            await original(self, key, **facts)
        else:
            raise StateUnavailableError

    monkeypatch.setattr(type(here.state.values), "set", set_sometimes)
    first = here.follow("POST", "", turn("m1", "A"))
    await first.until("start")
    (run_id,) = await shelf_of(here).run_ids()
    here.release("A")
    rest = await first.chunks()
    await settled(here)
    run = FarRun(shelf_of(here), run_id, RunFacts(form="ui-message-stream"))
    async with asyncio.timeout(LIMIT_S):
        chunks = [chunk async for chunk in run.follow()]
    assert [chunk for chunk in chunks if chunk is not None][1:] == rest
    assert failures == []


async def test_a_run_that_ended_is_listed_no_more_and_goes_with_its_conversation(
    set_site: SetSite,
) -> None:
    here, there = await two(set_site)
    here.release("A")
    await here.post(turn("m1", "A"))
    shelf = shelf_of(here)
    (run_id,) = await shelf.run_ids() or (None,)
    await settled(here)
    assert await shelf.run_ids() == ()
    await there.send("DELETE", "/sessions/c1")
    assert run_id is None or await shelf.block(run_id, 0) is None


async def ended_while_deleted(site: Site, delete: Callable[[], Awaitable[object]]) -> list[str]:
    """Delete a conversation when its run has ended, and its last words are about to be written.

    Return the names of the values that are left.
    """
    assert site.state is not None
    values, goes_on = type(site.state.values), asyncio.Event()
    original = values.set

    async def set_late(self: KeyValue, key: str, /, **facts: Any) -> None:
        if "block" in key and facts["value"]["is_last"]:
            await goes_on.wait()
        await original(self, key, **facts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "set", set_late)
        first = site.follow("POST", "", turn("m1", "A"))
        await first.until("start")
        (run_id,) = await shelf_of(site).run_ids()
        site.release("A")
        assert (await first.chunks())[-1]["type"] == "finish"
        await delete()
        goes_on.set()
        await settled(site)
    shelf = shelf_of(site)
    blocks = [await shelf.block(run_id, number) for number in range(9)]
    return [
        name
        for name, found in [
            ("list", await shelf.run_ids()),
            ("facts", await shelf.facts(run_id)),
            *(("block", each) for each in blocks),
        ]
        if found
    ]


@pytest.mark.parametrize("by", ["conversation", "person"])
async def test_what_a_run_says_last_does_not_outlive_its_conversation(
    set_site: SetSite, by: str
) -> None:
    here, there = await two(set_site)

    async def delete() -> None:
        if by == "conversation":
            assert (await there.send("DELETE", "/sessions/c1")).status_code == 200
        else:
            await there.agent.conversations(tenant="acme").erase_person("ada")

    assert await ended_while_deleted(here, delete) == []


async def test_a_run_that_nobody_deleted_is_kept_for_who_follows_it(set_site: SetSite) -> None:
    here, _ = await two(set_site)

    async def keep() -> None:
        """Delete nothing."""

    assert "block" in await ended_while_deleted(here, keep)


async def test_many_runs_are_listed_and_taken_off_without_losing_one(set_site: SetSite) -> None:
    here, _ = await two(set_site)
    shelf, names = shelf_of(here, "s" * 512), [new_id() for _ in range(6)]
    await asyncio.gather(*(shelf.list_run(name) for name in names))
    await asyncio.gather(*(shelf.unlist(name) for name in names[:3]))
    assert sorted(await shelf.run_ids()) == sorted(names[3:])


async def test_the_replay_of_the_state_needs_one(set_stateless_site: SetSite) -> None:
    site = await set_stateless_site(replay="state")
    response = await site.post(turn("m1", "A"))
    assert (response.status_code, response.json()["error"]["code"]) == (500, "config_error")
    assert site.driver.calls == []


@contextmanager
def process_on(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a process that serves an agent on a state, and give it with its address."""
    command, pipe = [sys.executable, str(CHILD), url], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}/api/chat"
        finally:
            process.kill()


def test_two_processes_follow_and_stop_the_runs_of_one_another(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/state.db"
    with process_on(url) as (first, one), process_on(url) as (_, other), httpx2.Client() as client:
        with client.stream("POST", one, json=turn("m1", "A"), timeout=LIMIT_S) as response:
            lines = response.iter_lines()
            said = [next(read_frame(line) for line in lines if is_chunk(line))]
            while said[-1]["type"] != "text-delta":
                said.append(next(read_frame(line) for line in lines if is_chunk(line)))
            start = said[0]
            with client.stream("GET", f"{other}/c1/stream", timeout=LIMIT_S) as far:
                assert far.status_code == 200
                far_lines = far.iter_lines()
                assert next(read_frame(line) for line in far_lines if is_chunk(line)) == start
                assert first.stdin is not None
                stopped = client.post(f"{other}/c1/stop", json={}, timeout=LIMIT_S)
                assert stopped.json() == {"stopped": True, "message_id": start["messageId"]}
                far_rest = [read_frame(line) for line in far_lines if is_chunk(line)]
            said.extend(read_frame(line) for line in lines if is_chunk(line))
        assert text_of(far_rest) == text_of(said) == "A begins, "
        assert [far_rest[-1]["type"], said[-1]["type"]] == ["abort", "abort"]
        print("go", file=first.stdin, flush=True)
        whole = client.post(one, json=turn("m2", "B"), timeout=LIMIT_S)
        assert text_of(read_stream(whole.text)) == "B begins, and ends."
        page = client.get(f"{other}/history?id=c1", timeout=LIMIT_S).json()
        assert [item["status"] for item in page["items"]] == [
            "complete",
            "interrupted",
            "complete",
            "complete",
        ]
        assert client.get(f"{other}/c1/stream", timeout=LIMIT_S).status_code == 204
