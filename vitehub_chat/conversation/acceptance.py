"""Acceptance: taking in messages that nobody waits for, and starting what can run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Literal

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.background import Background
from vitehub_chat.conversation.control import LOCK_LOST, TurnControl
from vitehub_chat.conversation.lease import LEASE, LeaseKeeper
from vitehub_chat.conversation.limiter import Limiter, Slot, slot_for
from vitehub_chat.conversation.places import Place
from vitehub_chat.conversation.refusing import refuse
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.policies import ChatPolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.contract import TurnStore
from vitehub_chat.state.values import Admission, Grant, NewEntry

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
        dispatch: Starts a granted run where it is waited for, or here.
        new_control: Makes the switch of a run that nobody waits for.
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
    new_control: Callable[[], TurnControl]
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
        with ExitStack() as held:
            slot = await slot_for(staff.limiter, staff.policy, place, request)
            if slot is not None:
                held.callback(slot.give_up)
            entry = attrs.evolve(await staff.entry(request, place, staff.new_id()), owner=None)
            admission = await self._admit(entry, place)
            granted = admission.grant
            if granted is None:
                # A store that was not told who runs grants nothing that had to wait.
                granted = await staff.turns.take(entry.lock_key, owner=staff.owner(), lease=LEASE)
            if granted is None and admission.verdict == "accepted":
                self._let_wait(entry)
            elif granted is not None and slot is not None and granted.ticket_id == entry.ticket_id:
                held.pop_all()
                self._start_in_line(granted, slot)
            elif granted is not None:
                self._start(granted)
        return _acceptance(admission, place)

    async def _admit(self, entry: NewEntry, place: Place) -> Admission:
        staff = self._staff
        admission = await staff.turns.admit(
            entry, policy=staff.policy.concurrency, lease=LEASE, dedupe_ttl=staff.policy.dedupe_ttl
        )
        for pushed in admission.pushed_out:
            staff.push_out(pushed, place)
        return admission

    def _let_wait(self, entry: NewEntry) -> None:
        """Leave an entry to whoever holds its lock; with `debounce` nobody may hold it."""
        staff, strategy = self._staff, self._staff.policy.concurrency.strategy
        if strategy != "debounce":
            events.lock_contended(scope=entry.lock_key, strategy=strategy, turn_id=entry.ticket_id)
            return
        control = staff.new_control()
        staff.background.start(self._look_after(entry, control), control)

    def _start(self, grant: Grant) -> None:
        """Start a granted run: here, unless a caller elsewhere waits for it."""
        if grant.owner in {"", self._staff.owner()}:
            self._staff.dispatch(grant)

    def _start_in_line(self, grant: Grant, slot: Slot) -> None:
        """Start the run of a message that nobody waits for, once its slot is there."""
        control = self._staff.new_control()
        task = self._staff.background.start(self._run_in_line(grant, slot, control), control)
        # Not by the task: one that is cancelled before it begins does nothing.
        task.add_done_callback(lambda _: slot.give_up())

    async def _run_in_line(self, grant: Grant, slot: Slot, control: TurnControl) -> None:
        """Hold the lock of a stored entry while others run, then run it."""
        staff, lease, entering = self._staff, TurnControl(), slot.entering
        for each in (control, lease):
            each.on_stop(entering.cancel)
        with LeaseKeeper(staff.turns, grant, lease, None):
            await asyncio.wait({entering})
        if entering.cancelled() and lease.reason == LOCK_LOST:
            events.lock_lost(turn_id=grant.ticket_id)
            return
        # One that was stopped before it began lets go of its lock in an orderly way.
        await staff.run(grant, control)

    async def _look_after(self, entry: NewEntry, control: TurnControl) -> None:
        """Take the lock of a line once it has settled."""
        staff, stopped = self._staff, asyncio.Event()
        control.on_stop(stopped.set)
        while control.reason is None:
            outcome = await staff.turns.outcome(entry.ticket_id)
            if outcome.state != "waiting":
                return
            if outcome.is_stalled:
                granted = await staff.turns.take(entry.lock_key, owner=staff.owner(), lease=LEASE)
                if granted is not None:
                    self._start(granted)
                continue
            settles_in = outcome.settles_in
            pause = LOOK_AGAIN_S if settles_in is None else settles_in.total_seconds()
            await _pause(pause, stopped)


async def _pause(seconds: float, stopped: asyncio.Event) -> None:
    """Wait for some time, or until the event."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopped.wait()


def _acceptance(admission: Admission, place: Place) -> Acceptance:
    verdict = admission.verdict
    if verdict == "busy" or verdict == "dropped":
        return Acceptance(verdict="dropped", reason=refuse(verdict, admission.reason, place))
    if verdict == "repeat":
        events.message_repeated(status="accepted", key=place.conversation)
    return Acceptance(verdict=verdict)
