"""What every test shares: guarded event loops, and real parts that CI may not go without."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from blockbuster import blockbuster_ctx
from coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

IN_CI = bool(os.environ.get("CI"))
NEEDS_REAL_PARTS = ("service", "browser")
IN_MEMORY = Path("/dev/shm")  # noqa: S108  folders of our own are made in it
ENOUGH_BYTES = 4 * 1024**3

if not IN_CI:
    hypothesis.settings.register_profile("desk", deadline=None)
    hypothesis.settings.load_profile("desk")


def _keep_lock_of_coverage() -> None:
    """Give coverage the methods of its lock as they are before any guard replaces them.

    It takes that lock on every new line of every thread, so a guarded one would raise anywhere.
    """
    coverage = Coverage.current()
    collector: Any = None if coverage is None else coverage._collector
    if collector is not None and collector.data_lock is not None:
        lock = collector.data_lock
        collector.data_lock = SimpleNamespace(acquire=lock.acquire, release=lock.release)


_keep_lock_of_coverage()


def _put_temporary_files_in_memory() -> None:
    """Let the files of tests cost no disk, where there is room and nobody has said where to be."""
    if "TMPDIR" in os.environ or not os.access(IN_MEMORY, os.W_OK | os.X_OK):
        return
    is_for_programs = not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
    if is_for_programs and shutil.disk_usage(IN_MEMORY).free >= ENOUGH_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


_put_temporary_files_in_memory()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Take the thousands of collected tests out of every search for garbage that follows."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def repository() -> Path:
    """Give the root folder of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_blocking_on_the_loop() -> Iterator[None]:
    """Raise `BlockingError` where the package blocks a running event loop."""
    with blockbuster_ctx("vitehub_chat") as guard:
        # A small window that was read before takes less time than waking a thread for it.
        for name, function in guard.functions.items():
            if name == "os.stat" or name.startswith("sqlite3."):
                for worker in ("reader", "writer"):
                    function.can_block_in(f"state/providers/sqlite/{worker}.py", "run_now")
            # Two threads that import a module for the first time: allowed like reading its file.
            elif name == "threading.Lock.acquire":
                function.can_block_in("<frozen importlib._bootstrap>", "acquire")
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip for want of a server or a browser into a failure in CI."""
    report = yield
    real = any(item.get_closest_marker(name) for name in NEEDS_REAL_PARTS)
    if IN_CI and real and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, but CI must have what it needs: {report.longrepr}"
    return report
