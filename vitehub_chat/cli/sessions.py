"""Sessions: what conversations an agent has."""

from __future__ import annotations

import asyncio

import attrs
import click

from vitehub_chat.cli.options import (
    Address,
    address_options,
    check_page,
    json_option,
    page_options,
    source_options,
)
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.source import Source, find_conversation, find_source
from vitehub_chat.cli.views import session_to_json
from vitehub_chat.conversation.conversations import MAX_SESSIONS
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import format_time
from vitehub_chat.model.rows import SessionInfo, SessionPage
from vitehub_chat.state.contract import AgentState

_HEADERS = ("last message", "messages", "channel", "thread", "session", "title")


@click.command()
@source_options
@address_options("[default: all]")
@page_options(20, MAX_SESSIONS)
@json_option
def sessions(
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
    """List the sessions of an agent, the newest activity first.

    Those of one tenant, or of the tenant without a name; --thread, with --channel, narrows to one
    conversation, --session to one session.
    """
    check_page(cursor, everything=everything)
    if channel is not None and thread is None and session is None:
        raise click.UsageError("--channel needs --thread or --session")
    address = Address(tenant, channel, thread, session)
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        page = asyncio.run(_read(source, address, None if everything else limit, cursor))
        _print(printer, page)


async def _read(
    source: Source, address: Address, limit: int | None, cursor: str | None
) -> SessionPage:
    async with source.open() as state:
        if address.session is not None:
            key = await find_conversation(state, source.name, address)
            found = await state.sessions.get(key, session_id=address.session)
            return SessionPage(items=(found,))
        key_or_none = None if address.thread is None else address.key(source.name)
        page = await _page(state, source, address, key_or_none, limit or MAX_SESSIONS, cursor)
        while limit is None and page.next_cursor is not None:
            after = await _page(state, source, address, key_or_none, MAX_SESSIONS, page.next_cursor)
            page = attrs.evolve(after, items=(*page.items, *after.items))
        return page


async def _page(
    state: AgentState,
    source: Source,
    address: Address,
    conversation: ConversationKey | None,
    limit: int,
    cursor: str | None,
) -> SessionPage:
    return await state.sessions.list(
        address.tenant,
        agent=source.name,
        conversation=conversation,
        limit=limit,
        cursor=cursor,
    )


def _print(printer: Printer, page: SessionPage) -> None:
    if printer.as_json:
        document = {"items": [session_to_json(session) for session in page.items]}
        if page.next_cursor is not None:
            document |= {"next_cursor": page.next_cursor}  # type: ignore[dict-item]
        printer.document(document)
        return
    if not page.items:
        printer.note("no sessions")
        return
    printer.table(_HEADERS, [_cells(session) for session in page.items])
    if page.next_cursor is not None:
        printer.note(f"more sessions: --cursor {page.next_cursor}, or --all")


def _cells(session: SessionInfo) -> tuple[str, ...]:
    key = session.conversation
    return (
        format_time(session.last_message_at),
        str(session.message_count),
        key.channel or "-",
        key.thread or "-",
        session.session_id or "-",
        session.title or "-",
    )
