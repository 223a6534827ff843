"""A crew: processes that use a state at the same time, and may be killed while they do."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.network import Network

SCRIPT = Path(__file__).with_name("crew_process.py")
Told = list[Any]


class Crew:
    """Starts groups of children of one process, one group after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process; its children have ended before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(20) == 0
        self._process.stdout.close()

    def start(self, children: int, work: str, **arguments: Any) -> Iterator[Told]:
        """Start children and yield what they tell: process, word, facts.

        The last word is `done`; before it comes `gone` with process and exit code of each.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        command = {"children": children, "work": work, **arguments}
        print(json.dumps(command), file=self._process.stdin, flush=True)
        while True:
            told: Told = json.loads(self._process.stdout.readline())
            yield told
            if told[1] == "done":
                return

    def run(self, children: int, work: str, **arguments: Any) -> tuple[list[int], list[Told]]:
        """Start children, wait for them and return their exit codes and what they told."""
        told = list(self.start(children, work, **arguments))
        return [each[3] for each in told if each[1] == "gone"], told

    def kill_after(self, answers: int, /, **arguments: Any) -> list[tuple[int, str]]:
        """Start a child that appends, kill it after so many answers, and return all it got."""
        told: list[Told] = []
        pid = 0
        for each in self.start(1, "append", **arguments):
            told.append(each)
            if each[1] == "born":
                pid = each[2][0]
            if pid and len(stored_in(told)) >= answers:
                os.kill(pid, signal.SIGKILL)
                pid = 0
        assert [each[3] for each in told if each[1] == "gone"] == [-signal.SIGKILL], told
        return stored_in(told)

    def kill_in_network(self, network: Network, number: int, work: str, **arguments: Any) -> int:
        """Start a child, kill it before a piece passes the network, and return its exit code."""
        is_born = threading.Event()
        pids: list[int] = []

        def kill() -> None:
            assert is_born.wait(20)
            os.kill(pids[0], signal.SIGKILL)

        network.call_before(number, kill)
        code = 0
        for each in self.start(1, work, **arguments):
            if each[1] == "born":
                pids += each[2]
                is_born.set()
            elif each[1] == "gone":
                code = each[3]
        return code


def stored_in(told: list[Told]) -> list[tuple[int, str]]:
    """Return number and id of every message that was acknowledged."""
    return [(each[2], each[3]) for each in told if each[1] == "stored"]


def check_nothing_is_lost(rows: list[tuple[int, str]], acknowledged: list[tuple[int, str]]) -> None:
    """Check that numbers have no gap, that no id comes twice, and that what was answered is there.

    `rows` are number and id of all that is stored, by number.
    """
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    assert len({message_id for _, message_id in rows}) == len(rows)
    found = dict(rows)
    lost = {seq: each for seq, each in acknowledged if found.get(seq) != each}
    assert lost == {}


def counts_of_answers(kills: int, most: int) -> list[int]:
    """Return after how many answers each child is killed: the same numbers every time."""
    digest = hashlib.shake_128(b"answers").digest(kills)
    return [byte % (most + 1) for byte in digest]
