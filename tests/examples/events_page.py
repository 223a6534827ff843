"""The reference of events: read from the functions that tell them and those that measure.

    python tests/examples/events_page.py

writes `docs/reference/events.md` anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from vitehub_chat.conversation import events

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"
LEVELS = ("debug", "info", "warning", "error")
ORIGIN = ("error", "at")
"""What an event tells of an exception."""

HEAD = """# Events, spans and metrics

Written by `tests/examples/events_page.py` from the code that tells them. How to listen, and what is
never told: [logging and telemetry](../how-to/telemetry.md).

## Log events

The name is the message of the record. Of these each has what is known: `conversation` (the encoded
key), `session_id`, `turn_id`, `run_id`, `message_id`. A fact that is not known is left out. `error`
is the class of an exception and `at` the line that raised it.

| event | level | told | facts |
| --- | --- | --- | --- |
"""

SPANS_HEAD = """
## Spans

| span | around | attributes |
| --- | --- | --- |
"""

SPANS = (
    (
        "chat.turn",
        "one turn, from the moment it has its lock until its answer is recorded",
        "`gen_ai.operation.name`, `gen_ai.agent.name`, `vitehub.chat.status`, `.finish_reason`",
    ),
    (
        "chat.window",
        "what the call is given, inside the turn",
        "`vitehub.chat.messages`, `.cut`; with `context` also `.used`, `.limit`, `.unit`",
    ),
    (
        "chat.roll",
        "condensing, inside the window",
        "`vitehub.chat.rolled`, `.loops`, `.outcome`",
    ),
    (
        "chat.flush",
        "one batch into the memory, before it is condensed or pruned",
        "`vitehub.chat.messages`, `.status`",
    ),
    ("chat.prune", "the write that removes rows", ""),
    (
        "chat.state AREA.OPERATION",
        "one call of a built-in Agent State, or of one on `SqlAgentState`",
        "`db.system.name`, `db.operation.name`",
    ),
)

METRICS_HEAD = """
Once the session of a turn is known, its span and those inside have `gen_ai.conversation.id`: the id
of the session, else the encoded key of the conversation. A span that failed has `error.type`.

## Metrics

| metric | instrument | unit | measures | attributes |
| --- | --- | --- | --- | --- |
"""

ATTRIBUTES = {
    "prune.deleted": "`rule`: `age`, `count` or `tokens`; `mode`: `delete` or `hide`",
    "roll.count": "`outcome`: `rolled`, or why not",
    "turn.duration": "`status`: `complete`, `interrupted` or `error`",
}


@attrs.frozen
class Event:
    """One kind of record."""

    name: str
    levels: tuple[str, ...]
    about: str
    facts: tuple[str, ...]

    @property
    def row(self) -> str:
        facts = ", ".join(f"`{fact}`" for fact in self.facts)
        levels = " or ".join(self.levels)
        return f"| `{self.name}` | {levels} | {self.about} | {facts} |"


def build_page() -> str:
    """Return the page."""
    found = sorted(read_events(), key=lambda event: (LEVELS.index(event.levels[0]), event.name))
    rows = "".join(f"{event.row}\n" for event in found)
    spans = "".join(f"| `{name}` | {around} | {facts} |\n" for name, around, facts in SPANS)
    return f"{HEAD}{rows}{SPANS_HEAD}{spans}{METRICS_HEAD}{''.join(_metrics())}"


def read_events() -> Iterator[Event]:
    """Yield the events that the functions of the module tell."""
    tree = ast.parse(Path(events.__file__).read_text(encoding="utf-8"))
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            yield from _read_function(function)


def _read_function(function: ast.FunctionDef) -> Iterator[Event]:
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "_emit":
            level, name = call.args[:2]
            about = (ast.get_docstring(function) or "").splitlines()[0]
            yield Event(
                f"chat.{ast.literal_eval(name)}",
                _levels_of(function, level),
                about.removeprefix("Tell ").removesuffix(".").removeprefix("that "),
                tuple(_facts_of(call)),
            )


def _levels_of(function: ast.FunctionDef, level: ast.expr) -> tuple[str, ...]:
    """Return the level, or those of the condition that a variable comes from."""
    if isinstance(level, ast.Constant):
        return (str(level.value),)
    assigned = next(each.value for each in function.body if isinstance(each, ast.AnnAssign))
    named = [each.value for each in ast.walk(assigned or level) if isinstance(each, ast.Constant)]
    return tuple(each for each in LEVELS if each in named)


def _facts_of(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            assert ast.unparse(keyword.value) == "_origin(error)", "name the facts of an event"
            yield from ORIGIN


def _metrics() -> Iterator[str]:
    otel: Any = import_module("vitehub_chat.integrations.otel")
    tables: list[tuple[str, Mapping[str, tuple[str, str]]]] = [
        ("histogram", otel._HISTOGRAMS),
        ("counter", otel._COUNTERS),
        ("up-down counter", otel._LEVELS),
    ]
    for instrument, table in tables:
        for name, (unit, about) in table.items():
            known = ATTRIBUTES.get(name, "")
            told = about.removesuffix(".")
            yield f"| `vitehub.chat.{name}` | {instrument} | `{unit}` | {told} | {known} |\n"


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
