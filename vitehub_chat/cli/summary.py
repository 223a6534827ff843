"""Summary: what stands for the older messages of one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

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
from vitehub_chat.cli.source import Source, find_source
from vitehub_chat.cli.text import safe_text
from vitehub_chat.conversation.as_json import summary_to_json
from vitehub_chat.conversation.summaries import SUMMARY_KINDS
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import Summary


@click.command()
@source_options
@address_options(f"[default: {DEFAULT_THREAD}]")
@json_option
def summary(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    as_json: bool,
) -> None:
    """Print the rolling summary of one conversation, and the one that was saved by hand.

    Each session has a rolling summary of its own: without --session that of the session that was
    used last is printed.
    """
    address = Address(tenant, channel, thread, session)
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        _print(printer, asyncio.run(_read(source, address)))


async def _read(source: Source, address: Address) -> Mapping[str, Summary | None]:
    async with open_conversation(source, address) as conversation:
        return {kind: await conversation.get_summary(kind) for kind in SUMMARY_KINDS}


def _print(printer: Printer, found: Mapping[str, Summary | None]) -> None:
    if printer.as_json:
        printer.document(
            {kind: None if each is None else summary_to_json(each) for kind, each in found.items()}
        )
        return
    for kind, each in found.items():
        if each is None:
            printer.line(f"{kind}: none")
            continue
        through = "" if each.through_seq is None else f", through #{each.through_seq}"
        by = "" if each.model is None else f", by {safe_text(each.model)}"
        printer.line(f"{kind}, {format_time(each.created_at)}{through}{by}:")
        for line in safe_text(each.text).split("\n"):
            printer.line(f"    {line}".rstrip())
