"""What people see on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.helpers import COMMAND, store

pytestmark = pytest.mark.slow
PROMPT = b"[y/N]:"
CTRL_C = "\x03"


def on_a_terminal(
    folder: Path, *arguments: str, typed: str = "", code: int = 0, output: int | None = None
) -> str:
    """Run the command on a terminal, or with its output elsewhere, and return what it shows.

    What is `typed` is typed once it asks.
    """
    main, other = pty.openpty()
    environ = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdin=other,
        stdout=other if output is None else output,
        stderr=other,
        cwd=folder,
        env=environ,
        preexec_fn=take_terminal,  # noqa: PLW1509 - for Ctrl-C, and there is one thread
    )
    os.close(other)
    written = b""
    while typed and PROMPT not in written:
        written += os.read(main, 65536)
    os.write(main, typed.encode())
    while True:
        if not select.select([main], [], [], 2)[0]:
            if typed == CTRL_C:
                # One that comes just before Python waits for a line is seen only after that line.
                os.write(main, typed.encode())
            continue
        found = read(main)
        if not found:
            break
        written += found
    os.close(main)
    assert process.wait() == code
    return written.decode()


def take_terminal() -> None:
    """Make standard input the terminal whose keys stop this process."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


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


def test_an_export_shows_how_far_it_is_beside_its_lines(folder: Path, support: str) -> None:
    store(*(f"message {n}" for n in range(50)))
    with (folder / "out").open("wb") as out:
        shown = on_a_terminal(folder, "export", support, output=out.fileno())
    lines = [json.loads(line) for line in (folder / "out").read_text().splitlines()]
    assert len(lines) == 52
    assert "exporting" in shown


def test_an_export_to_a_terminal_shows_its_lines_alone(folder: Path, support: str) -> None:
    store("one")
    lines = on_a_terminal(folder, "export", support).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["session", "message", "end"]


def test_long_work_shows_that_it_goes_on(folder: Path, support: str) -> None:
    store("one")
    url = "file:state.db"
    assert "pruning" in on_a_terminal(folder, "prune", support, "--thread", "cli", "--dry-run")
    assert "migrating" in on_a_terminal(folder, "state", "migrate", "--state", url)
    assert "erasing" in on_a_terminal(folder, "erase", support, "--user", "ada", "--yes")


def test_a_conversation_goes_once_that_is_confirmed(folder: Path, support: str) -> None:
    store("one")
    arguments = ["delete", support, "--thread", "cli"]
    assert "Aborted" not in on_a_terminal(folder, *arguments, typed="n\n", code=1)
    asked = on_a_terminal(folder, *arguments, typed="y\n")
    assert "Delete the conversation agent 'support', thread 'cli'?" in asked
    assert "rows: 1" in asked


def test_ctrl_c_ends_with_1_and_changes_nothing(folder: Path, support: str) -> None:
    store("one")
    shown = on_a_terminal(folder, "delete", support, "--thread", "cli", typed=CTRL_C, code=1)
    assert "error: interrupted" in shown
    assert "Traceback" not in shown
    assert "one" in on_a_terminal(folder, "history", support)
