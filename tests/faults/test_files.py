"""What happens to state files: deleted, replaced, damaged, full, read-only, locked."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.disks import Disk, small_disk
from tests.faults.homes import SqliteHome
from tests.providers.sqlite_helpers import SESSION, append, connection_of, row, stored
from vitehub_chat.errors import StateError, StateUnavailableError
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.state.providers.sqlite.state import SqliteAgentState

HELD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for sql in sys.argv[2:]:
    connection.execute(sql)
print("held", flush=True)
sys.stdin.read()
"""

READ_ONLY = """
import asyncio, json, os, sys
from pathlib import Path
from tests.providers.sqlite_helpers import append, stored
from vitehub_chat.errors import StateError
from vitehub_chat.state.providers.sqlite import open_sqlite

IS_ROOT = os.geteuid() == 0
NOBODY = 65534

def forbid(path, mode):
    os.chmod(path, mode)
    if IS_ROOT:  # whom permissions do not bind
        os.seteuid(NOBODY)

def allow(path, mode):
    if IS_ROOT:
        os.seteuid(0)
    os.chmod(path, mode)

async def main(path, subject, forbidden, allowed):
    state = open_sqlite(path)
    async with open_sqlite(":memory:"):
        pass  # everything is loaded now, that nobody may not read
    forbid(subject, int(forbidden, 8))
    try:
        await state.__aenter__()
    except StateError as error:
        told = [type(error).__name__, error.code, type(error.__cause__).__name__, str(error)]
    before = sorted(each.name for each in Path(path).parent.iterdir())
    allow(subject, int(allowed, 8))
    async with state:
        await append(state, "b")
        print(json.dumps([told, before, await stored(state)]))

asyncio.run(main(*sys.argv[1:]))
"""

FULL = """
import asyncio, json, resource, signal, sys
from tests.providers.sqlite_helpers import SESSION, append, row, stored
from vitehub_chat.errors import StateError
from vitehub_chat.state.providers.sqlite import open_sqlite

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main(path):
    async with open_sqlite(path) as state:
        await append(state, "a")
        limit(500_000)
        told = []
        for name in ("b", "c"):
            rows = [row(f"{name}{number}", "x" * 100_000) for number in range(8)]
            try:
                await state.transcripts.append(SESSION, rows=rows)
            except StateError as error:
                told.append([type(error).__name__, error.code, await stored(state)])
        limit(resource.RLIM_INFINITY)
        await append(state, "d")
        print(json.dumps([told, await stored(state)]))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a state file."""
    return tmp_path / "state.db"


async def expect_gone(state: SqliteAgentState, how: str) -> None:
    """Check that the next call tells that the file is gone."""
    with pytest.raises(StateError, match="deleted or replaced") as raised:
        await (append(state, "lost") if how == "write" else stored(state))
    assert (type(raised.value), raised.value.code) == (StateError, "state_error")
    assert raised.value.hint is not None


