"""Following: waiting for an accepted message until it is this caller's to run, or has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import TurnControl, settle
from vitehub_chat.conversation.lease import ATTEND_EVERY, ATTENDANCE, LEASE
from vitehub_chat.conversation.setting import write_surely
from vitehub_chat.conversation.unreadable import unreadable_error
from vitehub_chat.conversation.waiting import Ended, Seat, WaitingRoom
from vitehub_chat.errors import (
    ChatBusyError,
    ChatError,
    StateConflictError,
    StateUnavailableError,
)
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.codec import run_from_json
from vitehub_chat.state.contract import TurnStore
from vitehub_chat.state.values import Grant, Outcome, TurnEnd

T = TypeVar("T")

FIRST_LOOK_S = 0.02
LOOK_EVERY_S = 0.25


class Follower:
    """Waits for tickets of one agent.

    Runs of this process tell by themselves; those of other processes are looked up, at first
    often, then four times a second.
    """

    def __init__(
        self,
        *,
        turns: TurnStore,
        room: WaitingRoom,
        dispatch: Callable[[Grant], Awaitable[None]],
        owner: Callable[[], str],
        successor: Callable[[], str],
    ) -> None:
        self._turns = turns
        self._room = room
        self._dispatch = dispatch
        self._owner = owner
        self._successor = successor

    async def wait(
        self,
        ticket_id: str,
        lock_key: str,
        seat: Seat,
        control: TurnControl,
        patience: float | None,
    ) -> Grant | RunResult:
        """Wait until an own entry is granted to this caller or has ended.

        A caller that is stopped, or waits until the time of the loop that `patience` says, takes
        its entry back if no run has it yet. Without `patience` it waits as long as it takes.

        Raises:
            ChatBusyError: It waited too long (`timeout`); the message may be sent again.
            StateConflictError: The conversation was deleted meanwhile.
            StateUnavailableError: The store did not answer for longer than a lease.
        """
        loop, store = asyncio.get_running_loop(), _Store(control)
        attend_at = loop.time() + ATTEND_EVERY.total_seconds()
        pause = FIRST_LOOK_S
        while True:
            news = await self._next(seat, pause, patience, control)
            if isinstance(news, Grant):
                if seat.has_taken(news):
                    # Found by looking before it was told.
                    continue
                return news
            if isinstance(news, Ended):
                return _own_end(news)
            is_late = patience is not None and loop.time() >= patience
            if control.reason is not None or is_late:
                left = await self.leave(ticket_id, control, seat, is_late=is_late)
                if left is not None:
                    return left
                patience = None
            if loop.time() >= attend_at:
                await store.ask(self._turns.renew(ticket_id, lease=ATTENDANCE))
                attend_at = loop.time() + ATTEND_EVERY.total_seconds()
            found = await store.ask(self._look(ticket_id, lock_key))
            pause = min(pause * 2, LOOK_EVERY_S)
            if isinstance(found, timedelta):
                pause = min(pause, found.total_seconds())
            elif found is not None:
                return found

    async def follow(self, ticket_id: str, control: TurnControl) -> RunResult | None:
        """Wait for the end of somebody else's entry; None if it came to none.

        Stopping ends the waiting, not the run.

        Raises:
            StateUnavailableError: The store did not answer for longer than a lease.
        """
        store = _Store(control)
        seat = self._room.enter(ticket_id, may_run=False)
        control.on_stop(seat.wake)
        pause = FIRST_LOOK_S
        try:
            while control.reason is None:
                outcome = await store.ask(self._turns.outcome(ticket_id))
                if outcome is not None and _is_over(outcome):
                    return _end_for_repeat(outcome, ticket_id)
                news = await self._next(seat, pause, None, control)
                if isinstance(news, Ended) and news.result is not None:
                    return news.result
                pause = min(pause * 2, LOOK_EVERY_S)
            return RunResult(status="interrupted", finish_reason="interrupted")
        finally:
            seat.leave()

    async def _next(
        self, seat: Seat, pause: float, patience: float | None, control: TurnControl
    ) -> Grant | Ended | None:
        if patience is not None:
            pause = max(min(pause, patience - asyncio.get_running_loop().time()), 0)
        try:
            return await seat.next(pause)
        except asyncio.CancelledError:
            control.stop("cancelled")
            return None

    async def leave(
        self, ticket_id: str, control: TurnControl, seat: Seat, *, is_late: bool = False
    ) -> RunResult | None:
        """Take the entry back; None if a run has it already, which is then waited for."""
        taken_back = await write_surely(
            lambda: self._turns.withdraw(ticket_id, owner=self._successor(), lease=LEASE), control
        )
        seat.is_withdrawn = taken_back.withdrawn
        if taken_back.next is not None:
            await self._dispatch(taken_back.next)
        if control.reason == "cancelled" or (taken_back.withdrawn and control.reason is not None):
            return RunResult(status="interrupted", finish_reason="interrupted")
        if taken_back.withdrawn and is_late:
            raise ChatBusyError("waited too long for the turns before", code="timeout")
        return None

    async def _look(self, ticket_id: str, lock_key: str) -> Grant | RunResult | timedelta | None:
        """Look up how far an entry is; a lock that nobody holds is taken for who is next.

        Returns how long its line still waits for more messages, if that is what it waits for.
        """
        outcome = await self._turns.outcome(ticket_id)
        if outcome.is_stalled:
            granted = await self._turns.take(lock_key, owner=self._successor(), lease=LEASE)
            if granted is not None and granted.ticket_id == ticket_id:
                return granted if granted.owner == self._owner() else None
            if granted is not None:
                events.queue_swept(entries=len(granted.entries), turn_id=granted.ticket_id)
                await self._dispatch(granted)
            return None
        if outcome.state == "running" and outcome.grant is not None:
            is_mine = outcome.grant.owner == self._owner()
            return outcome.grant if is_mine and outcome.run_ticket_id == ticket_id else None
        if outcome.state == "waiting":
            return outcome.settles_in
        return _end_of(outcome, ticket_id)


async def find_repeated(turns: TurnStore, turn_id: str) -> RunResult | None:
    """Return the recorded end of a turn that is over, for who asks for it again; else None."""
    return _end_for_repeat(await turns.outcome(turn_id), turn_id)


class _Store:
    """A store that may be away for a while, for somebody who waits."""

    def __init__(self, control: TurnControl) -> None:
        self._control = control
        self._away_since: float | None = None

    async def ask(self, call: Awaitable[T]) -> T | None:
        """Return the answer, or None without one.

        Raises:
            StateUnavailableError: There was none for longer than a lease.
        """
        try:
            answer = await settle(call, self._control)
        except asyncio.CancelledError:
            # The end of the event loop; who waits has to leave.
            self._control.stop("cancelled")
            return None
        except StateUnavailableError:
            now = asyncio.get_running_loop().time()
            self._away_since = now if self._away_since is None else self._away_since
            if now - self._away_since >= LEASE.total_seconds():
                raise
            return None
        self._away_since = None
        return answer


def _is_over(outcome: Outcome) -> bool:
    """Tell whether there is nothing more to wait for."""
    return outcome.state in {"ended", "lost", "unknown"} or outcome.is_stalled


def _end_for_repeat(outcome: Outcome, ticket_id: str) -> RunResult | None:
    """Return the end of an entry to who sent its message again; None if it has to be run."""
    if outcome.end is None or outcome.end.reason == "unreadable":
        return None
    return _result_for(ticket_id, outcome.run_ticket_id, outcome.end)


def result_of(end: TurnEnd) -> RunResult:
    """Return the recorded end of a run as a result."""
    message = end.message
    return RunResult(
        text="" if message is None else message.text,
        message=message,
        new_messages=() if message is None else (message,),
        status=end.status,
        finish_reason=end.finish_reason,
        run=None if end.run is None else run_from_json(end.run),
        session_id=end.session_id,
        reason=end.reason,
    )


def _own_end(news: Ended) -> RunResult:
    if news.result is None:
        raise news.error or ChatError("the run of this message failed", code="turn_failed")
    return news.result


def _end_of(outcome: Outcome, ticket_id: str) -> RunResult:
    if outcome.state == "unknown":
        raise StateConflictError("this message was deleted while it waited")
    if outcome.end is None:
        # Recorded and then lost with its process: the next turn sees it.
        return RunResult(status="interrupted", finish_reason="interrupted")
    if outcome.end.status == "error":
        raise ChatError("the run of this message failed elsewhere", code="turn_failed")
    if outcome.end.reason == "unreadable":
        raise unreadable_error()
    if outcome.end.reason == "expired":
        events.queue_dropped(reason="expired", turn_id=ticket_id)
    return _result_for(ticket_id, outcome.run_ticket_id, outcome.end)


def _result_for(ticket_id: str, run_ticket_id: str | None, end: TurnEnd) -> RunResult:
    """Return the end of a run to an entry of it; those that it ran along are coalesced."""
    result = result_of(end)
    if run_ticket_id in {None, ticket_id} or end.status == "error":
        return result
    return attrs.evolve(result, status="coalesced")
