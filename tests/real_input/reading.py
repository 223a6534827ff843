"""Reading back what was stored, in a new process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from vitehub_chat.model.keys import ConversationKey

SCRIPT = Path(__file__).with_name("read_back.py")


def read_back(url: str, keys: Sequence[ConversationKey]) -> list[list[dict[str, Any]]]:
    """Return the stored rows of some conversations, as another process exports them."""
    asked = "".join(json.dumps(attrs.astuple(key)) + "\n" for key in keys)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), url],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    exports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(exports) == len(keys)
    for lines in exports:
        assert (lines[0]["type"], lines[-1]["type"]) == ("session", "end")
        assert lines[-1]["messages"] == len(lines) - 2
        assert lines[-1]["unreadable"] == 0
    return [lines[1:-1] for lines in exports]


def text_of(row: dict[str, Any]) -> str:
    """Return the text of an exported row."""
    parts = row["message"]["parts"]
    return "".join(part["text"] for part in parts if part["type"] == "text")
