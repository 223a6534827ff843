"""The channel contract: what glues an agent to a chat platform, ours and those of others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from vitehub_chat.channels.values import ChannelRequest, DeliveryPlan, Inbound, Sent, Target
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import LockScope

NEEDED = (
    *("kind", "features", "lock_scope"),
    *("paths", "verify", "parse", "backfill", "send"),
)
"""What an object needs to be a channel."""


class Channel(Protocol):
    """One chat platform.

    It translates and posts. It decides nothing about history, sessions or locks, and keeps nothing
    that another process would need. Usable from several event loops.
    """

    @property
    def kind(self) -> str:
        """Its name: letters, digits, `-` and `_`; unique in an agent, part of ids and routes."""

    @property
    def features(self) -> frozenset[str]:
        """What it can do besides.

        `backfill`: `backfill` gives earlier messages. `edit`: a posted message can be changed.
        `stream`: an answer can be shown while it grows without edits. `typing`: it shows that
        somebody writes.
        """

    @property
    def lock_scope(self) -> LockScope | None:
        """What shares a lock if the agent leaves `lock_scope` open; None is `thread`."""

    def paths(self) -> Sequence[str]:
        """Return the paths of its requests below `{path}/{kind}`.

        The empty text is that path itself; others begin with a slash.
        """

    async def verify(self, request: ChannelRequest, /) -> bool:
        """Tell whether a request comes from the platform; compare signatures in constant time.

        Called before anything of the request is read. False, or an exception, is answered 401.
        """

    async def parse(self, request: ChannelRequest, /) -> Sequence[Inbound]:
        """Return what happened, in order; empty if nothing that concerns the agent.

        Called after `verify` alone.

        Raises:
            InputError: The request cannot be understood; answered 400. So is a `ValueError`.
        """

    async def backfill(self, target: Target, /, *, limit: int) -> Sequence[Message]:
        """Return the newest messages of a thread, oldest first, at most `limit`.

        Made by `channel_message`, so that their ids and roles are those of messages that arrive.
        May raise anything: it is logged and the turn goes on without.
        """

    async def send(
        self, target: Target, reply: AsyncIterator[AgentEvent], /, *, delivery: DeliveryPlan
    ) -> Sequence[Sent]:
        """Post an answer while it is made, and return what was posted.

        Called once per answer, not before the one before it in the same thread was posted. `reply`
        ends when the turn does. `post_reply` carries out the plan for platforms that post and edit
        text. An empty answer must not overwrite what was posted. May raise anything: it is logged;
        the answer stays recorded.
        """
