"""Benchmark of what imports cost: whole processes, against those that do less.

Run it with `uv run --all-extras python tests/benchmarks/imports.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.measuring import Count, Rounds, Subject, freeze, read_options, report

NOTHING = "python -c pass"
PACKAGE = "import vitehub_chat"
NEEDED = "import attrs; from pydantic import BaseModel"
FIRST_CHAT = "from vitehub_chat import chat; chat()"
CLICK = "import click"
VERSION = "vitehub-chat --version"

VERSION_CODE = """
import sys
sys.argv = ["vitehub-chat", "--version"]
from vitehub_chat.cli.entry import main
sys.exit(main())
"""
GOAL_MS = 30
"""How long the import of the package may take beside the start of Python."""


async def main() -> None:
    """Measure and report."""
    options = read_options("imports")
    codes = {
        NOTHING: "pass",
        PACKAGE: PACKAGE,
        NEEDED: NEEDED,
        FIRST_CHAT: FIRST_CHAT,
        CLICK: CLICK,
        VERSION: VERSION_CODE,
    }
    freeze()
    measured = Rounds(time.perf_counter, collects=False)
    await measured.run(
        {name: _starting(code) for name, code in codes.items()}, 2 if options.is_tiny else 40
    )
    figures = [
        measured.figure(PACKAGE, NOTHING),
        measured.figure(FIRST_CHAT, NEEDED),
        measured.figure(VERSION, CLICK),
    ]
    package = figures[0]
    added = package.median_us * (1 - 1 / package.ratio) / 1000
    counts = [
        Count(
            what="milliseconds that the package adds to the start of Python",
            count=max(round(added), 0),
            goal=GOAL_MS,
            is_time=True,
        )
    ]
    report(options, figures, counts, {})


def _starting(code: str) -> Subject:
    async def start() -> object:
        return await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", code], check=True, capture_output=True
        )

    return start


if __name__ == "__main__":
    asyncio.run(main())
