"""Two processes that are killed and paused at random: each message is answered once, in order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.faults.homes import Home, new_home, open_home, options_of
from tests.faults.soak_rules import (
    ANSWERED,
    check_each_is_answered_once,
    check_one_writer,
    check_order,
    check_sessions,
    read_thread,
    session_of,
)
from vitehub_chat.model.ids import pick
from vitehub_chat.state.contract import AgentState

SCRIPT = Path(__file__).with_name("soak_process.py")
THREADS = ("t1", "t2")
ROUNDS = int(os.environ.get("VITEHUB_SOAK_ROUNDS", "1"))
"""How often the processes are disturbed in all these ways; more of it finds more."""
WAYS = ("kill", "kill", "pause", "pause")
PAUSE = 2.5
"""Longer than a lease of these processes."""
PATIENCE = 90.0


@attrs.define
class Sender:
    """One process after the other that sends messages, and again those that are not answered."""

    work: Mapping[str, Any]
    name: str
    folder: Path
    told: list[list[str]] = attrs.field(factory=list)
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    out: Path = Path()

    @property
    def sent(self) -> list[str]:
        """What was sent, as far as it is known."""
        return [each[1] for each in self.told if each[0] == "sent"]

    @property
    def ends(self) -> list[list[str]]:
        """What was told of each message that was answered: status, text, answer, session."""
        return [each for each in self.told if each[0] in ANSWERED]

    def start(self) -> None:
        """Start a process for what is not answered yet, and for more."""
        answered, sent = {each[1] for each in self.ends}, self.sent
        left = [text for text in sent if text not in answered]
        self.out = self.folder / f"{self.name}{self.starts}"
        self.starts += 1
        with self.out.open("wb") as out:
            work = {**self.work, "name": self.name, "left": left, "first": len(sent)}
            command = [sys.executable, "-W", "error", str(SCRIPT), json.dumps(work)]
            self.process = subprocess.Popen(command, stdout=out)

    def wait_for_work(self) -> None:
        """Wait until the process has run a turn."""
        end = time.monotonic() + PATIENCE
        while b"driven" not in self.out.read_bytes():
            assert time.monotonic() < end
            time.sleep(0.02)

    def pause(self) -> None:
        """Let the process stand still until its leases are over."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(PAUSE)
        self.process.send_signal(signal.SIGCONT)
        assert self.process.poll() is None

    def kill(self) -> None:
        """Kill the process, which must not have ended before."""
        assert self.process is not None
        self.process.kill()
        assert self.wait(20) == -signal.SIGKILL

    def wait(self, seconds: float) -> int:
        """Wait for the end of the process and note what it had told."""
        assert self.process is not None
        code = self.process.wait(seconds)
        self.process = None
        self.told += [json.loads(line) for line in self.out.read_text().splitlines()]
        return code

    def give_up(self) -> None:
        """Leave no process behind."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)


def soak(work: Mapping[str, Any], folder: Path) -> tuple[Sender, Sender]:
    """Let two processes send while one of them at a time is killed or paused."""
    note = folder / "enough"
    first, second = (Sender({**work, "note": str(note)}, name, folder) for name in "ab")
    try:
        for each in (first, second):
            each.start()
        for _ in range(ROUNDS):
            disturb((first, second))
        note.touch()
        for each in (first, second):
            assert each.wait(PATIENCE) == 0
    finally:
        for each in (first, second):
            each.give_up()
    return first, second


def disturb(senders: tuple[Sender, Sender]) -> None:
    """Kill and pause one sender or the other while it works, in an order left to chance."""
    ways = list(WAYS)
    while ways:
        way, sender = pick(ways), pick(senders)
        ways.remove(way)
        sender.wait_for_work()
        time.sleep(pick(range(100, 900)) / 1000)
        if way == "kill":
            sender.kill()
            sender.start()
        else:
            sender.pause()


async def check(home: Home, state: AgentState, senders: tuple[Sender, Sender]) -> None:
    """Check the rules that hold whatever happened."""
    ends = [each for sender in senders for each in sender.ends]
    answered_by = {text: answer.removeprefix("re ") for _, text, answer, _ in ends}
    assert [each for each in ends if each[3] != session_of(each[1])] == []
    for name in THREADS:
        sent = {text for sender in senders for text in sender.sent if text.split()[0] == name}
        assert sent
        thread = await read_thread(home, state, name)
        check_each_is_answered_once(thread, sent, answered_by)
        check_sessions(thread)
        check_order(thread)
        check_one_writer(thread)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        ("sqlite", "serial"),
        ("sqlite", "queue"),
        pytest.param("libsql", "queue", marks=pytest.mark.service),
        pytest.param("postgres", "serial", marks=pytest.mark.service),
    ],
)
async def test_processes_that_die_and_stand_still_lose_double_and_mix_up_nothing(
    kind: str, strategy: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    home = new_home(kind, request, tmp_path)
    options = dict(options_of(home))
    work = {"url": home.url, "strategy": strategy, "options": options, "threads": THREADS}
    senders = await asyncio.to_thread(soak, work, tmp_path)
    async with open_home(home) as state:
        await check(home, state, senders)
