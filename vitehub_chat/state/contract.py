"""The Agent State contract: what every provider offers, as small Protocols.

Every method takes its subject positionally and everything else by keyword, among it `ctx`. Every
write is one short transaction: all of it or nothing, also when the awaiting task is cancelled at
any moment; a write that has begun is not undone by cancelling who waits for it. A write whose
`ctx` carries a fence is refused with `StateConflictError` (`lock_lost`) unless that lock is held
under that token and its lease is not over.

A call has one time, that of `ctx` or else that at which it was made, however long it waits to be
run: what has expired by then is not there, and a lease that it begins, extends or relies on counts
from then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, Self

from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.model.rows import Row, SessionInfo, SessionPage
from vitehub_chat.state.context import NO_CONTEXT, Fence, StateContext
from vitehub_chat.state.contract_admin import Admin
from vitehub_chat.state.contract_documents import KeyValue, PlanStore, SummaryStore
from vitehub_chat.state.contract_search import SearchIndex, SearchRequest
from vitehub_chat.state.contract_transcripts import TranscriptStore
from vitehub_chat.state.row_requests import PruneRequest
from vitehub_chat.state.values import (
    Admission,
    Finished,
    Grant,
    NewEntry,
    NewRow,
    Outcome,
    Recorded,
    SessionRef,
    SessionRequest,
    TurnEnd,
    WindowRequest,
    Withdrawal,
)

__all__ = [
    "NO_CONTEXT",
    "AgentState",
    "Fence",
    "KeyValue",
    "PlanStore",
    "SearchIndex",
    "SearchRequest",
    "SessionStore",
    "StateContext",
    "SummaryStore",
    "TranscriptStore",
    "TurnStore",
]


class TurnStore(Protocol):
    """The steps of a turn. Each is atomic; together they lose, double and strand no message."""

    async def admit(
        self,
        entry: NewEntry,
        /,
        *,
        policy: ConcurrencyPolicy,
        lease: timedelta,
        dedupe_ttl: timedelta,
        ctx: StateContext = NO_CONTEXT,
    ) -> Admission:
        """Accept a message, refuse it, or recognise it as a repeat.

        With `debounce` a message waits although its lock is free, until its line has settled.

        Looks up the claim; a repeat changes nothing, unless its turn died unrecorded or its holder
        is gone, which hands the claim to this entry. A lock that is free, or whose lease is over,
        is taken; when others wait before this one, the head of the queue is granted instead. Else
        the entry waits, or is refused by the policy. The claim is written in the same step.
        """

    async def take(
        self, lock_key: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Grant | None:
        """Take a free lock for whoever waits longest.

        None if it is held, nobody waits, or those who wait are still settling.
        """

    async def quarantine(
        self,
        ticket_ids: Sequence[str],
        /,
        *,
        owner: str,
        lease: timedelta,
        ctx: StateContext,
    ) -> Grant | None:
        """End entries of the run under `ctx.fence` that cannot be read; return what runs next.

        They end as `dropped` (`unreadable`), without their claims. The others of the run wait
        again at their places, and the lock passes on in the same step.
        """

    async def sweep(
        self, agent: str | None, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Sequence[Grant]:
        """Take the free locks of an agent's lines for whoever waits longest, each in a step.

        Those are the lines of dead holders, and those that settled while nobody waited. What runs
        or settles is not touched. A lease counts from the step that takes its lock. Also forgets
        some of what need not be kept any more.
        """

    async def record(
        self,
        ticket_id: str,
        /,
        *,
        rows: Sequence[NewRow],
        session: SessionRequest | None,
        window: WindowRequest | None = None,
        replaces: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> Recorded:
        """Turn the messages of a granted run into rows, resolve its session, read its window.

        The rows get consecutive numbers in the order given; one whose id is stored already
        replaces that row and keeps its number. The entries of the run leave the queue. With
        `session` None nothing is stored and only the entries leave the queue. With `replaces` the
        session is that of the stored message of this id, and is cut off from it on before: one
        step, like a truncation and an append, with the same care for the summary.

        Raises:
            NotFoundError: There is no message to replace; nothing was written.
            ChatBusyError: Another turn of its session runs (`turn_in_progress`).
        """

    async def progress(self, ticket_id: str, /, *, answer: NewRow, ctx: StateContext) -> Row:
        """Write the answer so far with status `pending`; repeating replaces it."""

    async def finish(
        self,
        ticket_id: str,
        /,
        *,
        answer: NewRow | None,
        end: TurnEnd,
        owner: str,
        lease: timedelta,
        plan: TurnPlan | None = None,
        prune: PruneRequest | None = None,
        ctx: StateContext,
    ) -> Finished:
        """Write the answer and the plan, end every entry of the run, and pass the lock on.

        With `prune` its conversation is pruned in the same transaction; what fails of that is told
        in the answer, and fails nothing else.

        The lock goes only if nothing waits, else the next run is granted in the same step, so that
        no interleaving with `admit` leaves an entry that nobody drains. It also goes while those
        who wait are settling, and, where `owner` is empty, if nobody is known to wait for them:
        then `take` or `sweep` goes on.
        """

    async def running(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Tell whether a turn of a session waits or runs; without `session_id`, any here."""

    async def outcome(self, ticket_id: str, /, *, ctx: StateContext = NO_CONTEXT) -> Outcome:
        """Tell how far an accepted entry is; it is kept as long as a claim.

        Raises:
            StateError: How it ended cannot be read (`corrupt`).
        """

    async def renew(
        self, ticket_id: str, /, *, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> bool:
        """Extend the lease of a run under `ctx.fence`, or the attendance of a waiting entry.

        False if it was lost or ended; a lease that is over is never revived.
        """

    async def withdraw(
        self, ticket_id: str, /, *, owner: str, lease: timedelta, ctx: StateContext = NO_CONTEXT
    ) -> Withdrawal:
        """Take an entry back that is not recorded yet, with its claim; its lock passes on.

        No-op for one that is recorded, ended or unknown.
        """


class SessionStore(Protocol):
    """Where conversations start and end."""

    async def resolve(
        self, session: SessionRequest, /, *, ctx: StateContext = NO_CONTEXT
    ) -> SessionRef:
        """Answer which session a turn would get, and write nothing."""

    async def list(
        self,
        tenant: str | None,
        /,
        *,
        agent: str | None,
        user_key: str | None = None,
        conversation: ConversationKey | None = None,
        limit: int = 20,
        cursor: str | None = None,
        updated_since: datetime | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionPage:
        """Return sessions by newest activity; without `user_key` those of every owner."""

    async def get(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionInfo:
        """Return one session.

        Raises:
            NotFoundError: There is none of that id in this conversation.
        """

    async def rename(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None,
        title: str | None,
        ctx: StateContext = NO_CONTEXT,
    ) -> SessionInfo:
        """Set the title of a session, None for none; its activity stays.

        Raises:
            NotFoundError: There is none of that id in this conversation.
        """

    async def clear(
        self,
        key: ConversationKey,
        /,
        *,
        session_id: str | None = None,
        delete_session: bool = False,
        ctx: StateContext = NO_CONTEXT,
    ) -> Mapping[str, int]:
        """Delete rows, summaries, waiting entries and claims; return counts per store.

        Without `session_id` the whole conversation. The numbers and the generation survive, so
        that nothing old can match anything new. Repeated: zeros.

        Raises:
            ChatBusyError: A turn runs here (`turn_in_progress`); nothing was deleted.
        """


class AgentState(Protocol):
    """One opened provider, safe for many tasks and several event loops.

    `async with state` opens it; opening again while open is a no-op. Use before that or after
    `aclose()` raises `StateClosedError`.
    """

    @property
    def features(self) -> frozenset[str]:
        """The optional powers it has, such as `durable`, `shared`, `group_commit`."""

    @property
    def clock(self) -> Clock:
        """Where its times come from; turns that are kept in it take theirs from there, too."""

    @property
    def turns(self) -> TurnStore:
        """The steps of a turn."""

    @property
    def transcripts(self) -> TranscriptStore:
        """Stored messages."""

    @property
    def sessions(self) -> SessionStore:
        """Sessions."""

    @property
    def summaries(self) -> SummaryStore:
        """Summaries."""

    @property
    def plans(self) -> PlanStore:
        """What each turn gave to the model."""

    @property
    def search(self) -> SearchIndex | None:
        """Search over stored messages; None without the feature `search`."""

    @property
    def values(self) -> KeyValue:
        """Values of keys."""

    @property
    def admin(self) -> Admin:
        """Looking after the store."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def aclose(self) -> None:
        """Close it; repeating does nothing."""
