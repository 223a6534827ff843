"""Every benchmark runs; what it measures is for people to read."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.benchmark
@pytest.mark.parametrize("name", ["files", "imports", "peers", "preparing", "routes", "turns"])
def test_a_benchmark_reports_ratios_and_counts(repository: Path, name: str) -> None:
    check_report(run_tiny(repository, name))


@pytest.mark.benchmark
@pytest.mark.service
@pytest.mark.parametrize("name", ["concurrency", "remote", "windows"])
def test_a_benchmark_with_servers_reports_ratios_and_counts(repository: Path, name: str) -> None:
    check_report(run_tiny(repository, name))


def check_report(found: dict[str, Any]) -> None:
    assert found["figures"] != []
    assert [figure["what"] for figure in found["figures"] if not figure["ratio"] > 0] == []
    assert [each["what"] for each in found["counts"] if exceeds(each)] == []


def run_tiny(repository: Path, name: str) -> dict[str, Any]:
    script = repository / "tests" / "benchmarks" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--tiny", "--json"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def exceeds(count: dict[str, Any]) -> bool:
    is_counted = count["goal"] is not None and not count["is_time"]
    return is_counted and count["count"] > count["goal"]
