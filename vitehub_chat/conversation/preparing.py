"""Preparing: from what a turn recorded to the call of its driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.driving import Invocation, InvokeRequest, Sink
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.fit_source import FitSource
from vitehub_chat.conversation.fitting import Fitted, Fitter
from vitehub_chat.conversation.selecting import Draft, prepare_turn, window_request
from vitehub_chat.conversation.setting import RunSetting
from vitehub_chat.conversation.tool_loop import ToolLoop
from vitehub_chat.errors import ContextOverflowError
from vitehub_chat.model import observing
from vitehub_chat.model.events import BudgetChanged
from vitehub_chat.model.json_text import Json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import ContextBudget, PreparedInvocation
from vitehub_chat.model.rows import Row
from vitehub_chat.state.context import StateContext
from vitehub_chat.state.values import Recorded, WindowRequest, WindowRows


@attrs.define(kw_only=True, eq=False)
class Preparation:
    """Prepares the call of one granted run.

    Attributes:
        started_at: When the turn began to select.
        context: The context under which the turn writes.
        ids: What events are about.
        prepared: What the driver gets, as far as it is known.
        sink: Where events of the turn go.
    """

    setting: RunSetting
    draft: Draft
    recorded: Recorded
    conversation: ConversationKey
    started_at: datetime
    context: StateContext
    ids: events.Ids
    prepared: PreparedInvocation
    sink: Sink
    _basis: str | None = attrs.field(default=None, init=False)
    _loop: ToolLoop | None = attrs.field(default=None, init=False)
    _invocation: Invocation | None = attrs.field(default=None, init=False)
    _fitter: Fitter | None = attrs.field(default=None, init=False)

    @property
    def request(self) -> TurnRequest:
        """The request of the turn."""
        return self.draft.request

    def basis(self) -> str | None:
        """Return what a report of the model about its last request is valid for, or None."""
        is_less = self._loop is not None and self._loop.has_changed
        return None if is_less else self._basis

    def select(self) -> None:
        """Select what the call sees, and tell about it."""
        self.prepared = self._selected(self.recorded.window)
        session_id = self.ids["session_id"] = self.prepared.session_id
        observing.identify(session_id or self.conversation.encode())
        self._tell_selected()

    async def invoke(self) -> Invocation:
        """Let the capabilities prepare what was selected, and make it fit.

        Raises:
            ConfigError: A capability or the context options cannot be used.
            StateConflictError: The lock of the turn was lost.
        """
        with observing.span("chat.window"):
            invocation = await self._invoke()
            tell_window(self.prepared)
            return invocation

    async def _invoke(self) -> Invocation:
        limit = self.request.timeout or self.setting.policy.timeout
        asked = InvokeRequest(
            request=self.request,
            prepared=self.prepared,
            native=native_of(self.recorded.window.shown),
            deadline=None if limit is None else self.started_at + limit,
        )
        invocation = await self.setting.invoke(asked)
        self.prepared = invocation.prepared
        if self.setting.fitting is None:
            return invocation
        self._invocation = invocation
        reread = partial(self._read_anew, asked.prepared, invocation.prepared)
        self._fitter = await self._make_fitter(self.setting.fitting, invocation, reread)
        source = self._source(self.recorded.window, asked.prepared, invocation.prepared)
        return self._fitted(invocation, self._fitter, await self._fitter.fit(source))

    async def invoke_again(
        self, error: ContextOverflowError, *, may_retry: bool
    ) -> Invocation | None:
        """Make a call smaller that the model refused as too long; None if nothing can be done.

        Where it may not be tried again only the estimates of later turns are corrected.
        """
        if self._fitter is None or self._invocation is None:
            return None
        if not may_retry:
            await self._fitter.correct(error, retries=False)
            return None
        fitted = await self._fitter.fit_again(error)
        if fitted is None:
            return None
        return self._fitted(self._invocation, self._fitter, fitted)

    def _fitted(self, invocation: Invocation, fitter: Fitter, fitted: Fitted) -> Invocation:
        self.prepared, self._basis = fitted.prepared, fitted.basis
        self._loop = fitter.tool_loop(fitted, self._tell_budget)
        return invocation.fitted(fitted.prepared, self._loop)

    def _tell_budget(self, budget: ContextBudget) -> None:
        self.sink(BudgetChanged(budget=budget))

    async def _make_fitter(
        self, kit: FitKit, invocation: Invocation, reread: Callable[[], Awaitable[FitSource]]
    ) -> Fitter:
        may_roll = self.draft.reads_transcript and self.setting.has_state
        return await kit.fitter(
            invocation.facts,
            ids=self.ids,
            session=self.recorded.session if may_roll else None,
            context=self.context,
            reread=reread,
        )

    async def _read_anew(self, before: PreparedInvocation, after: PreparedInvocation) -> FitSource:
        """Select anew among what is stored now; the capabilities' changes stay."""
        kit, wanted = self.setting.fitting, self._window_request()
        window = WindowRows()
        if kit is not None and kit.state is not None and wanted is not None:
            window = await kit.state.transcripts.window(
                self.conversation, session=self.recorded.session, window=wanted
            )
        first = min((row.seq for row in self.recorded.rows), default=None)
        if first is not None:
            shown = tuple(row for row in window.shown if row.seq < first)
            window = attrs.evolve(window, shown=shown)
        selected = self._selected(window)
        return self._source(window, selected, _with_changes(selected, before, after))

    def _window_request(self) -> WindowRequest | None:
        return window_request(self.draft, self.setting.clock.now())

    def _source(
        self, window: WindowRows, selected: PreparedInvocation, prepared: PreparedInvocation
    ) -> FitSource:
        return FitSource(
            selected=selected,
            prepared=prepared,
            window=window,
            recorded=tuple(row.seq for row in self.recorded.rows),
            current_id=self.recorded.rows[-1].message.id if self.recorded.rows else None,
        )

    def _selected(self, window: WindowRows) -> PreparedInvocation:
        return prepare_turn(self.draft, self.recorded.session, window, self.started_at)

    def _tell_selected(self) -> None:
        recorded, ids = self.recorded, self.ids
        events.history_selected(self.prepared.selection, **ids)
        for seq in recorded.window.unreadable:
            events.row_quarantined(store="transcripts", seq=seq, **ids)
        if recorded.truncated is not None:
            cut = recorded.truncated
            events.history_truncated(
                deleted=cut.deleted, generation=cut.generation, summary=cut.summary, **ids
            )
        if recorded.session is not None and recorded.session.is_new:
            events.session_started(**ids)
        elif self.request.session.action == "switch":
            events.session_switched(from_session_id=None, **ids)


