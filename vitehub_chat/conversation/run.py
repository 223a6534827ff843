"""Run: one granted turn, from its record to its end."""

from __future__ import annotations

import asyncio
from datetime import datetime

from vitehub_chat.conversation import events
from vitehub_chat.conversation.answer import Answer
from vitehub_chat.conversation.arrivals import coalesced_of, rows_of
from vitehub_chat.conversation.continuation import Continuation, find_continuation, with_current
from vitehub_chat.conversation.control import (
    LOCK_LOST,
    StoppedEarly,
    TurnControl,
    ask,
    settle,
    was_cancelled,
)
from vitehub_chat.conversation.driving import Invocation, Sink, drive, tell_end
from vitehub_chat.conversation.finishing import Finishing
from vitehub_chat.conversation.follow import find_repeated
from vitehub_chat.conversation.lease import LeaseKeeper
from vitehub_chat.conversation.opening import Opening
from vitehub_chat.conversation.outcomes import end_of, result_of, started_of
from vitehub_chat.conversation.outlet import NO_REPLY, Reply
from vitehub_chat.conversation.overflow import find_overflow
from vitehub_chat.conversation.places import Place, find_place
from vitehub_chat.conversation.planning import plan_of
from vitehub_chat.conversation.preparing import Preparation
from vitehub_chat.conversation.pruning import Archiving, begin_pruning
from vitehub_chat.conversation.releasing import Release
from vitehub_chat.conversation.replies import error_code, find_error_text
from vitehub_chat.conversation.selecting import Draft, draft_turn, session_request
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.conversation.unreadable import read_entries
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model import observing
from vitehub_chat.model.events import (
    BudgetChanged,
    DriverEvent,
    RunFailed,
    RunFinished,
    RunInterrupted,
    ToolResult,
)
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.state.row_requests import PruneRequest
from vitehub_chat.state.values import Finished, Grant, NewRow, Recorded

NAMED_REASONS = frozenset({"timeout", "lock_lifetime"})


