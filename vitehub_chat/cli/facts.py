"""Facts: counts and other small results, as lines for people or as one document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitehub_chat.cli.printer import Printer
from vitehub_chat.cli.text import safe_line


def show_facts(printer: Printer, found: Mapping[str, Any]) -> None:
    """Write facts; groups of them are indented, and what is missing is `none`."""
    if printer.as_json:
        printer.document(found)
        return
    for name, value in found.items():
        if isinstance(value, Mapping):
            printer.line(f"{name}:" if value else f"{name}: none")
            for each, count in value.items():
                printer.line(f"  {each}: {count}")
        else:
            shown = ", ".join(value) if isinstance(value, list) else value
            printer.line(safe_line(f"{name}: {'none' if shown in {None, ''} else shown}"))
