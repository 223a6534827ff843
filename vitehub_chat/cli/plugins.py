"""Plugins: what is installed, and whether it can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Literal, NamedTuple

import click

from vitehub_chat import plugins as registry
from vitehub_chat.cli import failures
from vitehub_chat.cli.options import json_option, show_help
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.distributions import Plugin, broken_metadata
from vitehub_chat.errors import MissingDependencyError

Status = Literal["installed", "ok", "extra not installed", "broken"]

_NEEDS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("vitehub_agent.drivers", "pydantic_ai"): ("models", "pydantic_ai"),
    ("vitehub_chat.token_estimators", "tiktoken"): ("tiktoken", "tiktoken"),
}
"""Built-in plugins that import their extra late: the extra, and a module that it brings."""

_HEADERS = ("group", "name", "status", "import path", "from", "problem")


class Examined(NamedTuple):
    """A plugin, or a distribution that offers some, and how it is."""

    group: str
    plugin: Plugin
    status: Status
    problem: str | None = None


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(ctx: click.Context) -> int | None:
    """Look at capabilities, state providers, drivers and channels."""
    return show_help(ctx)


@plugins.command("list")
@json_option
def list_plugins(*, as_json: bool) -> None:
    """List what is installed; imports nothing."""
    with printing(as_json=as_json) as printer:
        _print(printer, [*_listed(), *_unreadable()])


@plugins.command()
@json_option
def doctor(*, as_json: bool) -> int:
    """Import everything that is installed; exits with 1 if something is broken."""
    with printing(as_json=as_json) as printer:
        found = [*_examined(), *_unreadable()]
        _print(printer, found)
    is_broken = any(each.status == "broken" for each in found)
    return failures.FAILED if is_broken else failures.DONE


def _listed() -> Iterable[Examined]:
    for each in registry.all_registries():
        for plugin in each.entries():
            yield _judge(each.group, plugin, "installed")


def _examined() -> Iterable[Examined]:
    for each in registry.all_registries():
        for plugin in each.doctor():
            yield _judge(each.group, plugin, "ok")


def _unreadable() -> Iterable[Examined]:
    for plugin in broken_metadata():
        yield _judge("-", plugin, "broken")


def _judge(group: str, plugin: Plugin, fine: Status) -> Examined:
    error = plugin.error
    if isinstance(error, MissingDependencyError):
        return Examined(group, plugin, "extra not installed", str(error))
    if error is not None:
        return Examined(group, plugin, "broken", str(error))
    extra, module = _NEEDS.get((group, plugin.name), ("", ""))
    if fine == "ok" and module and find_spec(module) is None:
        missing = MissingDependencyError(f"{plugin.name!r}", extra=extra)
        return Examined(group, plugin, "extra not installed", str(missing))
    return Examined(group, plugin, fine)


def _print(printer: Printer, found: Sequence[Examined]) -> None:
    if printer.as_json:
        printer.document({"plugins": [_to_json(each) for each in found]})
        return
    rows = [
        (
            each.group,
            each.plugin.name or "-",
            each.status,
            each.plugin.value or "-",
            each.plugin.origin,
            each.problem or "",
        )
        for each in found
    ]
    printer.table(_HEADERS, rows)


def _to_json(each: Examined) -> dict[str, str]:
    fields = {
        "group": each.group,
        "name": each.plugin.name,
        "status": each.status,
        "value": each.plugin.value,
        "distribution": each.plugin.distribution,
        "version": each.plugin.version,
        "error": each.problem,
    }
    return {name: value for name, value in fields.items() if value}
