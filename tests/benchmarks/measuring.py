"""Measuring: subjects in turn, round after round, and the ratios of what they took."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sqlite3
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from vitehub_chat.model.clock import SystemClock

Subject = Callable[[], Awaitable[object]]


@attrs.frozen(kw_only=True)
class Options:
    """How a benchmark was called: `is_tiny` only shows that it runs."""

    is_json: bool
    is_tiny: bool


@attrs.frozen(kw_only=True)
class Figure:
    """One ratio: of a subject to what it is measured against, in one run.

    Attributes:
        ratio: The median of the ratios of all rounds: of times, so that less is better, or of what
            was done in the same time, so that more is better.
        quartiles: The first and the third quartile of these.
        calm_ratio: The ratio of the first deciles of both, which a busy machine disturbs least.
        median_us: What the subject took for one of what it does, in microseconds.
        goal: The highest ratio that is good enough, the lowest one of a rate, or None.
        is_rate: Whether more is better.
    """

    what: str
    against: str
    ratio: float
    quartiles: tuple[float, float]
    calm_ratio: float
    median_us: float
    goal: float | None = None
    is_rate: bool = False


@attrs.frozen(kw_only=True)
class Count:
    """Something that was counted.

    Attributes:
        goal: The highest number that is good enough, or None.
        is_time: Whether it is a time, which says little on a busy machine.
    """

    what: str
    count: int
    goal: int | None = None
    is_time: bool = False


class Rounds:
    """What some subjects took, each of them once per round, in alternating order."""

    def __init__(self, clock: Callable[[], float], *, collects: bool) -> None:
        """Measure with a clock; `collects` rids each subject of the garbage of the others."""
        self._clock = clock
        self._collects = collects
        self._times: dict[str, list[float]] = {}

    async def run(
        self,
        subjects: Mapping[str, Subject],
        rounds: int,
        sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Run a round to warm up, and then so many that count.

        `sizes` say of subjects that do more than one thing how many they do.
        """
        self._times = {name: [] for name in subjects}
        for number in range(rounds + 1):
            order = list(subjects.items())
            for name, subject in reversed(order) if number % 2 else order:
                if self._collects:
                    gc.collect()
                begin = self._clock()
                answer = await subject()
                took = self._clock() - begin
                del answer
                if number > 0:
                    self._times[name].append(took / sizes.get(name, 1))

    def figure(self, what: str, against: str, goal: float | None = None) -> Figure:
        """Compare the times of two subjects."""
        mine, others = self._times[what], self._times[against]
        ratios = [one / other for one, other in zip(mine, others, strict=True)]
        first, middle, third = statistics.quantiles(ratios, n=4, method="inclusive")
        return Figure(
            what=what,
            against=against,
            ratio=round(middle, 2),
            quartiles=(round(first, 2), round(third, 2)),
            calm_ratio=round(_first_decile(mine) / _first_decile(others), 2),
            median_us=round(statistics.median(mine) * 1e6, 1),
            goal=goal,
        )

    def rate(self, what: str, against: str, goal: float | None = None) -> Figure:
        """Compare what two subjects do in the same time."""
        return attrs.evolve(
            self.figure(against, what, goal),
            what=what,
            against=against,
            median_us=round(statistics.median(self._times[what]) * 1e6, 1),
            is_rate=True,
        )


def _first_decile(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=10, method="inclusive")[0]


def read_options(description: str) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--tiny", action="store_true", help="only show that it runs")
    given = parser.parse_args()
    return Options(is_json=given.json, is_tiny=given.tiny)


def freeze() -> None:
    """Keep what is there out of the garbage collections that the subjects cause."""
    gc.collect()
    gc.freeze()


def report(
    options: Options, figures: Sequence[Figure], counts: Sequence[Count], peers: Mapping[str, str]
) -> None:
    """Print figures and counts, with what they were measured on."""
    facts = {**_machine(), "peers": dict(peers)}
    if options.is_json:
        found = {
            "machine": facts,
            "figures": [attrs.asdict(figure) for figure in figures],
            "counts": [attrs.asdict(count) for count in counts],
        }
        sys.stdout.write(f"{json.dumps(found, indent=2)}\n")
        return
    lines = [f"{name}: {fact}" for name, fact in facts.items() if fact]
    lines += ["", _row("what", "against", "ratio", "quartiles", "calm", "took", "goal")]
    lines += [_row(*_cells(figure)) for figure in figures]
    lines.append("")
    for count in counts:
        goal = "" if count.goal is None else f" (goal: <= {count.goal})"
        lines.append(f"{count.what}: {count.count:,}{goal}")
    sys.stdout.write("\n".join(lines) + "\n")


def _cells(figure: Figure) -> tuple[str, ...]:
    first, third = figure.quartiles
    return (
        figure.what,
        figure.against,
        f"{figure.ratio:.2f}",
        f"{first:.2f} to {third:.2f}",
        f"{figure.calm_ratio:.2f}",
        f"{figure.median_us:,.0f} us",
        "" if figure.goal is None else f"{'>=' if figure.is_rate else '<='} {figure.goal:g}",
    )


def _row(*cells: str) -> str:
    widths = (54, 42, -6, -14, -6, -11, -6)
    return "  ".join(
        f"{cell:<{width}}" if width > 0 else f"{cell:>{-width}}"
        for cell, width in zip(cells, widths, strict=True)
    ).rstrip()


def _machine() -> dict[str, Any]:
    return {
        "date": SystemClock().now().date().isoformat(),
        "cpu": f"{os.cpu_count()} x {_processor()}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
