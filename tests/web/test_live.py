"""Live runs: followed from anywhere, stopped on demand, and deaf to sockets that go away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from tests.conversation.station import LIMIT_S
from tests.web.site import Following, SetSite, Site, read_stream, text_of, turn
from vitehub_chat.agent.driver import DriverCall


class Talker:
    """Answers with pieces, each when it is told to; the last one is an empty text."""

    def __init__(self) -> None:
        self.pieces = asyncio.Queue[str | None]()
        self.called = asyncio.Event()

    def __call__(self, _call: DriverCall) -> AsyncIterator[str]:
        self.called.set()
        return self._answer()

    async def _answer(self) -> AsyncIterator[str]:
        while (piece := await self.pieces.get()) is not None:
            yield piece

    def say(self, *pieces: str | None) -> None:
        for piece in pieces:
            self.pieces.put_nowait(piece)


async def ended(site: Site) -> None:
    """Wait until nothing runs any more."""
    async with asyncio.timeout(LIMIT_S):
        while runs := [run.task for each in site.mounted._runs._runs.values() for run in each]:
            await asyncio.wait(runs)
            await asyncio.sleep(0)


async def test_a_socket_that_is_dropped_does_not_stop_the_run(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    following = site.follow("POST", "", turn())
    talker.say("one ")
    await following.until("text-delta")
    await following.hang_up()
    talker.say("two", None)
    await ended(site)
    rows = await site.rows()
    assert [(row.message.text, row.status) for row in rows] == [
        ("Hello", "complete"),
        ("one two", "complete"),
    ]


async def test_a_route_that_is_cancelled_does_not_stop_the_run(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    following = site.follow("POST", "", turn())
    talker.say("one ")
    await following.until("text-delta")
    following.task.cancel()
    await asyncio.wait({following.task})
    talker.say("two", None)
    await ended(site)
    assert await site.texts() == ["Hello", "one two"]


async def test_a_client_that_is_gone_before_the_first_byte_does_not_stop_the_run(
    set_site: SetSite,
) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    following = site.follow("POST", "", turn())
    await talker.called.wait()
    following.task.cancel()
    await asyncio.wait({following.task})
    talker.say("one", None)
    await ended(site)
    assert await site.texts() == ["Hello", "one"]


async def test_a_replay_begins_at_the_start_and_goes_on_live(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    first = site.follow("POST", "", turn())
    talker.say("one ", "two ")
    start = await first.until("start")
    await first.until("text-delta")
    second = site.follow("GET", "/c1/stream")
    assert (await second.until("start"))["messageId"] == start["messageId"]
    await second.until("text-delta")
    talker.say("three", None)
    rest = await second.chunks()
    assert rest[-1]["type"] == "finish"
    await first.chunks()
    assert second.headers["x-vercel-ai-ui-message-stream"] == "v1"


async def test_a_replay_has_the_text_so_far_in_one_piece(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    first = site.follow("POST", "", turn(), room=100)
    pieces = [f"{number} " for number in range(50)]
    talker.say(*pieces)
    text = ""
    while text != "".join(pieces):
        text += (await first.until("text-delta"))["delta"]
    second = site.follow("GET", "/c1/stream")
    assert (await second.until("text-delta"))["delta"] == text
    talker.say(None)
    await second.chunks()
    await first.chunks()


async def test_after_the_end_there_is_nothing_to_follow(set_site: SetSite) -> None:
    site = await set_site()
    assert (await site.get("/c1/stream")).status_code == 204
    await site.post(turn())
    response = await site.get("/c1/stream")
    assert (response.status_code, response.content) == (204, b"")


async def test_a_slow_reader_gets_what_came_meanwhile_at_once(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    slow = site.follow("POST", "", turn(), room=1)
    await slow.begun()
    talker.say(*("x" for _ in range(2000)), None)
    await ended(site)
    chunks = await slow.chunks()
    assert text_of(chunks) == "x" * 2000
    assert len(chunks) < 20


async def test_stop_answers_once_the_partial_answer_is_recorded(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    following = site.follow("POST", "", turn())
    talker.say("partial")
    start = await following.until("start")
    await following.until("text-delta")
    stopping = asyncio.create_task(site.send("POST", "/c1/stop", {}))
    chunks = await following.chunks()
    response = await stopping
    assert response.json() == {"stopped": True, "message_id": start["messageId"]}
    rows = await site.rows()
    assert [(row.message.text, row.status) for row in rows][1] == ("partial", "interrupted")
    assert [chunk["type"] for chunk in chunks[-2:]] == ["message-metadata", "abort"]


async def test_a_late_stop_does_not_kill_the_next_turn(set_site: SetSite) -> None:
    site = await set_site(stops=True)
    site.release("A")
    answered = read_stream((await site.post(turn("m1", "A"))).text)
    second = site.follow("POST", "", turn("m2", "B"))
    await site.begun("B")
    for message_id in (answered[0]["messageId"], "m1", "unknown"):
        late = await site.send("POST", "/c1/stop", {"messageId": message_id})
        assert late.json() == {"stopped": False}
    site.release("B")
    await second.chunks()
    assert await site.texts() == ["A", "A[]", "B", "B[A,A[]]"]


@pytest.mark.parametrize("by", ["answer", "message"])
async def test_stop_takes_the_id_of_the_answer_or_of_the_message(
    set_site: SetSite, by: str
) -> None:
    site = await set_site(stops=True)
    following = site.follow("POST", "", turn("m1", "A"))
    start = await following.until("start")
    message_id = start["messageId"] if by == "answer" else "m1"
    stopping = asyncio.create_task(site.send("POST", "/c1/stop", {"message_id": message_id}))
    await following.chunks()
    assert (await stopping).json()["stopped"] is True


async def test_stop_without_an_id_stops_what_runs_and_what_waits(set_site: SetSite) -> None:
    site = await set_site(stops=True, keepalive_ms=5)
    first = site.follow("POST", "", turn("m1", "A"), room=1000)
    await site.begun("A")
    second = site.follow("POST", "", turn("m2", "B"), room=1000)
    await second.begun()
    assert (await site.send("POST", "/c1/stop", {})).json()["stopped"] is True
    await first.chunks()
    await second.chunks()
    assert site.driver.calls == ["A[]"]


async def test_who_waits_in_line_gets_comments_until_its_turn(set_site: SetSite) -> None:
    site = await set_site(stops=True, keepalive_ms=5)
    first = site.follow("POST", "", turn("m1", "A"), room=10_000)
    await site.begun("A")
    second = site.follow("POST", "", turn("m2", "B"))
    frames = second.frames()
    assert [await anext(frames) for _ in range(3)] == [
        ": stream-open\n\n",
        ": keep-alive\n\n",
        ": keep-alive\n\n",
    ]
    site.release("A", "B")
    assert text_of(await second.chunks()) == "B[A,A[]]"
    await first.chunks()


async def test_a_coalesced_message_gets_the_stream_of_the_run_that_answered_it(
    set_site: SetSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="vitehub_chat")
    site = await set_site(stops=True, chat={"concurrency": "queue"})
    streams = [site.follow("POST", "", turn("m1", "A"), room=100)]
    await site.begun("A")
    for message_id, text in (("m2", "B"), ("m3", "C")):
        streams.append(site.follow("POST", "", turn(message_id, text), room=100))
        await in_line(caplog, len(streams) - 1)
    site.release("A", "B", "C")
    _, earlier, newest = [await stream.chunks() for stream in streams]
    assert text_of(earlier) == text_of(newest)
    assert earlier[-1]["messageMetadata"]["coalesced"] is True
    assert "coalesced" not in newest[-1]["messageMetadata"]


async def in_line(caplog: pytest.LogCaptureFixture, waiting: int) -> None:
    """Wait until so many messages were found to wait for another turn."""
    async with asyncio.timeout(LIMIT_S):
        while caplog.messages.count("chat.lock.contended") < waiting:  # noqa: ASYNC110 - a log
            await asyncio.sleep(0.001)


async def test_a_resend_while_the_turn_runs_gets_the_same_answer(set_site: SetSite) -> None:
    site = await set_site(stops=True, keepalive_ms=5)
    first = site.follow("POST", "", turn("m1", "A"), room=10_000)
    await site.begun("A")
    again = site.follow("POST", "", turn("m1", "A"), room=10_000)
    await again.begun()
    site.release("A")
    one, two = await first.chunks(), await again.chunks()
    assert (one[0]["messageId"], text_of(one)) == (two[0]["messageId"], text_of(two))
    assert site.driver.calls == ["A[]"]


@pytest.mark.parametrize(("version", "is_sent"), [("1.1", True), ("2", False)])
async def test_the_connection_header_is_left_out_over_http_2(
    set_site: SetSite,
    version: str,
    is_sent: bool,  # noqa: FBT001 - a parameter
) -> None:
    site = await set_site()
    following: Following = site.follow("POST", "", turn(), http_version=version)
    await following.begun()
    assert ("connection" in following.headers) is is_sent
    await following.chunks()


async def test_a_shutdown_waits_for_the_runs(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    following = site.follow("POST", "", turn(), room=100)
    talker.say("one ")
    await following.until("text-delta")
    closing = asyncio.create_task(site.mounted.aclose())
    talker.say("two", None)
    await closing
    assert await site.texts() == ["Hello", "one two"]
    await following.chunks()


async def test_a_shutdown_records_what_outlasts_the_grace_as_interrupted(
    set_site: SetSite,
) -> None:
    talker = Talker()
    site = await set_site(driver=talker, shutdown_grace_ms=1)
    following = site.follow("POST", "", turn(), room=100)
    talker.say("one ")
    await following.until("text-delta")
    await site.mounted.aclose()
    assert [(row.message.text, row.status) for row in await site.rows()][1] == (
        "one ",
        "interrupted",
    )
    assert (await following.chunks())[-1]["type"] == "abort"


async def test_no_run_is_kept_after_its_end(set_site: SetSite) -> None:
    site = await set_site()
    for number in range(5):
        await site.post(turn(f"m{number}", "A"))
    await ended(site)
    assert site.mounted._runs._runs == {}


async def test_many_followers_that_drop_leave_nothing_behind(set_site: SetSite) -> None:
    talker = Talker()
    site = await set_site(driver=talker)
    first = site.follow("POST", "", turn(), room=100)
    talker.say("one ")
    await first.until("text-delta")
    others = [site.follow("GET", "/c1/stream") for _ in range(20)]
    for other in others:
        await other.until("text-delta")
    for other in others:
        await other.hang_up()
    (run,) = [run for each in site.mounted._runs._runs.values() for run in each]
    assert len(run.buffer._waiting) == 1
    talker.say(None)
    await first.chunks()
