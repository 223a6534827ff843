"""Pruning: what goes with the end of a turn, and telling what went."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import TurnControl, settle
from vitehub_chat.conversation.retention import Pruner
from vitehub_chat.conversation.sizing import counter_for
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow, PrunePolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.pruning import PrunePlan
from vitehub_chat.selection.tokens import BUILT_IN
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import Pruned, PruneRequest


@attrs.define(kw_only=True, eq=False)
class PruneKit:
    """What all turns of an agent share to prune by its policy.

    Attributes:
        policy: What the agent decides.
        rules: Which rows go.
        clock: What the ages of rows are told by.
    """

    policy: ChatPolicy
    rules: PrunePolicy
    clock: Clock
    _counter: TokenCounter | None = attrs.field(default=None, init=False)

    async def pruner(self, window: HistoryWindow | str | None) -> Pruner:
        """Return what prunes now, for turns that see a window.

        Raises:
            ConfigError: The estimator is unknown, or none.
            MissingDependencyError: It needs an extra that is not installed.
        """
        if self._counter is None:
            self._counter = await find_counter(self.rules)
        return Pruner(
            self.rules,
            self.clock.now(),
            self._counter,
            spares_uncovered=condenses(self.policy, window),
        )


async def find_counter(rules: PrunePolicy) -> TokenCounter:
    """Return what counts for a policy; where that imports and reads files another thread does it.

    Raises:
        ConfigError: The estimator is unknown, or none.
        MissingDependencyError: It needs an extra that is not installed.
    """
    path, chosen = "transcripts.prune.estimator", rules.estimator
    if not isinstance(chosen, str) or chosen in BUILT_IN:
        return counter_for(chosen, path=path)
    return await asyncio.to_thread(counter_for, chosen, path=path)


def condenses(policy: ChatPolicy, window: HistoryWindow | str | None) -> bool:
    """Tell whether rows that no call sees any more are condensed into a summary."""
    reads_rows = isinstance(window, HistoryWindow) and window.source == "transcript"
    return policy.context is not None and reads_rows


@attrs.frozen(kw_only=True)
class TurnPruning:
    """What the end of one turn asks its store to prune, and what is told of it."""

    ids: events.Ids
    pruner: Pruner | None = None

    @property
    def request(self) -> PruneRequest | None:
        """What to ask for, or None for nothing."""
        return None if self.pruner is None else self.pruner.request()

    def tell(self, pruned: Pruned | None) -> None:
        """Tell what went, if anything did, or why nothing could."""
        if pruned is None or self.pruner is None:
            return
        if pruned.error is not None:
            events.history_prune_failed(pruned.error, **self.ids)
        elif pruned.removed:
            tell_pruned(self.pruner, self.ids)


async def begin_pruning(
    kit: PruneKit | None, request: TurnRequest, control: TurnControl, ids: events.Ids
) -> TurnPruning:
    """Return what the end of a turn prunes; rules that cannot be used fail no turn."""
    if kit is None:
        return TurnPruning(ids=ids)
    window = kit.policy.window if request.window is None else request.window
    try:
        pruner = await settle(kit.pruner(window), control)
    except Exception as error:  # noqa: BLE001 - the answer is to be recorded all the same
        events.history_prune_failed(error, **ids)
        return TurnPruning(ids=ids)
    return TurnPruning(ids=ids, pruner=pruner)


async def prune_rows(
    state: AgentState,
    key: ConversationKey,
    *,
    session_id: str | None,
    policy: ChatPolicy,
    rules: PrunePolicy,
    dry_run: bool,
) -> PrunePlan:
    """Remove the rows that rules take, in one transaction, and return what went.

    With `dry_run` nothing is removed.

    Raises:
        ConfigError: Rows would be deleted that the retention `forever` keeps, or the estimator
            cannot be used.
    """
    kit = PruneKit(policy=policy, rules=rules, clock=state.clock)
    pruner = await kit.pruner(policy.window)
    if dry_run:
        rows: list[Row] = []
        async for batch in state.transcripts.export(key, session_id=session_id):
            rows.extend(row for row in batch.rows if row.status != "pending")
        spared = await _find_uncovered(state, key, rows) if pruner.spares_uncovered else ()
        pruner.choose(rows, spared)
    else:
        await state.transcripts.prune(key, request=pruner.request(session_id=session_id))
        tell_pruned(pruner, {"key": key, "session_id": session_id})
    return pruner.plan or PrunePlan.empty()


async def _find_uncovered(
    state: AgentState, key: ConversationKey, rows: Sequence[Row]
) -> Sequence[int]:
    """Return the numbers of the rows that no rolled summary covers."""
    anchors: dict[str | None, int] = {}
    for session_id in {row.session_id for row in rows}:
        rolled = await state.summaries.get_rolling(key, session_id=session_id)
        anchors[session_id] = 0 if rolled is None else rolled.anchor
    return [row.seq for row in rows if row.seq >= anchors[row.session_id]]


def tell_pruned(pruner: Pruner, ids: events.Ids) -> None:
    """Tell how many rows each rule took."""
    if pruner.plan is None:
        return
    gone = pruner.plan.removed
    events.history_pruned(
        age=len(gone.age),
        count=len(gone.count),
        tokens=len(gone.tokens),
        mode=pruner.policy.mode,
        **ids,
    )