def tell_window(prepared: PreparedInvocation) -> None:
    """Tell whoever observes how much a call is given."""
    if not observing.is_observed():
        return
    messages, budget = len(prepared.messages), prepared.context_budget
    cut = sum(not entry.kept for entry in prepared.selection)
    observing.tell(messages=messages, cut=cut)
    observing.measure("window.messages", messages)
    if budget is None:
        return
    observing.tell(used=budget.used, limit=budget.limit, unit=budget.unit)
    observing.measure("context.utilization", budget.used_pct / 100)
    if budget.unit == "tokens":
        observing.measure("window.tokens", budget.used)


def _with_changes(
    selected: PreparedInvocation, before: PreparedInvocation, after: PreparedInvocation
) -> PreparedInvocation:
    """Return what was selected anew with what the capabilities made of the first selection."""
    known = {message.id for message in before.messages}
    changed = {message.id: message for message in after.messages}
    front: list[Message] = []
    later: list[Message] = []
    for message in after.messages[:-1]:
        if message.id in known:
            front, later = [*front, *later], []
        else:
            later.append(message)
    rows = [changed.get(message.id, message) for message in selected.messages[:-1]]
    messages = (*front, *rows, *later, after.messages[-1])
    return attrs.evolve(after, messages=messages, selection=selected.selection)


def native_of(rows: Sequence[Row]) -> Mapping[str, Json]:
    """Return what drivers left with stored messages, by message id."""
    found: dict[str, Any] = {
        row.message.id or "": row.native for row in rows if row.native is not None
    }
    return found
