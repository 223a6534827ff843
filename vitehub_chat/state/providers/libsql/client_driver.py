"""The driver over `libsql_client`: WebSockets, servers of version 1, and a client of the user's."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

import aiohttp
import libsql_client  # type: ignore[import-untyped]

from vitehub_chat.errors import StateError
from vitehub_chat.state.providers.libsql.address import Address
from vitehub_chat.state.providers.libsql.answers import Rows
from vitehub_chat.state.providers.libsql.endings import Ending
from vitehub_chat.state.providers.libsql.failures import (
    AttemptError,
    from_code,
    from_status,
    too_large,
    unauthorized,
    unavailable,
)
from vitehub_chat.state.providers.libsql.limits import (
    CAPABILITIES,
    CAPABILITIES_OF_SOCKETS,
    Limits,
)
from vitehub_chat.state.providers.libsql.network import from_network
from vitehub_chat.state.providers.libsql.retries import repeat
from vitehub_chat.state.providers.libsql.statements import shape_of
from vitehub_chat.state.providers.libsql.tokens import TokenSource
from vitehub_chat.state.providers.libsql.values import encode_value
from vitehub_chat.state.sql.driver import Statement, Value

_LOST: Final = ("HRANA_", "CLIENT_CLOSED", "UNKNOWN")
_STATUS: Final = re.compile(r"HTTP status (\d{3})")

Prepared = tuple[str, dict[str, Value]]


class Client(Protocol):
    """What is used of a client of `libsql_client`."""

    async def batch(self, stmts: Any, /) -> Sequence[Any]:
        """Run statements in one transaction and return a result for each."""

    async def close(self) -> None:
        """Close its connections."""


class Clients(Protocol):
    """Where the client of the running loop comes from.

    Attributes:
        may_be_sockets: Whether it may speak over a WebSocket, which has shorter answers.
    """

    may_be_sockets: bool

    async def batch(self, statements: list[Prepared], /) -> Sequence[Any]:
        """Run statements in one transaction and return a result for each."""

    async def has_new_token(self, *, is_refused: bool) -> bool:
        """Tell whether an attempt failed for a token that now is replaced.

        Args:
            is_refused: Whether the server said that it was for the token, for the first time.

        Raises:
            ConfigError: There is no other token.
        """

    async def aclose(self) -> None:
        """Close what was made here."""


class ClientDriver:
    """SQL through `libsql_client`: one write at a time on each event loop.

    Attributes:
        capabilities: What the database is.
    """

    def __init__(self, clients: Clients, limits: Limits) -> None:
        """Make a driver; nothing is sent yet."""
        self.capabilities = CAPABILITIES_OF_SOCKETS if clients.may_be_sockets else CAPABILITIES
        self._clients = clients
        self._limits = limits
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def execute(self, sql: str, named: Mapping[str, Value], /) -> Rows:
        """Run one statement and return its rows; raises as `batch`."""
        return (await self.batch([(sql, named)]))[0]

    async def batch(self, statements: Sequence[Statement], /) -> list[Rows]:
        """Run statements in one transaction and return the rows of each; all or nothing.

        Raises:
            StateConflictError: A constraint refused a statement.
            StateUnavailableError: No answer that says what was done; see its outcome.
            ConfigError: The server does not accept the token.
            StateError: The server refused a statement, or it is too large.
        """
        if not statements:
            return []
        prepared = [(sql, _used(sql, named)) for sql, named in statements]
        reads = all(shape_of(sql).reads for sql, _ in statements)
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        renewals = iter((True,))

        async def attempt() -> list[Rows]:
            async with AsyncExitStack() as stack:
                if not reads:
                    await stack.enter_async_context(turn)
                return await self._send(prepared, renewals)

        return await repeat(attempt, seconds=self._limits.retry, writes=not reads, idempotent=reads)

    async def aclose(self) -> None:
        """Close the clients that were made here; using the driver again makes new ones."""
        await self._clients.aclose()

    async def _send(self, prepared: list[Prepared], renewals: Iterator[bool]) -> list[Rows]:
        try:
            async with asyncio.timeout(self._limits.request):
                results = await self._clients.batch(prepared)
        except libsql_client.LibsqlError as error:
            failure = _failure(error)
        except aiohttp.WebSocketError as error:
            failure = _too_long(error)
        except (aiohttp.ClientError, OSError) as error:
            failure = from_network(error)
        else:
            return [[tuple(row) for row in result] for result in results]
        is_lost = failure.repeat != "never" and not failure.timed_out
        is_refused = failure.error.code == "unauthorized"
        if (is_lost or is_refused) and await self._clients.has_new_token(
            is_refused=is_refused and next(renewals, False)
        ):
            raise unavailable("the token was replaced", "always", at_once=True)
        raise failure


class GivenClient:
    """A client of the user's, on the event loop that uses it first; it is not closed here."""

    may_be_sockets = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self._home: asyncio.AbstractEventLoop | None = None

    async def batch(self, statements: list[Prepared], /) -> Sequence[Any]:
        """Run statements in one transaction, on the loop of the client."""
        loop = asyncio.get_running_loop()
        self._home = self._home or loop
        if self._home is loop:
            return await self._client.batch(statements)
        if not self._home.is_running():
            raise StateError("the client that was given belongs to an event loop that has ended")
        call = self._client.batch(statements)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._home))

    async def has_new_token(self, *, is_refused: bool) -> bool:  # noqa: ARG002  is told in vain
        """Tell that its token is no matter of ours."""
        return False

    async def aclose(self) -> None:
        """Leave the client to who made it."""


