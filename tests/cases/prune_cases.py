"""Cases of pruning, through the plan; nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from tests.cases.repeated import expand
from vitehub_chat import chat, errors
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.transcripts_model import PruneModel, TranscriptsModel
from vitehub_chat.model.rows import Row
from vitehub_chat.model.ui_messages import read_message
from vitehub_chat.selection.pruning import PrunePlan, PrunePolicy, plan_prune
from vitehub_chat.selection.tokens import estimator_for


def run(case: Mapping[str, Any]) -> None:
    """Check one case."""
    if "error" in case:
        _check_error(case)
        return
    given, expected, policy = expand(case["input"]), case["expect"], _policy(case["config"])
    now = _time(given["now"])
    rows = [_row(message, now) for message in given["messages"]]
    plan = _plan(rows, policy, now)
    facts = {"kept": plan.kept, "tokens": plan.tokens, "over_budget": plan.over_budget}
    assert facts == {
        "kept": tuple(expected["keep"]),
        "tokens": expected["tokens"],
        "over_budget": expected["over_budget"],
    }
    assert {rule: list(seqs) for rule, seqs in attrs.asdict(plan.removed).items()} == expected[
        "removed"
    ]
    left = [row for row in rows if row.seq in plan.kept]
    assert _plan(left, policy, now).kept == plan.kept
    if "again_at" in given:
        again = _plan(left, policy, _time(given["again_at"]))
        assert list(again.kept) == expected["again"]["keep"]


def _check_error(case: Mapping[str, Any]) -> None:
    expected = case["error"]
    with pytest.raises(getattr(errors, expected["class"])) as caught:
        chat(transcripts=case["config"])
    assert [word for word in expected["mentions"] if word not in str(caught.value)] == []


def _policy(config: Mapping[str, Any]) -> PrunePolicy:
    given = read_options(TranscriptsModel, config, path="transcripts").prune
    assert isinstance(given, PruneModel)
    options = {name: getattr(given, name) for name in given.model_fields_set}
    if "max_age_hours" in options:
        options["max_age"] = timedelta(hours=options.pop("max_age_hours") or 0)
    return PrunePolicy(**options)


def _plan(rows: Sequence[Row], policy: PrunePolicy, now: datetime) -> PrunePlan:
    return plan_prune(rows, policy, now, estimator_for(policy.estimator))


def _row(given: Mapping[str, Any], now: datetime) -> Row:
    return Row(message=read_message(given), seq=given["seq"], recorded_at=now)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
