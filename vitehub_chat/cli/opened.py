"""Opened: one stored conversation that a command reads or changes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from vitehub_chat.cli.options import Address
from vitehub_chat.cli.source import Source, find_conversation
from vitehub_chat.cli.views import describe_key
from vitehub_chat.conversation.conversation import Conversation
from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.rows import HistoryPage

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@asynccontextmanager
async def open_conversation(source: Source, address: Address) -> AsyncIterator[Conversation]:
    """Open the conversation that an address names, with the rules of the agent if there is one.

    Raises:
        NotFoundError: There is no such session, or nothing was ever stored there.
    """
    async with source.open() as state:
        key = await find_conversation(state, source.name, address)
        policy = None if source.agent is None else source.agent.policy
        conversation = Conversation(state, key, session_id=address.session, policy=policy)
        if is_unknown(await conversation.history(limit=1)):
            raise NotFoundError(
                f"nothing is stored for {describe_key(key)}", hint="see `vitehub-chat sessions`"
            )
        yield conversation


def is_unknown(page: HistoryPage) -> bool:
    """Tell whether nothing was ever stored here; what was cleared has a later generation."""
    return page.live_edge_seq == 0 and page.generation <= 1


def check_named(address: Address) -> None:
    """Refuse to change a conversation that was not named."""
    if address.thread is None and address.session is None:
        raise click.UsageError("name the conversation: --thread or --session is needed")


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost.

    Raises:
        UsageError: There is no terminal to ask at.
        Abort: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("needs --yes without a terminal")
    click.confirm(question, abort=True, err=True)
