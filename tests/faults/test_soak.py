"""Two processes that are killed and paused at random: each message is answered once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.faults.homes import KINDS, new_home, open_home, options_of
from vitehub_chat.model.ids import pick
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import AgentState

SCRIPT = Path(__file__).with_name("soak_process.py")
THREADS = ("t1", "t2")
SECONDS = float(os.environ.get("VITEHUB_SOAK_SECONDS", "10"))
"""How long processes are killed and paused; more of it finds more."""
PAUSE = 3.0
"""Longer than a lease of these processes."""
PATIENCE = 90.0
ANSWERED = {"complete", "coalesced"}


@attrs.define
class Sender:
    """One process after the other that sends the same messages until all are answered."""

    work: Mapping[str, Any]
    name: str
    folder: Path
    texts: list[str]
    told: list[list[str]] = attrs.field(factory=list)
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    out: Path | None = None

    def start(self) -> None:
        """Start a process for what is not answered yet."""
        answered = {each[1] for each in self.told if each[0] in ANSWERED}
        left = [text for text in self.texts if text not in answered]
        self.out = self.folder / f"{self.name}{self.starts}"
        self.starts += 1
        with self.out.open("wb") as out:
            work = json.dumps({**self.work, "texts": left})
            command = [sys.executable, "-W", "error", str(SCRIPT), work]
            self.process = subprocess.Popen(command, stdout=out)

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the process if it runs, and note what it had told."""
        if self.process is not None:
            self.process.kill()
            self.wait(20)

    def wait(self, seconds: float) -> int:
        """Wait for the end of the process and note what it had told."""
        assert self.process is not None
        assert self.out is not None
        code = self.process.wait(seconds)
        self.process = None
        self.told += [json.loads(line) for line in self.out.read_text().splitlines()]
        return code


def soak(work: Mapping[str, Any], folder: Path) -> tuple[Sender, Sender]:
    """Let two processes send while one of them at a time is killed or paused, for a while."""
    count = int(20 + 8 * SECONDS)
    texts = {
        name: [f"{thread} {name}{n}" for n in range(count) for thread in THREADS] for name in "ab"
    }
    first, second = (Sender(work, name, folder, texts[name]) for name in "ab")
    try:
        for each in (first, second):
            each.start()
        disturb((first, second))
        for each in (first, second):
            assert each.wait(PATIENCE) == 0
    finally:
        for each in (first, second):
            each.kill()
    return first, second


def disturb(senders: tuple[Sender, Sender]) -> None:
    """Kill and pause one sender or the other, by chance."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(pick(range(300, 1500)) / 1000)
        sender = pick(senders)
        if pick((True, True, False)):
            sender.kill()
            sender.start()
        else:
            sender.send_signal(signal.SIGSTOP)
            time.sleep(PAUSE)
            sender.send_signal(signal.SIGCONT)


async def check(state: AgentState, senders: tuple[Sender, Sender]) -> None:
    """Check that every message is stored once and answered once, in its own thread."""
    told = [each for sender in senders for each in sender.told]
    answered_by = {each[1]: each[2].removeprefix("re ") for each in told if each[0] in ANSWERED}
    for thread in THREADS:
        sent = {text for sender in senders for text in sender.texts if is_in(thread, text)}
        rows = await rows_of(state, thread)
        said = Counter(text for role, _, text in rows if role == "user")
        assert said == Counter(sent)
        answers = Counter(
            text.removeprefix("re ")
            for role, status, text in rows
            if role == "assistant" and status == "complete"
        )
        assert answers == Counter(answers.keys())
        assert answers.keys() <= sent
        assert {answered_by[text] for text in sent} == answers.keys()


async def rows_of(state: AgentState, thread: str) -> list[tuple[str, str, str]]:
    """Return role, status and text of every row of a thread."""
    key = ConversationKey(None, "station", None, thread)
    batches = [batch async for batch in state.transcripts.export(key)]
    return [
        (row.message.role, row.status, row.message.text) for batch in batches for row in batch.rows
    ]


def is_in(thread: str, text: str) -> bool:
    """Tell whether a message belongs to a thread."""
    return text.split(maxsplit=1)[0] == thread


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("strategy", ["serial", "queue"])
@pytest.mark.parametrize("kind", KINDS)
async def test_processes_that_die_and_stand_still_lose_and_double_nothing(
    kind: str, strategy: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    home = new_home(kind, request, tmp_path)
    work = {"url": home.url, "strategy": strategy, "options": dict(options_of(home))}
    senders = await asyncio.to_thread(soak, work, tmp_path)
    async with open_home(home) as state:
        await check(state, senders)
