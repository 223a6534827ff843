"""Opening: from a URL and options to the state on a remote libSQL server."""

from __future__ import annotations

from typing import Any, Final

from vitehub_chat.errors import ConfigError, MissingDependencyError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.libsql.address import Address, parse_address
from vitehub_chat.state.providers.libsql.limits import Limits
from vitehub_chat.state.providers.libsql.tokens import TokenSource
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.retrying import Retrying

RETRYING: Final = Retrying(failures=3)
"""How often the state repeats what the driver gave up; that takes a while each time."""


def open_libsql(url: str, *, clock: Clock | None = None, **options: Any) -> SqlAgentState:
    """Return the Agent State on a libSQL server; `async with` opens it, and connects.

    Args:
        url: `libsql://HOST`, which is `https://HOST` or with `?tls=0` `http://HOST`, or either of
            these, with a port and a base path; `ws://` and `wss://` speak over a WebSocket. It may
            have the token as `authToken`; the options come before it.
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


def make_driver(address: Address, options: StateOptions) -> SqlDriver:
    """Return the driver for an address."""
    is_named = options.auth_token is not None or options.auth_token_env is not None
    tokens = TokenSource(options.auth_token if is_named else address.token, options.auth_token_env)
    if address.is_socket:
        raise ConfigError("WebSockets are not there yet", path="state.url")
    try:
        from vitehub_chat.state.providers.libsql.driver import (  # noqa: PLC0415  loads aiohttp
            LibsqlDriver,
        )
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        raise MissingDependencyError("a remote libSQL server", extra="libsql") from error
    limits = Limits(retry=options.busy_timeout_ms / 1000)
    return LibsqlDriver(address, tokens=tokens, limits=limits)