class OwnClients:
    """Clients of one address, one for each process and event loop."""

    def __init__(self, address: Address, tokens: TokenSource, limits: Limits) -> None:
        self.may_be_sockets = address.is_socket
        self._address = address
        self._tokens = tokens
        self._limits = limits
        self._open: dict[tuple[int, asyncio.AbstractEventLoop], tuple[Client, Ending]] = {}

    async def batch(self, statements: list[Prepared], /) -> Sequence[Any]:
        """Run statements in one transaction, over a new connection if the last one was lost."""
        key = (os.getpid(), asyncio.get_running_loop())
        if key not in self._open:
            token = await self._tokens.get()
            # The slash keeps it from dropping the last part of a base path.
            url = f"{self._address.base_url}/"
            client: Client = libsql_client.create_client(url, auth_token=token)
            self._open[key] = (client, Ending(self._close_here))
            await self._open[key][1].start()
        return await self._open[key][0].batch(statements)

    async def has_new_token(self, *, is_refused: bool) -> bool:
        """Tell whether an attempt failed for a token that now is replaced.

        A WebSocket that was lost does not say why; an answer to another greeting does.

        Raises:
            ConfigError: There is no other token.
        """
        await self.aclose()
        token = await self._tokens.get()
        if self._address.is_socket:
            is_refused = await self._is_refused(token)
        if not is_refused:
            return False
        renewed = await self._tokens.renew(token)
        if self._address.is_socket and await self._is_refused(renewed):
            raise unauthorized().error
        return True

    async def aclose(self) -> None:
        """Close the client of the running loop; no-op if there is none."""
        found = self._open.get((os.getpid(), asyncio.get_running_loop()))
        if found is not None:
            await found[1].aclose()

    async def _close_here(self) -> None:
        client, _ = self._open.pop((os.getpid(), asyncio.get_running_loop()))
        await client.close()

    async def _is_refused(self, token: str | None) -> bool:
        try:
            async with (
                asyncio.timeout(self._limits.connect),
                aiohttp.ClientSession() as session,
                session.ws_connect(self._address.base_url, protocols=["hrana2"]) as socket,
            ):
                await socket.send_json({"type": "hello", "jwt": token})
                answer = await socket.receive_json()
        except (aiohttp.ClientError, OSError, TypeError, ValueError):
            return False
        return str((answer.get("error") or {}).get("code")).startswith("AUTH_")


def _used(sql: str, named: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values that a statement uses; one that is none of the database is refused."""
    names = shape_of(sql).names
    used = {name: value for name, value in named.items() if name in names}
    for name, value in used.items():
        encode_value(name, value)
    return used


def _too_long(error: aiohttp.WebSocketError) -> AttemptError:
    if error.code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
        return too_large("an answer", "ask for fewer messages, or use an http:// or https:// URL")
    return unavailable("the connection to the server was lost", "idempotent", error)


def _failure(error: Any) -> AttemptError:
    code, message = str(error.code), str(error.explanation)
    status = _STATUS.search(message)
    if status is not None:
        return from_status(int(status[1]), "")
    if code.startswith(_LOST):
        return unavailable("the connection to the server was lost", "idempotent", error)
    return from_code(code, message)
