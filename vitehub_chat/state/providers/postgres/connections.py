"""Connections: how a server is spoken to, and what its password is."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import Final

import attrs
import psycopg
from psycopg.pq.abc import PGconn

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.failures import of_connecting
from vitehub_chat.state.providers.postgres.target import Target

OLDEST_SERVER: Final = 130_000


@attrs.frozen
class Connector:
    """Opens connections to one database."""

    target: Target
    options: StateOptions

    async def connect(self) -> psycopg.AsyncConnection:
        """Open a connection that leaves transactions to its user.

        It prepares no statement and sets nothing that outlasts a transaction, so that a pooler
        may give every transaction to another connection.

        Raises:
            AttemptError: There is no server, or it refuses the user.
            ConfigError: There is no password where one was announced, the server is too old, or
                its database cannot store every character.
        """
        parameters = dict(self.target.parameters)
        password = await self._read_token()
        if password is not None:
            parameters["password"] = password
        failure = None
        try:
            connection = await psycopg.AsyncConnection.connect(
                autocommit=True, prepare_threshold=None, **parameters
            )
        except psycopg.Error as error:
            failure = of_connecting(error, self.target.hide_secrets)
        if failure is not None:
            raise failure  # outside of the handler, or it would carry the original error
        made = connection  # pyright: ignore[reportPossiblyUnboundVariable]
        try:
            _check_server(made.pgconn)
        except ConfigError:
            await made.close()
            raise
        return made

    async def _read_token(self) -> str | None:
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
        return await given if isinstance(given, Awaitable) else given


def _check_server(pgconn: PGconn) -> None:
    """Refuse a server that does not have what the statements use."""
    if pgconn.server_version < OLDEST_SERVER:
        raise ConfigError("is of a server before PostgreSQL 13", path="state.url")
    encoding = (pgconn.parameter_status(b"server_encoding") or b"").decode()
    if encoding != "UTF8":
        raise ConfigError(
            f"is of a database with the encoding {encoding!r}",
            path="state.url",
            hint="create one with the encoding UTF8",
        )
