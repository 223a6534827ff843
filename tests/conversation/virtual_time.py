"""Virtual time: an event loop on which waiting takes no time, for stores that use no threads."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
REAL_LIMIT_S = 20


class _Selector(selectors.DefaultSelector):
    """A selector that, instead of waiting, lets the time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            # Only a thread can go on from here.
            ready = super().select(REAL_LIMIT_S)
            assert ready, "every task waits for another one"
            return ready
        self.passed_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only while there is nothing to do."""

    def __init__(self) -> None:
        self._time = _Selector()
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.passed_s


class LoopClock:
    """The clock of a virtual loop; `lag` moves it as if the process had been paused."""

    def __init__(self) -> None:
        self.lag = timedelta()

    def now(self) -> datetime:
        """Return the time of the running loop."""
        return START + self.lag + timedelta(seconds=asyncio.get_running_loop().time())


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    loop = VirtualLoop()
    threads = ThreadPoolExecutor(1)
    loop.set_default_executor(threads)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        answer = runner.run(main)
        # In real time: the loop would give up on its threads at once.
        threads.shutdown()
    return answer
