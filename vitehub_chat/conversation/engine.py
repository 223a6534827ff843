"""Engine: the turns of one agent, from admission to result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from weakref import WeakSet

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.acceptance import Acceptance, Acceptor, Staff
from vitehub_chat.conversation.admitting import Admitter, Caller
from vitehub_chat.conversation.asking import passes_filter
from vitehub_chat.conversation.background import Background
from vitehub_chat.conversation.continuation import check_continues, goes_on
from vitehub_chat.conversation.control import (
    StoppedEarly,
    TurnControl,
    ask,
    was_cancelled,
)
from vitehub_chat.conversation.draining import Drains
from vitehub_chat.conversation.driving import Invoke, InvokeRequest, Sink
from vitehub_chat.conversation.dry_reading import read_dry
from vitehub_chat.conversation.ending import SHUTDOWN
from vitehub_chat.conversation.fit_kit import fit_kit_for
from vitehub_chat.conversation.fit_source import FitSource
from vitehub_chat.conversation.follow import Follower
from vitehub_chat.conversation.identity import find_user_key
from vitehub_chat.conversation.lease import LEASE
from vitehub_chat.conversation.limiter import Limiter
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.outlet import Outlet
from vitehub_chat.conversation.payloads import encode_request
from vitehub_chat.conversation.places import (
    Place,
    claim_id,
    find_lock_key,
    find_place,
)
from vitehub_chat.conversation.preparing import native_of
from vitehub_chat.conversation.pruning import prune_kit_for
from vitehub_chat.conversation.run import Run
from vitehub_chat.conversation.selecting import (
    draft_turn,
    messages_to_keep,
    prepare_turn,
    session_request,
)
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.conversation.unreadable import EntriesPutAside, unreadable_error
from vitehub_chat.conversation.waiting import Ended, WaitingRoom
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.model_messages import check_not_empty
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.state.contract import AgentState, Fence, StateContext, TurnStore
from vitehub_chat.state.values import Grant, NewEntry, WindowRows


class TurnEngine:
    """The turns of one agent.

    Without a state, turns are kept in the process and messages are not stored. Usable from several
    event loops.
    """

    def __init__(
        self,
        *,
        agent: str,
        policy: ChatPolicy,
        turns: TurnStore,
        state: AgentState | None,
        invoke: Invoke,
        clock: Clock,
        new_id: NewId,
        outlet: Outlet | None = None,
        memory: MemoryKit | None = None,
    ) -> None:
        self._agent = agent
        self._policy = policy
        self._turns = turns
        self._state = state
        self._name = new_id()
        self._room = WaitingRoom()
        self._limiter = Limiter()
        self._setting = RunSetting(
            agent=agent,
            policy=policy,
            turns=turns,
            state=state,
            successor=self._successor,
            invoke=invoke,
            clock=clock,
            new_id=new_id,
            user_key_of=self._user_key,
            outlet=outlet,
            fitting=fit_kit_for(policy.context, clock, state, memory),
            memory=memory,
            pruning=prune_kit_for(policy, state, clock),
        )
        self._drains = Drains()
        self._background = Background()
        self._acceptor = Acceptor(self._staff())
        self._is_closing = False
        self._ending_loops = WeakSet[asyncio.AbstractEventLoop]()
        self._follower = Follower(
            turns=turns,
            room=self._room,
            dispatch=self._dispatch,
            owner=lambda: self.owner,
            successor=self._successor,
        )
        self._admitter = Admitter(
            policy=policy,
            turns=turns,
            state=state,
            room=self._room,
            limiter=self._limiter,
            follower=self._follower,
            new_id=new_id,
            entry=self._entry,
            run=self._run,
            dispatch=self._dispatch,
            push_out=self._push_out,
        )

    @property
    def owner(self) -> str:
        """The name under which this process runs turns; a forked child has its own."""
        return f"{self._name}:{os.getpid()}"

    async def run(self, caller: Caller) -> RunResult:
        """Run one turn from its admission to its result.

        Raises:
            InputError: The message is empty, or nothing names the conversation.
            ConfigError: The window needs a state that is not there.
            ChatBusyError: The conversation is busy and the policy refuses.
            StateError: The state failed; see its subclass for what is written.
            Exception: What the driver raised.
        """
        try:
            return await self._run_caller(caller)
        except StoppedEarly:
            return RunResult(status="interrupted", finish_reason="interrupted")

    async def _run_caller(self, caller: Caller) -> RunResult:
        request, control = caller.request, caller.control
        self._check(request)
        if not await ask(passes_filter(self._policy, request), control):
            return RunResult(status="filtered", run=request.run)
        return await self._admitter.admit(caller, self._place(request))

    async def accept(self, request: TurnRequest) -> Acceptance:
        """Accept a message that nobody waits for, see `Acceptor.accept`."""
        return await self._acceptor.accept(request)

    async def settle(self, grace: timedelta) -> None:
        """Let the turns for others of this event loop end; stop those that take longer.

        Meanwhile none is started here; afterwards the engine goes on as before.
        """
        loop = asyncio.get_running_loop()
        self._ending_loops.add(loop)
        try:
            await self._background.settle(grace)
        finally:
            self._ending_loops.discard(loop)

    async def prepare(self, request: TurnRequest) -> PreparedInvocation:
        """Return what the driver would get, and write nothing.

        Takes no lock and no claim, and asks neither filter nor driver.
        """
        self._check(request)
        place = self._place(request)
        draft = draft_turn(request, self._policy)
        session, window = None, WindowRows()
        if self._state is not None:
            asked = session_request(draft, place.conversation, await self._user_key(request))
            draft, session, window = await read_dry(
                self._state, draft, asked, self._setting.clock.now()
            )
        selected = prepare_turn(draft, session, window, self._setting.clock.now())
        invocation = await self._setting.invoke(
            InvokeRequest(
                request=request,
                prepared=selected,
                native=native_of(window.shown),
                is_dry_run=True,
            )
        )
        fitting = self._setting.fitting
        if fitting is None:
            return invocation.prepared
        fitter = await fitting.fitter(invocation.facts, ids={"key": place.conversation})
        source = FitSource(selected=selected, prepared=invocation.prepared, window=window)
        return (await fitter.fit(source)).prepared

    async def aclose(self) -> None:
        """Stop the turns that this agent runs for others, and wait until they are recorded."""
        self.close()
        await self._background.stop()

    def close(self) -> None:
        """Start no turn for others any more: what waits is left to other processes."""
        self._is_closing = True

    async def sweep(self) -> int:
        """Run what waits for dead processes, and return how many turns that begins here."""
        granted = await self._turns.sweep(self._agent, owner=self.owner, lease=LEASE)
        for grant in granted:
            events.queue_swept(entries=len(grant.entries), turn_id=grant.ticket_id)
            await self._dispatch(grant)
        return sum(grant.owner == self.owner for grant in granted)

    def _check(self, request: TurnRequest) -> None:
        check_not_empty(request.current)
        memory = self._policy.memory
        if memory is not None and memory.append_every_turn and self._state is None:
            raise ConfigError(
                "needs a state, as the messages of turns are numbered there",
                path="memory.append_every_turn",
                hint="set `state` in the definition or VITEHUB_AGENT_STATE_URL",
            )
        check_continues(request, has_state=self._state is not None)
        window = self._policy.window if request.window is None else request.window
        reads_transcript = isinstance(window, HistoryWindow) and window.source == "transcript"
        if reads_transcript and self._state is None:
            raise ConfigError(
                "'transcript' needs a state",
                path="trigger_history.source",
                hint="set `state` in the definition or VITEHUB_AGENT_STATE_URL",
            )

    def _place(self, request: TurnRequest) -> Place:
        return find_place(self._agent, request, self._policy, has_state=self._state is not None)

    async def _user_key(self, request: TurnRequest) -> str | None:
        return await find_user_key(self._policy, request)

    async def _entry(self, request: TurnRequest, place: Place, ticket_id: str) -> NewEntry:
        return NewEntry(
            ticket_id=ticket_id,
            lock_key=await find_lock_key(place, request, self._policy, ticket_id),
            conversation=place.conversation,
            wanted_id=place.wanted_id,
            claim_id=claim_id(place, request),
            payload=encode_request(request, messages_to_keep(draft_turn(request, self._policy))),
            starts_session=self._policy.sessions is not None and request.session.action == "new",
            owner=self.owner,
            replaces=request.replaces,
            runs_alone=goes_on(request),
        )

    async def _run(
        self, grant: Grant, request: TurnRequest | None, control: TurnControl, sink: Sink
    ) -> RunResult | None:
        """Carry out a granted run and tell everybody who waits for one of its messages.

        None if some of them were put aside: the others run without them, later or at once.
        """
        run = Run(self._setting, grant, request, control, sink)
        result: RunResult | None = None
        try:
            result = await run.carry_out()
        except EntriesPutAside as aside:
            self._put_aside(aside.ticket_ids)
            return None
        except BaseException as error:
            # What is not recorded still waits, or was taken back: who waits for it looks itself.
            if run.are_recorded:
                self._announce(grant, Ended(None, error))
            raise
        else:
            self._announce(grant, Ended(result))
            return result
        finally:
            # Before the next run, which may look for the answer of this one.
            run.reply.end(result)
            self._note_line(grant, run)
            if run.next is not None:
                await self._dispatch(run.next)

    def _note_line(self, grant: Grant, run: Run) -> None:
        """Count a turn of a line that goes on here; otherwise tell if nothing waits any more."""
        if run.next is not None and run.next.owner == self.owner and not was_cancelled():
            self._drains.go_on(grant)
            return
        # With `debounce`, or where nobody is named who runs it, what waits is granted to nobody.
        is_waited_for = self._policy.concurrency.strategy == "debounce" or not self._successor()
        is_empty = run.has_ended and run.next is None and not is_waited_for
        self._drains.stop(grant, is_empty=is_empty)

    def _put_aside(self, ticket_ids: Sequence[str]) -> None:
        for ticket_id in ticket_ids:
            events.row_quarantined(store="turns", turn_id=ticket_id)
            self._room.announce(ticket_id, Ended(None, unreadable_error()))

    def _announce(self, grant: Grant, ended: Ended) -> None:
        shared = ended.result and attrs.evolve(ended.result, prepared=None)
        for entry in grant.entries:
            is_own = entry.ticket_id == grant.ticket_id
            result = shared if is_own else shared and attrs.evolve(shared, status="coalesced")
            self._room.announce(entry.ticket_id, Ended(result, ended.error))

    async def _dispatch(self, grant: Grant) -> None:
        """Start a granted run where its caller waits, or here if nobody waits for it.

        When the event loop of this task is about to end, what began now would be cut off with it:
        it is given back, so that it waits for somebody else.
        """
        if grant.owner != self.owner:
            return
        if not was_cancelled():
            self._dispatch_here(grant)
            return
        if self._room.hand_over(grant):
            return
        fence = StateContext(fence=Fence(grant.lock_key, grant.token))
        await write_surely(
            lambda: self._turns.quarantine((), owner="", lease=LEASE, ctx=fence), TurnControl()
        )

    def _dispatch_here(self, grant: Grant) -> None:
        """Start a granted run of this process where its caller waits, or in the background."""
        if not self._room.hand_over(grant):
            self._start(grant)

    def _successor(self) -> str:
        """Return who runs what nobody waits for: this process, unless it is about to end."""
        return "" if self._is_ending() or was_cancelled() else self.owner

    def _is_ending(self) -> bool:
        """Tell whether no turn for others may start here any more."""
        return self._is_closing or asyncio.get_running_loop() in self._ending_loops

    def _start(self, grant: Grant) -> None:
        control = self._new_control()
        self._background.start(self._run(grant, None, control, _ignore), control)

    def _new_control(self) -> TurnControl:
        """Return the switch of a run for others; stopped if none may start here any more."""
        control = TurnControl()
        if self._is_ending():
            control.stop(SHUTDOWN)
        return control

    def _staff(self) -> Staff:
        return Staff(
            policy=self._policy,
            turns=self._turns,
            limiter=self._limiter,
            background=self._background,
            new_id=self._setting.new_id,
            check=self._check,
            passes_filter=partial(passes_filter, self._policy),
            place=self._place,
            entry=self._entry,
            run=lambda grant, control: self._run(grant, None, control, _ignore),
            dispatch=self._dispatch_here,
            new_control=self._new_control,
            push_out=self._push_out,
            owner=lambda: self.owner,
        )

    def _push_out(self, ticket_id: str, place: Place) -> None:
        events.queue_dropped(reason="queue_full", key=place.conversation, turn_id=ticket_id)
        self._room.announce(ticket_id, Ended(RunResult(status="dropped", reason="queue_full")))


def _ignore(event: AgentEvent) -> None:
    """Nobody listens to a run that is carried out for others."""
