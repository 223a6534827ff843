"""Outcomes: what a turn says of itself when it begins and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from vitehub_chat.conversation.answer import Answer
from vitehub_chat.model.events import RunStarted
from vitehub_chat.model.messages import Message
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.state.codec import run_to_json
from vitehub_chat.state.values import TurnEnd

_ENDINGS: Final[Mapping[RowStatus, Literal["complete", "interrupted", "error"]]] = {
    "complete": "complete",
    "interrupted": "interrupted",
    "error": "error",
}


def started_of(answer: Answer, prepared: PreparedInvocation) -> RunStarted:
    """Return the event of a turn whose driver is about to be called."""
    run = prepared.run
    return RunStarted(
        message_id=answer.message_id,
        session_id=prepared.session_id,
        run_id=None if run is None else run.run_id,
        thread_id=None if run is None else run.thread_id,
        created_at=answer.created_at,
    )


def end_of(
    message: Message, prepared: PreparedInvocation, status: RowStatus, finish_reason: str | None
) -> TurnEnd:
    """Return what is recorded of the end of a turn."""
    return TurnEnd(
        status=_ENDINGS[status],
        finish_reason=finish_reason,
        session_id=prepared.session_id,
        run=None if prepared.run is None else run_to_json(prepared.run),
        message=message if message.parts else None,
    )


def result_of(
    message: Message, prepared: PreparedInvocation, status: RowStatus, finish_reason: str | None
) -> RunResult:
    """Return the result of a turn that was driven."""
    return RunResult(
        text=message.text,
        message=message if message.parts else None,
        new_messages=(message,) if message.parts else (),
        status=_ENDINGS[status],
        finish_reason=finish_reason,
        run=prepared.run,
        session_id=prepared.session_id,
        context_budget=prepared.context_budget,
        prepared=prepared,
    )
