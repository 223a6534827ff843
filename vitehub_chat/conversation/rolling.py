"""Rolling: the oldest messages become a summary, batch by batch, until the rest fits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

import attrs

from vitehub_chat.conversation.flushing import Flush, FlushBatch
from vitehub_chat.conversation.roll_store import RollStore
from vitehub_chat.conversation.sizing import Sizer
from vitehub_chat.conversation.summarizers import model_of
from vitehub_chat.conversation.summarizing import SummarizerFailed, Summarizing
from vitehub_chat.errors import StateUnavailableError
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.context_policy import ContextPolicy, FlushStatus, RollReason
from vitehub_chat.model.rolling import Rolling, RollingWrite
from vitehub_chat.selection.batches import choose_batch
from vitehub_chat.selection.limits import Limits
from vitehub_chat.selection.views import Piece, View

Reread = Callable[[], Awaitable[View]]
"""Gives the view by what is stored now."""

FAILURES: Final = frozenset({"summarizer_failed", "deadline", "flush_failed", "no_gain"})
"""The reasons for which a turn counts as failed."""

_WORST: Final[dict[FlushStatus, int]] = {"off": 0, "done": 1, "failed": 2}


class _Stop(Exception):  # noqa: N818 - a way out, not a fault
    """Rolling ends; `reason` is why it stopped short, or None."""

    def __init__(self, reason: RollReason | None, *, is_stale: bool = False) -> None:
        super().__init__(reason)
        self.reason: RollReason | None = reason
        self.is_stale = is_stale


@attrs.define(kw_only=True)
class Attempts:
    """How many attempts at condensing one turn has made, whoever began them.

    Attributes:
        most: How many it may make.
        made: How many it has made.
        failures: How many turns in a row failed, this one included; 0 unless it failed.
    """

    most: int
    made: int = 0
    failures: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further one may be made."""
        return self.made >= self.most


@attrs.frozen(kw_only=True)
class RollOutcome:
    """What rolling came to.

    Attributes:
        view: What a call would send now.
        rolled: The messages that were condensed.
        reason: Why it stopped short of its target, or None.
        flush_status: What became of the memory.
        fail_count: How many turns in a row failed, this one included; 0 unless it failed.
        error: What went wrong last, as a code, or None.
    """

    view: View
    rolled: tuple[Piece, ...] = ()
    reason: RollReason | None = None
    flush_status: FlushStatus = "off"
    fail_count: int = 0
    error: str | None = None


