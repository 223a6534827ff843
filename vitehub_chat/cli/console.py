"""Console: the conversations of an agent in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from vitehub_chat.cli.options import json_option, source_options
from vitehub_chat.cli.printer import printing
from vitehub_chat.cli.serving import read_place, serve_site, serving_options
from vitehub_chat.cli.source import find_source


@click.command()
@source_options
@click.option("--tenant", help="The tenant whose conversations are shown.")
@serving_options
@json_option
def console(
    *,
    ref: str | None,
    state_url: str | None,
    agent: str | None,
    tenant: str | None,
    host: str,
    port: int,
    names: Sequence[str],
    token_file: Path | None,
    opens: bool,
    as_json: bool,
) -> None:
    """Look at the conversations of an agent in a browser: read, search, inspect, delete.

    Prints a link that works once, within two minutes. No turn is run. Ctrl-C ends it.
    """
    with printing(as_json=as_json) as printer:
        place = read_place(host, port, names, token_file, opens=opens)
        source = find_source(ref, state_url, agent)
        serve_site(source, place, printer, tenant=tenant, talks=False)
