"""Logging events: their names, levels and facts, and that they never disturb an application."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from vitehub_chat.conversation import events
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.results import SelectionEntry, SelectionReason

KEY = ConversationKey("acme", "support", None, "t1")
STANDARD = vars(logging.makeLogRecord({})).keys() | {"taskName", "message"}


def boom() -> None:
    raise ValueError("text of a message")


def entry(message_id: str, reason: SelectionReason, *, kept: bool) -> SelectionEntry:
    return SelectionEntry(message_id, None, "user", kept, reason)


ENTRIES = [
    entry("a", "over_count", kept=False),
    entry("b", "too_old", kept=False),
    entry("c", "too_old", kept=False),
    entry("d", "window", kept=True),
    entry("e", "current", kept=True),
]

Case = tuple[Callable[[], None], str, str, dict[str, object]]

CASES: list[Case] = [
    (
        lambda: events.history_selected(ENTRIES, key=KEY),
        "debug",
        "history.selected",
        {"conversation": "4:acme7:support-2:t1", "kept": 2, "cut": {"over_count": 1, "too_old": 2}},
    ),
    (
        lambda: events.turn_started(messages=3, turn_id="u1", run_id=None),
        "debug",
        "turn.started",
        {"turn_id": "u1", "messages": 3},
    ),
    (
        lambda: events.lock_contended(scope="thread", strategy="queue", message_id="m1"),
        "debug",
        "lock.contended",
        {"message_id": "m1", "scope": "thread", "strategy": "queue"},
    ),
    (lambda: events.queue_coalesced(messages=2), "debug", "queue.coalesced", {"messages": 2}),
    (
        lambda: events.summary_saved(key=KEY, session_id="s1"),
        "info",
        "summary.saved",
        {"conversation": "4:acme7:support-2:t1", "session_id": "s1"},
    ),
    (
        lambda: events.turn_finished(status="complete", duration_ms=12, session_id="s1"),
        "info",
        "turn.finished",
        {"session_id": "s1", "status": "complete", "duration_ms": 12},
    ),
    (
        lambda: events.session_started(session_id="s1", reason="idle"),
        "info",
        "session.started",
        {"session_id": "s1", "reason": "idle"},
    ),
    (
        lambda: events.session_switched(from_session_id="s1", session_id="s2"),
        "info",
        "session.switched",
        {"session_id": "s2", "from_session_id": "s1"},
    ),
    (
        lambda: events.message_repeated(status="complete"),
        "info",
        "message.repeated",
        {"status": "complete"},
    ),
    (
        lambda: events.context_rolled(
            rolled=4, through_seq=9, version=2, loops=1, reason=None, summary_size=80
        ),
        "info",
        "context.rolled",
        {"rolled": 4, "through_seq": 9, "version": 2, "loops": 1, "summary_size": 80},
    ),
    (
        lambda: events.context_roll_failed(reason="summarizer_failed", failures=1, is_alarm=False),
        "warning",
        "context.roll_failed",
        {"reason": "summarizer_failed", "failures": 1},
    ),
    (
        lambda: events.context_overflowed(reported=900, used=800, correction=1.2, retried=True),
        "warning",
        "context.overflowed",
        {"reported": 900, "used": 800, "correction": 1.2, "retried": True},
    ),
    (
        lambda: events.context_trimmed(trimmed=2, over=False),
        "warning",
        "context.trimmed",
        {"trimmed": 2, "over": False},
    ),
    (
        lambda: events.context_checkpointed(exchanges=3, before=900, after=300),
        "info",
        "context.checkpointed",
        {
            "alias": "chat_agent_context_compact_llm",
            "exchanges": 3,
            "before": 900,
            "after": 300,
        },
    ),
    (
        lambda: events.context_checkpoint_failed(error="timeout", left_out=2),
        "warning",
        "context.checkpoint_failed",
        {"alias": "chat_agent_context_compact_llm_failed", "error": "timeout", "left_out": 2},
    ),
    (
        lambda: events.context_checkpoint_skipped(why="no_gain"),
        "debug",
        "context.checkpoint_skipped",
        {"alias": "chat_agent_context_compact_skipped", "why": "no_gain"},
    ),
    (
        lambda: events.tokens_fallback(wanted="tiktoken", used="segments"),
        "warning",
        "tokens.fallback",
        {"wanted": "tiktoken", "used": "segments"},
    ),
    (
        lambda: events.history_pruned(age=1, count=2, tokens=0, mode="hide"),
        "info",
        "history.pruned",
        {"age": 1, "count": 2, "tokens": 0, "mode": "hide"},
    ),
    (
        lambda: events.history_truncated(deleted=2, generation=1, summary="reset"),
        "info",
        "history.truncated",
        {"deleted": 2, "generation": 1, "summary": "reset"},
    ),
    (
        lambda: events.history_cleared(counts={"rows": 2}),
        "info",
        "history.cleared",
        {"counts": {"rows": 2}},
    ),
    (
        lambda: events.history_prune_failed(KeyError("secret")),
        "warning",
        "history.prune_failed",
        {"error": "KeyError"},
    ),
    (
        lambda: events.memory_flushed(flush_id="f1", messages=4, from_seq=1, to_seq=4),
        "info",
        "memory.flushed",
        {"flush_id": "f1", "messages": 4, "from_seq": 1, "to_seq": 4},
    ),
    (
        lambda: events.memory_extracted(flush_id="f1", entries=2),
        "info",
        "memory.extracted",
        {"flush_id": "f1", "entries": 2},
    ),
    (
        lambda: events.memory_flush_failed(KeyError("secret"), step="note", flush_id="f1"),
        "warning",
        "memory.flush_failed",
        {"flush_id": "f1", "step": "note", "error": "KeyError"},
    ),
    (lambda: events.queue_drained(turns=4), "info", "queue.drained", {"turns": 4}),
    (
        lambda: events.queue_dropped(reason="expired"),
        "warning",
        "queue.dropped",
        {"reason": "expired"},
    ),
    (lambda: events.queue_swept(entries=2), "warning", "queue.swept", {"entries": 2}),
    (
        lambda: events.row_quarantined(store="messages", seq=7),
        "warning",
        "row.quarantined",
        {"store": "messages", "rows": 1, "seq": 7},
    ),
    (lambda: events.lock_lost(scope="thread"), "warning", "lock.lost", {"scope": "thread"}),
    (
        lambda: events.turn_interrupted(reason="timeout"),
        "warning",
        "turn.interrupted",
        {"reason": "timeout"},
    ),
    (
        lambda: events.identity_failed(KeyError("secret")),
        "warning",
        "identity.failed",
        {"error": "KeyError"},
    ),
    (
        lambda: events.fallback_failed(KeyError("secret")),
        "warning",
        "fallback.failed",
        {"error": "KeyError"},
    ),
    (
        lambda: events.backfill_failed(KeyError("secret")),
        "warning",
        "backfill.failed",
        {"error": "KeyError"},
    ),
    (
        lambda: events.turn_failed(KeyError("secret"), code="internal", ref="r1"),
        "error",
        "turn.failed",
        {"error": "KeyError", "code": "internal", "ref": "r1"},
    ),
]


@pytest.fixture(autouse=True)
def clean_context() -> Iterator[None]:
    with structlog.contextvars.bound_contextvars():
        structlog.contextvars.clear_contextvars()
        yield
        structlog.contextvars.clear_contextvars()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="vitehub_chat")
    return caplog


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    return {name: fact for name, fact in vars(record).items() if name not in STANDARD}


@pytest.mark.parametrize("case", CASES, ids=[case[2] for case in CASES])
def test_an_event_has_its_name_level_facts_and_the_place_of_its_caller(
    log: pytest.LogCaptureFixture, case: Case
) -> None:
    call, level, name, facts = case
    call()

    (record,) = log.records
    assert record.getMessage() == f"chat.{name}"
    assert record.levelname == level.upper()
    assert record.name == "vitehub_chat.conversation"
    assert facts_of(record) == facts
    assert Path(record.pathname) == Path(__file__)
    assert record.lineno == call.__code__.co_firstlineno


def test_every_event_of_the_module_is_covered_here() -> None:
    functions = {
        name
        for name, value in vars(events).items()
        if inspect.isfunction(value)
        and value.__module__ == events.__name__
        and not name.startswith("_")
    }
    assert functions == {case[2].replace(".", "_") for case in CASES}


def test_an_error_is_told_by_class_and_line_and_never_by_its_text(
    log: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ValueError, match="text of a message") as caught:
        boom()
    events.turn_failed(caught.value, code="internal")

    (record,) = log.records
    line = inspect.getsourcelines(boom)[1] + 1
    assert facts_of(record) == {
        "code": "internal",
        "error": "ValueError",
        "at": f"test_events.py:{line}",
    }
    assert record.exc_info is None
    assert "text of a message" not in str(vars(record))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("plain id/1", "plain id/1"),
        ("a\nERROR forged", "'a\\nERROR forged'"),
        ("a\u2028b", "'a\\u2028b'"),
        ("\u202eabc", "'\\u202eabc'"),
        ("\ud83d", "'\\ud83d'"),
        ("x" * 3000, "x" * 2100 + "…"),
    ],
)
def test_an_id_is_told_on_one_line(log: pytest.LogCaptureFixture, given: str, told: str) -> None:
    events.turn_started(messages=1, message_id=given)

    (record,) = log.records
    assert facts_of(record)["message_id"] == told


def test_a_key_of_the_longest_ids_is_told_whole(log: pytest.LogCaptureFixture) -> None:
    key = ConversationKey("t" * 512, "a" * 512, "c" * 512, "x" * 512)
    events.turn_started(messages=1, key=key)

    assert facts_of(log.records[0])["conversation"] == key.encode()


def test_context_variables_are_added_also_with_reserved_names(
    log: pytest.LogCaptureFixture,
) -> None:
    names = ["name", "message", "args", "msg", "asctime", "module", "lineno", "process"]
    context = {name: f"app {name}" for name in names}
    with structlog.contextvars.bound_contextvars(request_id="r1", messages=99, **context):
        events.turn_started(messages=1)

    (record,) = log.records
    assert record.name == "vitehub_chat.conversation"
    assert record.getMessage() == "chat.turn.started"
    expected = {f"{name}_": f"app {name}" for name in names}
    assert facts_of(record) == {"request_id": "r1", "messages": 1, **expected}


def test_nothing_is_told_below_the_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="vitehub_chat")
    events.turn_started(messages=1)
    events.history_selected(ENTRIES)
    events.queue_drained(turns=1)

    assert caplog.records == []


def test_an_application_that_configures_structlog_changes_nothing(
    log: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    structlog.configure(processors=[structlog.processors.JSONRenderer()])
    try:
        events.turn_started(messages=1)
    finally:
        structlog.reset_defaults()

    assert [record.getMessage() for record in log.records] == ["chat.turn.started"]
    assert capfd.readouterr().out == ""


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )


def test_nothing_is_printed_and_structlog_stays_unconfigured_without_logging_set_up() -> None:
    done = run_python(
        "from vitehub_chat.conversation import events\n"
        "events.turn_started(messages=1)\n"
        "events.turn_failed(ValueError('x'), code='internal')\n"
        "import structlog\n"
        "assert not structlog.is_configured()\n"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_structlog_is_imported_with_the_first_event_that_somebody_listens_to() -> None:
    done = run_python(
        "import sys\n"
        "from vitehub_chat.conversation import events\n"
        "events.turn_started(messages=1)\n"
        "print('structlog' in sys.modules)\n"
        "import logging\n"
        "logging.getLogger('vitehub_chat').setLevel(logging.DEBUG)\n"
        "events.turn_started(messages=1)\n"
        "print('structlog' in sys.modules)\n"
    )
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")


def test_records_reach_plain_handlers_of_the_application() -> None:
    done = run_python(
        "import logging\n"
        "logging.basicConfig(level='INFO', format='%(name)s %(message)s %(status)s')\n"
        "from vitehub_chat.conversation import events\n"
        "events.turn_finished(status='complete', duration_ms=1)\n"
    )
    assert done.stderr == "vitehub_chat.conversation chat.turn.finished complete\n"