@pytest.mark.parametrize("how", ["write", "read"])
@pytest.mark.parametrize("logs", ["logs stay", "logs go"])
async def test_a_file_deleted_while_it_is_open_is_noticed_and_made_anew(
    path: Path, how: str, logs: str
) -> None:
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
        assert await stored(state) == [(1, "a")]
        for each in list(path.parent.iterdir()):
            if each == path or logs == "logs go":
                each.unlink()
        await expect_gone(state, how)
        assert await append(state, "b") == [1]
        assert await stored(state) == [(1, "b")]
    assert SqliteHome(path).ask("SELECT message_id FROM $rows") == [("b",)]
    assert SqliteHome(path).ask("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("how", ["write", "read"])
async def test_a_file_replaced_while_it_is_open_is_noticed_and_the_new_one_is_used(
    path: Path, how: str
) -> None:
    other = path.with_name("backup.db")
    async with open_sqlite(f"file:{other}") as backup:
        await append(backup, "from", "backup")
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
        assert await stored(state) == [(1, "a")]
        os.rename(other, path)  # noqa: PTH104
        await expect_gone(state, how)
        assert await stored(state) == [(1, "from"), (2, "backup")]
        assert await append(state, "b") == [3]
    found = SqliteHome(path).ask("SELECT message_id FROM $rows ORDER BY id")
    assert found == [("from",), ("backup",), ("b",)]
    assert SqliteHome(path).ask("PRAGMA integrity_check") == [("ok",)]


async def test_a_file_moved_away_keeps_what_was_acknowledged(path: Path) -> None:
    away = path.with_name("away.db")
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a", "b")
        os.rename(path, away)  # noqa: PTH104
        await expect_gone(state, "write")
        assert await append(state, "c") == [1]
    assert SqliteHome(away).ask("SELECT message_id FROM $rows") == [("a",), ("b",)]


async def test_a_folder_deleted_while_its_file_is_open_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "state.db"
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
        shutil.rmtree(path.parent)
        await expect_gone(state, "write")
        assert await append(state, "b") == [1]


async def test_a_file_deleted_while_a_write_is_under_way_acknowledges_nothing(path: Path) -> None:
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
        with pytest.raises(StateError, match="deleted or replaced"):
            await state.run_write(lambda _tx: path.unlink())
        assert await append(state, "b") == [1]


async def test_many_writers_of_a_deleted_file_are_all_told(path: Path) -> None:
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
        os.unlink(path)  # noqa: PTH108
        tasks = (append(state, f"m{number}") for number in range(30))
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        told = [each for each in answers if isinstance(each, StateError)]
        assert 1 <= len(told) <= 30
        stored_ids = [message_id for _, message_id in await stored(state)]
        assert len(stored_ids) == 30 - len(told)
        assert "a" not in stored_ids


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Overwrite the first page of the table of messages for a while."""
    home = SqliteHome(path)
    [(root,)] = home.ask("SELECT rootpage FROM sqlite_schema WHERE name = '$rows'")
    [(size,)] = home.ask("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        before = file.read(size)
        write_at(path, (root - 1) * size, b"\xff" * size)
        try:
            yield
        finally:
            write_at(path, (root - 1) * size, before)


def write_at(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


async def test_a_damaged_file_is_told_and_works_again_when_it_is_whole(path: Path) -> None:
    async with open_sqlite(f"file:{path}") as state:
        await append(state, *(f"m{number}" for number in range(50)))
    with damaged(path):
        state = await open_sqlite(f"file:{path}").__aenter__()
        for _ in range(2):
            for call in (append(state, "n"), stored(state)):
                with pytest.raises(StateError) as raised:
                    await call
                assert (type(raised.value), raised.value.code) == (StateError, "corrupt")
                assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)
    assert len(await stored(state)) == 50
    assert await append(state, "n") == [51]
    await state.aclose()
    assert SqliteHome(path).ask("PRAGMA integrity_check") == [("ok",)]


@contextmanager
def another_process(path: Path, *statements: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold what statements lock; it dies by `kill -9`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


async def test_a_file_that_another_process_keeps_locked_is_unavailable_until_that_is_killed(
    path: Path,
) -> None:
    async with open_sqlite(f"file:{path}", busy_timeout_ms=20) as state:
        await append(state, "a")
        with another_process(path, "BEGIN IMMEDIATE", "DELETE FROM vitehub_agent_state_rows"):
            with pytest.raises(StateUnavailableError) as raised:
                await append(state, "b", "c")
            assert await stored(state) == [(1, "a")]
        assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)
        assert raised.value.code == "state_unavailable"
        assert await append(state, "b", "c") == [2, 3]


async def test_a_file_locked_by_another_process_at_open_opens_when_that_is_killed(
    path: Path,
) -> None:
    async with open_sqlite(f"file:{path}") as state:
        await append(state, "a")
    state = open_sqlite(f"file:{path}", busy_timeout_ms=20)
    with another_process(path, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
        with pytest.raises(StateUnavailableError) as raised:
            await state.__aenter__()
        assert (raised.value.outcome, raised.value.retryable) == ("not_written", True)
    async with state:
        assert await append(state, "b") == [2]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that every user may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("subject", "mode", "found"),
    [
        ("file", "444", [[1, "a"], [2, "b"]]),
        ("folder", "555", [[1, "a"], [2, "b"]]),
        ("no file", "555", [[1, "b"]]),
    ],
)
async def test_what_may_only_be_read_is_told_at_open_which_may_be_repeated(
    open_folder: Path, subject: str, mode: str, found: list[list[object]]
) -> None:
    folder = open_folder / "folder"
    folder.mkdir()
    path = folder / "state.db"
    if subject != "no file":
        async with open_sqlite(f"file:{path}") as state:
            await append(state, "a")
        path.chmod(0o666)
    folder.chmod(0o777)
    forbidden = path if subject == "file" else folder
    allowed = "666" if subject == "file" else "777"
    told, before, rows = await asyncio.to_thread(
        run, READ_ONLY, str(path), str(forbidden), mode, allowed
    )
    assert told[:2] == ["StateError", "read_only"]
    assert str(folder) not in str(told[3])
    assert before[:1] == ([] if subject == "no file" else ["state.db"])
    assert rows == found


async def test_a_file_that_may_not_grow_takes_nothing_by_halves(path: Path) -> None:
    told, rows = await asyncio.to_thread(run, FULL, str(path))
    assert told == [["StateError", "state_error", [[1, "a"]]]] * 2
    assert rows == [[1, "a"], [2, "d"]]


def run(script: str, *arguments: str) -> list[list[object]]:
    """Run a script in a process of its own and return what it told."""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer: list[list[object]] = json.loads(done.stdout)
    return answer


@pytest.mark.service
async def test_a_full_disk_takes_nothing_by_halves_and_works_again_with_more_space() -> None:
    with small_disk(1_000_000) as disk:
        async with open_sqlite(f"file:{disk.folder}/state.db") as state:
            await fill(state, disk)


async def fill(state: SqliteAgentState, disk: Disk) -> None:
    whole = 0

    async def append_large() -> None:
        nonlocal whole
        while True:
            large = [row(f"{name}{whole}", "x" * 20_000) for name in "ab"]
            await state.transcripts.append(SESSION, rows=large)
            whole += 1

    with pytest.raises(StateError) as raised:
        await append_large()
    assert (type(raised.value), raised.value.code) == (StateError, "no_space")
    for _ in range(2):
        with pytest.raises(StateError, match="no space left"):
            await state.transcripts.append(SESSION, rows=[row("c", "x" * 20_000)])
    found = [message_id for _, message_id in await stored(state)]
    assert found == [f"{name}{number}" for number in range(whole) for name in "ab"]
    disk.resize(32_000_000)
    assert await append(state, "c") == [2 * whole + 1]
    assert connection_of(state).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
