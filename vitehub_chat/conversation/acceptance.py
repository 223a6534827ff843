"""Acceptance: taking in messages that nobody waits for, and starting what can run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.background import Background
from vitehub_chat.conversation.control import LOCK_LOST, TurnControl
from vitehub_chat.conversation.lease import LEASE, LeaseKeeper
from vitehub_chat.conversation.limiter import Limiter
from vitehub_chat.conversation.places import Place, scope_key
from vitehub_chat.errors import ChatBusyError
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.contract import TurnStore
from vitehub_chat.state.values import Admission, Grant, NewEntry

_NO_LIMIT = timedelta(days=365)
LOOK_AGAIN_S = 0.25
"""How often a message is looked after that waits for its line to settle behind a running turn."""


@attrs.frozen(kw_only=True)
class Acceptance:
    """What became of a message that nobody waits for.

    Attributes:
        verdict: `accepted`: it is stored and will be run. `repeat`: it was accepted before.
            `dropped`: refused by the policy. `filtered`: refused by the filter.
        reason: Why it was dropped: `busy` or `queue_full`; else None.
    """

    verdict: Literal["accepted", "repeat", "dropped", "filtered"]
    reason: str | None = None


@attrs.frozen(kw_only=True)
class Staff:
    """Whom the acceptance of messages asks, all of one agent.

    Attributes:
        check: Refuses a request that cannot be run at all.
        passes_filter: Whether a message may start a turn.
        place: Where a message belongs.
        entry: What is stored of it.
        run: Carries out a granted run that nobody waits for.
        dispatch: Starts a granted run where it is waited for.
        push_out: Tells who waits for an entry that it lost its place.
        owner: The name of this process.
    """

    policy: ChatPolicy
    turns: TurnStore
    limiter: Limiter
    background: Background
    new_id: NewId
    check: Callable[[TurnRequest], None]
    passes_filter: Callable[[TurnRequest], Awaitable[bool]]
    place: Callable[[TurnRequest], Place]
    entry: Callable[[TurnRequest, Place, str], Awaitable[NewEntry]]
    run: Callable[[Grant, TurnControl], Awaitable[object]]
    dispatch: Callable[[Grant], None]
    push_out: Callable[[str, Place], None]
    owner: Callable[[], str]


class Acceptor:
    """Accepts messages that nobody waits for; whoever holds their lock runs them."""

    def __init__(self, staff: Staff) -> None:
        self._staff = staff

    async def accept(self, request: TurnRequest) -> Acceptance:
        """Store a message and its claim in one step, and start what can run.

        Once this returns `accepted` the message survives the process. To be run in a task that
        nobody cancels: what was stored and not started waits until its lease is over. Nothing
        happens between the start of a run and the return.

        Raises:
            InputError: The message is empty, or nothing names the conversation.
            ChatBusyError: The policy refuses it; it may be sent again.
            StateError: The state failed; it may be sent again with the same id.
        """
        staff = self._staff
        staff.check(request)
        if not await staff.passes_filter(request):
            return Acceptance(verdict="filtered")
        place = staff.place(request)
        entry = attrs.evolve(await staff.entry(request, place, staff.new_id()), owner=None)
        admission = await staff.turns.admit(
            entry, policy=staff.policy.concurrency, lease=LEASE, dedupe_ttl=staff.policy.dedupe_ttl
        )
        for pushed in admission.pushed_out:
            staff.push_out(pushed, place)
        line = await self._line(request, place)
        granted = admission.grant
        if granted is None:
            # A store that was not told who runs grants nothing that had to wait.
            granted = await staff.turns.take(entry.lock_key, owner=staff.owner(), lease=LEASE)
        if granted is not None:
            self._start(granted, line if granted.ticket_id == entry.ticket_id else None)
        elif admission.verdict == "accepted":
            self._let_wait(entry)
        return _acceptance(admission, place)

    def _let_wait(self, entry: NewEntry) -> None:
        """Leave an entry to whoever holds its lock; with `debounce` nobody may hold it."""
        staff, strategy = self._staff, self._staff.policy.concurrency.strategy
        if strategy != "debounce":
            events.lock_contended(scope=entry.lock_key, strategy=strategy, turn_id=entry.ticket_id)
            return
        control = TurnControl()
        staff.background.start(self._look_after(entry, control), control)

    async def _line(self, request: TurnRequest, place: Place) -> str | None:
        """Return the key whose slots a message has to wait for, or None."""
        policy = self._staff.policy
        if policy.concurrency.strategy != "parallel" or policy.concurrency.max_concurrent is None:
            return None
        return await scope_key(place, request, policy)

    def _start(self, grant: Grant, line: str | None) -> None:
        """Start a granted run: here, unless a caller elsewhere waits for it."""
        staff = self._staff
        limit = staff.policy.concurrency.max_concurrent
        if grant.owner not in {"", staff.owner()}:
            return
        if line is not None and limit is not None:
            control = TurnControl()
            staff.background.start(self._run_in_line(grant, line, limit, control), control)
        elif grant.owner:
            staff.dispatch(grant)
        else:
            control = TurnControl()
            staff.background.start(_carry_out(staff.run(grant, control)), control)

    async def _run_in_line(self, grant: Grant, line: str, limit: int, control: TurnControl) -> None:
        """Hold the lock of a stored entry while others run, then run it."""
        staff, waiting = self._staff, TurnControl()
        entering = asyncio.ensure_future(staff.limiter.enter(line, limit))
        for each in (control, waiting):
            each.on_stop(entering.cancel)
        with LeaseKeeper(staff.turns, grant, waiting, _NO_LIMIT):
            await asyncio.wait({entering})
        if entering.cancelled() and waiting.reason == LOCK_LOST:
            events.lock_lost(turn_id=grant.ticket_id)
            return
        if entering.cancelled():
            # Stopped before it began: a run lets go of its lock in an orderly way.
            await staff.run(grant, control)
            return
        try:
            await staff.run(grant, control)
        finally:
            staff.limiter.leave(line)

    async def _look_after(self, entry: NewEntry, control: TurnControl) -> None:
        """Take the lock of a line once it has settled."""
        staff = self._staff
        while control.reason is None:
            outcome = await staff.turns.outcome(entry.ticket_id)
            if outcome.state != "waiting":
                return
            if outcome.is_stalled:
                granted = await staff.turns.take(entry.lock_key, owner=staff.owner(), lease=LEASE)
                if granted is not None:
                    self._start(granted, None)
                continue
            settles_in = outcome.settles_in
            pause = LOOK_AGAIN_S if settles_in is None else settles_in.total_seconds()
            await _sleep(pause, control)


async def _carry_out(run: Awaitable[object]) -> None:
    await run


async def _sleep(seconds: float, control: TurnControl) -> None:
    """Sleep, but wake up when the turn is stopped."""
    sleeping = asyncio.ensure_future(asyncio.sleep(seconds))
    control.on_stop(sleeping.cancel)
    await asyncio.wait({sleeping})


def _acceptance(admission: Admission, place: Place) -> Acceptance:
    if admission.verdict == "busy":
        if admission.reason == "queue_full":
            raise ChatBusyError("too many messages wait in this conversation", code="queue_full")
        raise ChatBusyError("a turn of this conversation is running", code="chat_busy")
    if admission.verdict == "dropped":
        known: Literal["queue_full", "busy"]
        known = "queue_full" if admission.reason == "queue_full" else "busy"
        events.queue_dropped(reason=known, key=place.conversation)
    if admission.verdict == "repeat":
        events.message_repeated(status="accepted", key=place.conversation)
    return Acceptance(verdict=admission.verdict, reason=admission.reason)
