"""Typed options: what editors and type checkers know about `chat(**options)`, in both spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

from vitehub_chat.config import context_options, prune_options
from vitehub_chat.model.policies import (
    ConcurrencyStrategy,
    Identity,
    LockScopeChoice,
    MessageFilter,
    QueueFullPolicy,
    SessionStrategy,
    WindowSource,
)


class TriggerHistoryOptions(TypedDict, total=False):
    """Options of `trigger_history`."""

    source: WindowSource
    max_messages: int
    maxMessages: int
    max_age_ms: int | None
    maxAgeMs: int | None


class SessionsOptions(TypedDict, total=False):
    """Options of `sessions`."""

    strategy: SessionStrategy | None
    idle_timeout_ms: int | None
    idleTimeoutMs: int | None
    metadata_key: str | None
    metadataKey: str | None


class ConcurrencyOptions(TypedDict, total=False):
    """Options of `concurrency`."""

    strategy: ConcurrencyStrategy
    max_queue_size: int | None
    maxQueueSize: int | None
    on_queue_full: QueueFullPolicy | None
    onQueueFull: QueueFullPolicy | None
    queue_entry_ttl_ms: int | None
    queueEntryTtlMs: int | None
    debounce_ms: int | None
    debounceMs: int | None
    max_concurrent: int | None
    maxConcurrent: int | None
    wait_timeout_ms: int | None
    waitTimeoutMs: int | None
    max_lock_lifetime_ms: int | None
    maxLockLifetimeMs: int | None


class ThreadHistoryOptions(TypedDict, total=False):
    """Options of `thread_history`."""

    max_messages: int | None
    maxMessages: int | None
    ttl_ms: int | None
    ttlMs: int | None


class LoadingOptions(TypedDict):
    """Options of `loading`."""

    text: str


class PruneOptions(TypedDict, total=False):
    """Options of `transcripts.prune`."""

    enabled: bool | None
    mode: Literal["delete", "hide"] | None
    max_age_hours: float | None
    maxAgeHours: float | None
    max_messages: int | None
    maxMessages: int | None
    max_tokens: int | None
    maxTokens: int | None
    preserve_system: bool | None
    preserveSystem: bool | None
    estimator: Any
    message_overhead: int | None
    messageOverhead: int | None


class TranscriptsOptions(TypedDict, total=False):
    """Options of `transcripts`."""

    retention: str | int | None
    prune: bool | PruneOptions | prune_options.PruneOptions | None


class ContextOptions(TypedDict, total=False):
    """Options of `context`."""

    estimator: Any
    window_tokens: int | None
    windowTokens: int | None
    reserve_output_tokens: int | None
    reserveOutputTokens: int | None
    runes_per_token: float | None
    runesPerToken: float | None
    limit: int | None
    trigger_ratio: float | None
    triggerRatio: float | None
    target_ratio: float | None
    targetRatio: float | None
    hard_cap: int | None
    hardCap: int | None
    batch_messages: int | None
    batchMessages: int | None
    max_loops: int | None
    maxLoops: int | None
    min_verbatim: int | None
    minVerbatim: int | None
    summary_max: int | None
    summaryMax: int | None
    message_overhead: int | None
    messageOverhead: int | None
    frame_overhead: int | None
    frameOverhead: int | None
    retries: int | None
    summarizer_timeout_ms: int | None
    summarizerTimeoutMs: int | None
    turn_deadline_ms: int | None
    turnDeadlineMs: int | None
    failure_alarm: int | None
    failureAlarm: int | None
    checkpoints_kept: int | None
    checkpointsKept: int | None
    summary_placement: Literal["system", "user"] | None
    summaryPlacement: Literal["system", "user"] | None
    wrap_current: bool | None
    wrapCurrent: bool | None
    summarizer: str | Callable[..., Any] | None


class MemoryOptions(TypedDict, total=False):
    """Options of `memory`."""

    root: Any
    sink: Any
    daily_note: bool | None
    dailyNote: bool | None
    extract: bool | None
    memory_auto_extract: bool | None
    memoryAutoExtract: bool | None
    append_every_turn: bool | None
    appendEveryTurn: bool | None
    memory_auto_append: bool | None
    memoryAutoAppend: bool | None
    on_error: Literal["continue", "block"] | None
    onError: Literal["continue", "block"] | None
    timezone: str | None
    note_timeout_ms: int | None
    noteTimeoutMs: int | None
    extract_timeout_ms: int | None
    extractTimeoutMs: int | None


Placeholder = str | Sequence[str] | Callable[..., Any] | None
ErrorText = str | Callable[..., Any] | None


class ChatOptions(TypedDict, total=False):
    """Every option of `chat()`; one spelling of each at a time."""

    trigger_history: Literal["none"] | TriggerHistoryOptions | None
    triggerHistory: Literal["none"] | TriggerHistoryOptions | None
    sessions: bool | SessionsOptions | None
    concurrency: ConcurrencyStrategy | ConcurrencyOptions | None
    lock_scope: LockScopeChoice | None
    lockScope: LockScopeChoice | None
    dedupe_ttl_ms: int | None
    dedupeTtlMs: int | None
    thread_history: ThreadHistoryOptions | None
    threadHistory: ThreadHistoryOptions | None
    identity: Identity | None
    filter: MessageFilter | None
    search_tools: bool | None
    searchTools: bool | None
    timeout_ms: int | None
    timeoutMs: int | None
    stream: bool | None
    streaming_update_interval_ms: int | None
    streamingUpdateIntervalMs: int | None
    delivery: Literal["automatic", "manual"] | None
    loading: LoadingOptions | None
    fallback_streaming_placeholder_text: Placeholder
    fallbackStreamingPlaceholderText: Placeholder
    error_fallback_text: ErrorText
    errorFallbackText: ErrorText
    transcripts: TranscriptsOptions | None
    memory: MemoryOptions | None
    context: bool | ContextOptions | context_options.ContextOptions | None
