"""Tokens: what a server is shown, and where a new one comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable
from typing import Final

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.options import AuthToken
from vitehub_chat.state.providers.libsql.failures import unauthorized

_SENDABLE: Final = re.compile(r"[!-~]+")
_PATH: Final = "state.auth_token"


class TokenSource:
    """Where the token of a server comes from: a text, an environment variable or a callable.

    A callable is called at first use, and again when the server did not accept what it gave.
    """

    def __init__(self, token: AuthToken | None, variable: str | None = None) -> None:
        """Remember the source; `token` comes before the environment variable."""
        self._source = token
        self._variable = variable if token is None else None
        self._current: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def get(self) -> str | None:
        """Return the token, or None if there is no source of one.

        Raises:
            ConfigError: The source gives none, or one that cannot be sent.
        """
        if self._current is None:
            self._current = await self._read()
        return self._current

    async def renew(self, refused: str | None) -> str:
        """Return another token than one that was refused.

        Raises:
            ConfigError: There is none.
        """
        if self._current == refused:
            self._current = await self._read()
        if self._current is None or self._current == refused:
            raise unauthorized().error
        return self._current

    async def _read(self) -> str | None:
        if self._variable is not None:
            token = os.environ.get(self._variable)
            if not token:
                raise ConfigError(
                    f"names the variable {self._variable!r}, which is not set",
                    path="state.auth_token_env",
                )
            return _check(token)
        if callable(self._source):
            return _check(await _call(self._source))
        return None if self._source is None else _check(self._source)


async def _call(source: AuthToken) -> object:
    try:
        given = source() if callable(source) else source
        return await given if isinstance(given, Awaitable) else given
    except Exception as error:  # noqa: BLE001  the code of somebody else may raise anything
        # The error itself may show a secret.
        kind = type(error).__name__
        raise ConfigError(f"the callable raised {kind}", path=_PATH, code="unauthorized") from None


def _check(token: object) -> str:
    if isinstance(token, str) and _SENDABLE.fullmatch(token.strip()):
        return token.strip()
    raise ConfigError(
        "gives no token: it must be a text of visible ASCII characters without spaces",
        path=_PATH,
        code="invalid_option",
    )
