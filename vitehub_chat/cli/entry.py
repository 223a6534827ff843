"""Entry: what the installed command calls, with or without the extra it needs."""

from __future__ import annotations

import sys

from vitehub_chat.cli import failures
from vitehub_chat.errors import MissingDependencyError


def main() -> int:
    """Run the command with the arguments of the process and return its exit code."""
    try:
        import click  # noqa: F401, PLC0415 - the extra may be missing
    except ModuleNotFoundError:
        error = MissingDependencyError("the command 'vitehub-chat'", extra="cli")
        failures.report(failures.failure_of(error), as_json=failures.JSON_FLAG in sys.argv)
        return failures.MISSING_EXTRA
    try:
        from vitehub_chat.cli.app import cli  # noqa: PLC0415 - needs the extra

        return cli.run(sys.argv[1:])
    except KeyboardInterrupt:  # before a command began
        interrupted = failures.Failure("interrupted", "interrupted", failures.FAILED)
        failures.report(interrupted, as_json=failures.JSON_FLAG in sys.argv)
        return failures.FAILED
