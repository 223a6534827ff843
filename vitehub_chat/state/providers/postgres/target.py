"""Targets: which server and database a URL means."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from vitehub_chat.errors import ConfigError

_SCHEME: Final = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_PORTS: Final = re.compile(r"[0-9,]*")
_JDBC: Final = "ssl"  # libpq takes this one for `sslmode=require`

_DEFAULTS: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "fallback_application_name": "vitehub-chat",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""A server that is gone without a word is noticed within half a minute."""


@attrs.frozen
class Target:
    """Where a store is.

    Attributes:
        parameters: What libpq needs to connect; never printed.
    """

    parameters: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def password(self) -> str | None:
        """The password of the URL, or None."""
        return self.parameters.get("password")

    def hide_secrets(self, text: str) -> str:
        """Return a text without the password."""
        return text.replace(self.password, "***") if self.password else text


def parse_target(url: str) -> Target:
    """Return the server and database that a URL means.

    The URL is that of libpq, with all of its parameters and none besides, so that TLS and
    several hosts work as everywhere. What it leaves open comes from the variables of libpq.

    Raises:
        ConfigError: The URL is malformed or has a parameter that libpq does not know. The error
            shows nothing of it but the name of a parameter.
    """
    match = _SCHEME.match(url)
    if match is None:
        raise _invalid("must begin with 'postgresql://'")
    address, _, query = url[match.end() :].partition("?")
    authority, _, database = address.partition("/")
    if authority.count("@") > 1 or "@" in database or "@" in query:
        raise _invalid("has an '@' too many", hint="percent-encode user name and password")
    _check_names(query)
    parameters = None
    with contextlib.suppress(psycopg.Error):  # its text shows what it stumbled over
        parameters = conninfo_to_dict(f"postgresql://{url[match.end() :]}")
    if parameters is None or not _PORTS.fullmatch(str(parameters.get("port", ""))):
        raise _invalid("is malformed", hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    return Target({**_DEFAULTS, **parameters, "client_encoding": "utf8"})


def _check_names(query: str) -> None:
    known = [_JDBC, *(each.keyword.decode() for each in Conninfo.get_defaults())]
    for name, _ in parse_qsl(query):
        if name not in known:
            raise ConfigError.unknown_name(name, known, path="state.url", what="URL parameter")


def _invalid(message: str, hint: str | None = None) -> ConfigError:
    return ConfigError(f"the URL {message}", path="state.url", code="invalid_option", hint=hint)
