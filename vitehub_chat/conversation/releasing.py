"""Releasing: letting go of a run that was granted and could not be recorded."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import StoppedEarly, TurnControl
from vitehub_chat.conversation.lease import LEASE
from vitehub_chat.conversation.replies import error_code
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.conversation.unreadable import EntriesPutAside
from vitehub_chat.errors import StateError
from vitehub_chat.state.contract import StateContext
from vitehub_chat.state.values import Grant


@attrs.define(kw_only=True)
class Release:
    """The ways out of one granted run, each of which passes its lock on.

    Attributes:
        context: What the run writes under.
        next: What runs next under the lock, once it is known.
    """

    setting: RunSetting
    grant: Grant
    control: TurnControl
    context: StateContext
    next: Grant | None = None

    async def after(self, error: BaseException | None, *, has_caller: bool) -> None:
        """Let go of the run after an error, or without one if there is nothing to run.

        The messages of a caller may be sent again. What nobody here waits for goes on waiting,
        but for a message that cannot be run at all, which would be in the way for ever.

        Raises:
            EntriesPutAside: It was put aside.
        """
        ticket_id = self.grant.ticket_id
        if isinstance(error, EntriesPutAside):
            await self._put_aside(error.ticket_ids)
        elif has_caller or error is None:
            await self._give_back()
        elif isinstance(error, StoppedEarly):
            await self._put_aside(())
        elif isinstance(error, Exception) and not isinstance(error, StateError):
            events.turn_failed(error, code=error_code(error), turn_id=ticket_id)
            await self._put_aside([ticket_id])
            raise EntriesPutAside([ticket_id]) from error

    async def _put_aside(self, ticket_ids: Sequence[str]) -> None:
        """End entries that cannot be read, and let the others of the run wait again."""
        self.next = await write_surely(
            lambda: self.setting.turns.quarantine(
                ticket_ids, owner=self.setting.successor(), lease=LEASE, ctx=self.context
            ),
            self.control,
        )

    async def _give_back(self) -> None:
        """Take the message of the caller back, so that it may be sent again."""
        try:
            taken_back = await write_surely(
                lambda: self.setting.turns.withdraw(
                    self.grant.ticket_id,
                    owner=self.setting.successor(),
                    lease=LEASE,
                    ctx=self.context,
                ),
                self.control,
            )
        except StateError as error:
            events.turn_failed(error, code=error.code, turn_id=self.grant.ticket_id)
            return
        self.next = taken_back.next
