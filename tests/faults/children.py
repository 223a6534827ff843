"""Children: processes that run turns and are killed while they do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vitehub_chat import chat, define_agent, open_agent_state
from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.driver import DriverCall
from vitehub_chat.state.contract import AgentState

WORKER = Path(__file__).with_name("worker.py")
Told = list[Any]


class Children:
    """Starts children of one process, one at a time, and kills each of them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(20) == 0
        self._process.stdout.close()

    def kill_at(self, is_moment: Callable[[list[Told]], bool], **work: Any) -> list[Told]:
        """Start a child, kill it when what it has told is enough, and return all that it told."""
        assert self._process.stdin is not None
        print(json.dumps(work), file=self._process.stdin, flush=True)
        told: list[Told] = []
        pid = 0
        while True:
            told.append(self._next())
            if told[-1][0] == "born":
                pid = told.pop()[1]
            elif told[-1][0] == "gone":
                assert told.pop()[1] == -signal.SIGKILL, told
                return told
            if pid and is_moment(told):
                os.kill(pid, signal.SIGKILL)
                pid = 0

    def _next(self) -> Told:
        assert self._process.stdout is not None
        told: Told = json.loads(self._process.stdout.readline())
        return told


def at_point(point: str, times: int = 1) -> Callable[[list[Told]], bool]:
    """Return whether a child told a point so many times, where it stands still."""
    return lambda told: [each[0] for each in told].count(point) == times


def points_of(told: Sequence[Told], point: str) -> Mapping[str, Told]:
    """Return what was told at a point, by message."""
    return {each[1]: each[2:] for each in told if each[0] == point}


class Counting:
    """A driver that answers at once and counts."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, call: DriverCall) -> str:
        self.calls.append(call.text)
        return f"re {call.text}"


def agent_on(state: AgentState, driver: Counting, **options: Any) -> Agent:
    """Return an agent like that of the children, for the time after them."""
    capabilities = [chat(options)]
    return define_agent(name="station", driver=driver, capabilities=capabilities, state=state)


__all__ = ["Children", "Counting", "agent_on", "at_point", "open_agent_state", "points_of"]
