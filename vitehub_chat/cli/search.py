"""Search: messages of past conversations by their words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime

import click

from vitehub_chat.cli.options import Address, address_options, json_option, source_options
from vitehub_chat.cli.printer import Printer, printing
from vitehub_chat.cli.source import Source, find_conversation, find_source
from vitehub_chat.cli.text import safe_line
from vitehub_chat.cli.views import describe_key, hit_to_json
from vitehub_chat.conversation.conversations import Conversations
from vitehub_chat.conversation.searching import MAX_HITS
from vitehub_chat.model.clock import read_time
from vitehub_chat.model.hits import SearchHit, SearchPage
from vitehub_chat.model.messages import format_time


class _Time(click.ParamType[datetime]):
    """A time in ISO 8601, without an offset in UTC."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time that a text means, or fail."""
        found = read_time(value)
        if found is None:
            self.fail("is no time in ISO 8601", param, ctx)
        return found


@click.command()
@click.argument("query")
@source_options
@address_options("[default: all]")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_HITS),
    default=10,
    show_default=True,
    help=f"How many at most, up to {MAX_HITS}.",
)
@click.option("--role", help="Only messages of this role.")
@click.option("--after", type=_Time(), help="Only messages of this time or later.")
@click.option("--before", type=_Time(), help="Only messages before this time.")
@json_option
def search(
    *,
    query: str,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    limit: int,
    role: str | None,
    after: datetime | None,
    before: datetime | None,
    as_json: bool,
) -> None:
    """Find messages of an agent in which all words of QUERY occur, in any case.

    Those of one tenant, or of the tenant without a name; --thread, with --channel, narrows to one
    conversation, --session to one session.
    """
    if channel is not None and thread is None and session is None:
        raise click.UsageError("--channel needs --thread or --session")
    address = Address(tenant, channel, thread, session)
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        page = asyncio.run(_find(source, address, query, limit, role, after, before))
        _print(printer, page)


async def _find(
    source: Source,
    address: Address,
    query: str,
    limit: int,
    role: str | None,
    after: datetime | None,
    before: datetime | None,
) -> SearchPage:
    async with source.open() as state:
        is_narrowed = address.thread is not None or address.session is not None
        key = await find_conversation(state, source.name, address) if is_narrowed else None
        conversations = Conversations(
            state,
            tenant=address.tenant,
            agent=source.name,
            policy=None if source.agent is None else source.agent.policy,
        )
        return await conversations.search(
            query,
            limit=limit,
            role=role,
            after=after,
            before=before,
            session_id=address.session,
            conversation=key,
        )


def _print(printer: Printer, page: SearchPage) -> None:
    if printer.as_json:
        printer.document({"items": [hit_to_json(hit) for hit in page.items]})
        return
    if not page.items:
        printer.note("nothing found")
    for hit in page.items:
        for line in _lines(hit):
            printer.line(line)


def _lines(hit: SearchHit) -> Iterator[str]:
    facts = [f"#{hit.seq}", hit.role, format_time(hit.created_at), describe_key(hit.conversation)]
    if hit.session_id is not None:
        facts.append(f"session {hit.session_id!r}")
    yield safe_line("  ".join([*facts, f"message {hit.message_id!r}"]))
    yield f"    {safe_line(hit.snippet)}"
