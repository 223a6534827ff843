"""The command as a whole: its commands, their options, and how they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import click
import pytest

from tests.cli.helpers import COMMAND, Invoke, failure
from vitehub_chat.cli.app import COMMANDS, cli

WITHOUT_CLICK = """
import sys
sys.modules["click"] = None
from vitehub_chat.cli.entry import main
sys.exit(main())
"""

LOADED_FOR_VERSION = """
import sys
before = set(sys.modules)
from vitehub_chat.cli.app import cli
cli.run(["--version"])
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - sys.stdlib_module_names))
"""


def leaves() -> Iterator[Any]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        found = command.commands.values() if isinstance(command, click.Group) else [command]
        yield from (pytest.param(each, id=f"{name} {each.name}") for each in found)


@pytest.mark.parametrize("command", [*leaves()])
def test_every_command_can_write_json(command: click.Command) -> None:
    assert "--json" in [option for each in command.params for option in each.opts]


def test_help_names_every_command(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    listed = result.stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in listed if line] == sorted(COMMANDS)


def test_the_version_is_that_of_the_distribution(invoke: Invoke) -> None:
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"vitehub-chat {version('vitehub-chat')}\n")


def test_the_version_needs_click_alone() -> None:
    done = run_python(LOADED_FOR_VERSION)
    assert done.stdout.splitlines()[-1] == "['click', 'vitehub_chat']"


def test_without_the_extra_the_install_line_is_printed() -> None:
    done = run_python(WITHOUT_CLICK)
    assert (done.returncode, done.stdout) == (7, "")
    assert 'pip install "vitehub-chat[cli]"' in done.stderr


@pytest.mark.parametrize("arguments", [[], ["config"], ["plugins"], ["state"]])
def test_without_a_command_the_help_is_printed(invoke: Invoke, arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == invoke(*arguments, "--help").stdout


@pytest.mark.parametrize("arguments", [["nope"], ["run"], ["history", "--limit", "0"]])
def test_wrong_usage_exits_with_2(invoke: Invoke, arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    error, hint = result.stderr.splitlines()
    assert (error[:7], hint[:10]) == ("error: ", "hint: see ")


def test_wrong_usage_is_json_for_programs(invoke: Invoke) -> None:
    result = invoke("run", "--json")
    assert result.exit_code == 2
    assert failure(result) == {
        "code": "usage",
        "message": "Missing argument 'REF'.",
        "hint": "see `vitehub-chat run --help`",
    }


def test_the_installed_command_returns_the_exit_code() -> None:
    done = subprocess.run(
        [COMMAND, "config", "check", "missing.toml"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False
    )
