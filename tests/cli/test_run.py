"""One turn by the command."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.helpers import COMMAND, Invoke, document, failure, texts_of

SLOW = """
import asyncio
import sys
from vitehub_chat import chat, define_agent

async def answer(call):
    yield "so far \\x1b[1m"
    print("started", file=sys.stderr, flush=True)
    await asyncio.Event().wait()

agent = define_agent(
    name="slow",
    driver=answer,
    capabilities=[chat(concurrency="reject")],
    state="file:state.db",
)
"""

FAILING = """
from vitehub_chat import chat, define_agent

def answer(call):
    raise ValueError("the key s3cret is wrong")

agent = define_agent(name="failing", driver=answer, capabilities=[chat()], state="file:state.db")
"""


@pytest.fixture
def slow(folder: Path) -> str:
    """Give an agent that never comes to an end by itself."""
    (folder / "slow.py").write_text(SLOW)
    return "slow.py"


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a turn and wait until its driver works."""
    with subprocess.Popen(
        [COMMAND, "run", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line == "started\n", line + process.stderr.read()
            yield process
        finally:
            process.kill()


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Press Ctrl-C and return exit code and output."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_turn_prints_its_answer(support: str, invoke: Invoke) -> None:
    result = invoke("run", support, "--prompt", "hi")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "You said: hi\n", "")


def test_turns_of_one_thread_go_on(support: str, invoke: Invoke) -> None:
    invoke("run", support, "--prompt", "hi")
    result = document(invoke("run", support, "--prompt", "again", "--json"))
    assert result["text"] == "You said: again (2 earlier messages)"
    assert (result["status"], result["run"]) == ("complete", {"thread_id": "cli"})
    other = document(invoke("run", support, "--prompt", "again", "--thread", "t2", "--json"))
    assert other["text"] == "You said: again"


def test_an_address_is_where_the_turn_is_stored(support: str, invoke: Invoke) -> None:
    address = ["--tenant", "acme", "--channel", "portal", "--thread", "t1"]
    invoke("run", support, "--prompt", "hi", *address)
    assert len(document(invoke("history", support, *address, "--json"))["items"]) == 2


def test_an_input_can_be_a_file_or_stdin(support: str, folder: Path, invoke: Invoke) -> None:
    message = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    given = json.dumps({"messages": [message], "run": {"threadId": "t1"}})
    (folder / "input.json").write_text(given)
    result = document(invoke("run", support, "--input", "input.json", "--json"))
    assert (result["text"], result["run"]) == ("You said: hi", {"thread_id": "t1"})
    result = document(invoke("run", support, "--input", "-", "--json", stdin=given))
    assert result["text"] == "You said: hi (2 earlier messages)"


@pytest.mark.parametrize("form", [[], ["--input", "-", "--prompt", "hi"]])
def test_a_turn_needs_either_a_prompt_or_an_input(
    support: str, invoke: Invoke, form: list[str]
) -> None:
    assert invoke("run", support, *form, stdin="{}").exit_code == 2


def test_a_stream_prints_the_answer_once(support: str, invoke: Invoke) -> None:
    result = invoke("run", support, "--prompt", "hi", "--stream")
    assert (result.exit_code, result.stdout) == (0, "You said: hi\n")


def test_a_stream_for_programs_is_one_event_a_line(support: str, invoke: Invoke) -> None:
    result = invoke("run", support, "--prompt", "hi", "--stream", "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events if event["event"] != "TextDelta"] == [
        "RunStarted",
        "StepStarted",
        "StepFinished",
        "Done",
        "RunFinished",
        "Result",
    ]
    deltas = [event["text"] for event in events if event["event"] == "TextDelta"]
    assert "".join(deltas) == events[-1]["result"]["text"] == "You said: hi"


def test_control_characters_of_an_answer_are_escaped(support: str, invoke: Invoke) -> None:
    for form in ([], ["--stream"]):
        result = invoke("run", support, "--prompt", "\x1b[2J\r", "--thread", "t", *form)
        assert result.stdout.startswith("You said: \\x1b[2J\\r")


def test_an_empty_prompt_exits_with_2(support: str, invoke: Invoke) -> None:
    result = invoke("run", support, "--prompt", "", "--json")
    assert (result.exit_code, failure(result)["code"]) == (2, "empty_message")


@pytest.mark.parametrize("form", [[], ["--stream"]])
def test_a_failing_driver_exits_with_1_and_keeps_its_secrets(
    folder: Path, invoke: Invoke, form: list[str]
) -> None:
    (folder / "failing.py").write_text(FAILING)
    result = invoke("run", "failing.py", "--prompt", "hi", *form)
    assert result.exit_code == 1
    assert "s3cret" not in result.output
    assert "ValueError at failing.py:5" in result.stderr


def test_ctrl_c_records_what_was_said_as_interrupted(slow: str, invoke: Invoke) -> None:
    with started(slow, "--prompt", "hi", "--stream") as turn:
        code, out, err = interrupt(turn)
    assert (code, out) == (1, "so far \\x1b[1m\n")
    assert err == "status: interrupted\n"
    page = document(invoke("history", slow, "--json"))
    assert texts_of(page) == ["hi", "so far \x1b[1m"]
    assert [item["status"] for item in page["items"]] == ["complete", "interrupted"]


def test_ctrl_c_gives_programs_a_result(slow: str) -> None:
    with started(slow, "--prompt", "hi", "--json") as turn:
        code, out, err = interrupt(turn)
    result = json.loads(out)
    assert (code, err) == (1, "")
    assert (result["status"], result["text"]) == ("interrupted", "so far \x1b[1m")


def test_a_busy_conversation_exits_with_5(slow: str, invoke: Invoke) -> None:
    with started(slow, "--prompt", "hi") as turn:
        result = invoke("run", slow, "--prompt", "and me", "--json")
        interrupt(turn)
    assert (result.exit_code, failure(result)["code"]) == (5, "chat_busy")
