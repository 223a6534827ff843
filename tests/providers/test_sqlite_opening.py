"""Opening a state file: what it gets, and what is refused."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.providers.sqlite_helpers import (
    KEY,
    append,
    change,
    connection_of,
    do_nothing,
    files_in,
    query,
    start,
    stored,
)
from vitehub_chat.errors import ConfigError, SchemaVersionError, StateClosedError, StateError
from vitehub_chat.state.providers.sqlite import open_sqlite

OPEN_MANY = """
import asyncio, sys
from vitehub_chat.state.providers.sqlite import open_sqlite

async def use(path):
    async with open_sqlite(path) as state:
        await state.run_read(lambda tx: tx.secret)

async def main(path):
    await asyncio.gather(*(use(path) for _ in range(10)))

print("ready", flush=True)
for line in sys.stdin:
    asyncio.run(main(line.strip()))
    print("done", flush=True)
"""


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


async def test_a_new_file_is_made_for_its_owner_alone_in_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
    assert [each.name for each in path.parent.iterdir()] == ["state.db"]


async def test_a_relative_path_starts_where_the_state_was_opened_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_sqlite("file:state.db") as state:
        await append(state, "m1")
        monkeypatch.chdir("/")
        assert await stored(state) == [(1, "m1")]
    assert (tmp_path / "state.db").is_file()


async def test_the_mode_of_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(mode=0o640)
    async with open_sqlite(path.as_uri()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_every_connection_has_its_settings(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db", busy_timeout_ms=1234) as state:
        await state.run_read(lambda tx: tx.secret)
        settings = {
            worker: {
                name: pragma(connection_of(state, worker), name)
                for name in (
                    "journal_mode",
                    "auto_vacuum",
                    "synchronous",
                    "busy_timeout",
                    "foreign_keys",
                    "secure_delete",
                    "temp_store",
                    "journal_size_limit",
                    "trusted_schema",
                    "query_only",
                )
            }
            for worker in ("writer", "reader")
        }
    common = {
        "journal_mode": "wal",
        "auto_vacuum": 2,
        "busy_timeout": 1234,
        "foreign_keys": 1,
        "secure_delete": 1,
        "temp_store": 2,
        "journal_size_limit": 16 * 1024 * 1024,
        "trusted_schema": 0,
    }
    assert settings == {
        "writer": {**common, "synchronous": 2, "query_only": 0},
        "reader": {**common, "synchronous": 1, "query_only": 1},
    }


async def test_normal_durability_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db", durability="normal") as state:
        assert pragma(connection_of(state), "synchronous") == 1


async def test_a_store_keeps_its_secret_and_its_tokens(tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        async with open_sqlite(f"file:{tmp_path}/x.db") as state:
            secret = await state.run_read(lambda tx: tx.secret)
            seen.append((secret, await state.run_write(lambda tx: tx.locks.next_token())))
    async with open_sqlite(f"file:{tmp_path}/y.db") as other:
        other_secret = await other.run_read(lambda tx: tx.secret)
    assert [token for _, token in seen] == [1, 2]
    assert seen[0][0] == seen[1][0] != other_secret
    assert len(other_secret) == 32


async def test_two_prefixes_are_two_stores_in_one_file(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/x.db"
    async with open_sqlite(url, table_prefix="a_") as one, open_sqlite(url) as two:
        await append(one, "m1")
        assert (await stored(one), await stored(two)) == ([(1, "m1")], [])


async def test_tables_of_others_in_the_file_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    change(path, "CREATE TABLE theirs AS SELECT 1 AS x")
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "m1")
    assert query(path, "SELECT x FROM theirs") == [(1,)]


async def test_p20_ten_opens_each_of_four_processes_migrate_once(tmp_path: Path) -> None:
    processes = [start(OPEN_MANY) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for number in range(5):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{tmp_path}/{number}.db\n")
            process.stdin.flush()
        answers = [process.stdout.readline() for process in processes if process.stdout]
        assert answers == ["done\n"] * 4
        path = tmp_path / f"{number}.db"
        assert query(path, "SELECT version FROM $schema") == [(1,), (2,), (3,)]
        assert query(path, "SELECT count(*) FROM $meta") == [(1,)]
        assert query(path, "PRAGMA auto_vacuum") == [(2,)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0


async def test_a_newer_schema_is_refused_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}"):
        pass
    change(path, "INSERT INTO $schema VALUES (99, 0, 'of the future')")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="99"):
        await open_sqlite(f"file:{path}", transcripts={"retention": "forever"}).__aenter__()
    assert path.read_bytes() == before


async def test_a_newer_schema_in_another_journal_mode_stays_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    change(path, "CREATE TABLE $schema (version INTEGER, at INTEGER, checksum TEXT)")
    change(path, "INSERT INTO $schema VALUES (99, 0, '')")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError):
        await open_sqlite(f"file:{path}").__aenter__()
    assert path.read_bytes() == before


async def test_a_schema_of_the_same_number_with_another_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}"):
        pass
    change(path, "UPDATE $schema SET checksum = 'of another branch'")
    with pytest.raises(SchemaVersionError, match="version 1"):
        await open_sqlite(f"file:{path}").__aenter__()


@pytest.mark.parametrize("exists", [True, False])
async def test_without_migrate_a_store_without_schema_is_refused(
    tmp_path: Path, *, exists: bool
) -> None:
    path = tmp_path / "x.db"
    if exists:
        path.touch()
    with pytest.raises(ConfigError, match=r"state\.migrate"):
        await open_sqlite(f"file:{path}", migrate=False).__aenter__()
    assert files_in(tmp_path) == ({"x.db": b""} if exists else {})


async def test_without_migrate_a_store_with_the_newest_schema_opens(tmp_path: Path) -> None:
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
    async with open_sqlite(f"file:{tmp_path}/x.db", migrate=False) as state:
        assert await stored(state) == [(1, "m1")]


async def test_a_failed_open_leaves_nothing_open_and_may_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"this is a letter, not a database" * 100)
    state = open_sqlite(f"file:{path}")
    with pytest.raises(StateError) as raised:
        await state.__aenter__()
    assert raised.value.code == "corrupt"
    assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)
    with pytest.raises(StateClosedError):
        await stored(state)
    path.unlink()
    async with state:
        assert await append(state, "m1") == [1]


@pytest.mark.parametrize("where", [".", "x.txt/x.db"])
async def test_a_path_where_no_file_can_be_is_an_error_without_the_path(
    tmp_path: Path, where: str
) -> None:
    (tmp_path / "x.txt").touch()
    with pytest.raises(StateError) as raised:
        await open_sqlite(f"file:{tmp_path}/{where}").__aenter__()
    assert str(tmp_path) not in str(raised.value)


async def test_concurrent_opens_of_one_object_share_one_attempt(tmp_path: Path) -> None:
    state = open_sqlite(f"file:{tmp_path}/x.db")
    await asyncio.gather(*(state.__aenter__() for _ in range(10)))
    assert await append(state, "m1") == [1]
    await state.aclose()


async def test_an_open_that_is_cancelled_leaves_the_state_closed(tmp_path: Path) -> None:
    state = open_sqlite(f"file:{tmp_path}/x.db")
    opening = asyncio.ensure_future(state.__aenter__())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(StateClosedError):
        await append(state, "m1")
    async with state:
        assert await append(state, "m1") == [1]


async def test_p01_a_state_is_used_between_open_and_close_only(tmp_path: Path) -> None:
    state = open_sqlite(f"file:{tmp_path}/x.db")
    with pytest.raises(StateClosedError):
        await append(state, "m1")
    async with state:
        await append(state, "m1")
    await state.aclose()
    with pytest.raises(StateClosedError):
        await append(state, "m2")
    with pytest.raises(StateClosedError):
        await stored(state)
    async with state:
        assert await stored(state) == [(1, "m1")]


async def test_closing_waits_for_what_was_asked_before(tmp_path: Path) -> None:
    state = await open_sqlite(f"file:{tmp_path}/x.db").__aenter__()
    tasks = [asyncio.ensure_future(append(state, f"m{number}")) for number in range(100)]
    await asyncio.sleep(0)
    await state.aclose()
    assert await asyncio.gather(*tasks) == [[number + 1] for number in range(100)]


async def test_deleted_text_is_in_no_file_of_the_store(tmp_path: Path) -> None:
    marker = b"a secret that was told"
    async with open_sqlite(f"file:{tmp_path}/x.db") as state:
        await append(state, "m1")
        await state.summaries.save_manual(KEY, session_id=None, text=marker.decode() * 1000)
        assert marker in b"".join(files_in(tmp_path).values())
        await state.sessions.clear(KEY)
        await state.run_write(do_nothing)
        assert marker not in b"".join(files_in(tmp_path).values())


async def test_a_store_in_memory_is_complete_and_forgets(tmp_path: Path) -> None:
    state = open_sqlite("file::memory:")
    async with state:
        await append(state, "m1")
        assert await stored(state) == [(1, "m1")]
    async with state:
        assert await stored(state) == []
    assert files_in(tmp_path) == {}


async def test_a_state_file_made_by_hand_is_opened_beside_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with open_sqlite(f"file:{path}") as state:
        with closing(sqlite3.connect(path)) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT * FROM sqlite_schema").fetchall()
            assert await append(state, "m1") == [1]
