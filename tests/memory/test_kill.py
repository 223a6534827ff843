"""A process that is killed in a flush: the next turn leaves one section per id."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory.killed import POINTS, ROWS, run_turn
from tests.memory.notes import ranges, sections_in

SCRIPT = Path(__file__).with_name("killed.py")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with what children left that were killed, each at another point."""
    home = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(home), *POINTS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [
        word for point in POINTS for word in (point, str(-signal.SIGKILL))
    ]
    return home


@pytest.mark.parametrize("point", POINTS)
def test_after_a_kill_every_section_is_there_once_and_whole(killed: Path, point: str) -> None:
    folder = killed / point
    asyncio.run(run_turn(folder, 1))
    found = sorted(ranges(sections_in(folder / "memory")))
    assert found[0] == (1, 4)
    starts = [first for first, _ in found]
    assert starts == [1, *(last + 1 for _, last in found[:-1])]
    assert found[-1][1] <= ROWS
