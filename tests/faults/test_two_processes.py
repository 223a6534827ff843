"""Two processes that serve one thread of one file: their turns are one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vitehub_chat import open_agent_state
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.model.keys import ConversationKey

SCRIPT = Path(__file__).with_name("serial_process.py")
COUNT = 20


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-W", "error", str(SCRIPT), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with started:
        yield started
    assert started.returncode == 0


@pytest.mark.slow
async def test_C30_forty_serial_turns_of_two_processes_do_not_overlap(tmp_path: Path) -> None:
    url, marks = f"file:{tmp_path}/state.db", tmp_path / "marks"
    with (
        process(url, "a", str(marks), str(COUNT)) as first,
        process(url, "b", str(marks), str(COUNT)) as second,
    ):
        both = (first, second)
        assert [line_of(each) for each in both] == ["ready", "ready"]
        for each in both:
            assert each.stdin is not None
            print(file=each.stdin, flush=True)
        answers = [json.loads(line_of(each)) for each in both]
    for name, found in zip("ab", answers, strict=True):
        assert found == [["complete", f"re {name}{number}"] for number in range(COUNT)]

    lines = marks.read_text(encoding="utf-8").split()
    order = lines[1::4]
    assert lines == [word for text in order for word in ("begin", text, "end", text)]
    assert sorted(order) == sorted(f"{name}{number}" for name in "ab" for number in range(COUNT))
    for name in "ab":
        mine = [text for text in order if text.startswith(name)]
        assert mine == [f"{name}{number}" for number in range(COUNT)]

    async with open_agent_state(url) as state:
        key = ConversationKey(None, "station", None, "t")
        rows = (await Conversation(state, key).history(limit=100)).items
    assert [row.seq for row in rows] == list(range(1, 4 * COUNT + 1))
    assert [row.message.role for row in rows] == ["user", "assistant"] * (2 * COUNT)
    assert [row.message.text for row in rows] == [
        text for each in order for text in (each, f"re {each}")
    ]


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
