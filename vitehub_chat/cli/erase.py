"""Erase: everything that a person said and owns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import click

from vitehub_chat.cli.facts import show_facts
from vitehub_chat.cli.opened import confirm, yes_option
from vitehub_chat.cli.options import json_option
from vitehub_chat.cli.printer import printing
from vitehub_chat.cli.progress import progress
from vitehub_chat.cli.source import Source, find_source
from vitehub_chat.conversation.conversations import Conversations


@click.command()
@click.argument("ref", required=False)
@click.option(
    "--state",
    "state_url",
    metavar="URL",
    help="The URL of the state, in place of REF or of VITEHUB_AGENT_STATE_URL.",
)
@click.option("--tenant", help="The tenant.  [default: the one without a name]")
@click.option("--user", required=True, help="The user key of the person.")
@yes_option
@json_option
def erase(
    *,
    ref: str | None,
    state_url: str | None,
    tenant: str | None,
    user: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase a person from a tenant: their sessions, and what they wrote in those of others.

    Prints the receipt: counts per store, zeros when repeated. With REF the notes that the memory
    of the agent has about them go, too.
    """
    with printing(as_json=as_json) as printer:
        source = find_source(ref, state_url, "" if ref is None else None)
        confirm(f"Erase everything of {user!r}?", yes=yes)
        with progress("erasing"):
            receipt = asyncio.run(_erase(source, tenant, user))
        show_facts(printer, {"erased": dict(receipt)})


async def _erase(source: Source, tenant: str | None, user: str) -> Mapping[str, int]:
    async with source.open() as state:
        conversations = Conversations(
            state,
            tenant=tenant,
            agent=source.name or None,
            policy=None if source.agent is None else source.agent.policy,
        )
        return await conversations.erase_person(user)
