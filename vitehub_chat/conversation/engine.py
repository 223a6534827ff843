"""Engine: the turns of one agent, from admission to result."""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import Any, Literal

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.continuing import brings_nothing_new
from vitehub_chat.conversation.control import StoppedEarly, TurnControl, ask, settle
from vitehub_chat.conversation.driving import Invoke, InvokeRequest, Sink
from vitehub_chat.conversation.follow import Follower
from vitehub_chat.conversation.invocation import build_context, describe_run, resolve_invoker
from vitehub_chat.conversation.lease import LEASE
from vitehub_chat.conversation.limiter import Limiter
from vitehub_chat.conversation.payloads import encode_request
from vitehub_chat.conversation.places import (
    Place,
    claim_id,
    find_lock_key,
    find_place,
    scope_key,
)
from vitehub_chat.conversation.run import Run
from vitehub_chat.conversation.selecting import (
    draft_turn,
    messages_to_keep,
    prepare_turn,
    session_request,
    window_request,
)
from vitehub_chat.conversation.setting import RunSetting
from vitehub_chat.conversation.waiting import Ended, Seat, WaitingRoom
from vitehub_chat.errors import ChatBusyError, ConfigError, InputError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.events import AgentEvent
from vitehub_chat.model.ids import NewId
from vitehub_chat.model.model_messages import check_not_empty
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.model.rows import Row
from vitehub_chat.state.contract import AgentState, TurnStore
from vitehub_chat.state.values import Grant, NewEntry, WindowRows


