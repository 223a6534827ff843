"""Fitting: what of the selected messages a model is given, so that it fits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from decimal import Decimal
from typing import Final

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.driving import CallFacts
from vitehub_chat.conversation.fit_source import FitSource, basis_of, view_of
from vitehub_chat.conversation.flushing import Flush
from vitehub_chat.conversation.roll_store import RollStore
from vitehub_chat.conversation.rolling import FAILURES, Attempts, Roller, RollOutcome
from vitehub_chat.conversation.sizing import Sizer
from vitehub_chat.conversation.summarizers import summarizer_for
from vitehub_chat.conversation.summarizing import Summarizing
from vitehub_chat.conversation.tool_loop import ToolLoop
from vitehub_chat.errors import ContextOverflowError, StateUnavailableError
from vitehub_chat.formatting.payload import build_payload
from vitehub_chat.model import observing
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.context_policy import Summarizer, SummarizerSetting
from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import ContextBudget, PreparedInvocation, SelectionReason
from vitehub_chat.model.rolling import Rolling
from vitehub_chat.model.selections import Selection
from vitehub_chat.selection.limits import Limits, limits_for, percent_of
from vitehub_chat.selection.trimming import Trim, trim
from vitehub_chat.selection.views import View

RETRY_TARGET: Final = Decimal("0.5")
"""Down to which part of the limit a call is brought that the model refused."""
LEAST_CORRECTION: Final = 1.15


@attrs.frozen(kw_only=True)
class Fitted:
    """A call that fits, or does as far as it can.

    Attributes:
        prepared: What the driver gets.
        budget: How much of the model's window it uses.
        basis: What a report of the model about it is valid for, or None.
    """

    prepared: PreparedInvocation
    budget: ContextBudget
    basis: str | None = None


@attrs.define(kw_only=True)
class Fitter:
    """Makes the call of one turn fit.

    Attributes:
        facts: What is sent beside the messages, and to whom.
        store: Where the rolling state is, or None: then nothing is condensed.
        flush: Takes what is condensed into the memory, or None.
        reread: Gives the source by what is stored now.
        ids: What events are about.
        attempts: Counted for the turn as a whole.
    """

    facts: CallFacts
    sizer: Sizer
    clock: Clock
    store: RollStore | None = None
    flush: Flush | None = None
    reread: Callable[[], Awaitable[FitSource]] | None = None
    ids: events.Ids = attrs.field(factory=events.Ids)
    attempts: Attempts = attrs.field(init=False)
    limits: Limits = attrs.field(init=False)
    _source: FitSource | None = attrs.field(default=None, init=False)
    _view: View | None = attrs.field(default=None, init=False)
    _used: int = attrs.field(default=0, init=False)
    _until: datetime | None = attrs.field(default=None, init=False)
    _summarizer: Summarizer | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        policy = self.sizer.policy
        self.attempts = Attempts(most=policy.max_loops)
        self.limits = limits_for(policy, self.sizer.counter.unit, self.facts.window_tokens)

    async def fit(self, source: FitSource) -> Fitted:
        """Condense if there is too much, then leave out what still does not fit.

        Raises:
            ConfigError: The limit or the summarizer cannot be used.
            StateConflictError: The lock of the turn was lost.
        """
        return await self._fit(source, self.limits, rolling=source.window.rolling)

    async def fit_again(self, error: ContextOverflowError) -> Fitted | None:
        """Make a call smaller that the model refused; None if there is nothing to correct.

        What is estimated from now on is multiplied by more, in the session as well.
        """
        corrected = await self.correct(error, retries=True)
        if corrected is None:
            return None
        limits = self.limits.aiming_at(RETRY_TARGET)
        return await self._fit(self._known_source, limits, rolling=corrected)

    async def correct(self, error: ContextOverflowError, *, retries: bool) -> Rolling | None:
        """Multiply estimates of the session by more; None before anything was fitted."""
        view = self._view
        if view is None:
            return None
        used, factor = max(self._used, 1), LEAST_CORRECTION
        if error.reported is not None:
            factor = max(factor, error.reported / used)
        correction = float(view.correction) * factor
        events.context_overflowed(
            reported=error.reported, used=used, correction=correction, retried=retries, **self.ids
        )
        return await self._correct(view.rolling or Rolling(session_key=0, generation=0), correction)

    def tool_loop(self, fitted: Fitted, changed: Callable[[ContextBudget], None]) -> ToolLoop:
        """Return what is asked before the further requests of a call that was fitted."""
        correction = Decimal(1) if self._view is None else self._view.correction

        def tell(used: int) -> None:
            changed(self._with_size(fitted.budget, used))

        return ToolLoop(
            base=len(fitted.prepared.messages),
            base_used=fitted.budget.used,
            sizer=self.sizer,
            limits=self.limits,
            summarizing=lambda: self._summarizing(self.limits),
            clock=self.clock,
            attempts=self.attempts,
            correction=correction,
            changed=tell,
            ids=self.ids,
        )

    def _with_size(self, budget: ContextBudget, used: int) -> ContextBudget:
        return attrs.evolve(
            budget,
            used=used,
            used_pct=percent_of(used, budget.limit),
            loops=self.attempts.made,
            used_runes=None if budget.used_runes is None else used,
        )

    async def _correct(self, rolling: Rolling, correction: float) -> Rolling:
        corrected = attrs.evolve(rolling, correction=correction)
        if self.store is None:
            return corrected
        try:
            written = await self.store.set_correction(rolling, correction)
        except StateUnavailableError:
            return corrected  # this call is made smaller all the same
        return corrected if written.refused is not None else written.rolling or corrected

    async def _fit(self, source: FitSource, limits: Limits, *, rolling: Rolling | None) -> Fitted:
        self._source = source
        view = view_of(source, self.facts, self.sizer, rolling=rolling)
        outcome = RollOutcome(view=view)
        if self.store is not None and rolling is not None and limits.is_over_trigger(view.used):
            with observing.span("chat.roll"):
                outcome = await self._roll(self.store, view, limits)
        return self._build(outcome)

    async def _roll(self, store: RollStore, view: View, limits: Limits) -> RollOutcome:
        policy = self.sizer.policy
        if self._until is None:
            self._until = self.clock.now() + policy.turn_deadline
        roller = Roller(
            store=store,
            summarizing=await self._summarizing(limits),
            sizer=self.sizer,
            policy=policy,
            flush=self.flush,
            clock=self.clock,
            until=self._until,
            attempts=self.attempts,
            reread=self._read_anew,
        )
        outcome = await roller.roll(view, limits)
        self._tell(outcome, loops=roller.attempts.made)
        return outcome

    async def _summarizing(self, limits: Limits) -> Summarizing:
        return Summarizing(
            summarizer=await self._find_summarizer(),
            sizer=self.sizer,
            limits=limits,
            policy=self.sizer.policy,
            clock=self.clock,
        )

    async def _find_summarizer(self) -> Summarizer:
        """Return who condenses in this turn, found at first use; that may import and read files."""
        if self._summarizer is not None:
            return self._summarizer
        setting = SummarizerSetting(
            ask=self.facts.ask,
            model=self.facts.model,
            count=self.sizer.text,
            unit=self.sizer.counter.unit,
        )
        chosen = self.sizer.policy.summarizer
        self._summarizer = await asyncio.to_thread(summarizer_for, chosen, setting)
        return self._summarizer

    async def _read_anew(self) -> View:
        if self.reread is not None:
            self._source = await self.reread()
        source = self._known_source
        return view_of(source, self.facts, self.sizer, rolling=source.window.rolling)

    @property
    def _known_source(self) -> FitSource:
        if self._source is None:
            raise RuntimeError("nothing was fitted yet")
        return self._source

    def _build(self, outcome: RollOutcome) -> Fitted:
        source, view = self._known_source, outcome.view
        self._view = attrs.evolve(view, reported=None)
        cut = trim(view.messages, view.used_without(), self.limits.cap)
        if cut.dropped or cut.is_over:
            events.context_trimmed(trimmed=cut.dropped, over=cut.is_over, **self.ids)
        self._used = cut.used
        sent = self._sent(view, cut.dropped)
        rolling, policy = view.rolling, self.sizer.policy
        summary = "" if rolling is None else rolling.summary
        payload = build_payload(
            sent[:-1],
            system=self.facts.instructions,
            summary=summary,
            current=sent[-1],
            summary_placement=policy.summary_placement,
            wrap_current=policy.wrap_current,
            not_shown=cut.dropped,
        )
        budget = self._budget(outcome, cut)
        prepared = attrs.evolve(
            source.prepared,
            messages=payload.messages,
            selection=self._selection(outcome, cut.dropped),
            context_budget=budget,
            system=payload.system,
            summary_version=rolling.version if rolling is not None and summary else None,
        )
        basis = basis_of(source.ids_of(sent), self.facts, rolling)
        return Fitted(prepared=prepared, budget=budget, basis=basis)

    def _sent(self, view: View, dropped: int) -> list[Message]:
        """Return the messages that are sent, without those that were condensed or left out."""
        source = self._known_source
        kept = {id(piece.message) for piece in view.verbatim[dropped:]}
        return [
            message
            for message in source.prepared.messages
            if id(message) in kept or not source.may_go(message)
        ]

    def _selection(self, outcome: RollOutcome, dropped: int) -> Selection:
        source, view = self._known_source, outcome.view
        sent = {piece.message.id or "" for piece in view.verbatim[dropped:]}
        trimmed = {piece.message.id or "" for piece in view.verbatim[:dropped]}
        reasons: dict[int, SelectionReason] = {}
        tokens: dict[int, int] = {}
        for message in source.prepared.messages:
            name = message.id or ""
            place = source.places.get(name)
            if place is None:
                continue
            tokens[place] = self.sizer.message(message)
            if name in trimmed:
                reasons[place] = "trimmed"
            elif name not in sent and source.may_go(message):
                reasons[place] = "rolled"
        return source.selection.fitted(reasons, tokens)

    def _budget(self, outcome: RollOutcome, cut: Trim) -> ContextBudget:
        counter, limit = self.sizer.counter, self.limits.limit
        is_runes = counter.unit == "runes"
        rolling = outcome.view.rolling
        return ContextBudget(
            limit=limit,
            used=cut.used,
            used_pct=percent_of(cut.used, limit),
            unit=counter.unit,
            estimator=counter.name,
            loops=self.attempts.made,
            rolled=len(outcome.rolled),
            trimmed=cut.dropped,
            over=cut.is_over,
            reason=outcome.reason,
            summary_through_seq=None if rolling is None else rolling.through_seq,
            flush_status=outcome.flush_status,
            resolved_window=self.limits.resolved_window,
            used_runes=cut.used if is_runes else None,
            limit_runes=limit if is_runes else None,
        )

    def _tell(self, outcome: RollOutcome, *, loops: int) -> None:
        rolling = outcome.view.rolling
        became = "rolled" if outcome.rolled else outcome.reason or "none"
        observing.tell(rolled=len(outcome.rolled), loops=loops, outcome=became)
        observing.measure("roll.count", 1, outcome=became)
        if outcome.rolled and rolling is not None:
            events.context_rolled(
                rolled=len(outcome.rolled),
                through_seq=rolling.anchor - 1,
                version=rolling.version,
                loops=loops,
                reason=outcome.reason,
                summary_size=outcome.view.summary_size,
                **self.ids,
            )
        if outcome.reason in FAILURES:
            events.context_roll_failed(
                reason=outcome.reason or "",
                failures=outcome.fail_count,
                is_alarm=outcome.fail_count >= self.sizer.policy.failure_alarm,
                error=outcome.error,
                **self.ids,
            )
