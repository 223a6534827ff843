"""Cases of pruning, through the plan, and through a store where a case says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from tests.cases.repeated import expand
from vitehub_chat import Conversation, ConversationKey, chat, errors, open_agent_state
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.transcripts_model import PruneModel, TranscriptsModel
from vitehub_chat.model.rows import Row
from vitehub_chat.model.ui_messages import read_message
from vitehub_chat.selection.pruning import PrunePlan, PrunePolicy, plan_prune
from vitehub_chat.selection.tokens import estimator_for
from vitehub_chat.testing.clock import FakeClock

_KEY = ConversationKey(None, "cases", None, "pruned")


async def run(case: Mapping[str, Any], url: str | None) -> None:
    """Check one case; a state at the URL is only opened where the case goes through a store."""
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
    if given.get("through_store"):
        assert url is not None
        await _check_stored(given["messages"], expected, policy, FakeClock(now), url)


async def _check_stored(
    messages: Sequence[Mapping[str, Any]],
    expected: Mapping[str, Any],
    policy: PrunePolicy,
    clock: FakeClock,
    url: str,
) -> None:
    """Store messages one by one, open the store anew, prune, and read what is left."""
    async with open_agent_state(url, clock=clock) as state:
        for message in messages:
            await Conversation(state, _KEY).append([_without_seq(message)])
    async with open_agent_state(url, clock=clock) as state:
        conversation = Conversation(state, _KEY)
        plan = await conversation.prune(policy)
        left = (await conversation.history(limit=100)).items
    assert (list(plan.kept), plan.tokens) == (expected["keep"], expected["tokens"])
    wanted = expand(expected["messages"])
    assert [row.seq for row in left] == [message["seq"] for message in wanted]
    assert [attrs.evolve(row.message, id=None) for row in left] == [
        read_message(_without_seq(message)) for message in wanted
    ]


def _without_seq(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in message.items() if name != "seq"}


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