@attrs.frozen(kw_only=True)
class Caller:
    """One call of a trigger: what it asks for, its switch, and where its events go."""

    request: TurnRequest
    control: TurnControl
    sink: Sink


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
    ) -> None:
        self._agent = agent
        self._policy = policy
        self._turns = turns
        self._state = state
        self._invoke = invoke
        self._clock = clock
        self._new_id = new_id
        self._name = new_id()
        self._room = WaitingRoom()
        self._limiter = Limiter()
        self._background: set[tuple[asyncio.Task[Any], TurnControl]] = set()
        self._follower = Follower(
            turns=turns, room=self._room, dispatch=self._dispatch, owner=lambda: self.owner
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
        if not await ask(self._passes_filter(request), control):
            return RunResult(status="filtered", run=request.run)
        place = self._place(request)
        limit = self._policy.concurrency.max_concurrent
        if self._policy.concurrency.strategy == "parallel" and limit is not None:
            key = await ask(scope_key(place, request, self._policy), control)
            if key is not None:
                return await self._admit_in_line(caller, place, key, limit)
        return await self._admit(caller, place)

    async def prepare(self, request: TurnRequest) -> PreparedInvocation:
        """Return what the driver would get, and write nothing.

        Takes no lock and no claim, and asks neither filter nor driver.
        """
        self._check(request)
        place = self._place(request)
        draft = draft_turn(request, self._policy)
        session, window = None, WindowRows()
        if self._state is not None:
            user_key = await self._user_key(request)
            asked = session_request(draft, place.conversation, user_key)
            session = await self._state.sessions.resolve(asked)
            needed = window_request(draft)
            if needed is not None:
                window = await self._state.transcripts.window(
                    place.conversation, session=session, window=needed
                )
        prepared = prepare_turn(draft, session, window, self._clock.now())
        invocation = await self._invoke(
            InvokeRequest(
                request=request,
                prepared=prepared,
                native=_native_of(window.shown),
                is_dry_run=True,
            )
        )
        return invocation.prepared

    async def aclose(self) -> None:
        """Stop the turns that this agent runs for others, and wait until they are recorded."""
        loop = asyncio.get_running_loop()
        while mine := [each for each in self._background if each[0].get_loop() is loop]:
            for _, control in mine:
                control.stop("shutdown")
            await asyncio.wait([task for task, _ in mine])
            # The last one may have started the next: let it be noted before looking again.
            await asyncio.sleep(0)

    def _check(self, request: TurnRequest) -> None:
        check_not_empty(request.current)
        if request.replace is not None:
            raise InputError("is not available in this release", path="replace")
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

    async def _passes_filter(self, request: TurnRequest) -> bool:
        if self._policy.filter is None:
            return True
        invoker = resolve_invoker(request)
        context = build_context(request, invoker, describe_run(request, invoker), None)
        answer = self._policy.filter(request.current, context)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    async def _user_key(self, request: TurnRequest) -> str | None:
        """Return the owner of the session; a failing `identity` means none."""
        if request.user_key is not None or self._policy.identity is None:
            return request.user_key
        invoker = resolve_invoker(request)
        try:
            context = build_context(request, invoker, describe_run(request, invoker), None)
            found = self._policy.identity(context)
            named = await found if inspect.isawaitable(found) else found
        except Exception as error:  # noqa: BLE001 - told in the log; the message must not be lost
            events.identity_failed(error)
            return None
        return named if isinstance(named, str) and named else None

    async def _admit_in_line(self, caller: Caller, place: Place, key: str, limit: int) -> RunResult:
        """Wait for one of the slots of a key, as long as the caller has patience."""
        patience = self._policy.concurrency.wait_timeout
        entering = asyncio.ensure_future(self._limiter.enter(key, limit))
        caller.control.on_stop(entering.cancel)
        seconds = None if patience is None else patience.total_seconds()
        await settle(asyncio.wait({entering}, timeout=seconds), caller.control)
        if not entering.done():
            entering.cancel()
            raise ChatBusyError("waited too long for the turns before", code="timeout")
        if entering.cancelled():
            return RunResult(status="interrupted", finish_reason="interrupted")
        try:
            return await self._admit(caller, place)
        finally:
            self._limiter.leave(key)

    async def _admit(self, caller: Caller, place: Place) -> RunResult:
        """Ask to be run until the message is accepted, refused or answered."""
        while True:
            ticket_id = self._new_id()
            seat = self._room.enter(ticket_id, may_run=True)
            caller.control.on_stop(seat.wake)
            try:
                result = await self._admit_once(caller, place, ticket_id, seat)
            finally:
                self._release_seat(seat)
            if result is not None:
                return result

    async def _admit_once(
        self, caller: Caller, place: Place, ticket_id: str, seat: Seat
    ) -> RunResult | None:
        """Return the result of a call, or None if it has to be admitted anew."""
        recorded = await self._find_recorded(caller, place)
        if recorded is not None:
            return recorded
        policy = self._policy.concurrency
        entry = await ask(self._entry(caller.request, place, ticket_id), caller.control)
        admission = await settle(
            self._turns.admit(
                entry, policy=policy, lease=LEASE, dedupe_ttl=self._policy.dedupe_ttl
            ),
            caller.control,
        )
        for pushed in admission.pushed_out:
            events.queue_dropped(reason="queue_full", key=place.conversation, turn_id=pushed)
            self._room.announce(pushed, Ended(_dropped("queue_full")))
        granted = admission.grant
        if granted is not None and granted.ticket_id == ticket_id and not caller.control.reason:
            return await self._run_own(granted, caller, seat)
        if granted is not None:
            self._dispatch(granted)
        if admission.verdict == "repeat":
            return await self._repeat(admission.ticket_id, caller, place)
        if admission.verdict != "accepted":
            return _refused(admission.verdict, admission.reason or "busy", place)
        events.lock_contended(scope=entry.lock_key, strategy=policy.strategy, turn_id=ticket_id)
        found = await self._follower.wait(
            ticket_id, entry.lock_key, seat, caller.control, policy.wait_timeout
        )
        if not isinstance(found, Grant):
            return found
        return await self._run_own(found, caller, seat)

    async def _find_recorded(self, caller: Caller, place: Place) -> RunResult | None:
        """Return the end of the turn that an assistant message without news comes from."""
        current = caller.request.current
        if self._state is None or current.role != "assistant" or current.id is None:
            return None
        rows = await self._state.transcripts.get(place.conversation, message_ids=[current.id])
        if not rows or rows[0].turn_id is None:
            return None
        if not brings_nothing_new(current, rows[0].message):
            return None
        return await self._repeat(rows[0].turn_id, caller, place)

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
        )

    async def _repeat(self, ticket_id: str, caller: Caller, place: Place) -> RunResult | None:
        result = await self._follower.follow(ticket_id, caller.control)
        if result is not None:
            events.message_repeated(status=result.status, key=place.conversation, turn_id=ticket_id)
        return result

    async def _run_own(self, grant: Grant, caller: Caller, seat: Seat) -> RunResult:
        seat.took(grant)
        return await self._run(grant, caller.request, caller.control, caller.sink)

    async def _run(
        self, grant: Grant, request: TurnRequest | None, control: TurnControl, sink: Sink
    ) -> RunResult:
        """Carry out a granted run and tell everybody who waits for one of its messages."""
        setting = RunSetting(
            agent=self._agent,
            policy=self._policy,
            turns=self._turns,
            has_state=self._state is not None,
            owner=self.owner,
            invoke=self._invoke,
            clock=self._clock,
            new_id=self._new_id,
            user_key_of=self._user_key,
        )
        run = Run(setting, grant, request, control, sink)
        try:
            result = await run.carry_out()
        except BaseException as error:
            # What is not recorded still waits, or was taken back: who waits for it looks itself.
            if run.are_recorded:
                self._announce(grant, Ended(None, error))
            raise
        else:
            self._announce(grant, Ended(result))
            return result
        finally:
            if run.next is not None:
                self._dispatch(run.next)

    def _announce(self, grant: Grant, ended: Ended) -> None:
        shared = ended.result and attrs.evolve(ended.result, prepared=None)
        for entry in grant.entries:
            is_own = entry.ticket_id == grant.ticket_id
            result = shared if is_own else shared and attrs.evolve(shared, status="coalesced")
            self._room.announce(entry.ticket_id, Ended(result, ended.error))

    def _dispatch(self, grant: Grant) -> None:
        """Start a granted run where its caller waits, or here if nobody waits for it."""
        if grant.owner == self.owner and not self._room.hand_over(grant):
            self._start(grant)

    def _start(self, grant: Grant) -> None:
        control = TurnControl()
        task = asyncio.create_task(self._run(grant, None, control, _ignore))
        held = (task, control)
        self._background.add(held)

        def forget(ended: asyncio.Task[Any]) -> None:
            self._background.discard(held)
            # Told in the log where it was raised; nobody else waits for it.
            _ = ended.cancelled() or ended.exception()

        task.add_done_callback(forget)

    def _release_seat(self, seat: Seat) -> None:
        """Leave, and pass on a run that was handed over in the last moment."""
        for news in seat.leave():
            if isinstance(news, Grant) and not seat.has_taken(news):
                self._dispatch(news)


def _dropped(reason: str) -> RunResult:
    return RunResult(status="dropped", reason=reason)


def _refused(verdict: str, reason: str, place: Place) -> RunResult:
    if verdict == "busy":
        if reason == "queue_full":
            raise ChatBusyError("too many messages wait in this conversation", code="queue_full")
        raise ChatBusyError("a turn of this conversation is running", code="chat_busy")
    known: Literal["queue_full", "busy"] = "queue_full" if reason == "queue_full" else "busy"
    events.queue_dropped(reason=known, key=place.conversation)
    return _dropped(known)


def _native_of(rows: tuple[Row, ...]) -> dict[str, Any]:
    return {row.message.id or "": row.native for row in rows if row.native is not None}


def _ignore(event: AgentEvent) -> None:
    """Nobody listens to a run that is carried out for others."""
