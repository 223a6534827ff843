"""Sessions: keep-alive connections, for each process, event loop and server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final
from weakref import WeakSet

import aiohttp

from vitehub_chat.state.providers.libsql.endings import Ending
from vitehub_chat.state.providers.libsql.limits import Limits

KEEP_ALIVE_SECONDS: Final = 30.0


class Session:
    """The connections of one event loop to one server.

    Attributes:
        http: The client that has them.
        reads: What limits the reads in flight.
        renewing: Held by who asks for another token.
        users: Who has not closed yet.
        ending: What closes it.
        answered_at: When the last answer came, in the time of the loop.
    """

    def __init__(self, limits: Limits, at_end: Callable[[], object]) -> None:
        """Open a session in the running loop; `at_end` is called before it is closed."""
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        self.http = aiohttp.ClientSession(
            connector=_Connector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[tracing],
        )
        self.reads = asyncio.Semaphore(limits.reads)
        self.renewing = asyncio.Lock()
        self.users: WeakSet[object] = WeakSet()
        self.answered_at = asyncio.get_running_loop().time()
        self.ending = Ending(self._close)
        self._at_end = at_end

    def abandon(self) -> None:
        """Leave connections open that cannot be closed from here."""
        self.http.detach()

    async def _close(self) -> None:
        self._at_end()
        await self.http.close()


class _Connector(aiohttp.TCPConnector):
    """A connector that may be forgotten, with a loop that was closed before its connections."""

    def __del__(self, _warnings: object = None, /) -> None:
        pass


_Key = tuple[int, asyncio.AbstractEventLoop, str]
_sessions: Final[dict[_Key, Session]] = {}


async def session_for(origin: str, user: object, limits: Limits) -> Session:
    """Return the session of the running loop to an origin, made by who asks first."""
    key = (os.getpid(), asyncio.get_running_loop(), origin)
    session = _sessions.get(key)
    if session is None or session.http.closed:
        _forget_closed_loops()
        session = _sessions[key] = Session(limits, lambda: _sessions.pop(key, None))
        await session.ending.start()
    session.users.add(user)
    return session


async def leave(origin: str, user: object) -> None:
    """Say that somebody needs no session to an origin any more; the last one closes them.

    Those of a loop that does not run now are closed when it shuts down.
    """
    loop = asyncio.get_running_loop()
    for key, session in list(_sessions.items()):
        if key[0] != os.getpid() or key[2] != origin:
            continue
        session.users.discard(user)
        if session.users or key[1].is_closed():
            continue
        if key[1] is loop:
            await session.ending.aclose()
        elif key[1].is_running():
            asyncio.run_coroutine_threadsafe(session.ending.aclose(), key[1])


def _forget_closed_loops() -> None:
    """Drop sessions whose loop is closed; those from before a fork are the parent's."""
    for key, session in list(_sessions.items()):
        if key[0] == os.getpid() and key[1].is_closed():
            _sessions.pop(key, None)
            session.abandon()


async def _note_reuse(_session: object, context: SimpleNamespace, _event: object) -> None:
    context.trace_request_ctx.is_reused = True


def _abandon_all() -> None:
    # What is open belongs to the parent; closing it here would end its connections.
    for session in _sessions.values():
        session.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
