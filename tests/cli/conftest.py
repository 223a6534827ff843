"""An agent in an empty folder, and the command to look at it with."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.helpers import ECHO, Invoke
from vitehub_chat.cli.app import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty working directory, without settings in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_URL", raising=False)
    monkeypatch.delenv("VITEHUB_AGENT_STATE_AUTH_TOKEN", raising=False)
    return tmp_path


@pytest.fixture
def support(folder: Path) -> str:
    """Give the reference of an agent that echoes and keeps its state in a file."""
    (folder / "support.toml").write_text(ECHO)
    return "support.toml"


@pytest.fixture
def invoke() -> Invoke:
    """Give a function that runs the command in this process."""

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin)

    return run
