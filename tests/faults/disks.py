"""Disks that are small, so that they are full soon."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest


@attrs.frozen
class Disk:
    """A file system of its own.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    def resize(self, size: int) -> None:
        """Give it another size in bytes; what is in it stays."""
        _run("mount", "-o", f"remount,size={size}", str(self.folder))


@contextmanager
def small_disk(size: int) -> Iterator[Disk]:
    """Mount a file system in memory; skips the test where that is not allowed."""
    with tempfile.TemporaryDirectory(prefix="vitehub-chat-disk-") as folder:
        try:
            _run("mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "tmpfs", folder)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs the right to mount a file system")
        try:
            yield Disk(Path(folder))
        finally:
            _run("umount", "-l", folder)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
