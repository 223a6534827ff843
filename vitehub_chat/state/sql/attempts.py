"""Attempts: a step that is run until its write went through, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import attrs

from vitehub_chat.errors import StateConflictError, StateUnavailableError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.keys import decode_key
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.sql.cache import Cache
from vitehub_chat.state.sql.driver import SqlDriver
from vitehub_chat.state.sql.guessing import likely_names, looks_for
from vitehub_chat.state.sql.known import Known
from vitehub_chat.state.sql.loading import Loader
from vitehub_chat.state.sql.looks.conversations import (
    ConversationLook,
    NewestLook,
    RevisionLook,
    WriteLook,
)
from vitehub_chat.state.sql.looks.documents import ValueLook
from vitehub_chat.state.sql.looks.locks import LineLook
from vitehub_chat.state.sql.looks.look import Asking, Look, Miss
from vitehub_chat.state.sql.looks.rows import MessagesLook
from vitehub_chat.state.sql.numbers import Numbers
from vitehub_chat.state.sql.retrying import Retrying
from vitehub_chat.state.sql.scratch.tables import Scratch
from vitehub_chat.state.sql.scratch.work import Work
from vitehub_chat.state.sql.sizes import check_sizes
from vitehub_chat.state.sql.texts import Texts
from vitehub_chat.state.sql.writing import Batch, changes_of, make_batch
from vitehub_chat.state.tables import Transaction

T = TypeVar("T")

_TEXTS: Final = {
    "failures": "the state did not answer",
    "conflicts": "others kept changing the same conversation",
    "looks": "the state kept changing while it was read",
}


@attrs.frozen(kw_only=True)
class Workshop:
    """What every attempt works with.

    Attributes:
        driver: The database.
        clock: The time.
        texts: The statements.
        secret: The key of the store's cursors.
        loader: What fetches.
        cache: What was written last.
        numbers: Numbers for what is created.
        retrying: How often to try.
        is_searched: Whether the texts of rows are kept for search.
    """

    driver: SqlDriver
    clock: Clock
    texts: Texts
    secret: bytes
    loader: Loader
    cache: Cache
    numbers: Numbers
    retrying: Retrying
    is_searched: bool = True


@attrs.frozen
class Draft(Generic[T]):
    """What came of one run of a step: an answer or an error, and what it would write."""

    work: Work
    answer: T | None
    error: Exception | None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write."""
        work = self.work
        return self.error is not None or not (
            work.removals or work.released_runs or changes_of(work)
        )

    def result(self) -> T:
        """Return the answer, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.answer  # type: ignore[return-value]  # the step's own, None included


@attrs.frozen
class _Sent(Generic[T]):
    """A write that was sent and may have happened.

    Attributes:
        is_open: Whether it may still happen.
    """

    draft: Draft[T]
    batch: Batch
    is_open: bool


class Attempts(Generic[T]):
    """One step that writes, run until it is settled what became of it."""

    def __init__(self, shop: Workshop, step: Callable[[Transaction], T], needs: Needs) -> None:
        self._shop = shop
        self._step = step
        self._needs = needs
        self._looks: dict[Look, None] = {}
        self._sent: list[_Sent[T]] = []
        self._counts = {"failures": 0, "conflicts": 0, "looks": 0}

    async def settle(self) -> T:
        """Return the answer of the step once its write has happened.

        Raises:
            StateUnavailableError: There was no answer, or others were faster every time.
            Exception: What the step raised; nothing was written.
        """
        likely = likely_names(self._needs)
        known = self._shop.cache.find(self._needs, likely)
        while True:
            if known is None:
                known = await self._load()
            done = next((each for each in self._sent if each.batch.nonce in known.written), None)
            if done is not None:
                return done.draft.result()
            self._sent = [each for each in self._sent if each.is_open]
            is_fresh = known.is_fresh
            draft = self._run(known)
            known = None
            if draft is None or (draft.is_idle and not is_fresh):
                continue
            if draft.is_idle and draft.work.assumed:
                # Nothing will be sent that would find out whether it was told the truth.
                self._count("looks")
                self._looks.update(dict.fromkeys(draft.work.assumed))
                continue
            is_settled = draft.is_idle and not self._open_scopes()
            if is_settled or await self._send(draft):
                return draft.result()

    def _run(self, known: Known) -> Draft[T] | None:
        """Run the step; None if it needs to know more."""
        work = Work(
            known=known,
            now=self._needs.now,
            numbers=self._shop.numbers,
            likely=frozenset() if known.is_fresh else likely_names(self._needs),
        )
        try:
            answer = self._step(Scratch(work, self._shop.secret))
        except Miss as miss:
            self._count("looks")
            self._looks[miss.look] = None
            return None
        except Exception as error:  # noqa: BLE001 - raised to the caller once it is sure to be right
            return Draft(work, None, error)
        return Draft(work, answer, None)

    async def _load(self) -> Known:
        """Fetch everything that is needed, and what became of the writes that were sent."""
        shop, needs = self._shop, self._needs
        guessed = looks_for(needs, shop.secret, shop.numbers)
        looks: dict[Look, None] = {**dict.fromkeys(guessed), **self._looks}
        for sent in self._sent:
            looks[WriteLook(sent.batch.at, sent.batch.nonce)] = None
        looks.update(dict.fromkeys(map(RevisionLook, self._open_scopes())))
        try:
            return await shop.loader.load(looks, Asking(shop.texts, needs.now))
        except StateUnavailableError as error:
            raise self._unavailable() from error

    async def _send(self, draft: Draft[T]) -> bool:
        """Send the write of a run and tell whether it happened; if not, all is to be tried anew."""
        shop, work = self._shop, draft.work
        if draft.error is not None:
            work = Work(known=Known(), now=work.now, numbers=work.numbers)
        batch = make_batch(
            shop.texts,
            work,
            at=to_epoch_us(shop.clock.now()),
            nonce=new_id(),
            fenced={scope: draft.work.known.revisions[scope] for scope in self._open_scopes()},
            is_searched=shop.is_searched,
        )
        try:
            check_sizes(batch.statements, shop.driver.capabilities.max_value_bytes)
            await shop.driver.batch(batch.statements)
        except StateConflictError as error:
            await self._was_refused(draft, batch, error)
            return False
        except StateUnavailableError as error:
            await self._was_unanswered(draft, batch, error)
            return False
        if draft.error is None and not work.removals:
            shop.cache.keep(work, batch.revisions)
        else:
            shop.cache.drop(draft.work)
        return True

    async def _was_refused(self, draft: Draft[T], batch: Batch, error: StateConflictError) -> None:
        # A driver that repeats a request is refused by the first one if that went through.
        self._sent.append(_Sent(draft, batch, is_open=False))
        self._forget(draft.work)
        self._count("conflicts", error)
        await self._shop.retrying.after_conflict(self._counts["conflicts"])

    async def _was_unanswered(
        self, draft: Draft[T], batch: Batch, error: StateUnavailableError
    ) -> None:
        self._forget(draft.work)
        if error.outcome == "unknown":
            self._sent.append(_Sent(draft, batch, is_open=True))
        elif not error.retryable:
            raise error
        self._count("failures", error)
        await self._shop.retrying.after_failure(self._counts["failures"])

    def _forget(self, work: Work) -> None:
        """Take nothing for granted that a write relied on, and fetch all of it the next time."""
        self._shop.cache.drop(work)
        self._looks.update(dict.fromkeys(_looks_of(work)))

    def _open_scopes(self) -> frozenset[str]:
        """Return what unanswered writes rely on: raising it keeps them from happening later."""
        return frozenset(
            scope for sent in self._sent if sent.is_open for scope in sent.draft.work.scopes
        )

    def _count(self, what: str, error: Exception | None = None) -> None:
        self._counts[what] += 1
        if self._counts[what] < getattr(self._shop.retrying, what):
            return
        raise self._unavailable(what) from error

    def _unavailable(self, what: str = "failures") -> StateUnavailableError:
        is_unknown = any(sent.is_open for sent in self._sent)
        return StateUnavailableError(
            _TEXTS[what], outcome="unknown" if is_unknown else "not_written"
        )


def _looks_of(work: Work) -> list[Look]:
    """Return what to look up to know what a step relied on."""
    looks: list[Look] = [*work.assumed, *map(_look_of, work.scopes)]
    looks.extend(map(NewestLook, work.newest))
    looks.extend(LineLook(claim_key=claim_key) for claim_key in work.free_claims)
    by_place: dict[str, list[str]] = {}
    for (_, message_id), encoded in work.free_messages.items():
        by_place.setdefault(encoded, []).append(message_id)
    looks.extend(MessagesLook(encoded, tuple(ids)) for encoded, ids in by_place.items())
    return looks


def _look_of(scope: str) -> Look:
    kind, _, key = scope.partition(":")
    if kind == "lock":
        return LineLook(lock_key=key)
    if kind == "value":
        home, name = decode_key(key)
        return ValueLook(home or "", name or "")
    return ConversationLook(key) if kind == "conversation" else RevisionLook(scope)
