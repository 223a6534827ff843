"""Cases of estimation; the files of vocabularies are missing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.cases.repeated import expand
from vitehub_chat.conversation.sizing import counter_for
from vitehub_chat.model.rows import Row
from vitehub_chat.model.ui_messages import read_message
from vitehub_chat.selection.tokens import estimator_for
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.selection.tokens_usage import estimate_rows

_NOW = datetime(2026, 5, 1, tzinfo=UTC)


def run(case: Mapping[str, Any]) -> None:
    """Check one case."""
    config, given, expected = case["config"], expand(case["input"]), case["expect"]
    if given.get("files") == "missing":
        assert _without_files(config["estimator"], given["texts_counted"]) == expected
        return
    if "messages" in given:
        assert _used(config, given) == expected["used"]
        return
    overhead = config.get("message_overhead")
    counters = [estimator_for(name) for name in config["estimators"]]
    counts = {counter.name: _counts(counter, given, overhead) for counter in counters}
    assert counts == expected["counts"]
    if "between" in expected:
        least, most = expected["between"]
        assert [
            size for sizes in counts.values() for size in sizes if not least <= size <= most
        ] == []


class _Keeping(logging.Handler):
    """Keeps every record in a list."""

    def __init__(self, caught: list[logging.LogRecord]) -> None:
        super().__init__()
        self._caught = caught

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._caught.append(record)


def _without_files(name: str, texts: Sequence[str]) -> dict[str, Any]:
    """Count with an estimator whose files can neither be found nor downloaded."""
    caught: list[logging.LogRecord] = []
    handler = _Keeping(caught)
    logger = logging.getLogger("vitehub_chat.conversation")
    logger.addHandler(handler)
    try:
        with TemporaryDirectory() as empty, pytest.MonkeyPatch.context() as environment:
            environment.setenv("TIKTOKEN_CACHE_DIR", empty)
            environment.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
            environment.setenv("NO_PROXY", "")
            counter = counter_for(name)
            for text in texts:
                counter.count_text(text)
    finally:
        logger.removeHandler(handler)
    warnings = [record for record in caught if record.getMessage() == "chat.tokens.fallback"]
    return {"estimator": counter.name, "warnings": len(warnings)}


def _counts(counter: TokenCounter, given: Mapping[str, Any], overhead: int | None) -> list[int]:
    if "texts" in given:
        return [counter.count_text(text) for text in given["texts"]]
    return [counter.count_message(read_message(given["message"]), overhead=overhead)]


def _used(config: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    rows = [_row(message, seq) for seq, message in enumerate(given["messages"], 1)]
    is_void = given["since_usage"] != "nothing"
    models = [row.usage["model"] for row in rows if row.usage is not None]
    return estimate_rows(
        rows,
        estimator_for(config["estimator"]),
        model=models[-1] if models else None,
        void_through=rows[-1].seq if is_void else 0,
        overhead=config.get("message_overhead"),
    )


def _row(given: Mapping[str, Any], seq: int) -> Row:
    metadata = given.get("metadata", {})
    usage = None
    if "usage" in metadata:
        told = metadata["usage"]
        usage = {
            "model": metadata["model"],
            "input_tokens": told["inputTokens"],
            "output_tokens": told["outputTokens"],
        }
    return Row(message=read_message(given), seq=seq, recorded_at=_NOW, usage=usage)
