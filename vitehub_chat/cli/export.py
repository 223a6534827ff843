"""Export: one conversation, whole, as lines of JSON."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import click

from vitehub_chat.cli.opened import open_conversation
from vitehub_chat.cli.options import (
    DEFAULT_THREAD,
    Address,
    address_options,
    json_option,
    source_options,
)
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.progress import progress
from vitehub_chat.cli.source import Source, find_source


@click.command()
@source_options
@address_options(f"[default: {DEFAULT_THREAD}]")
@json_option
def export(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    as_json: bool,  # noqa: ARG001 - it is JSON in any case
) -> None:
    """Write one conversation as lines of JSON.

    A line for the session, one for every message and summary, and one for the end, with counts.
    Without --session the summaries are those of all sessions.
    """
    address = Address(tenant, channel, thread, session)
    with printing(as_json=True) as printer:
        source = find_source(ref, state_url, agent)
        asyncio.run(_write(source, address, printer))


async def _write(source: Source, address: Address, printer: Printer) -> None:
    async with open_conversation(source, address) as conversation:
        page = await conversation.history(limit=1)
        lines: Any = conversation.export()
        with progress("exporting", page.live_edge_seq, beside=printer) as advance:
            async with aclosing(lines):
                async for line in lines:
                    await asyncio.to_thread(printer.write, line)
                    advance(1)
