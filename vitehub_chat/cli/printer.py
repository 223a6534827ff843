"""Printer: where a command writes, for people or for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from vitehub_chat.cli.text import json_document, json_line, safe_line

MAX_SHOWN = 2000
"""How many characters of one message are shown on a terminal."""


class Printer:
    """Writes to the standard output of the command.

    Attributes:
        as_json: Whether a program reads it.
        is_terminal: Whether it is shown at once.
        shortens: Whether long texts are cut: only for people, and only on a terminal.
    """

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self.as_json = as_json
        self.is_terminal = stream.isatty()
        self.shortens = self.is_terminal and not as_json
        self._stream = stream

    def document(self, value: Any) -> None:
        """Write a value as the one JSON document of this command."""
        self.write(f"{json_document(value)}\n")

    def record(self, value: Any) -> None:
        """Write a value as one line of JSON."""
        self.write(f"{json_line(value)}\n")

    def line(self, text: str = "") -> None:
        """Write a line."""
        self.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Write a line beside the output, to standard error."""
        sys.stderr.write(f"{safe_line(text)}\n")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; cells are made safe here."""
        safe = [[safe_line(cell) for cell in row] for row in rows]
        if not (self._stream.isatty() and _write_rich_table(self._stream, headers, safe)):
            for line in _plain_table(headers, safe):
                self.line(line)

    def write(self, text: str) -> None:
        """Write text as it is, at once; what the encoding lacks is escaped."""
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()


@contextmanager
def printing(*, as_json: bool) -> Iterator[Printer]:
    """Give a printer to standard output.

    With JSON the code of an agent that prints something does so to standard error meanwhile.
    """
    printer = Printer(sys.stdout, as_json=as_json)
    if not as_json:
        yield printer
        return
    with redirect_stdout(sys.stderr):
        yield printer


def _write_rich_table(
    stream: TextIO, headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> bool:
    """Write a table that fits the terminal, if rich is there."""
    try:
        from rich import box  # noqa: PLC0415 - only on a terminal
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
    except ModuleNotFoundError:
        return False
    table = Table(*headers, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=stream, highlight=False).print(table)
    return True


def _plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [headers, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
