"""What is left of a message whose process died between its acceptance and its answer."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from tests.channels.scene import Scene, SetScene
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.testing.clock import FakeClock
from vitehub_chat.testing.scripted_channel import said

DYING = """
import asyncio, os, sys
from tests.channels.scene import Scene
from vitehub_chat.model.clock import SystemClock
from vitehub_chat.testing.scripted_channel import said

async def main() -> None:
    scene = Scene(sys.argv[1], SystemClock())
    await scene.open()
    scene.platform.hold("backfill")
    status = await scene.tell(said("a"), said("b"))
    os.write(1, str(status).encode())
    os._exit(9)

asyncio.run(main())
"""


async def test_an_accepted_message_of_a_dead_process_is_run_by_the_sweep(
    set_scene: SetScene, clock: FakeClock
) -> None:
    dead = await set_scene(grace=timedelta())
    reading = dead.platform.hold("backfill")
    await dead.tell(said("a"), said("b"))
    await dead.pause()
    clock.advance(seconds=31)
    other = await set_scene()
    await other.host.start()
    await other.posted("a[]", "b[a,a[]]")
    reading.set()
    await dead.quiet()
    assert (dead.driver.calls, dead.platform.posts) == ([], [])
    assert await other.texts() == ["a", "a[]", "b", "b[a,a[]]"]


async def test_an_accepted_message_of_a_dead_process_is_run_by_the_next_arrival(
    set_scene: SetScene, clock: FakeClock
) -> None:
    dead = await set_scene(grace=timedelta())
    other = await set_scene(trigger_history=None)
    await other.host.start()
    dead.platform.hold("backfill")
    await dead.tell(said("a"))
    await dead.pause()
    clock.advance(seconds=31)
    await other.tell(said("b"))
    await other.posted("a[]", "b[]")


async def test_a_redelivery_after_the_crash_runs_once(
    set_scene: SetScene, clock: FakeClock
) -> None:
    dead = await set_scene(grace=timedelta())
    other = await set_scene()
    await other.host.start()
    dead.platform.hold("backfill")
    await dead.tell(said("a"))
    await dead.pause()
    clock.advance(seconds=31)
    await other.tell(said("a"), said("a"))
    await other.posted("a[]")
    await other.quiet()
    assert other.driver.calls == ["a[]"]


async def test_a_message_that_was_recorded_before_the_crash_is_seen_by_the_next_turn(
    set_scene: SetScene, clock: FakeClock
) -> None:
    dead = await set_scene(stops=True, grace=timedelta())
    await dead.tell(said("a"))
    await dead.begun("a")
    await dead.pause()
    clock.advance(seconds=31)
    other = await set_scene()
    await other.tell(said("b"))
    await other.posted("b[a]")


async def test_a_killed_process_loses_no_accepted_message(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/state.db"
    died = subprocess.run(  # noqa: ASYNC221 - nothing else runs meanwhile
        [sys.executable, "-c", DYING, url],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (died.stdout, died.returncode) == ("200", 9), died.stderr
    later = FakeClock(SystemClock().now() + timedelta(minutes=1))
    scene = Scene(url, later)
    await scene.open()
    try:
        await scene.host.start()
        await scene.posted("a[]", "b[a,a[]]")
        assert await scene.tell(said("b")) == 200
        await scene.quiet()
        assert scene.driver.calls == ["a[]", "b[a,a[]]"]
    finally:
        await scene.close()
