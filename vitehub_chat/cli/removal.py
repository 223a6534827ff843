"""Removal: deleting, cutting and pruning one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import click

from vitehub_chat.cli.facts import show_facts
from vitehub_chat.cli.opened import check_named, confirm, open_conversation, yes_option
from vitehub_chat.cli.options import Address, address_options, json_option, source_options
from vitehub_chat.cli.printer import printing
from vitehub_chat.cli.progress import progress
from vitehub_chat.cli.source import Source, find_source
from vitehub_chat.cli.views import describe_key
from vitehub_chat.conversation.conversation import Conversation

Facts = Mapping[str, Any]
_NEEDED = "[one of --thread and --session is needed]"


@click.command()
@source_options
@address_options(_NEEDED)
@click.option("--notes", is_flag=True, help="Delete the notes of the memory that quote it, too.")
@yes_option
@json_option
def delete(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    notes: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete one conversation, or one session of it, and tell how much that was."""
    address = Address(tenant, channel, thread, session)

    async def clear(conversation: Conversation) -> Facts:
        done = await conversation.clear(delete_session=True, delete_notes=notes)
        return {"deleted": dict(done), "notes": len(done.notes)}

    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        show_facts(printer, _change(source, address, clear, "Delete", yes=yes))


@click.command()
@source_options
@address_options(_NEEDED)
@click.option("--from", "message_id", required=True, metavar="ID", help="The first message to go.")
@click.option("--after", is_flag=True, help="That message stays, what follows it goes.")
@click.option("--generation", type=int, help="Refuse if the conversation was cut meanwhile.")
@yes_option
@json_option
def truncate(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    message_id: str,
    after: bool,
    generation: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Cut one conversation off from a message on."""
    address = Address(tenant, channel, thread, session)

    async def cut(conversation: Conversation) -> Facts:
        done = await conversation.truncate(
            message_id, inclusive=not after, expected_generation=generation
        )
        return attrs.asdict(done)

    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        show_facts(printer, _change(source, address, cut, "Cut off the end of", yes=yes))


@click.command()
@source_options
@address_options(_NEEDED)
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@yes_option
@json_option
def prune(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    channel: str | None,
    thread: str | None,
    session: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove the rows of one conversation that the rules of the agent take, or the defaults."""
    address = Address(tenant, channel, thread, session)

    async def take(conversation: Conversation) -> Facts:
        with progress("pruning"):
            plan = await conversation.prune(dry_run=dry_run)
        return {
            "removed": {rule: len(seqs) for rule, seqs in attrs.asdict(plan.removed).items()},
            "kept": len(plan.kept),
            "tokens": plan.tokens,
            "over_budget": plan.over_budget,
            "done": not dry_run,
        }

    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, agent)
        show_facts(printer, _change(source, address, take, "Prune", yes=yes or dry_run))


def _change(
    source: Source,
    address: Address,
    act: Callable[[Conversation], Awaitable[Facts]],
    verb: str,
    *,
    yes: bool,
) -> Facts:
    """Change a conversation once that is confirmed, and return what came of it."""
    check_named(address)
    where = describe_key(address.key(source.name)) if address.session is None else address.session
    confirm(f"{verb} the conversation {where}?", yes=yes)

    async def run() -> Facts:
        async with open_conversation(source, address) as conversation:
            return await act(conversation)

    return asyncio.run(run())
