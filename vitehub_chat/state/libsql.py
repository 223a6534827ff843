"""The door to libSQL: its servers, SQLite and libSQL files, and clients of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state, state_scheme
from vitehub_chat.state.options import AuthToken

__all__ = ["create_libsql_agent_state"]

SCHEMES = ("libsql", "https", "http", "wss", "ws", "file", "sqlite")
"""What a URL of this provider begins with."""


def create_libsql_agent_state(
    *,
    url: str | None = None,
    auth_token: AuthToken | None = None,
    client: object | None = None,
    transcripts: Mapping[str, Any] | None = None,
    table_prefix: str | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> AgentState:
    """Return an Agent State on a libSQL server or in a file; it opens with `async with`.

    Nothing is touched before it is opened, so this may stand in a module.

    Args:
        url: `libsql://HOST`, `https://`, `http://`, `wss://`, `ws://`, `file:PATH` or a path.
        auth_token: The token of a server, or a callable that gives one.
        client: An open client of `libsql_client` in place of a URL; who made it closes it.
        transcripts: `{"retention": …}`: `"forever"`, `"30d"`, milliseconds, or None.
        table_prefix: What the names of all tables begin with.
        clock: The source of the time, None is that of the server or of the machine.
        options: The other options of `StateOptions`, in either spelling.

    Raises:
        ConfigError: Neither a URL nor a client or both, a URL of another provider, or a wrong
            option.
        MissingDependencyError: The extra `libsql` or `libsql-client` is not installed.
    """
    given = {
        "auth_token": auth_token,
        "transcripts": transcripts,
        "table_prefix": table_prefix,
        **options,
    }
    known = ", ".join(SCHEMES)
    if (url is None) == (client is None):
        raise ConfigError("is needed, or 'client', not both", path="url", hint=f"known: {known}")
    if url is None:
        from vitehub_chat.state.providers.libsql.opening import (  # noqa: PLC0415  on demand
            open_client,
        )

        return open_client(client, clock=clock, **given)
    if state_scheme(url) not in SCHEMES:
        raise ConfigError("is not of this provider", path="url", hint=f"known: {known}")
    return open_agent_state(url, clock=clock, **given)
