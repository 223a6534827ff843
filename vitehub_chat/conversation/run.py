"""Run: one granted turn, from its record to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeVar

from vitehub_chat.conversation import events
from vitehub_chat.conversation.answer import Answer
from vitehub_chat.conversation.arrivals import coalesced_of, rows_of
from vitehub_chat.conversation.control import LOCK_LOST, StoppedEarly, TurnControl, ask, settle
from vitehub_chat.conversation.driving import Invocation, InvokeRequest, Sink, drive
from vitehub_chat.conversation.lease import LEASE, LeaseKeeper
from vitehub_chat.conversation.payloads import decode_request
from vitehub_chat.conversation.places import Place, find_place
from vitehub_chat.conversation.replies import error_code, find_error_text
from vitehub_chat.conversation.selecting import (
    Draft,
    draft_turn,
    prepare_turn,
    session_request,
    window_request,
)
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.errors import StateConflictError, StateError
from vitehub_chat.model.events import (
    DriverEvent,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunStarted,
    ToolResult,
)
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.state.codec import run_to_json
from vitehub_chat.state.values import Finished, Grant, NewRow, Recorded, TurnEnd

T = TypeVar("T")
_ENDINGS: Mapping[RowStatus, Literal["complete", "interrupted", "error"]] = {
    "complete": "complete",
    "interrupted": "interrupted",
    "error": "error",
}
FINISH_S = 30.0
"""How long the capabilities may take to see the end of a turn."""
NAMED_REASONS = frozenset({"timeout", "lock_lifetime"})


class Run:
    """One granted run.

    `carry_out` records its messages, drives, records the answer and passes the lock on. What comes
    next under the lock is then in `next`. Until its messages `are_recorded` it may yet be another
    run that answers them.
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

    async def carry_out(self) -> RunResult:
        """Run to the end and return the result.

        Raises:
            StateConflictError: The lock was lost; nothing more was written (`lock_lost`).
            StateError: The messages could not be recorded; they may be sent again.
            Exception: What the driver raised, after it was recorded.
        """
        with self._lease:
            try:
                request, draft, place, user_key = await self._understand()
                recorded = await self._record(draft, place, user_key)
                self.are_recorded = True
            except BaseException as error:
                # What nobody here waits for is no caller's to send again: it goes on waiting.
                if self._has_caller or (isinstance(error, StateError) and error.code == "corrupt"):
                    await self._give_back()
                raise
            return await self._answer_it(request, draft, place, recorded)

    async def _understand(self) -> tuple[TurnRequest, Draft, Place, str | None]:
        setting, entries = self._setting, self._grant.entries
        request = self._request
        try:
            if request is None:
                request = self._request = decode_request(entries[-1].payload)
            others = [decode_request(entry.payload) for entry in entries[:-1]]
        except (ValueError, KeyError, TypeError) as error:
            raise StateError("a waiting message cannot be read", code="corrupt") from error
        coalesced = coalesced_of(others, entries)
        place = find_place(setting.agent, request, setting.policy, has_state=setting.has_state)
        draft = draft_turn(request, setting.policy, coalesced)
        for each, other in zip(coalesced, others, strict=True):
            author = await ask(setting.user_key_of(other), self._control)
            self._authors[each.message.id or ""] = author
        if coalesced:
            events.queue_coalesced(messages=len(entries), key=place.conversation)
        user_key = await ask(setting.user_key_of(request), self._control)
        return request, draft, place, user_key

    async def _record(self, draft: Draft, place: Place, user_key: str | None) -> Recorded:
        setting, ticket_id = self._setting, self._grant.ticket_id
        if not setting.has_state:
            return await write_surely(
                lambda: setting.turns.record(
                    ticket_id, rows=(), session=None, ctx=self._lease.context
                ),
                self._control,
            )
        rows = rows_of(draft, ticket_id, self._authors, user_key)
        return await write_surely(
            lambda: setting.turns.record(
                ticket_id,
                rows=rows,
                session=session_request(draft, place.conversation, user_key),
                window=window_request(draft),
                ctx=self._lease.context,
            ),
            self._control,
        )

    async def _answer_it(
        self, request: TurnRequest, draft: Draft, place: Place, recorded: Recorded
    ) -> RunResult:
        started_at = self._setting.clock.now()
        # Not before its question was recorded, or a client that sorts by time shows it first.
        self._answer = Answer(self._answer_id, started_at)
        session = recorded.session
        prepared = PreparedInvocation(
            messages=(),
            selection=(),
            session_id=None if session is None else session.session_id,
            run=request.run,
            context={},
        )
        ids: events.Ids = {"key": place.conversation, "turn_id": self._grant.ticket_id}
        invocation: Invocation | None = None
        error: BaseException | None = None
        try:
            prepared = prepare_turn(draft, session, recorded.window, started_at)
            ids["session_id"] = prepared.session_id
            self._tell_selected(request, prepared, recorded, ids)
            invoking = self._invoke(request, prepared, recorded, started_at)
            invocation = await ask(invoking, self._control)
            prepared = invocation.prepared
            await self._drive(invocation, request, ids, started_at)
        except StoppedEarly:
            error = None
        except BaseException as raised:  # noqa: BLE001 - recorded first, raised to the caller below
            error = raised
        self._is_open = False
        return await self._end(request, prepared, invocation, error, ids, started_at)

    async def _drive(
        self, invocation: Invocation, request: TurnRequest, ids: events.Ids, now: datetime
    ) -> None:
        events.turn_started(messages=len(invocation.prepared.messages), **ids)
        self._sink(self._started(invocation.prepared, now))
        limit = request.timeout or self._setting.policy.timeout
        await drive(invocation.events(), self._take, self._control, limit)

    def _tell_selected(
        self,
        request: TurnRequest,
        prepared: PreparedInvocation,
        recorded: Recorded,
        ids: events.Ids,
    ) -> None:
        events.history_selected(prepared.selection, **ids)
        for seq in recorded.window.unreadable:
            events.row_quarantined(store="transcripts", seq=seq, **ids)
        if recorded.session is not None and recorded.session.is_new:
            events.session_started(**ids)
        elif request.session.action == "switch":
            events.session_switched(from_session_id=None, **ids)

    async def _invoke(
        self,
        request: TurnRequest,
        prepared: PreparedInvocation,
        recorded: Recorded,
        now: datetime,
    ) -> Invocation:
        limit = request.timeout or self._setting.policy.timeout
        native: Mapping[str, Json] = {
            row.message.id or "": row.native
            for row in recorded.window.shown
            if row.native is not None
        }
        return await self._setting.invoke(
            InvokeRequest(
                request=request,
                prepared=prepared,
                native=native,
                deadline=None if limit is None else now + limit,
            )
        )

    async def _take(self, event: DriverEvent) -> None:
        """Take one event of the driver; after a tool is done its result is durable."""
        if not self._is_open:
            return
        event = self._answer.check(event)
        self._answer.add(event)
        self._sink(event)
        if isinstance(event, ToolResult) and self._setting.has_state:
            await self._setting.turns.progress(
                self._grant.ticket_id, answer=self._row("pending"), ctx=self._lease.context
            )

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
            self._answer.close_calls()
        try:
            finished = await self._finish(prepared, status, finish_reason)
        except Exception as failure:
            await self._tell_unrecorded(failure, request, ids)
            raise failure from error
        self.next = finished.next
        result = self._result(prepared, status, finish_reason)
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
            usage = self._answer.usage
            self._sink(RunFinished(finish_reason=finish_reason, usage=usage))
        if invocation is not None:
            await self._tell_capabilities(invocation, result, ids)
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
        self, prepared: PreparedInvocation, status: RowStatus, finish_reason: str | None
    ) -> Finished:
        if self._control.reason == LOCK_LOST:
            raise StateConflictError("the lock of this turn was lost", code=LOCK_LOST)
        setting = self._setting
        message = self._answer.message()
        end = TurnEnd(
            status=_ENDINGS[status],
            finish_reason=finish_reason,
            session_id=prepared.session_id,
            run=None if prepared.run is None else run_to_json(prepared.run),
            message=message if message.parts else None,
        )
        return await write_surely(
            lambda: setting.turns.finish(
                self._grant.ticket_id,
                answer=self._row(status) if setting.has_state else None,
                end=end,
                owner=setting.owner,
                lease=LEASE,
                ctx=self._lease.context,
            ),
            self._control,
        )

    async def _give_back(self) -> None:
        """Let go of a run that could not be recorded, so that its messages may be sent again."""
        try:
            taken_back = await settle(
                self._setting.turns.withdraw(
                    self._grant.ticket_id,
                    owner=self._setting.owner,
                    lease=LEASE,
                    ctx=self._lease.context,
                ),
                self._control,
            )
        except StateError as error:
            events.turn_failed(error, code=error.code, turn_id=self._grant.ticket_id)
            return
        self.next = taken_back.next

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

    async def _tell_capabilities(
        self, invocation: Invocation, result: RunResult, ids: events.Ids
    ) -> None:
        try:
            await settle(asyncio.wait_for(invocation.finish(result), FINISH_S), self._control)
        except Exception as error:  # noqa: BLE001 - the answer is recorded and belongs to the caller
            events.turn_failed(error, code=error_code(error), **ids)

    def _row(self, status: RowStatus) -> NewRow:
        request = self._request
        thread = None if request is None or request.run is None else request.run.thread_id
        return self._answer.row(status, author=None, thread_id=thread)

    def _started(self, prepared: PreparedInvocation, now: datetime) -> RunStarted:
        run = prepared.run
        return RunStarted(
            message_id=self._answer.message_id,
            session_id=prepared.session_id,
            run_id=None if run is None else run.run_id,
            thread_id=None if run is None else run.thread_id,
            created_at=now,
        )

    def _result(
        self, prepared: PreparedInvocation, status: RowStatus, finish_reason: str | None
    ) -> RunResult:
        message = self._answer.message()
        return RunResult(
            text=message.text,
            message=message if message.parts else None,
            new_messages=(message,) if message.parts else (),
            status=_ENDINGS[status],
            finish_reason=finish_reason,
            run=prepared.run,
            session_id=prepared.session_id,
            context_budget=prepared.context_budget,
            prepared=prepared,
        )
