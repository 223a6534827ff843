"""Policies: what `chat()` was told, checked and in the units of the inside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Final, Literal

import attrs

from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.estimates import EstimatorChoice
from vitehub_chat.model.memory_policy import MemoryPolicy

WindowSource = Literal["thread", "transcript"]
SessionStrategy = Literal["manual", "idle-timeout", "hybrid"]
ConcurrencyStrategy = Literal["serial", "queue", "parallel", "drop", "reject", "debounce"]
QueueFullPolicy = Literal["drop-oldest", "drop-newest", "reject"]
LockScope = Literal["thread", "channel", "agent", "session"]
Retention = timedelta | Literal["forever"] | None


class _Unset(Enum):
    UNSET = "unset"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset.UNSET
"""Stands for an option that was not given, where None is a value."""

Unset = Literal[_Unset.UNSET]


@attrs.frozen(kw_only=True)
class HistoryWindow:
    """Which earlier messages one call may see (`trigger_history`).

    Attributes:
        source: `thread`: the caller's array. `transcript`: the stored rows.
        max_messages: How many at most, the current one included.
        max_age: How much older than the current message at most; None is no limit.
    """

    source: WindowSource
    max_messages: int
    max_age: timedelta | None = None


@attrs.frozen(kw_only=True)
class SessionPolicy:
    """Where one conversation starts and ends (`sessions`).

    Attributes:
        strategy: `manual`: by id. `idle-timeout`: by silence. `hybrid`: both.
        idle_timeout: Silence strictly longer than this ends a session; None for `manual`.
        metadata_key: The first place in a message's metadata where its session id is looked for.
    """

    strategy: SessionStrategy = "manual"
    idle_timeout: timedelta | None = None
    metadata_key: str | None = None


@attrs.frozen(kw_only=True)
class ConcurrencyPolicy:
    """What happens when a message meets a running turn (`concurrency`).

    Attributes:
        strategy: The strategy.
        max_queue_size: How many may wait per lock key; None is no limit.
        on_queue_full: Who goes when it is full.
        queue_entry_ttl: How long an entry may wait; None is no limit.
        debounce: How long without a new message before a `debounce` run.
        max_concurrent: How many `parallel` turns per lock key; None is no limit.
        wait_timeout: How long a caller waits to be run; None is no limit.
        max_lock_lifetime: How long one turn may hold its lock.
    """

    strategy: ConcurrencyStrategy = "serial"
    max_queue_size: int | None = None
    on_queue_full: QueueFullPolicy = "reject"
    queue_entry_ttl: timedelta | None = None
    debounce: timedelta = timedelta(milliseconds=1500)
    max_concurrent: int | None = None
    wait_timeout: timedelta | None = None
    max_lock_lifetime: timedelta = timedelta(milliseconds=600_000)

    @property
    def coalesces(self) -> bool:
        """Whether messages that wait together are run together."""
        return self.strategy in {"queue", "debounce"}

    @property
    def waits(self) -> bool:
        """Whether a message that meets a running turn waits for it."""
        return self.strategy in {"serial", "queue", "debounce"}


def _count_or_off(value: int | None) -> int | None:
    return value or None


def _age_or_off(value: timedelta | None) -> timedelta | None:
    return value or None


@attrs.frozen(kw_only=True)
class PrunePolicy:
    """Which stored rows are removed (`transcripts.prune`); None and 0 switch a rule off.

    Attributes:
        enabled: Whether anything is removed.
        mode: `delete` removes rows for good, `hide` makes them invisible.
        max_age: How old a row may be.
        max_messages: How many rows are kept, system messages aside.
        max_tokens: How much is kept, in the unit of the estimator.
        preserve_system: Whether system messages always stay.
        estimator: What counts, as chosen.
        message_overhead: What each message costs on top of its content.
    """

    enabled: bool = True
    mode: Literal["delete", "hide"] = "delete"
    max_age: timedelta | None = attrs.field(default=timedelta(hours=720), converter=_age_or_off)
    max_messages: int | None = attrs.field(default=50, converter=_count_or_off)
    max_tokens: int | None = attrs.field(default=32_000, converter=_count_or_off)
    preserve_system: bool = True
    estimator: EstimatorChoice = "chars4"
    message_overhead: int = 0


@attrs.frozen(kw_only=True)
class ThreadHistory:
    """Bounds of the cache and the backfill of a channel (`thread_history`)."""

    max_messages: int = 100
    ttl: timedelta = timedelta(milliseconds=604_800_000)


@attrs.frozen(kw_only=True)
class ReplyPolicy:
    """How a channel shows the answer.

    Attributes:
        stream: Whether a reply is edited while it grows.
        update_interval: How often at most.
        delivery: `manual`: nothing is posted by itself.
        loading: Text that is posted first, or None.
        placeholder: The placeholder as given: UNSET, None, text, a sequence of text, a callable.
        error_text: The error text as given: UNSET, None, text, a callable.
    """

    stream: bool = False
    update_interval: timedelta = timedelta(milliseconds=500)
    delivery: Literal["automatic", "manual"] = "automatic"
    loading: str | None = None
    placeholder: Any = UNSET
    error_text: Any = UNSET


@attrs.frozen(kw_only=True)
class LockScopeQuestion:
    """What a callable `lock_scope` is asked about."""

    agent: str
    tenant: str | None
    channel: str | None
    thread: str | None
    session_id: str | None
    is_dm: bool = False


LockScopeChoice = LockScope | Callable[[LockScopeQuestion], LockScope | Awaitable[LockScope]]
Identity = Callable[[Mapping[str, Any]], str | Awaitable[str | None] | None]
MessageFilter = Callable[[Any, Mapping[str, Any]], bool | Awaitable[bool]]


@attrs.frozen(kw_only=True)
class ChatPolicy:
    """Everything one `chat()` decides.

    Attributes:
        window: What one call may see; None is the current message alone.
        sessions: Where conversations start and end; None is off.
        concurrency: What happens when messages meet.
        lock_scope: What shares a lock; None is the channel's own, else `thread`.
        dedupe_ttl: How long a repeated id is answered from the record.
        thread_history: Bounds of a channel's cache.
        identity: Gives the user key of a message, or None for the default.
        filter: Whether a message starts a turn, or None for every one.
        timeout: How long a driver may take; None is no limit.
        search_tools: Whether the agent gets tools that search past conversations.
        reply: How a channel shows the answer.
        retention: How long stored rows live; UNSET leaves it to the state.
        context: How history that does not fit the model is condensed; None is off.
        prune: Which stored rows are removed, or None.
        memory: Where messages are archived before they are condensed; None is off.
    """

    window: HistoryWindow | None = None
    sessions: SessionPolicy | None = None
    concurrency: ConcurrencyPolicy = ConcurrencyPolicy()
    lock_scope: LockScopeChoice | None = None
    dedupe_ttl: timedelta = timedelta(milliseconds=600_000)
    thread_history: ThreadHistory = ThreadHistory()
    identity: Identity | None = None
    filter: MessageFilter | None = None
    timeout: timedelta | None = None
    search_tools: bool = False
    reply: ReplyPolicy = ReplyPolicy()
    retention: Retention | Unset = UNSET
    context: ContextPolicy | None = None
    prune: PrunePolicy | None = None
    memory: MemoryPolicy | None = None