@attrs.define(kw_only=True)
class Roller:
    """Condenses for one turn, under its lock.

    Attributes:
        until: When condensing of this turn ends.
        attempts: Counted for the turn as a whole.
    """

    store: RollStore
    summarizing: Summarizing
    sizer: Sizer
    policy: ContextPolicy
    flush: Flush | None
    clock: Clock
    until: datetime
    attempts: Attempts
    reread: Reread
    _rolled: list[Piece] = attrs.field(factory=list, init=False)
    _flush_status: FlushStatus = attrs.field(default="off", init=False)
    _error: str | None = attrs.field(default=None, init=False)

    async def roll(self, view: View, limits: Limits) -> RollOutcome:
        """Condense until the target holds or nothing more can be done.

        A turn that fails changes nothing but the count of such turns, and that once. Where the
        state changed meanwhile the view is read anew.

        Raises:
            StateConflictError: The lock of the turn was lost.
        """
        state = view
        grow, before = 1, 0
        try:
            while True:
                count = await self._next(state, limits, grow, before)
                self.attempts.made += 1
                rolled = await self._attempt(state, count)
                if rolled is None:
                    grow, before = grow * 2, count
                    await self._check_unchanged(state)
                else:
                    self._rolled.extend(state.verbatim[:count])
                    state, grow, before = rolled, 1, 0
        except _Stop as stop:
            return await self._end(state, stop)

    async def _end(self, view: View, stop: _Stop) -> RollOutcome:
        reason, is_stale = stop.reason, stop.is_stale
        if reason in FAILURES:
            refused = await self._count_failure(view, self._error or reason)
            if refused is not None:
                reason, is_stale = refused, True
        if is_stale:
            view = await self._read_anew(view)
        return self._outcome(view, reason)

    async def _count_failure(self, view: View, code: str) -> RollReason | None:
        """Note that this turn failed, unless that is noted; return why it was refused, or None."""
        rolling = view.rolling
        if rolling is None or self.attempts.failures:
            return None
        self.attempts.failures = rolling.fail_count + 1
        try:
            written = await self.store.note_failure(rolling, code)
        except StateUnavailableError:
            return None  # whoever reads the log is told all the same
        if written.refused is None and written.rolling is not None:
            self.attempts.failures = written.rolling.fail_count
        return written.refused

    async def _next(self, view: View, limits: Limits, grow: int, before: int) -> int:
        """Return how many messages the next attempt takes."""
        if not limits.is_over_target(view.used):
            raise _Stop(None)
        if self.attempts.is_spent:
            raise _Stop("max_loops")
        if self.clock.now() >= self.until:
            raise _Stop("deadline")
        room = len(view.verbatim) - self.policy.min_verbatim
        if room <= 0:
            raise _Stop("min_verbatim")
        count = choose_batch(
            view.messages,
            view.behind,
            wanted=self.policy.batch_messages * grow,
            room=room,
            pending={index for index, piece in enumerate(view.verbatim) if piece.is_barred},
        )
        if not count:
            raise _Stop("no_safe_unit")
        if grow > 1 and count <= before:
            raise _Stop("no_gain")
        return count

    async def _attempt(self, view: View, count: int) -> View | None:
        """Condense the first messages; None if that would gain nothing."""
        rolling = view.rolling
        if rolling is None:
            raise _Stop("session_changed", is_stale=True)
        batch = view.verbatim[:count]
        await self._flush(rolling, batch)
        summary = await self._summarize(view, rolling, batch)
        size = self.sizer.text(summary)
        if view.gain(count, size) <= 0:
            return None
        written = await self._commit(view, rolling, batch, summary)
        if written.refused is not None or written.rolling is None:
            raise _Stop(written.refused or "session_changed", is_stale=True)
        self.attempts.failures = 0
        return view.rolled(count, written.rolling, size)

    async def _flush(self, rolling: Rolling, batch: Sequence[Piece]) -> None:
        if self.flush is None:
            return
        status = await self.flush.flush(
            FlushBatch(
                conversation=self.store.conversation,
                session_id=self.store.session_id,
                from_seq=_seq_of(batch[0]),
                to_seq=_seq_of(batch[-1]),
                messages=[piece.message for piece in batch],
                rolling=rolling,
            )
        )
        self._flush_status = max(self._flush_status, status, key=_WORST.__getitem__)
        if status == "failed" and self.flush.blocks:
            raise _Stop("flush_failed")

    async def _summarize(self, view: View, rolling: Rolling, batch: Sequence[Piece]) -> str:
        messages = [piece.message for piece in batch]

        async def note(code: str) -> None:
            self._error = code
            await self._check_unchanged(view)

        try:
            return await self.summarizing.summarize(
                rolling.summary, messages, until=self.until, note=note
            )
        except SummarizerFailed as failed:
            raise _Stop("deadline" if failed.is_late else "summarizer_failed") from failed

    async def _commit(
        self, view: View, rolling: Rolling, batch: Sequence[Piece], summary: str
    ) -> RollingWrite:
        anchor = _seq_of(batch[-1]) + 1
        try:
            return await self.store.commit(
                rolling,
                summary=summary,
                anchor=anchor,
                system_seqs=[seq for seq in view.system_seqs if seq < anchor],
                model=model_of(self.summarizing.summarizer),
                checkpoints_kept=self.policy.checkpoints_kept,
            )
        except StateUnavailableError:
            # Whether it was written is not known: what is stored tells.
            return RollingWrite("conflict", None)

    async def _check_unchanged(self, view: View) -> None:
        """Stop if the session was cut or cleared while an attempt came to nothing."""
        rolling, now = view.rolling, None
        try:
            now = await self.store.read()
        except StateUnavailableError:
            return
        if rolling is None or now is None or _place_of(now) != _place_of(rolling):
            raise _Stop("session_changed", is_stale=True)
        if now.version != rolling.version:
            raise _Stop("conflict", is_stale=True)

    async def _read_anew(self, view: View) -> View:
        """Return the view by what is stored now; what was read before if the store is away."""
        try:
            return await self.reread()
        except StateUnavailableError:
            return view

    def _outcome(self, view: View, reason: RollReason | None) -> RollOutcome:
        return RollOutcome(
            view=view,
            rolled=tuple(self._rolled),
            reason=reason,
            flush_status=self._flush_status,
            fail_count=self.attempts.failures,
            error=self._error,
        )


def _place_of(rolling: Rolling) -> tuple[int, int]:
    return rolling.session_key, rolling.generation


def _seq_of(piece: Piece) -> int:
    """Return the number of a message; only stored rows are condensed."""
    return 0 if piece.seq is None else piece.seq
