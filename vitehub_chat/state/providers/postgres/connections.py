"""Connections: how a server is spoken to, and what its password is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable

import attrs
import psycopg

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.target import Target
from vitehub_chat.state.providers.postgres.texts import use_escaped_texts
from vitehub_chat.state.sql.mapping import Columns


@attrs.frozen
class Connector:
    """Opens connections to one database; blocks, so it is called by workers only."""

    target: Target
    options: StateOptions

    def connect(self) -> psycopg.Connection[Columns]:
        """Open a connection that leaves transactions to its user.

        It prepares no statement and sets nothing that outlasts a transaction, so that a pooler
        may give every transaction to another connection.
        """
        parameters = dict(self.target.parameters)
        password = self._read_token()
        if password is not None:
            parameters["password"] = password
        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **parameters)
        use_escaped_texts(connection)
        return connection

    def _read_token(self) -> str | None:
        """Return the token, which the server takes as the password; a callable gives a new one."""
        token, variable = self.options.auth_token, self.options.auth_token_env
        if token is None and variable is not None:
            token = os.environ.get(variable)
            if not token:
                raise ConfigError(
                    f"names the variable {variable!r}, which is not set",
                    path="state.auth_token_env",
                )
        given = token() if callable(token) else token
        return asyncio.run(_awaited(given)) if isinstance(given, Awaitable) else given


async def _awaited(token: Awaitable[str]) -> str:
    return await token
