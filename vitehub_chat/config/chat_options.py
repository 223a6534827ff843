"""Chat options: from what was given to `chat()` to the policy that it means."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import attrs

from vitehub_chat.config.chat_model import (
    ChatModel,
    ConcurrencyModel,
    SessionsModel,
    ThreadHistoryModel,
    TriggerHistoryModel,
)
from vitehub_chat.config.context_model import ContextModel
from vitehub_chat.config.context_options import ContextOptions, find_context, lower_context
from vitehub_chat.config.durations import count, optional_term, span, term
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.memory_options import lower_memory
from vitehub_chat.config.prune_lowering import lower_prune
from vitehub_chat.config.transcripts_model import retention_ms
from vitehub_chat.errors import ConfigError, ConfigOverrideWarning
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.policies import (
    UNSET,
    ChatPolicy,
    ConcurrencyPolicy,
    ConcurrencyStrategy,
    HistoryWindow,
    ReplyPolicy,
    Retention,
    SessionPolicy,
    ThreadHistory,
    Unset,
)

_QUEUEING = frozenset({"serial", "queue", "debounce"})
_USED_BY: Mapping[str, frozenset[str]] = {
    "max_queue_size": _QUEUEING,
    "on_queue_full": _QUEUEING,
    "queue_entry_ttl_ms": _QUEUEING,
    "debounce_ms": frozenset({"debounce"}),
    "max_concurrent": frozenset({"parallel"}),
    "wait_timeout_ms": _QUEUEING | {"parallel"},
}
"""The strategies that use an option; every strategy uses the others."""

_DEFAULTS = ChatPolicy()
_COALESCING = ConcurrencyPolicy(
    max_queue_size=10, on_queue_full="drop-oldest", queue_entry_ttl=span(90_000)
)


def lower_chat_options(options: Mapping[str, object], /, *, stacklevel: int = 3) -> ChatPolicy:
    """Return the policy that the options of one `chat()` mean.

    Args:
        options: The options by name, in either spelling.
        stacklevel: Whose line a warning names; by default that of the caller's caller.

    Raises:
        ConfigError: The first option that is wrong, with its path.

    Warns:
        ConfigOverrideWarning: An option that was given has no effect beside another one.
    """
    given = read_options(ChatModel, options)
    is_file = isinstance(options.get("context"), ContextOptions)
    policy = attrs.evolve(_policy_of(given), context=_lower_context(given, is_file=is_file))
    for text in _without_effect(given):
        warnings.warn(text, ConfigOverrideWarning, stacklevel=stacklevel)
    return policy


def lower_window(given: TriggerHistoryModel) -> HistoryWindow:
    """Return the window that `trigger_history` means."""
    return HistoryWindow(
        source=given.source,
        max_messages=count(given.max_messages),
        max_age=None if given.max_age_ms is None else span(given.max_age_ms),
    )


def _policy_of(given: ChatModel) -> ChatPolicy:
    concurrency, sessions = _concurrency_of(given), _sessions_of(given)
    window = given.trigger_history
    return ChatPolicy(
        window=lower_window(window) if isinstance(window, TriggerHistoryModel) else None,
        sessions=None if sessions is None else _lower_sessions(sessions),
        concurrency=ConcurrencyPolicy() if concurrency is None else _lower_concurrency(concurrency),
        lock_scope=given.lock_scope,
        dedupe_ttl=optional_term(given.dedupe_ttl_ms) or _DEFAULTS.dedupe_ttl,
        thread_history=_lower_thread_history(given.thread_history),
        identity=given.identity,
        filter=given.filter,
        timeout=optional_term(given.timeout_ms),
        search_tools=bool(given.search_tools),
        reply=_lower_reply(given),
        retention=_lower_retention(given),
        prune=lower_prune(given.transcripts),
        memory=lower_memory(given.memory),
    )


def _sessions_of(given: ChatModel) -> SessionsModel | None:
    return given.sessions if isinstance(given.sessions, SessionsModel) else None


def _concurrency_of(given: ChatModel) -> ConcurrencyModel | None:
    return given.concurrency if isinstance(given.concurrency, ConcurrencyModel) else None


def _lower_sessions(given: SessionsModel) -> SessionPolicy:
    timeout_ms = given.idle_timeout_ms or None
    strategy = given.strategy or ("idle-timeout" if timeout_ms else "manual")
    if strategy == "manual":
        return SessionPolicy(strategy=strategy, metadata_key=given.metadata_key)
    if timeout_ms is None:
        problem = f"is required by the strategy {strategy!r}: an integer >= 1"
        raise ConfigError(problem, path="sessions.idle_timeout_ms", hint="0 is unset")
    return SessionPolicy(
        strategy=strategy, idle_timeout=span(timeout_ms), metadata_key=given.metadata_key
    )


def _lower_concurrency(given: ConcurrencyModel) -> ConcurrencyPolicy:
    policy = ConcurrencyPolicy() if given.strategy == "serial" else _COALESCING
    changes: dict[str, Any] = {
        "max_queue_size": given.max_queue_size and count(given.max_queue_size),
        "on_queue_full": given.on_queue_full,
        "queue_entry_ttl_ms": optional_term(given.queue_entry_ttl_ms),
        "debounce_ms": optional_term(given.debounce_ms),
        "max_concurrent": given.max_concurrent and count(given.max_concurrent),
        "wait_timeout_ms": optional_term(given.wait_timeout_ms),
        "max_lock_lifetime_ms": optional_term(given.max_lock_lifetime_ms),
    }
    used = {
        option.removesuffix("_ms"): value
        for option, value in changes.items()
        if value is not None and _uses(given.strategy, option)
    }
    return attrs.evolve(policy, strategy=given.strategy, **used)


def _uses(strategy: ConcurrencyStrategy, option: str) -> bool:
    return option not in _USED_BY or strategy in _USED_BY[option]


def _lower_thread_history(given: ThreadHistoryModel | None) -> ThreadHistory:
    default = _DEFAULTS.thread_history
    if given is None:
        return default
    return ThreadHistory(
        max_messages=count(given.max_messages or default.max_messages),
        ttl=optional_term(given.ttl_ms) or default.ttl,
    )


def _lower_reply(given: ChatModel) -> ReplyPolicy:
    if given.stream and given.loading is not None:
        raise ConfigError(
            "cannot be True beside 'loading', which posts the answer whole",
            path="stream",
            hint="leave one of them out",
        )
    if given.stream and given.delivery == "manual":
        raise ConfigError(
            "cannot be True beside delivery='manual', which posts nothing",
            path="stream",
            hint="leave one of them out",
        )
    placeholder = _given(given, "fallback_streaming_placeholder_text")
    return ReplyPolicy(
        stream=bool(given.stream),
        update_interval=optional_term(given.streaming_update_interval_ms)
        or _DEFAULTS.reply.update_interval,
        delivery=given.delivery or "automatic",
        loading=None if given.loading is None else given.loading.text,
        placeholder=tuple(placeholder) if isinstance(placeholder, list) else placeholder,
        error_text=_given(given, "error_fallback_text"),
    )


def _given(given: ChatModel, option: str) -> Any:
    return getattr(given, option) if option in given.model_fields_set else UNSET


def _lower_retention(given: ChatModel) -> Retention | Unset:
    value = None if given.transcripts is None else given.transcripts.retention
    if value is None:
        return UNSET
    milliseconds = retention_ms(value)
    return "forever" if milliseconds is None else term(milliseconds)


def _lower_context(given: ChatModel, *, is_file: bool) -> ContextPolicy | None:
    if not isinstance(given.context, ContextModel):
        return None
    return lower_context(find_context(given.context, os.environ, is_file=is_file))


def _without_effect(given: ChatModel) -> list[str]:
    texts = []
    window = given.trigger_history
    reads_rows = isinstance(window, TriggerHistoryModel) and window.source == "transcript"
    if isinstance(given.context, ContextModel) and not reads_rows:
        texts.append(
            "context condenses nothing without trigger_history.source='transcript';"
            " what does not fit is left out of the call"
        )
    memory = lower_memory(given.memory)
    is_rolling = isinstance(given.context, ContextModel)
    archives = is_rolling or lower_prune(given.transcripts) is not None
    if memory is not None and not archives and not memory.append_every_turn:
        texts.append(
            "memory archives nothing without context, transcripts.prune or memory.append_every_turn"
        )
    sessions, concurrency = _sessions_of(given), _concurrency_of(given)
    if sessions is not None and sessions.strategy == "manual" and sessions.idle_timeout_ms:
        texts.append("sessions.idle_timeout_ms has no effect beside strategy='manual'")
    if concurrency is not None:
        strategy = concurrency.strategy
        texts += [
            f"concurrency.{option} has no effect beside strategy={strategy!r}"
            for option in _USED_BY
            if getattr(concurrency, option) is not None and not _uses(strategy, option)
        ]
    return texts
