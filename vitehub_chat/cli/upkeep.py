"""Upkeep: facts about a store, its schema, and what has expired in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import click

from vitehub_chat.cli import failures
from vitehub_chat.cli.facts import show_facts
from vitehub_chat.cli.opened import confirm, yes_option
from vitehub_chat.cli.options import json_option
from vitehub_chat.cli.printer import printing
from vitehub_chat.cli.progress import progress
from vitehub_chat.cli.source import choose_state, open_existing
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state

T = TypeVar("T")

url_option = click.option("--state", "url", metavar="URL", help="The URL of the state.")


@click.command()
@url_option
@json_option
def info(*, url: str | None, as_json: bool) -> None:
    """Tell the schema, the features, the retention and the size of a store."""

    async def look(state: AgentState) -> Mapping[str, Any]:
        found = await state.admin.info()
        retention = found.retention
        return {
            "schema_version": found.schema_version,
            "newest_version": found.newest_version,
            "features": sorted(found.features),
            "retention": retention if retention is None else str(retention),
            "size": found.size,
            "counts": dict(found.counts),
        }

    _run(url, look, as_json=as_json)


@click.command()
@url_option
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option(
    "--apply-retention", is_flag=True, help="Give older rows the expiry of the retention, too."
)
@json_option
def migrate(*, url: str | None, dry_run: bool, apply_retention: bool, as_json: bool) -> None:
    """Bring the schema of a store up to date; a new store gets its tables."""

    async def change(state: AgentState) -> Mapping[str, Any]:
        plan = await state.admin.migrate(dry_run=True)
        rows = texts = 0
        if not dry_run:
            async with state:
                done = await state.admin.migrate(apply_retention=apply_retention)
                rows, texts = done.rows, done.texts
        return {
            "from_version": plan.from_version,
            "to_version": plan.to_version,
            "done": not dry_run,
            "rows": rows,
            "texts": texts,
        }

    with printing(as_json=as_json) as printer:
        with progress("migrating"):
            done = asyncio.run(change(_closed(url, migrate=True)))
        show_facts(printer, done)


@click.command()
@url_option
@json_option
def cleanup(*, url: str | None, as_json: bool) -> None:
    """Remove everything that has expired, at once."""

    async def clean(state: AgentState) -> Mapping[str, Any]:
        return {"removed": dict(await state.admin.cleanup())}

    _run(url, clean, as_json=as_json)


@click.command(name="check-integrity")
@url_option
@json_option
def check_integrity(*, url: str | None, as_json: bool) -> int:
    """Look for records that cannot be read or belong to nothing; exits with 1 if there are any."""

    async def look(state: AgentState) -> Mapping[str, Any]:
        found = await state.admin.check_integrity()
        return {"rows": found.rows, "problems": dict(found.problems)}

    found = _run(url, look, as_json=as_json)
    return failures.FAILED if found["problems"] else failures.DONE


@click.command()
@url_option
@yes_option
@json_option
def drop(*, url: str | None, yes: bool, as_json: bool) -> None:
    """Delete the tables of a store with everything in them."""
    confirm("Delete every conversation of this store?", yes=yes)

    async def remove(state: AgentState) -> Mapping[str, Any]:
        counts = (await state.admin.info()).counts
        await state.admin.drop()
        return {"dropped": dict(counts)}

    _run(url, remove, as_json=as_json)


def _run(
    url: str | None, act: Callable[[AgentState], Awaitable[Mapping[str, Any]]], *, as_json: bool
) -> Mapping[str, Any]:
    with printing(as_json=as_json) as printer:
        found = asyncio.run(_with_state(url, act))
        show_facts(printer, found)
        return found


async def _with_state(url: str | None, act: Callable[[AgentState], Awaitable[T]]) -> T:
    state = _closed(url, migrate=False)
    try:
        await open_existing(state, hint="check the URL, or run `vitehub-chat state migrate`")
        return await act(state)
    finally:
        await state.aclose()


def _closed(url: str | None, *, migrate: bool) -> AgentState:
    choice = choose_state(url)
    return open_agent_state(choice.url, **{**choice.options, "migrate": migrate})
