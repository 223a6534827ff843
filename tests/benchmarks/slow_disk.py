"""A slow disk: a library, loaded before all others, that makes every wait for the disk longer."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

MARK = "VITEHUB_CHAT_SLOW_DISK"
"""Set in the environment of who runs on the slow disk."""

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SLOWER(name) int name(int file) { \\
    int (*next)(int) = (int (*)(int)) dlsym(RTLD_NEXT, #name); \\
    usleep(%d); \\
    return next(file); }
SLOWER(fsync)
SLOWER(fdatasync)
"""


def run_on_slow_disk(command: Sequence[str | Path], folder: Path, slower_us: int) -> str | None:
    """Run a command whose waits for the disk take longer, and return its output.

    None without a compiler, or where libraries cannot be loaded before others.
    """
    compiler = shutil.which("cc")
    if compiler is None or os.name != "posix":
        return None
    source, library = folder / "slow_disk.c", folder / "slow_disk.so"
    source.write_text(_SOURCE % slower_us)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), MARK: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
