"""Serve: an agent in a browser on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from vitehub_chat.cli.options import json_option, load
from vitehub_chat.cli.printer import printing
from vitehub_chat.cli.serving import read_place, serve_site, serving_options
from vitehub_chat.cli.settings import state_of
from vitehub_chat.cli.source import Source
from vitehub_chat.config.agent_definition import StateChoice


@click.command()
@click.argument("ref")
@click.option("--tenant", help="The tenant in which to talk, and whose conversations are shown.")
@serving_options
@json_option
def serve(
    *,
    ref: str,
    tenant: str | None,
    host: str,
    port: int,
    names: Sequence[str],
    token_file: Path | None,
    opens: bool,
    as_json: bool,
) -> None:
    """Talk to an agent in a browser, and look at its conversations.

    Prints a link that works once, within two minutes. The console is at /, the routes for chat
    clients are at /api/chat. Ctrl-C ends it; turns that run then are recorded.
    """
    with printing(as_json=as_json) as printer:
        place = read_place(host, port, names, token_file, opens=opens)
        agent = load(ref)
        found = state_of(agent)
        if found is not None and found.choice is None:
            # Without a state there would be nothing to look at.
            asyncio.run(agent.aclose())
            agent.state = StateChoice(url="memory:")
            printer.note("no state: conversations are kept in memory until the end")
        source = Source(name=agent.name, agent=agent)
        serve_site(source, place, printer, tenant=tenant, talks=True)
