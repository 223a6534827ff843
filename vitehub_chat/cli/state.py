"""State: whether a store keeps every rule of Agent State."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import click

from vitehub_chat.cli import failures
from vitehub_chat.cli.options import json_option, show_help
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.source import choose_state
from vitehub_chat.cli.upkeep import check_integrity, cleanup, drop, info, migrate
from vitehub_chat.errors import ChatError, ConfigError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.testing.checks.registry import OpenState
from vitehub_chat.testing.conformance import CheckResult, iterate_checks

_PREFIX: Final = "check_{}_"


@click.group(invoke_without_command=True)
@click.pass_context
def state(ctx: click.Context) -> int | None:
    """Look after an Agent State."""
    return show_help(ctx)


for _command in (info, migrate, cleanup, check_integrity, drop):
    state.add_command(_command)


@state.command()
@click.option("--state", "url", metavar="URL", help="The URL of the state.")
@json_option
def check(*, url: str | None, as_json: bool) -> int:
    """Check that a store keeps every rule of Agent State; exits with 1 if it breaks one.

    Works in tables of its own, which it deletes afterwards; those of the store stay untouched.
    Without --state the URL is that of VITEHUB_AGENT_STATE_URL.
    """
    with printing(as_json=as_json) as printer:
        results = asyncio.run(_check(_scratch(url), printer))
        _print(printer, results)
    is_broken = any(each.outcome == "failed" for each in results)
    return failures.FAILED if is_broken else failures.DONE


def _scratch(url: str | None) -> OpenState:
    """Return what opens new tables of a store, the same ones every time."""
    choice = choose_state(url)
    prefix = _PREFIX.format(new_id()[:12])

    def open_scratch(clock: Clock, **options: Any) -> AgentState:
        merged = {**choice.options, "table_prefix": prefix, **options}
        return open_agent_state(choice.url, clock=clock, **merged)

    return open_scratch


async def _check(open_scratch: OpenState, printer: Printer) -> Sequence[CheckResult]:
    results: list[CheckResult] = []
    async with _dropping(open_scratch):
        async for result in iterate_checks(open_scratch):
            results.append(result)
            if result.outcome == "failed" and not printer.as_json:
                printer.note(f"failed: {result.name}")
    return results


@asynccontextmanager
async def _dropping(open_scratch: OpenState) -> AsyncIterator[None]:
    """Delete the tables in the end, whatever happens.

    Raises:
        ConfigError: The provider cannot do that, so nothing is created.
    """
    keeper = open_scratch(SystemClock())
    if not isinstance(keeper, SteppedAgentState):
        raise ConfigError(
            "the provider cannot delete tables that it made",
            path="state.url",
            hint="run its checks with pytest: the fixture agent_state_check",
        )
    async with keeper:
        try:
            yield
        finally:
            await keeper.drop()


def _print(printer: Printer, results: Sequence[CheckResult]) -> None:
    counts = Counter(each.outcome for each in results)
    if printer.as_json:
        checks = [_to_json(each) for each in results]
        printer.document({"counts": dict(sorted(counts.items())), "checks": checks})
        return
    told = [each for each in results if each.outcome != "ok"]
    if told:
        rows = [(each.name, each.outcome, _reason(each)) for each in told]
        printer.table(("check", "outcome", "why"), rows)
    printer.line(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))


def _to_json(result: CheckResult) -> dict[str, Any]:
    fields = {
        "name": result.name,
        "outcome": result.outcome,
        "missing": list(result.missing),
        "error": None if result.error is None else _reason(result),
    }
    return {name: value for name, value in fields.items() if value}


def _reason(result: CheckResult) -> str:
    """Return why a check did not pass; the messages of the checks are all made up."""
    if result.outcome == "skipped":
        return f"lacks {', '.join(result.missing)}"
    error = result.error
    if isinstance(error, AssertionError):
        return str(error)
    if isinstance(error, ChatError):
        return f"{type(error).__name__}: {error}"
    return "" if error is None else failures.failure_of(error).message
