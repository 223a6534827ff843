"""Admitting: callers that want their message run, until it is answered or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.continuing import brings_nothing_new
from vitehub_chat.conversation.control import (
    LOCK_LOST,
    StoppedEarly,
    TurnControl,
    ask,
    settle,
)
from vitehub_chat.conversation.driving import Sink
from vitehub_chat.conversation.follow import Follower
from vitehub_chat.conversation.lease import LEASE, LeaseKeeper
from vitehub_chat.conversation.limiter import Limiter, Slot, slot_for
from vitehub_chat.conversation.places import Place
from vitehub_chat.conversation.refusing import refuse
from vitehub_chat.conversation.selecting import draft_turn, session_request
from vitehub_chat.conversation.waiting import Seat, WaitingRoom
from vitehub_chat.errors import StateConflictError
from vitehub_chat.model import observing
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import RunResult
from vitehub_chat.state.contract import AgentState, TurnStore
from vitehub_chat.state.values import Admission, Grant, NewEntry


@attrs.frozen(kw_only=True)
class Caller:
    """One call of a trigger: what it asks for, its switch, and where its events go."""

    request: TurnRequest
    control: TurnControl
    sink: Sink


class Admitter:
    """Takes the messages of callers to their results."""

    def __init__(
        self,
        *,
        policy: ChatPolicy,
        turns: TurnStore,
        state: AgentState | None,
        room: WaitingRoom,
        limiter: Limiter,
        follower: Follower,
        new_id: NewId,
        entry: Callable[[TurnRequest, Place, str], Awaitable[NewEntry]],
        run: Callable[[Grant, TurnRequest | None, TurnControl, Sink], Awaitable[RunResult | None]],
        dispatch: Callable[[Grant], Awaitable[None]],
        push_out: Callable[[str, Place], None],
    ) -> None:
        self._policy = policy
        self._turns = turns
        self._state = state
        self._room = room
        self._limiter = limiter
        self._follower = follower
        self._new_id = new_id
        self._entry = entry
        self._run = run
        self._dispatch = dispatch
        self._push_out = push_out

    async def admit(self, caller: Caller, place: Place) -> RunResult:
        """Return the result of a message that is sent to a place.

        Raises:
            ChatBusyError: The policy refuses it, or it waited too long.
            StateError: The state failed.
            Exception: What its driver raised.
        """
        while True:
            ticket_id = self._new_id()
            seat = self._room.enter(ticket_id, may_run=True)
            caller.control.on_stop(seat.wake)
            try:
                result = await self._admit_once(caller, place, ticket_id, seat)
            finally:
                await self._release_seat(seat)
            if result is not None:
                return result

    async def _admit_once(
        self, caller: Caller, place: Place, ticket_id: str, seat: Seat
    ) -> RunResult | None:
        """Return the result of a call, or None if it has to be admitted anew."""
        recorded = await self._find_recorded(caller, place)
        if recorded is not None:
            return recorded
        taking = slot_for(self._limiter, self._policy, place, caller.request)
        slot = await ask(taking, caller.control)
        try:
            return await self._admit_with(slot, caller, place, ticket_id, seat)
        finally:
            if slot is not None:
                slot.give_up()

    async def _admit_with(
        self, slot: Slot | None, caller: Caller, place: Place, ticket_id: str, seat: Seat
    ) -> RunResult | None:
        policy = self._policy.concurrency
        entry = await ask(self._entry(caller.request, place, ticket_id), caller.control)
        admission = await self._ask_to_run(entry, caller.control, seat)
        for pushed in admission.pushed_out:
            self._push_out(pushed, place)
        granted = admission.grant
        if granted is not None and granted.ticket_id == ticket_id:
            result = await self._run_in_line(granted, caller, seat, slot)
            if result is not None:
                return result
        elif granted is not None:
            await self._dispatch(granted)
        if slot is not None:
            slot.give_up()
        if admission.verdict == "repeat":
            return await self._repeat(admission.ticket_id, caller, place)
        if admission.verdict != "accepted":
            reason = refuse(admission.verdict, admission.reason, place)
            return RunResult(status="dropped", reason=reason)
        if granted is None and policy.strategy != "debounce":
            events.lock_contended(scope=entry.lock_key, strategy=policy.strategy, turn_id=ticket_id)
        return await self._wait_and_run(caller, entry, seat)

    async def _ask_to_run(self, entry: NewEntry, control: TurnControl, seat: Seat) -> Admission:
        """Admit an entry; when the event loop ends meanwhile it is taken back."""
        dedupe_ttl = self._policy.dedupe_ttl
        try:
            return await settle(
                self._turns.admit(
                    entry, policy=self._policy.concurrency, lease=LEASE, dedupe_ttl=dedupe_ttl
                ),
                control,
            )
        except asyncio.CancelledError:
            # The write was cancelled with its task, but it may have happened.
            control.stop("cancelled")
            await self._follower.leave(entry.ticket_id, control, seat)
            raise StoppedEarly from None

    async def _wait_and_run(self, caller: Caller, entry: NewEntry, seat: Seat) -> RunResult:
        patience = self._policy.concurrency.wait_timeout
        loop = asyncio.get_running_loop()
        since = loop.time()
        until = None if patience is None else since + patience.total_seconds()
        while True:
            with observing.counted("queue.depth"):
                found = await self._follower.wait(
                    entry.ticket_id, entry.lock_key, seat, caller.control, until
                )
            if not isinstance(found, Grant):
                return found
            observing.measure("lock.wait", loop.time() - since)
            result = await self._run_own(found, caller, seat)
            if result is not None:
                return result

    async def _find_recorded(self, caller: Caller, place: Place) -> RunResult | None:
        """Return the end of the turn that an assistant message without news comes from."""
        current = caller.request.current
        if self._state is None or current.role != "assistant" or current.id is None:
            return None
        home = await self._home_of(self._state, caller.request, place)
        rows = await self._state.transcripts.get(home, message_ids=[current.id])
        if not rows or rows[0].turn_id is None:
            return None
        if not brings_nothing_new(current, rows[0].message):
            return None
        return await self._repeat(rows[0].turn_id, caller, place)

    async def _home_of(
        self, state: AgentState, request: TurnRequest, place: Place
    ) -> ConversationKey:
        """Return the conversation that has the rows of the session which a message asks for."""
        if place.wanted_id is None:
            return place.conversation
        draft = draft_turn(request, self._policy)
        session = await state.sessions.resolve(session_request(draft, place.conversation, None))
        return ConversationKey.decode(session.conversation)

    async def _repeat(self, ticket_id: str, caller: Caller, place: Place) -> RunResult | None:
        result = await self._follower.follow(ticket_id, caller.control)
        if result is not None:
            events.message_repeated(status=result.status, key=place.conversation, turn_id=ticket_id)
        return result

    async def _run_in_line(
        self, grant: Grant, caller: Caller, seat: Seat, slot: Slot | None
    ) -> RunResult | None:
        """Run a message that has its lock, once its slot is there.

        Until then it holds the lock, so that a repeat finds it and another process runs it should
        this one die.
        """
        observing.measure("lock.wait", 0.0)
        if slot is None:
            return await self._run_own(grant, caller, seat)
        seat.took(grant)
        control = caller.control
        if await self._wait_for(slot, grant, control):
            return await self._run_own(grant, caller, seat)
        is_late = control.reason is None
        left = await self._follower.leave(grant.ticket_id, control, seat, is_late=is_late)
        return left or RunResult(status="interrupted", finish_reason="interrupted")

    async def _wait_for(self, slot: Slot, grant: Grant, control: TurnControl) -> bool:
        """Wait for a slot while holding a lock; False if the caller gave up before.

        Raises:
            StateConflictError: The lock was lost meanwhile (`lock_lost`).
        """
        patience = self._policy.concurrency.wait_timeout
        seconds = None if patience is None else patience.total_seconds()
        lease, entering = TurnControl(), slot.entering
        for each in (control, lease):
            each.on_stop(entering.cancel)
        with LeaseKeeper(self._turns, grant, lease, None):
            try:
                await settle(asyncio.wait({entering}, timeout=seconds), control)
            except asyncio.CancelledError:
                # The end of the event loop: the lock is let go, and nothing runs any more.
                control.stop("cancelled")
                return False
        if lease.reason is not None:
            raise StateConflictError("the lock of this turn was lost", code=LOCK_LOST)
        return entering.done() and not entering.cancelled()

    async def _run_own(self, grant: Grant, caller: Caller, seat: Seat) -> RunResult | None:
        """Return the result of an own run, or None if it has to wait anew."""
        seat.took(grant)
        return await self._run(grant, caller.request, caller.control, caller.sink)

    async def _release_seat(self, seat: Seat) -> None:
        """Leave, and pass on a run that was handed over in the last moment."""
        for news in seat.leave():
            if isinstance(news, Grant) and not (seat.is_withdrawn or seat.has_taken(news)):
                await self._dispatch(news)
