"""Options: what several commands take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from vitehub_chat.cli import failures

if TYPE_CHECKING:
    from vitehub_chat.agent.agent import Agent
    from vitehub_chat.model.keys import ConversationKey

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_THREAD = "cli"
"""The thread of those who talk to an agent by this command."""

json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs.")


def show_help(ctx: click.Context) -> int | None:
    """Print the help of a group to standard error if no command is named, and return 2."""
    if ctx.invoked_subcommand is not None:
        return None
    click.echo(ctx.get_help(), err=True)
    return failures.USAGE


class Address(NamedTuple):
    """Which conversation is meant; None where nothing was said."""

    tenant: str | None
    channel: str | None
    thread: str | None
    session: str | None

    def key(self, agent: str) -> ConversationKey:
        """Return the conversation of an agent; without a thread that of this command."""
        from vitehub_chat.model.keys import ConversationKey  # noqa: PLC0415 - keeps --help quick

        thread = DEFAULT_THREAD if self.thread is None else self.thread
        return ConversationKey(self.tenant, agent, self.channel, thread)


def address_options(thread: str) -> Callable[[Command], Command]:
    """Return what adds the options that name a conversation; `thread` tells its default."""

    def add(command: Command) -> Command:
        for name, about in (
            ("session", "The id of a session."),
            ("thread", f"The thread.  {thread}"),
            ("channel", "The channel."),
            ("tenant", "The tenant."),
        ):
            command = click.option(f"--{name}", help=about)(command)
        return command

    return add


def source_options(command: Command) -> Command:
    """Add what says where conversations are stored, and whose they are."""
    command = click.option("--agent", help="The agent's name; needed without REF.")(command)
    about = "The URL of the state, in place of REF or of VITEHUB_AGENT_STATE_URL."
    command = click.option("--state", "state_url", metavar="URL", help=about)(command)
    return click.argument("ref", required=False)(command)


def page_options(default: int, most: int) -> Callable[[Command], Command]:
    """Return what adds the options of a paged list."""

    def add(command: Command) -> Command:
        command = click.option("--all", "everything", is_flag=True, help="All pages.")(command)
        command = click.option("--cursor", help="Where a page before ended.")(command)
        limit = click.IntRange(1, most)
        about = f"How many at most, up to {most}."
        return click.option("--limit", type=limit, default=default, show_default=True, help=about)(
            command
        )

    return add


def check_page(cursor: str | None, *, everything: bool) -> None:
    """Refuse a cursor beside `--all`."""
    if cursor is not None and everything:
        raise click.UsageError("--cursor and --all exclude each other")


def load(ref: str) -> Agent:
    """Return the agent of a reference; a module may lie in the working directory.

    Its state is looked for, too, so that what is wrong with it is told at once.
    """
    from vitehub_chat.agent.loading import load_agent  # noqa: PLC0415 - keeps --help quick

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    agent = load_agent(ref)
    agent.runtime().find_state()
    return agent
