"""History: one conversation as it is stored."""

from __future__ import annotations

import asyncio
from typing import Literal

import attrs
import click

from vitehub_chat.cli.opened import is_unknown
from vitehub_chat.cli.options import (
    DEFAULT_THREAD,
    Address,
    address_options,
    check_page,
    json_option,
    page_options,
    source_options,
)
from vitehub_chat.cli.printer import MAX_SHOWN, Printer, printing
from vitehub_chat.cli.source import Source, find_conversation, find_source
from vitehub_chat.cli.views import describe_key, row_lines
from vitehub_chat.conversation.as_json import page_to_json
from vitehub_chat.conversation.conversation import MAX_PAGE, Conversation
from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rows import HistoryPage

Direction = Literal["older", "newer"]


@click.command()
@source_options
@address_options(f"[default: {DEFAULT_THREAD}]")
@page_options(50, MAX_PAGE)
@click.option(
    "--direction",
    type=click.Choice(["older", "newer"]),
    default="older",
    show_default=True,
    help="Which way from the cursor.",
)
@json_option
def history(
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
    direction: Direction,
    as_json: bool,
) -> None:
    """Print the messages of one conversation, the newest page first.

    The agent's definition, --state or VITEHUB_AGENT_STATE_URL say where they are stored.
    """
    check_page(cursor, everything=everything)
    address = Address(tenant, channel, thread, session)
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        key, page = asyncio.run(
            _read(source, address, None if everything else limit, cursor, direction)
        )
        _print(printer, key, page)


async def _read(
    source: Source, address: Address, limit: int | None, cursor: str | None, direction: Direction
) -> tuple[ConversationKey, HistoryPage]:
    async with source.open() as state:
        key = await find_conversation(state, source.name, address)
        conversation = Conversation(state, key, session_id=address.session)
        page = await conversation.history(
            limit=limit or MAX_PAGE, cursor=cursor, direction=direction
        )
        if is_unknown(page):
            raise NotFoundError(
                f"nothing is stored for {describe_key(key)}", hint="see `vitehub-chat sessions`"
            )
        while limit is None and page.older_cursor is not None:
            older = await conversation.history(limit=MAX_PAGE, cursor=page.older_cursor)
            page = attrs.evolve(
                page, items=(*older.items, *page.items), older_cursor=older.older_cursor
            )
        return key, page


def _print(printer: Printer, key: ConversationKey, page: HistoryPage) -> None:
    if printer.as_json:
        printer.document(page_to_json(page))
        return
    printer.note(describe_key(key))
    for line in row_lines(page.items, MAX_SHOWN if printer.shortens else None):
        printer.line(line)
    if page.older_cursor is not None:
        printer.note(f"older messages: --cursor {page.older_cursor}, or --all")
