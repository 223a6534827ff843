"""Every file of `examples/` runs, and says what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.extras import need
from vitehub_chat import load_agent

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NEEDS = {"model_agent.py": "pydantic_ai", "support.yaml": "yaml"}
DEFINITIONS = sorted(EXAMPLES.glob("support.*"))


def need_extras(file: Path) -> None:
    """Need what an example imports besides the package."""
    if file.name in NEEDS:
        need(NEEDS[file.name])


def run(script: Path, folder: Path) -> str:
    """Run a script in a folder and return what it prints; it has to succeed in silence."""
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_example_runs(script: Path, tmp_path: Path) -> None:
    need_extras(script)
    assert run(script, tmp_path) != ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_example_is_an_agent_to_load(script: Path) -> None:
    need_extras(script)
    assert "chat.message" in load_agent(script).triggers


def test_the_second_run_goes_on_with_the_stored_conversation_and_says_what_it_saw(
    tmp_path: Path,
) -> None:
    script = EXAMPLES / "support_agent.py"
    first, second = run(script, tmp_path), run(script, tmp_path)
    assert first.startswith("Nothing stored yet.\n")
    assert "assistant  You said: My parcel has not arrived.\n" in first
    assert second.startswith("6 messages are stored from before.\n")
    assert "You said: My parcel has not arrived. (6 earlier messages)\n" in second
    table = second.partition("What the last turn saw:\n\n")[2].splitlines()
    seen = [line.split()[:3] for line in table[:8]]
    assert seen == [
        ["#4", "assistant", "window"],
        ["#5", "user", "window"],
        ["#6", "assistant", "window"],
        ["#7", "user", "window"],
        ["#8", "assistant", "window"],
        ["#9", "user", "window"],
        ["#10", "assistant", "window"],
        ["new", "user", "current"],
    ]
    assert table[8:] == [
        "",
        "Rows before #4 are stored too; the window of 8 messages leaves them out.",
    ]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.name)
def test_the_same_definition_as_data_means_the_same(definition: Path) -> None:
    need_extras(definition)
    written, python = load_agent(definition), load_agent(EXAMPLES / "support_agent.py")
    assert written.policy == python.policy
    assert (written.name, written.driver, written.state) == (
        python.name,
        python.driver,
        python.state,
    )


def test_the_definition_is_there_in_every_form() -> None:
    assert [path.suffix for path in DEFINITIONS] == [".json", ".toml", ".yaml"]


def test_a_capability_takes_at_most_30_lines() -> None:
    lines = (EXAMPLES / "word_count.py").read_text(encoding="utf-8").splitlines()
    begin, end = lines.index("import asyncio"), lines.index("def answer(call: DriverCall) -> str:")
    assert len("\n".join(lines[begin:end]).strip().splitlines()) <= 30


def test_the_capability_counts_what_the_driver_reads(tmp_path: Path) -> None:
    assert run(EXAMPLES / "word_count.py", tmp_path).splitlines() == [
        "count_words says 3, of 3 in all.",
        "count_words says 2, of 12 in all.",
    ]
