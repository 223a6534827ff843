"""Homes: a store of a test's own with each durable provider, and a look below its surface."""

from __future__ import annotations

import itertools
import json
import sqlite3
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import attrs
import psycopg
import pytest

from tests.providers.postgres_server import PostgresServer
from tests.providers.sqld_server import SqldServer
from vitehub_chat import open_agent_state
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.stepped import SteppedAgentState

PREFIX = "vitehub_agent_state_"
KINDS = [
    "sqlite",
    pytest.param("libsql", marks=pytest.mark.service),
    pytest.param("postgres", marks=pytest.mark.service),
]
"""For parametrised tests; the first one needs no server."""

_numbers = itertools.count()
_Rows = list[tuple[Any, ...]]


class Home(Protocol):
    """Where a store is."""

    @property
    def kind(self) -> str:
        """Which provider."""

    @property
    def url(self) -> str:
        """What it is opened by."""

    @property
    def prefix(self) -> str:
        """What the names of its tables begin with."""

    def ask(self, sql: str) -> _Rows:
        """Ask or change the tables behind the back of the provider; `$` is the prefix."""

    def restore(self, dump: str) -> None:
        """Make what a dump describes, whose prefix is the default one."""

    def tables(self) -> Sequence[object]:
        """Describe the tables and indexes of the prefix, without it."""


def options_of(home: Home) -> Mapping[str, Any]:
    """Return the options that say which store it is; plain JSON."""
    return {"table_prefix": home.prefix}


def open_home(home: Home, **options: Any) -> SteppedAgentState:
    """Return a closed state of a home."""
    state: AgentState = open_agent_state(home.url, **options_of(home), **options)
    assert isinstance(state, SteppedAgentState)
    return state


def rows_in(home: Home) -> list[tuple[int, str]]:
    """Return number and id of every stored message, by number."""
    found = home.ask("SELECT id & 4294967295, message_id FROM $rows ORDER BY id")
    return [(int(seq), str(message_id)) for seq, message_id in found]


@attrs.frozen
class SqliteHome:
    """A file."""

    path: Path
    kind: str = "sqlite"
    prefix: str = PREFIX

    @property
    def url(self) -> str:
        return f"file:{self.path}"

    def ask(self, sql: str) -> _Rows:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql.replace("$", self.prefix)).fetchall()

    def restore(self, dump: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(dump)

    def tables(self) -> Sequence[object]:
        return _sqlite_tables(self)


@attrs.frozen
class LibsqlHome:
    """Tables of a libSQL server; `url` may lead to it by way of something else."""

    server: SqldServer
    url: str
    prefix: str
    kind: str = "libsql"

    def ask(self, sql: str) -> _Rows:
        stmt = {"sql": sql.replace("$", self.prefix)}
        result = self._send({"type": "execute", "stmt": stmt})["result"]
        return [tuple(map(_value, row)) for row in result["rows"]]

    def restore(self, dump: str) -> None:
        # The server keeps the counters of AUTOINCREMENT, too, but takes no dump of all of them.
        lines = dump.replace(PREFIX, self.prefix).replace('DELETE FROM "sqlite_sequence";\n', "")
        self._send({"type": "sequence", "sql": lines})

    def tables(self) -> Sequence[object]:
        return _sqlite_tables(self)

    def _send(self, part: dict[str, Any]) -> Any:
        body = json.dumps({"requests": [part, {"type": "close"}]}).encode()
        request = urllib.request.Request(  # noqa: S310  the loopback
            f"{self.server.url}/v3/pipeline", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            first = json.load(answer)["results"][0]
        assert first["type"] == "ok", first
        return first["response"]


@attrs.frozen
class PostgresHome:
    """Tables of a PostgreSQL server."""

    server: PostgresServer
    url: str
    prefix: str
    kind: str = "postgres"

    def ask(self, sql: str) -> _Rows:
        return self.server.execute(sql.replace("$", self.prefix))

    def restore(self, dump: str) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(dump.replace(PREFIX, self.prefix).encode())

    def tables(self) -> Sequence[object]:
        columns = self.ask(
            "SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity"
            " FROM information_schema.columns WHERE starts_with(table_name, '$')"
            " ORDER BY table_name, column_name"
        )
        indexes = self.ask(
            "SELECT indexdef FROM pg_indexes WHERE starts_with(tablename, '$') ORDER BY indexname"
        )
        rules = self.ask(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE starts_with(conrelid::regclass::text, '$') ORDER BY 1, 2"
        )
        return _without_prefix(self.prefix, [*columns, *indexes, *rules])


def new_sqlite_home(folder: Path) -> SqliteHome:
    """Return the place of a file that is not there yet."""
    return SqliteHome(folder / f"state{next(_numbers)}.db")


def new_libsql_home(server: SqldServer, url: str | None = None) -> LibsqlHome:
    """Return a place without tables."""
    return LibsqlHome(server, url or server.url, f"home{next(_numbers)}_")


def new_postgres_home(server: PostgresServer, url: str | None = None) -> PostgresHome:
    """Return a place without tables."""
    return PostgresHome(server, url or server.url, f"home{next(_numbers)}_")


def new_home(kind: str, request: pytest.FixtureRequest, folder: Path) -> Home:
    """Return a place of a kind, starting its server if nobody did."""
    if kind == "libsql":
        return new_libsql_home(request.getfixturevalue("sqld"))
    if kind == "postgres":
        return new_postgres_home(request.getfixturevalue("postgres"))
    return new_sqlite_home(folder)


def _sqlite_tables(home: Home) -> Sequence[object]:
    found = home.ask("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 2")
    return _without_prefix(home.prefix, [each for each in found if home.prefix in str(each[1])])


def _without_prefix(prefix: str, found: _Rows) -> Sequence[object]:
    return [tuple(str(value).replace(prefix, "$") for value in each) for each in found]


def _value(cell: Mapping[str, Any]) -> object:
    value = cell.get("value")
    return int(str(value)) if cell["type"] == "integer" else value


__all__ = [
    "KINDS",
    "Home",
    "LibsqlHome",
    "PostgresHome",
    "SqliteHome",
    "new_home",
    "new_libsql_home",
    "new_postgres_home",
    "new_sqlite_home",
    "open_home",
    "options_of",
    "rows_in",
]
