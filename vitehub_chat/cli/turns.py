"""Turns: the index of one conversation, one light row per message of a user."""

from __future__ import annotations

import asyncio

import attrs
import click

from vitehub_chat.cli.opened import open_conversation
from vitehub_chat.cli.options import (
    DEFAULT_THREAD,
    Address,
    address_options,
    check_page,
    json_option,
    page_options,
    source_options,
)
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.source import Source, find_source
from vitehub_chat.cli.views import present
from vitehub_chat.conversation.conversation import MAX_TURNS
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import TurnPage

_HEADERS = ("turn", "seq", "time", "answered", "preview")


@click.command()
@source_options
@address_options(f"[default: {DEFAULT_THREAD}]")
@page_options(100, MAX_TURNS)
@json_option
def turns(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    limit: int,
    cursor: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """List what users said in one conversation, the first message first."""
    check_page(cursor, everything=everything)
    address = Address(tenant, channel, thread, session)
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        page = asyncio.run(_read(source, address, None if everything else limit, cursor))
        _print(printer, page)


async def _read(
    source: Source, address: Address, limit: int | None, cursor: str | None
) -> TurnPage:
    async with open_conversation(source, address) as conversation:
        page = await conversation.turns(limit=limit or MAX_TURNS, cursor=cursor)
        while limit is None and page.next_cursor is not None:
            after = await conversation.turns(limit=MAX_TURNS, cursor=page.next_cursor)
            page = attrs.evolve(after, items=(*page.items, *after.items))
        return page


def _print(printer: Printer, page: TurnPage) -> None:
    if printer.as_json:
        items = [
            {**attrs.asdict(item), "created_at": format_time(item.created_at)}
            for item in page.items
        ]
        printer.document(present({"items": items, "next_cursor": page.next_cursor}))
        return
    rows = [
        (
            str(item.turn_no),
            f"#{item.seq}",
            format_time(item.created_at),
            "yes" if item.has_reply else "no",
            item.preview,
        )
        for item in page.items
    ]
    printer.table(_HEADERS, rows)
    if page.next_cursor is not None:
        printer.note(f"more turns: --cursor {page.next_cursor}, or --all")
