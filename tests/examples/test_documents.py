"""The code of README and docs: it runs, and prints what stands below it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.examples.extras import need
from vitehub_chat import define_agent

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@attrs.frozen(kw_only=True)
class Block:
    """A block of code, and the output that stands below it, if any."""

    place: str
    language: str
    code: str
    output: str | None


def blocks(language: str) -> list[Block]:
    """Return the blocks of all documents in a language."""
    return [block for path in DOCUMENTS for block in read(path) if block.language == language]


def read(path: Path) -> Iterator[Block]:
    text = path.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        place = f"{path.relative_to(ROOT)}:{line}"
        yield Block(place=place, language=found[1], code=found[2], output=found[3])


def run_python(script: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in its folder."""
    return subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        cwd=script.parent,
        check=False,
    )


def place(block: Block) -> str:
    return block.place


@pytest.mark.parametrize("block", blocks("python"), ids=place)
def test_python_runs_and_prints_what_stands_below(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(block.code, encoding="utf-8")
    done = run_python(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (block.output or "")


def test_the_second_run_of_the_first_agent_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(blocks("python")[0].code, encoding="utf-8")
    run_python(script)
    assert run_python(script).stdout.splitlines()[0].endswith("(4 earlier messages)")


@pytest.mark.parametrize(
    "block", [block for block in blocks("toml") if block.code.startswith("name = ")], ids=place
)
def test_a_definition_is_accepted(block: Block) -> None:
    definition = tomllib.loads(block.code)
    assert define_agent(definition).name == definition["name"]


@pytest.mark.parametrize(
    "block", [block for block in blocks("sh") if block.code.startswith("vitehub-chat")], ids=place
)
def test_commands_can_be_typed_in_their_order(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoke = need("click.testing").CliRunner().invoke
    cli = need("vitehub_chat.cli.app").cli
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    first = blocks("python")[0].code  # which the text tells to save under this name
    (tmp_path / "agent.py").write_text(first, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    for line in block.code.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "vitehub-chat"
        result = invoke(cli, arguments)
        assert (line, result.exit_code, result.stderr) == (line, 0, result.stderr)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    files = [target.partition("#")[0] for target in targets if "://" not in target]
    assert [file for file in files if file and not (path.parent / file).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_anchor_is_a_heading(path: Path) -> None:
    targets = [target.partition("#") for target in LINK.findall(path.read_text(encoding="utf-8"))]
    anchors = [(file, anchor) for file, _, anchor in targets if anchor and "://" not in file]
    assert [each for each in anchors if each[1] not in headings(path.parent / each[0])] == []


def headings(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    found = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("name", ["run-command", "test-command"])
def test_the_readme_has_a_command_below_each_marker(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    after = text.partition(f"<!-- {name} -->\n")[2]
    assert after.startswith("```sh\npip install uv && uv run ")
    assert after.partition("```sh\n")[2].partition("\n```\n")[0].count("\n") == 0
