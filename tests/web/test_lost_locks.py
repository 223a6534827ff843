"""Lost locks: who asks for a turn whose lock was lost is told so, and nothing is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conversation.station import LIMIT_S
from tests.web.site import SetSite, Site, read_stream, turn
from tests.web.test_ag_ui import asked
from tests.web.test_turns import JSON
from vitehub_chat.testing.clock import FakeClock

LEASE_S = 31
FOR_EVER = 2**62


async def taken_over(set_site: SetSite, clock: FakeClock, path: str, body: Any, **more: Any) -> Any:
    """Return the response of a turn whose lock another process takes while its driver runs."""
    first, second = await set_site(stops=True, ag_ui=True), await set_site()
    asking = asyncio.create_task(first.send("POST", path, body, **more))
    await first.begun("A")
    clock.advance(seconds=LEASE_S)
    assert (await second.post(turn("m2", "B"))).status_code == 200
    first.release("A")
    response = await asking
    assert await second.texts() == ["A", "B", "B[A]"]
    return response


async def test_a_turn_that_another_process_took_over_is_409(
    set_site: SetSite, clock: FakeClock
) -> None:
    response = await taken_over(set_site, clock, "", turn("m1", "A"), headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "lock_lost")
    assert "retry-after" not in response.headers


async def test_a_stream_of_it_ends_with_an_error(set_site: SetSite, clock: FakeClock) -> None:
    response = await taken_over(set_site, clock, "", turn("m1", "A"))
    chunks = read_stream(response.text)
    assert response.status_code == 200
    assert [chunk["type"] for chunk in chunks][-2:] == ["message-metadata", "error"]
    assert chunks[-2]["messageMetadata"] == {"status": "error"}


async def test_a_stream_of_ag_ui_says_which_error(set_site: SetSite, clock: FakeClock) -> None:
    response = await taken_over(set_site, clock, "/ag-ui", asked("m1", "A"))
    last = read_stream(response.text)[-1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "lock_lost")


async def accepted(site: Site, count: int) -> None:
    """Wait until so many messages are accepted whose turns are not over."""
    state: Any = site.state
    async with asyncio.timeout(LIMIT_S):
        while len(await state.run_read(_open)) != count:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


def _open(tx: Any) -> Any:
    return tx.entries.stalled(FOR_EVER, 0, 10)


@pytest.mark.parametrize("path", ["", "/ag-ui"])
async def test_a_turn_that_loses_its_lock_before_it_begins_is_409(
    set_site: SetSite, clock: FakeClock, path: str
) -> None:
    concurrency = {"strategy": "parallel", "max_concurrent": 1}
    site = await set_site(stops=True, ag_ui=True, chat={"concurrency": concurrency})
    first = asyncio.create_task(site.post(turn("m1", "A")))
    await site.begun("A")
    body = asked("m2", "B") if path else turn("m2", "B")
    asking = asyncio.create_task(site.send("POST", path, body))
    await accepted(site, 2)
    clock.advance(seconds=LEASE_S)
    site.release("A", "B")
    response = await asking
    assert (response.status_code, response.json()["error"]["code"]) == (409, "lock_lost")
    await first
    assert await site.texts() == ["A"]
    assert site.driver.calls == ["A[]"]
