"""Logging events: what happened, told to the application's log through the standard library.

The only module that logs; what of it is a measure is told to who observes, too. Every event is a
record of the logger `vitehub_chat.conversation`, its message is the event's name, its facts are
attributes of the record. Facts are counts, ids and durations, never the text of a message. Context
variables of structlog are added to them.

Without logging set up nothing is printed; structlog's own configuration is neither used nor
changed, and structlog is imported with the first event that somebody listens to.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from vitehub_chat.model import observing
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.results import SelectionEntry

if TYPE_CHECKING:
    from structlog import stdlib

LAYER = "conversation"

_logger = logging.getLogger(f"vitehub_chat.{LAYER}")
_MAX_TEXT = 2100  # an encoded key of four ids is below
_RESERVED = (vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}) - {
    "exc_info",
    "stack_info",
}

logging.getLogger("vitehub_chat").addHandler(logging.NullHandler())


class Ids(TypedDict, total=False):
    """What an event is about, as far as it is known; None is left out."""

    key: ConversationKey | None
    session_id: str | None
    turn_id: str | None
    run_id: str | None
    message_id: str | None


def history_selected(entries: Iterable[SelectionEntry], **ids: Unpack[Ids]) -> None:
    """Tell how many messages a call sees, and how many were cut, by reason."""
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    counts = Counter((entry.kept, entry.reason) for entry in entries)
    cut = {reason: count for (kept, reason), count in sorted(counts.items()) if not kept}
    total = counts.total()
    _emit("debug", "history.selected", ids, kept=total - sum(cut.values()), cut=cut)


def turn_started(*, messages: int, **ids: Unpack[Ids]) -> None:
    """Tell that a driver is called, and with how many messages."""
    _emit("debug", "turn.started", ids, messages=messages)


def lock_contended(*, scope: str, strategy: str, **ids: Unpack[Ids]) -> None:
    """Tell that a message found its lock taken."""
    _emit("debug", "lock.contended", ids, scope=scope, strategy=strategy)


def queue_coalesced(*, messages: int, **ids: Unpack[Ids]) -> None:
    """Tell how many waiting messages one run answers, the newest included."""
    _emit("debug", "queue.coalesced", ids, messages=messages)


def turn_finished(
    *, status: str, duration_ms: int, finish_reason: str | None = None, **ids: Unpack[Ids]
) -> None:
    """Tell that a turn is recorded, and how it ended."""
    observing.tell(status=status, finish_reason=finish_reason)
    observing.measure("turn.duration", duration_ms / 1000, status=status)
    _emit(
        "info",
        "turn.finished",
        ids,
        status=status,
        duration_ms=duration_ms,
        finish_reason=finish_reason,
    )


def session_started(*, reason: str | None = None, **ids: Unpack[Ids]) -> None:
    """Tell that a session begins, and why."""
    _emit("info", "session.started", ids, reason=reason)


def session_switched(*, from_session_id: str | None, **ids: Unpack[Ids]) -> None:
    """Tell that a conversation goes on in another session of its own."""
    _emit("info", "session.switched", ids, from_session_id=from_session_id)


def message_repeated(*, status: str, **ids: Unpack[Ids]) -> None:
    """Tell that a known message came again and was answered from the record."""
    _emit("info", "message.repeated", ids, status=status)


def history_pruned(*, age: int, count: int, tokens: int, mode: str, **ids: Unpack[Ids]) -> None:
    """Tell how many rows each rule of pruning took."""
    for rule, rows in (("age", age), ("count", count), ("tokens", tokens)):
        if rows:
            observing.measure("prune.deleted", rows, rule=rule, mode=mode)
    _emit("info", "history.pruned", ids, age=age, count=count, tokens=tokens, mode=mode)


def history_truncated(*, deleted: int, generation: int, summary: str, **ids: Unpack[Ids]) -> None:
    """Tell that a conversation was cut off, and what became of its rolled summary."""
    _emit(
        "info",
        "history.truncated",
        ids,
        deleted=deleted,
        generation=generation,
        summary=summary,
    )


def history_cleared(*, counts: Mapping[str, int], **ids: Unpack[Ids]) -> None:
    """Tell that a conversation or a session was cleared, and what went by store."""
    _emit("info", "history.cleared", ids, counts=dict(counts))


def summary_saved(**ids: Unpack[Ids]) -> None:
    """Tell that a summary was written by hand."""
    _emit("info", "summary.saved", ids)


def history_prune_failed(error: BaseException, **ids: Unpack[Ids]) -> None:
    """Tell that rows could not be pruned; the turn is recorded all the same."""
    _emit("warning", "history.prune_failed", ids, **_origin(error))


def queue_drained(*, turns: int, **ids: Unpack[Ids]) -> None:
    """Tell that nothing waits for a lock any more, and how many turns its holder ran."""
    _emit("info", "queue.drained", ids, turns=turns)


def queue_dropped(*, reason: Literal["busy", "queue_full", "expired"], **ids: Unpack[Ids]) -> None:
    """Tell that a message was not accepted, pushed out, or waited too long."""
    _emit("warning", "queue.dropped", ids, reason=reason)


def queue_swept(*, entries: int, **ids: Unpack[Ids]) -> None:
    """Tell that messages of a dead process were found waiting, and are run."""
    _emit("warning", "queue.swept", ids, entries=entries)


def row_quarantined(
    *, store: str, rows: int = 1, seq: int | None = None, **ids: Unpack[Ids]
) -> None:
    """Tell that stored rows cannot be read and were passed over."""
    _emit("warning", "row.quarantined", ids, store=store, rows=rows, seq=seq)


def lock_lost(*, scope: str | None = None, **ids: Unpack[Ids]) -> None:
    """Tell that a turn lost its lease and stopped."""
    _emit("warning", "lock.lost", ids, scope=scope)


def turn_interrupted(*, reason: str, duration_ms: int | None = None, **ids: Unpack[Ids]) -> None:
    """Tell that a turn was stopped, and by what."""
    _emit("warning", "turn.interrupted", ids, reason=reason, duration_ms=duration_ms)


def identity_failed(error: BaseException, **ids: Unpack[Ids]) -> None:
    """Tell that the callable for the user key raised; the row has no owner."""
    _emit("warning", "identity.failed", ids, **_origin(error))


def fallback_failed(error: BaseException, **ids: Unpack[Ids]) -> None:
    """Tell that the callable for the error text raised; the apology was shown."""
    _emit("warning", "fallback.failed", ids, **_origin(error))


def backfill_failed(error: BaseException, **ids: Unpack[Ids]) -> None:
    """Tell that the earlier messages of a thread could not be fetched; the turn goes on."""
    _emit("warning", "backfill.failed", ids, **_origin(error))


def context_trimmed(*, trimmed: int, over: bool, **ids: Unpack[Ids]) -> None:
    """Tell how many messages a call left out because they do not fit; `over`: it still does not."""
    _emit("warning", "context.trimmed", ids, trimmed=trimmed, over=over)


def context_rolled(
    *,
    rolled: int,
    through_seq: int,
    version: int,
    loops: int,
    reason: str | None,
    summary_size: int,
    **ids: Unpack[Ids],
) -> None:
    """Tell that messages were condensed: how many, up to which number, in how many attempts."""
    _emit(
        "info",
        "context.rolled",
        ids,
        rolled=rolled,
        through_seq=through_seq,
        version=version,
        loops=loops,
        reason=reason,
        summary_size=summary_size,
    )


def context_roll_failed(
    *, reason: str, failures: int, is_alarm: bool, error: str | None = None, **ids: Unpack[Ids]
) -> None:
    """Tell that messages could not be condensed, and in how many turns in a row."""
    level: Literal["warning", "error"] = "error" if is_alarm else "warning"
    _emit(level, "context.roll_failed", ids, reason=reason, failures=failures, error=error)


def context_overflowed(
    *, reported: int | None, used: int, correction: float, retried: bool, **ids: Unpack[Ids]
) -> None:
    """Tell that the model refused a call as too long although it was thought to fit."""
    _emit(
        "warning",
        "context.overflowed",
        ids,
        reported=reported,
        used=used,
        correction=correction,
        retried=retried,
    )


def context_checkpointed(*, exchanges: int, before: int, after: int, **ids: Unpack[Ids]) -> None:
    """Tell that finished tool calls of a running turn were condensed."""
    _emit(
        "info",
        "context.checkpointed",
        ids,
        alias="chat_agent_context_compact_llm",
        exchanges=exchanges,
        before=before,
        after=after,
    )


def context_checkpoint_failed(*, error: str, left_out: int, **ids: Unpack[Ids]) -> None:
    """Tell that finished tool calls could not be condensed, and how many were left out instead."""
    _emit(
        "warning",
        "context.checkpoint_failed",
        ids,
        alias="chat_agent_context_compact_llm_failed",
        error=error,
        left_out=left_out,
    )


def context_checkpoint_skipped(*, why: str, **ids: Unpack[Ids]) -> None:
    """Tell that finished tool calls were not condensed, and why."""
    _emit(
        "debug",
        "context.checkpoint_skipped",
        ids,
        alias="chat_agent_context_compact_skipped",
        why=why,
    )


def memory_flushed(
    *, flush_id: str, messages: int, from_seq: int, to_seq: int, **ids: Unpack[Ids]
) -> None:
    """Tell that messages were appended to a note, as one section."""
    _emit(
        "info",
        "memory.flushed",
        ids,
        flush_id=flush_id,
        messages=messages,
        from_seq=from_seq,
        to_seq=to_seq,
    )


def memory_extracted(*, flush_id: str, entries: int, **ids: Unpack[Ids]) -> None:
    """Tell how many new entries were found in messages."""
    _emit("info", "memory.extracted", ids, flush_id=flush_id, entries=entries)


def memory_flush_failed(
    error: BaseException, *, step: str, flush_id: str, **ids: Unpack[Ids]
) -> None:
    """Tell that messages could not be archived, and in which step that failed."""
    _emit("warning", "memory.flush_failed", ids, step=step, flush_id=flush_id, **_origin(error))


def tokens_fallback(*, wanted: str, used: str, **ids: Unpack[Ids]) -> None:
    """Tell that an estimator cannot be used and another one counts in its place."""
    _emit("warning", "tokens.fallback", ids, wanted=wanted, used=used)


def turn_failed(
    error: BaseException, *, code: str, ref: str | None = None, **ids: Unpack[Ids]
) -> None:
    """Tell that a turn failed; `ref` is what people were shown to ask about.

    Of the error only its class and the line that raised it are told: its text may quote a message.
    """
    _emit("error", "turn.failed", ids, code=code, ref=ref, **_origin(error))


@cache
def event_logger(layer: str) -> stdlib.BoundLogger:
    """Return the logger of a layer, which writes to the standard logger `vitehub_chat.<layer>`.

    It is independent of how the application configures structlog, and does not configure it.
    """
    import structlog  # noqa: PLC0415 - loaded with the first event that is listened to
    from structlog import stdlib  # noqa: PLC0415

    logger: stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(f"vitehub_chat.{layer}"),
        wrapper_class=stdlib.BoundLogger,
        cache_logger_on_first_use=False,
        processors=[
            stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            _free_names,
            stdlib.render_to_log_kwargs,
        ],
    )
    return logger


def _emit(
    level: Literal["debug", "info", "warning", "error"], name: str, ids: Ids, **facts: object
) -> None:
    """Log one event; to be called by the function of the event, whose caller the record names."""
    if not _logger.isEnabledFor(getattr(logging, level.upper())):
        return
    known: dict[str, object] = {**ids, **facts}
    key = known.pop("key", None)
    if isinstance(key, ConversationKey):
        known["conversation"] = key.encode()
    fields = {field: _safe(fact) for field, fact in known.items() if fact is not None}
    # 4 leads to the caller of the bound logger, each function of this module is one more
    getattr(event_logger(LAYER), level)(f"chat.{name}", stacklevel=6, **fields)


def _free_names(
    _wrapped: object, _method: str, fields: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """Rename what would overwrite an attribute of the record, for which logging raises."""
    return {f"{name}_" if name in _RESERVED else name: fact for name, fact in fields.items()}


def _safe(fact: object) -> object:
    """Return text on one line and of bounded length, quoted when it has other characters."""
    if not isinstance(fact, str):
        return fact
    text = fact if len(fact) <= _MAX_TEXT else f"{fact[:_MAX_TEXT]}…"
    return text if text.isprintable() else repr(text)


def _origin(error: BaseException) -> dict[str, str]:
    facts = {"error": type(error).__name__}
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        facts["at"] = f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return facts
