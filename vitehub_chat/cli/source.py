"""Source: the Agent State that a command reads, and the agent whose conversations it means."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import click

from vitehub_chat.agent.agent import Agent
from vitehub_chat.cli.options import Address, load
from vitehub_chat.config.agent_definition import StateChoice
from vitehub_chat.config.environment import STATE_URL_VARIABLE, state_settings
from vitehub_chat.errors import ConfigError, NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import SessionPolicy
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.values import SessionRequest


@attrs.frozen(kw_only=True)
class Source:
    """Where to read, and whose conversations.

    Attributes:
        name: The agent's name.
        agent: The agent whose own state is read, or None.
        state: The state that is read when there is no agent.
    """

    name: str
    agent: Agent | None = None
    state: AgentState | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AgentState]:
        """Open the state.

        Raises:
            ConfigError: The agent has none.
            NotFoundError: There is nothing at the URL yet.
        """
        if self.agent is not None:
            async with self.agent:
                yield await self.agent.open_state()
        elif self.state is not None:
            try:
                await open_existing(self.state)
                yield self.state
            finally:
                await self.state.aclose()


def find_source(ref: str | None, state_url: str | None, name: str | None) -> Source:
    """Return what the options of a command mean.

    `--state` comes before the agent's own state, which the environment may replace.
    """
    agent = None if ref is None else load(ref)
    if agent is None and name is None:
        raise click.UsageError("without REF, --agent NAME is needed")
    name = name or (agent.name if agent is not None else "")
    if agent is not None and state_url is None:
        return Source(name=name, agent=agent)
    choice = choose_state(state_url, also="REF, or ")
    options = {**choice.options, "migrate": False}  # reading creates nothing
    return Source(name=name, state=open_agent_state(choice.url, **options))


def choose_state(url: str | None, *, also: str = "") -> StateChoice:
    """Return which state `--state` means, without it the environment.

    Raises:
        UsageError: Neither names one; `also` is what else could have been given.
    """
    given = {} if url is None else {STATE_URL_VARIABLE: url}
    choice = state_settings({**os.environ, **given}, None).choice
    if choice is None:
        raise click.UsageError(f"give {also}--state URL, or set {STATE_URL_VARIABLE}")
    return choice


async def open_existing(
    state: AgentState, *, hint: str = "check the URL; an agent creates its state at the first turn"
) -> None:
    """Open a state that has to be there already.

    Raises:
        NotFoundError: There is none of this release; `hint` says what to do.
    """
    try:
        await state.__aenter__()
    except ConfigError as error:
        if error.path != "state.migrate":
            raise
        raise NotFoundError(
            "there is no Agent State of this release at that URL",
            hint=hint,
        ) from None


async def find_conversation(state: AgentState, name: str, address: Address) -> ConversationKey:
    """Return where the rows of an address are: those of a session are where it began.

    Raises:
        NotFoundError: There is no such session.
    """
    key = address.key(name)
    if address.session is None:
        return key
    asked = SessionRequest(conversation=key, policy=SessionPolicy(), base=address.session)
    found = await state.sessions.resolve(asked)
    if found.key == 0:
        raise NotFoundError(
            f"there is no session {address.session!r}", hint="see `vitehub-chat sessions`"
        )
    return ConversationKey.decode(found.conversation)
