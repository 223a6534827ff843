"""Endings: what is closed when an event loop shuts down, if nobody closes it before."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable


class Ending:
    """Something that is closed once, in the loop in which it was opened."""

    def __init__(self, close: Callable[[], Awaitable[object]]) -> None:
        """Remember how to close it."""
        self._end = self._wait(close)

    async def start(self) -> None:
        """Close it when the running loop shuts down."""
        await anext(self._end)

    async def aclose(self) -> None:
        """Close it now; repeating does nothing."""
        await self._end.aclose()

    async def _wait(self, close: Callable[[], Awaitable[object]]) -> AsyncGenerator[None]:
        # A loop that shuts down closes the asynchronous generators that were started in it.
        try:
            yield
        finally:
            await close()
