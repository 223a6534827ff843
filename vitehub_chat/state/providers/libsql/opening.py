"""Opening: from a URL and options to the state on a remote libSQL server."""

from __future__ import annotations

import inspect
from typing import Any, Final, cast

from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.libsql.address import Address, parse_address
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.older import AnyVersionDriver
from vitehub_chat.state.providers.libsql.tokens import TokenSource
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.retrying import Retrying

_MODULES_OF_EXTRAS: Final = ("aiohttp", "libsql_client")

RETRYING: Final = Retrying(failures=3)
"""How often the state repeats what the driver gave up; that takes a while each time."""


def open_libsql(url: str, *, clock: Clock | None = None, **options: Any) -> SqlAgentState:
    """Return the Agent State on a libSQL server; `async with` opens it, and connects.

    Args:
        url: `libsql://HOST`, which is `https://HOST` or with `?tls=0` `http://HOST`, or either of
            these, with a port and a base path; `ws://` and `wss://` speak over a WebSocket. It may
            have the token as `authToken`; the options come before it. Servers that have nothing
            newer than version 1 of the protocol need the extra `libsql-client`, too.
        clock: The source of the time, None is that of the server.
        options: The options of `StateOptions`. `busy_timeout_ms` is how long what certainly was
            not done is tried again; `durability` has no effect.

    Raises:
        ConfigError: The URL or an option is wrong.
        MissingDependencyError: The extra `libsql` is not installed, or `libsql-client` for a
            WebSocket.
    """
    address = parse_address(url)
    checked = StateOptions.from_mapping(options)
    driver = make_driver(address, checked)
    return SqlAgentState(driver, clock=clock, options=checked, retrying=RETRYING)


def open_client(client: object, *, clock: Clock | None = None, **options: Any) -> SqlAgentState:
    """Return the Agent State over a client of `libsql_client`, which its maker closes.

    Args:
        client: An open client; it stays on the event loop that uses it first.
        clock: The source of the time, None is that of the server.
        options: Those of `open_libsql`, without a token.

    Raises:
        ConfigError: It is no asynchronous client, or an option is wrong or has no effect.
        MissingDependencyError: The extra `libsql-client` is not installed.
    """
    if not inspect.iscoroutinefunction(getattr(client, "batch", None)):
        raise ConfigError(
            "must be a client made by libsql_client.create_client()", path="state.client"
        )
    checked = StateOptions.from_mapping(options)
    if checked.auth_token is not None or checked.auth_token_env is not None:
        raise ConfigError(
            "has no effect on a client that is given",
            path="state.auth_token",
            code="invalid_option",
        )
    module = _client_driver()
    driver = module.ClientDriver(module.GivenClient(client), _limits(checked))
    return SqlAgentState(driver, clock=clock, options=checked, retrying=RETRYING)


def make_driver(address: Address, options: StateOptions) -> SqlDriver:
    """Return the driver for an address."""
    is_named = options.auth_token is not None or options.auth_token_env is not None
    tokens = TokenSource(options.auth_token if is_named else address.token, options.auth_token_env)
    limits = _limits(options)

    def through_clients() -> SqlDriver:
        module = _client_driver()
        clients = module.OwnClients(address, tokens, limits)
        return cast(SqlDriver, module.ClientDriver(clients, limits))

    if address.is_socket:
        return through_clients()
    try:
        from vitehub_chat.state.providers.libsql.driver import (  # noqa: PLC0415  loads aiohttp
            LibsqlDriver,
        )
    except ModuleNotFoundError as error:
        _check_missing(error, "libsql")
        raise
    newer = LibsqlDriver(address, tokens=tokens, limits=limits)
    return AnyVersionDriver(newer, through_clients)


def _client_driver() -> Any:
    try:
        import vitehub_chat.state.providers.libsql.client_driver as found  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        _check_missing(error, "libsql-client")
        raise
    return found


def _check_missing(error: ModuleNotFoundError, extra: str) -> None:
    """Raise what says which extra to install, if it was a module of an extra."""
    if error.name in _MODULES_OF_EXTRAS:
        raise MissingDependencyError("a remote libSQL server", extra=extra) from error


def _limits(options: StateOptions) -> Limits:
    return Limits(retry=options.busy_timeout_ms / 1000)
