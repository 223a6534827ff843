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
@pytest.mark.parametrize("name", ["preparing", "turns"])
def test_a_benchmark_reports_ratios_and_counts(repository: Path, name: str) -> None:
    found = run_tiny(repository, name)
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
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def exceeds(count: dict[str, Any]) -> bool:
    return count["goal"] is not None and count["count"] > count["goal"]