class Run:
    """One granted run.

    `carry_out` records its messages, drives, records the answer and passes the lock on. What comes
    next under the lock is then in `next`. Until its messages `are_recorded` it may yet be another
    run that answers them. Once it `has_ended` its end is recorded, too.
    """

    def __init__(
        self,
        setting: RunSetting,
        grant: Grant,
        request: TurnRequest | None,
        control: TurnControl,
        sink: Sink,
    ) -> None:
        self.next: Grant | None = None
        self.are_recorded = False
        self.has_ended = False
        self.reply: Reply = NO_REPLY
        self._setting = setting
        self._grant = grant
        self._request = request
        self._has_caller = request is not None
        self._control = control
        self._sink = sink
        self._lease = LeaseKeeper(
            setting.turns, grant, control, setting.policy.concurrency.max_lock_lifetime
        )
        self._answer_id = setting.new_id()
        self._is_open = True
        self._authors: dict[str, str | None] = {}
        self._continued: Continuation | None = None

    async def carry_out(self) -> RunResult:
        """Run to the end and return the result.

        What goes on with an answer and brings nothing that the turn before it did not bring is
        given back, and its result is that turn's: two clients may have sent it at once.

        Raises:
            EntriesPutAside: Messages of it cannot be read; the others run without them.
            StateConflictError: The lock was lost; nothing more was written (`lock_lost`).
            StateError: The messages could not be recorded; they may be sent again.
            Exception: What the driver raised, after it was recorded.
        """
        with observing.turn(self._setting.agent), self._lease:
            try:
                request, draft, place, user_key = await self._understand()
                repeated = await self._find_repeated(place)
                if repeated is not None:
                    await self._let_go(None)
                    return repeated
                recorded = await self._record(draft, place, user_key)
                self.are_recorded = True
            except BaseException as error:
                await self._let_go(error)
                raise
            return await self._answer_it(request, draft, place, recorded)

    async def _find_repeated(self, place: Place) -> RunResult | None:
        turn_id = None if self._continued is None else self._continued.repeats
        if turn_id is None:
            return None
        found = await find_repeated(self._setting.turns, turn_id)
        if found is not None:
            events.message_repeated(status=found.status, key=place.conversation, turn_id=turn_id)
        return found

    async def _let_go(self, error: BaseException | None) -> None:
        release = Release(
            setting=self._setting,
            grant=self._grant,
            control=self._control,
            context=self._lease.context,
        )
        try:
            await release.after(error, has_caller=self._has_caller)
        finally:
            self.next = release.next

    async def _understand(self) -> tuple[TurnRequest, Draft, Place, str | None]:
        setting, entries = self._setting, self._grant.entries
        *others, request = read_entries(entries, self._request)
        self._request = request
        if request.reply_to is not None and setting.outlet is not None:
            self.reply = setting.outlet.open(request)
            self._sink = self.reply.take
            request = await ask(setting.outlet.supply(request, group=others), self._control)
        coalesced = coalesced_of(others, entries)
        place = find_place(setting.agent, request, setting.policy, has_state=setting.has_state)
        draft = draft_turn(request, setting.policy, coalesced)
        for each, other in zip(coalesced, others, strict=True):
            author = await ask(setting.user_key_of(other), self._control)
            self._authors[each.message.id or ""] = author
        if coalesced:
            events.queue_coalesced(messages=len(entries), key=place.conversation)
        user_key = await ask(setting.user_key_of(request), self._control)
        asked = session_request(draft, place.conversation, user_key)
        self._continued = await find_continuation(setting.state, request, asked)
        if self._continued is not None:
            self._answer_id = self._continued.message.id or self._answer_id
            request = self._request = with_current(request, self._continued.message)
            draft = draft_turn(request, setting.policy)
        return request, draft, place, user_key

    async def _record(self, draft: Draft, place: Place, user_key: str | None) -> Recorded:
        return await Opening(
            setting=self._setting,
            ticket_id=self._grant.ticket_id,
            control=self._control,
            context=self._lease.context,
        ).record(
            draft,
            rows=rows_of(draft, self._grant.ticket_id, self._authors, user_key),
            asked=session_request(draft, place.conversation, user_key),
            continued=self._continued,
        )

    async def _answer_it(
        self, request: TurnRequest, draft: Draft, place: Place, recorded: Recorded
    ) -> RunResult:
        self._recorded, started_at = recorded, self._setting.clock.now()
        # Not before its question was recorded, or a client that sorts by time shows it first.
        self._answer = self._new_answer(started_at)
        session = recorded.session
        prepared = PreparedInvocation(
            messages=(),
            selection=(),
            session_id=None if session is None else session.session_id,
            run=request.run,
            context={},
        )
        ids: events.Ids = {
            "key": place.conversation,
            "turn_id": self._grant.ticket_id,
            "message_id": request.messages[-1].id,
        }
        preparation = Preparation(
            setting=self._setting,
            draft=draft,
            recorded=recorded,
            conversation=place.conversation,
            started_at=started_at,
            context=self._lease.context,
            ids=ids,
            prepared=prepared,
            sink=self._sink,
        )
        invocation: Invocation | None = None
        error: BaseException | None = None
        try:
            preparation.select()
            invocation = await ask(preparation.invoke(), self._control)
            await self._drive(invocation, preparation)
        except StoppedEarly:
            error = None
        except BaseException as raised:  # noqa: BLE001 - recorded first, raised to the caller below
            error = raised
        self._is_open = False
        return await self._end(request, preparation.prepared, invocation, error, ids, started_at)

    async def _drive(self, invocation: Invocation, preparation: Preparation) -> None:
        request, now = preparation.request, preparation.started_at
        events.turn_started(messages=len(invocation.prepared.messages), **preparation.ids)
        self.reply.begin(invocation.prepared)
        self._sink(started_of(self._answer, invocation.prepared))
        limit = request.timeout or self._setting.policy.timeout
        self._begin(preparation)
        try:
            await drive(invocation.events(), self._take, self._control, limit)
        except Exception as error:
            overflow = find_overflow(error)
            if overflow is None:
                raise
            retrying = preparation.invoke_again(overflow, may_retry=self._answer.is_empty)
            again = await ask(retrying, self._control)
            if again is None:
                raise
            self._answer = self._new_answer(now)
            self._begin(preparation)
            await drive(again.events(), self._take, self._control, limit)

    def _begin(self, preparation: Preparation) -> None:
        """Tell how much of the model's window a call uses that is about to be made."""
        self._answer.basis = preparation.basis
        if preparation.prepared.context_budget is not None:
            self._sink(BudgetChanged(budget=preparation.prepared.context_budget))

    async def _take(self, event: DriverEvent) -> None:
        """Take one event of the driver; after a tool is done its result is durable."""
        if not self._is_open:
            return
        event = self._answer.check(event)
        self._answer.add(event)
        self._sink(event)
        if isinstance(event, ToolResult) and self._setting.has_state:
            await self._keep_progress()

    async def _keep_progress(self) -> None:
        """Make durable what was said so far; a store that is away gets it with the end."""
        row = self._row("pending")
        try:
            await write_surely(
                lambda: self._setting.turns.progress(
                    self._grant.ticket_id, answer=row, ctx=self._lease.context
                ),
                self._control,
            )
        except StateUnavailableError as error:
            events.turn_failed(error, code=error.code, turn_id=self._grant.ticket_id)
        if was_cancelled():
            # The write was waited for; the driver has to stop all the same.
            raise asyncio.CancelledError

    async def _end(
        self,
        request: TurnRequest,
        prepared: PreparedInvocation,
        invocation: Invocation | None,
        error: BaseException | None,
        ids: events.Ids,
        started_at: datetime,
    ) -> RunResult:
        status, finish_reason = self._status(error)
        if status != "complete":
            for closed in self._answer.close_calls():
                self._sink(closed)
        try:
            plan = plan_of(self._grant.ticket_id, prepared, invocation, status, started_at)
            archiving = Archiving(
                memory=self._setting.memory,
                recorded=self._recorded,
                answer=self._row(status),
                invocation=invocation,
                context=self._lease.context,
            )
            kit = self._setting.pruning
            pruning = await begin_pruning(kit, request, self._control, ids, archiving)
            with pruning.span():
                finished = await self._finish(prepared, plan, finish_reason, pruning.request)
        except Exception as failure:
            await self._tell_unrecorded(failure, request, ids)
            raise failure from error
        self.next, self.has_ended = finished.next, True
        pruning.tell(finished.pruned)
        result = result_of(self._answer.message(), prepared, status, finish_reason)
        took = self._setting.clock.now() - started_at
        duration_ms = max(int(took.total_seconds() * 1000), 0)
        events.turn_finished(
            status=status, duration_ms=duration_ms, finish_reason=finish_reason, **ids
        )
        if error is not None:
            events.turn_failed(error, code=error_code(error), **ids)
            await self._tell_failed(error, request)
        elif status == "interrupted":
            reason = self._control.reason or "stopped"
            events.turn_interrupted(reason=reason, duration_ms=duration_ms, **ids)
            self._sink(RunInterrupted(reason=reason))
        else:
            usage, budget = self._answer.usage, prepared.context_budget
            self._sink(RunFinished(finish_reason=finish_reason, usage=usage, budget=budget))
        if invocation is not None:
            try:
                await settle(tell_end(invocation, result), self._control)
            except Exception as raised:  # noqa: BLE001 - the answer is recorded, the caller's
                events.turn_failed(raised, code=error_code(raised), **ids)
        if self._setting.memory is not None and finished.row is not None:
            kept = self._setting.memory.keep_turn(self._recorded, finished.row, ids)
            await settle(kept, self._control)
        if error is not None:
            raise error
        return result

    def _status(self, error: BaseException | None) -> tuple[RowStatus, str | None]:
        if error is not None:
            return "error", "error"
        reason = self._control.reason
        if reason is not None:
            return "interrupted", reason if reason in NAMED_REASONS else "interrupted"
        return "complete", self._answer.finish_reason or "stop"

    async def _finish(
        self,
        prepared: PreparedInvocation,
        plan: TurnPlan,
        finish_reason: str | None,
        prune: PruneRequest | None,
    ) -> Finished:
        finishing = Finishing(
            setting=self._setting,
            ticket_id=self._grant.ticket_id,
            control=self._control,
            context=self._lease.context,
        )
        end = end_of(self._answer.message(), prepared, plan.status, finish_reason)
        return await finishing.record(
            answer=self._row(plan.status), end=end, plan=plan, prune=prune
        )

    async def _tell_unrecorded(
        self, failure: Exception, request: TurnRequest, ids: events.Ids
    ) -> None:
        """Tell that the end of the turn is not recorded, as when another one has its lock."""
        if error_code(failure) == LOCK_LOST:
            events.lock_lost(**ids)
        else:
            events.turn_failed(failure, code=error_code(failure), **ids)
        await self._tell_failed(failure, request)

    async def _tell_failed(self, error: BaseException, request: TurnRequest) -> None:
        policy = self._setting.policy
        text = await find_error_text(policy.reply, error, request.timeout or policy.timeout)
        self._sink(RunFailed(text=text, code=error_code(error)))

    def _new_answer(self, now: datetime) -> Answer:
        if self._continued is None:
            return Answer(self._answer_id, now)
        earlier = self._continued.message
        return Answer(self._answer_id, earlier.created_at or now, earlier)

    def _row(self, status: RowStatus) -> NewRow:
        request = self._request
        thread = None if request is None or request.run is None else request.run.thread_id
        if self._continued is not None and self._continued.row is not None:
            thread = self._continued.row.thread_id
        return self._answer.row(status, author=None, thread_id=thread)
