"""App: the commands by name, and how each of them ends."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, cast

import click

from vitehub_chat import plugins
from vitehub_chat.cli import failures
from vitehub_chat.cli.options import show_help
from vitehub_chat.errors import ChatError

PROGRAM = "vitehub-chat"
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "config": "vitehub_chat.cli.config:config",
        "console": "vitehub_chat.cli.console:console",
        "delete": "vitehub_chat.cli.removal:delete",
        "erase": "vitehub_chat.cli.erase:erase",
        "export": "vitehub_chat.cli.export:export",
        "history": "vitehub_chat.cli.history:history",
        "plugins": "vitehub_chat.cli.plugins:plugins",
        "prepare": "vitehub_chat.cli.prepare:prepare",
        "prune": "vitehub_chat.cli.removal:prune",
        "run": "vitehub_chat.cli.run:run",
        "search": "vitehub_chat.cli.search:search",
        "serve": "vitehub_chat.cli.serve:serve",
        "sessions": "vitehub_chat.cli.sessions:sessions",
        "state": "vitehub_chat.cli.state:state",
        "summary": "vitehub_chat.cli.summary:summary",
        "truncate": "vitehub_chat.cli.removal:truncate",
        "turns": "vitehub_chat.cli.turns:turns",
    }
)
"""The commands, as import paths: only the one that is called is imported."""


class Commands(click.Group):
    """The commands of the program; every failure ends with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - of the base
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        path = COMMANDS.get(cmd_name)
        return None if path is None else cast(click.Command, plugins.import_path(path))

    def main(  # type: ignore[override]  # the base says the same in two overloads
        self, args: Sequence[str] | None = None, **_extra: Any
    ) -> NoReturn:
        """Run and leave the process with the exit code."""
        sys.exit(self.run(sys.argv[1:] if args is None else args))

    def run(self, arguments: Sequence[str]) -> int:
        """Run a command and return its exit code; a failure is told on standard error."""
        try:
            answer = super().main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
        except click.UsageError as error:
            hint = None if error.ctx is None else f"see `{error.ctx.command_path} --help`"
            failure = failures.Failure("usage", error.format_message(), failures.USAGE, hint)
        except click.ClickException as error:
            failure = failures.Failure("failed", error.format_message(), error.exit_code)
        except click.Abort:
            failure = failures.Failure("interrupted", "interrupted", failures.FAILED)
        except ChatError as error:
            failure = failures.failure_of(error)
        except Exception as error:  # noqa: BLE001 - code of others, told by its class and place
            failure = failures.failure_of(error)
        else:
            return answer if isinstance(answer, int) else failures.DONE
        failures.report(failure, as_json=failures.JSON_FLAG in arguments)
        return failure.exit_code


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(
    package_name="vitehub-chat", prog_name=PROGRAM, message="%(prog)s %(version)s"
)
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """Look at what an agent sees, run turns, and look after stored conversations.

    REF is a file (agent.py, agent.py:NAME, agent.toml, agent.json, agent.yaml) or module:attribute.

    Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 not found, 5 busy or conflict,
    6 state unavailable, 7 missing extra.
    """
    return show_help(ctx)
