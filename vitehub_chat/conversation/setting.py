"""Setting: what all runs of one agent share, and how they write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from vitehub_chat.conversation.control import TurnControl, settle
from vitehub_chat.conversation.driving import Invoke
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.outlet import Outlet
from vitehub_chat.conversation.pruning import PruneKit
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.contract import AgentState, TurnStore

T = TypeVar("T")
RETRY_AFTER_S = (0.1, 0.2)


@attrs.frozen(kw_only=True)
class RunSetting:
    """What all runs of one agent share.

    Attributes:
        agent: The agent's name.
        turns: Where turns are kept.
        successor: Names the process that runs what comes next under a lock if nobody waits for it;
            empty while this one closes.
        user_key_of: Gives the user key of a request.
        state: Where messages are stored, or None.
        outlet: Where the messages of channels come from and go, or None.
        fitting: Makes calls fit into the model's window, or None.
        memory: Archives messages, or None.
        pruning: Removes rows with the ends of turns, or None.
    """

    agent: str
    policy: ChatPolicy
    turns: TurnStore
    successor: Callable[[], str]
    invoke: Invoke
    clock: Clock
    new_id: NewId
    user_key_of: Callable[[TurnRequest], Awaitable[str | None]]
    state: AgentState | None = None
    outlet: Outlet | None = None
    fitting: FitKit | None = None
    memory: MemoryKit | None = None
    pruning: PruneKit | None = None

    @property
    def has_state(self) -> bool:
        """Whether messages are stored."""
        return self.state is not None


async def write_surely(call: Callable[[], Awaitable[T]], control: TurnControl) -> T:
    """Write although the task is cancelled; try again while surely nothing was written.

    Raises:
        StateError: What the last attempt raised.
    """
    for pause in RETRY_AFTER_S:
        try:
            return await settle(call(), control)
        except asyncio.CancelledError:
            # The end of an event loop cancels every task, also the one that waits for the write.
            control.stop("cancelled")
            continue
        except StateUnavailableError as error:
            if error.outcome != "not_written" or not error.retryable:
                raise
        await settle(asyncio.sleep(pause), control)
    return await settle(call(), control)
