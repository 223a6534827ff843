"""What others have collected: fetched from npm once, outside of the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NODE = Path(__file__).with_name("node")


@pytest.fixture(scope="session")
def collected() -> Path:
    """Give the folder with the installed npm packages; it is kept from run to run."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    lock = (NODE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vitehub-chat-tests"
    folder = cache / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.exists():
        _install(npm, folder)
    return folder / "node_modules"


def _install(npm: str, folder: Path) -> None:
    """Install beside the folder, then give it its name in one step: workers may do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / "npm"
        shutil.copytree(NODE, fresh, ignore=shutil.ignore_patterns("node_modules"))
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"npm ci failed: {done.stderr[-2000:]}")
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.exists():
                raise
