"""Following: waiting for an accepted message until it is this caller's to run, or has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import TurnControl, settle
from vitehub_chat.conversation.lease import ATTEND_EVERY, ATTENDANCE, LEASE
from vitehub_chat.conversation.waiting import Ended, Seat, WaitingRoom
from vitehub_chat.errors import ChatBusyError, ChatError, StateConflictError
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.codec import run_from_json
from vitehub_chat.state.contract import TurnStore
from vitehub_chat.state.values import Grant, Outcome, TurnEnd

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
        dispatch: Callable[[Grant], None],
        owner: Callable[[], str],
    ) -> None:
        self._turns = turns
        self._room = room
        self._dispatch = dispatch
        self._owner = owner

    async def wait(
        self,
        ticket_id: str,
        lock_key: str,
        seat: Seat,
        control: TurnControl,
        limit: timedelta | None,
    ) -> Grant | RunResult:
        """Wait until an own entry is granted to this caller or has ended.

        A caller that is stopped, or waited too long, takes its entry back if no run has it yet.

        Raises:
            ChatBusyError: It waited too long (`timeout`); the message may be sent again.
            StateConflictError: The conversation was deleted meanwhile.
        """
        loop = asyncio.get_running_loop()
        patience = None if limit is None else loop.time() + limit.total_seconds()
        attend_at = loop.time() + ATTEND_EVERY.total_seconds()
        pause = FIRST_LOOK_S
        while True:
            news = await self._next(seat, pause, patience, control)
            if isinstance(news, Grant):
                return news
            if isinstance(news, Ended):
                return _own_end(news)
            is_late = patience is not None and loop.time() >= patience
            if control.reason is not None or is_late:
                left = await self._leave(ticket_id, control, is_late=is_late)
                if left is not None:
                    return left
                patience = None
            if loop.time() >= attend_at:
                await settle(self._turns.renew(ticket_id, lease=ATTENDANCE), control)
                attend_at = loop.time() + ATTEND_EVERY.total_seconds()
            found = await settle(self._look(ticket_id, lock_key), control)
            if found is not None:
                return found
            pause = min(pause * 2, LOOK_EVERY_S)

    async def follow(self, ticket_id: str, control: TurnControl) -> RunResult | None:
        """Wait for the end of somebody else's entry; None if it came to none.

        Stopping ends the waiting, not the run.
        """
        seat = self._room.enter(ticket_id, may_run=False)
        control.on_stop(seat.wake)
        pause = FIRST_LOOK_S
        try:
            while control.reason is None:
                outcome = await settle(self._turns.outcome(ticket_id), control)
                if outcome.state == "ended" and outcome.end is not None:
                    return _result_for(ticket_id, outcome.run_ticket_id, outcome.end)
                if outcome.state in {"lost", "unknown"} or outcome.is_stalled:
                    return None
                news = await self._next(seat, pause, None, control)
                if isinstance(news, Ended):
                    return news.result or RunResult(status="error", finish_reason="error")
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

    async def _leave(
        self, ticket_id: str, control: TurnControl, *, is_late: bool
    ) -> RunResult | None:
        """Take the entry back; None if a run has it already, which is then waited for."""
        taken_back = await settle(
            self._turns.withdraw(ticket_id, owner=self._owner(), lease=LEASE), control
        )
        if taken_back.next is not None:
            self._dispatch(taken_back.next)
        if control.reason == "cancelled" or (taken_back.withdrawn and control.reason is not None):
            return RunResult(status="interrupted", finish_reason="interrupted")
        if taken_back.withdrawn and is_late:
            raise ChatBusyError("waited too long for the turns before", code="timeout")
        return None

    async def _look(self, ticket_id: str, lock_key: str) -> Grant | RunResult | None:
        """Look up how far an entry is; a lock that nobody holds is taken for who is next."""
        outcome = await self._turns.outcome(ticket_id)
        if outcome.is_stalled:
            granted = await self._turns.take(lock_key, owner=self._owner(), lease=LEASE)
            if granted is not None and granted.ticket_id == ticket_id:
                return granted if granted.owner == self._owner() else None
            if granted is not None:
                events.queue_drained(turns=1, turn_id=granted.ticket_id)
                self._dispatch(granted)
            return None
        if outcome.state == "running" and outcome.grant is not None:
            is_mine = outcome.grant.owner == self._owner()
            return outcome.grant if is_mine and outcome.run_ticket_id == ticket_id else None
        if outcome.state == "waiting":
            return None
        return _end_of(outcome, ticket_id)


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
    return _result_for(ticket_id, outcome.run_ticket_id, outcome.end)


def _result_for(ticket_id: str, run_ticket_id: str | None, end: TurnEnd) -> RunResult:
    """Return the end of a run to an entry of it; those that it ran along are coalesced."""
    result = result_of(end)
    if run_ticket_id in {None, ticket_id} or end.status == "error":
        return result
    return attrs.evolve(result, status="coalesced")
