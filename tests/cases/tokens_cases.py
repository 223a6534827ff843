"""Cases of estimation by what needs no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.cases.repeated import expand
from vitehub_chat.model.rows import Row
from vitehub_chat.model.ui_messages import read_message
from vitehub_chat.selection.tokens import BUILT_IN, estimator_for
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.selection.tokens_usage import estimate_rows

_NOW = datetime(2026, 5, 1, tzinfo=UTC)


def lacking_estimators(case: Mapping[str, Any]) -> Sequence[str]:
    """Return the estimators of a case that are not there yet."""
    config = case["config"]
    wanted = config.get("estimators") or [config["estimator"]]
    return sorted(set(wanted) - BUILT_IN.keys())


def run(case: Mapping[str, Any]) -> None:
    """Check one case."""
    config, given, expected = case["config"], expand(case["input"]), case["expect"]
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
