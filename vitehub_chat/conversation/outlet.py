"""Outlet: what brings messages that nobody waits for their history, and takes their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult


class Reply(Protocol):
    """One answer on its way to where its message came from."""

    def begin(self, prepared: PreparedInvocation, /) -> None:
        """Learn what the driver gets, just before it is called; not called if it is not."""

    def take(self, event: AgentEvent, /) -> None:
        """Take the next event of the turn; must not block."""

    def end(self, result: RunResult | None, /) -> None:
        """Learn what came of it once it is recorded; None if the run was given up or failed."""


class Outlet(Protocol):
    """Where the messages of channels come from and their answers go.

    Asked by whoever carries out a run whose request has a `reply_to`, in whatever process.
    """

    async def supply(self, request: TurnRequest, /, *, group: Sequence[TurnRequest]) -> TurnRequest:
        """Return the request with the earlier messages of its thread.

        `group` are the requests that are run together with it, in order of arrival. Called under
        the lock, before anything is recorded.
        """

    def open(self, request: TurnRequest, /) -> Reply:
        """Return where the answer of a request goes."""


class _NoReply:
    """Nobody gets the answer but who waits for it."""

    def begin(self, prepared: PreparedInvocation, /) -> None:
        """Do nothing."""

    def take(self, event: AgentEvent, /) -> None:
        """Do nothing."""

    def end(self, result: RunResult | None, /) -> None:
        """Do nothing."""


NO_REPLY: Reply = _NoReply()
