"""Progress: how far long work is, for people who wait at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vitehub_chat.cli.printer import Printer

Advance = Callable[[int], None]
"""Takes how many more are done."""


@contextmanager
def progress(
    what: str, total: int | None = None, *, beside: Printer | None = None
) -> Iterator[Advance]:
    """Show a bar on standard error while work goes on, and take it away afterwards.

    Without a total it only shows that something goes on. Nothing is shown where standard error is
    no terminal, or where what is written `beside` it goes to one: that tells how far it is.
    """
    if not sys.stderr.isatty() or (beside is not None and beside.is_terminal):
        yield _nothing
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - only on a terminal
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )
    except ModuleNotFoundError:
        yield _nothing
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _nothing(_done: int) -> None:
    """Show nothing."""
