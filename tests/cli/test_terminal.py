"""What people see on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from tests.cli.helpers import COMMAND, store


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """Run the command on a terminal and return what it wrote there."""
    main, other = pty.openpty()
    environ = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    process = subprocess.Popen(
        [COMMAND, *arguments], stdin=other, stdout=other, stderr=other, cwd=folder, env=environ
    )
    os.close(other)
    written = b"".join(iter(lambda: read(main), b""))
    os.close(main)
    assert process.wait() == 0
    return written.decode()


def read(terminal: int) -> bytes:
    """Return the next bytes; a terminal whose other side is closed fails instead of ending."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_long_texts_are_shortened_with_a_mark(folder: Path, support: str) -> None:
    store("z" * 5000)
    shown = on_a_terminal(folder, "prepare", support)
    assert shown.count("z") == 2000
    assert "… [3000 more characters]" in shown


def test_a_message_cannot_steer_the_terminal(folder: Path, support: str) -> None:
    thread = "[red]t\u202e"
    store("\x1b]0;evil\x07[red]markup[/red]", thread=thread)
    for command in ("prepare", "history", "sessions"):
        shown = on_a_terminal(folder, command, support, "--thread", thread)
        assert "[red]t\\u202e" in shown
        assert "\u202e" not in shown
        assert "\x1b]0;" not in shown
        assert ("\\x1b]0;evil\\x07[red]markup[/red]" in shown) == (command != "sessions")
