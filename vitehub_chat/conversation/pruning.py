"""Pruning: what goes with the end of a turn, and telling what went."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.archiving import Archive, find_settled, find_uncovered
from vitehub_chat.conversation.control import TurnControl, settle
from vitehub_chat.conversation.driving import Invocation
from vitehub_chat.conversation.flushing import FlushSetting
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.retention import Pruner
from vitehub_chat.conversation.sizing import counter_for
from vitehub_chat.model import observing
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow, PrunePolicy
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.rows import Row
from vitehub_chat.selection.pruning import PrunePlan
from vitehub_chat.selection.tokens import BUILT_IN
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.state.contract import NO_CONTEXT, AgentState, StateContext
from vitehub_chat.state.row_requests import Pruned, PruneRequest
from vitehub_chat.state.values import NewRow, Recorded

_BEHIND_ALL: Final = 1 << 32
"""A number above those of all stored rows."""


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
class Archiving:
    """What the end of one turn needs to archive what it prunes.

    Attributes:
        memory: Archives messages, or None: nothing is.
        recorded: What was stored before the answer.
        answer: What the end will store.
        invocation: The call of the driver, or None if there was none.
        context: The context under which the turn writes.
    """

    memory: MemoryKit | None
    recorded: Recorded
    answer: NewRow
    invocation: Invocation | None
    context: StateContext

    async def take(self, pruner: Pruner, ids: events.Ids) -> None:
        """Archive what a pruner will take."""
        session = self.recorded.session
        if self.memory is None or session is None:
            return
        ask = None if self.invocation is None else self.invocation.facts.ask
        setting = FlushSetting(ask=ask, context=self.context, ids=ids)
        archive = Archive(
            state=self.memory.state,
            key=ConversationKey.decode(session.conversation),
            flush=self.memory.flush(setting),
        )
        coming = Row(
            message=self.answer.message,
            seq=_BEHIND_ALL,
            session_id=session.session_id,
            recorded_at=pruner.now,
        )
        await archive.take(pruner, coming=[coming], in_passing=True)


@attrs.frozen(kw_only=True)
class TurnPruning:
    """What the end of one turn asks its store to prune, and what is told of it."""

    ids: events.Ids
    pruner: Pruner | None = None

    @property
    def request(self) -> PruneRequest | None:
        """What to ask for, or None for nothing."""
        return None if self.pruner is None else self.pruner.request(in_passing=True)

    def span(self) -> AbstractContextManager[object]:
        """Return the context of the write that prunes, which is a span if there are rules."""
        return nullcontext() if self.pruner is None else observing.span("chat.prune")

    def tell(self, pruned: Pruned | None) -> None:
        """Tell what went, if anything did, or why nothing could."""
        if pruned is None or self.pruner is None:
            return
        if pruned.error is not None:
            events.history_prune_failed(pruned.error, **self.ids)
        elif pruned.removed:
            tell_pruned(self.pruner, self.ids)


async def begin_pruning(
    kit: PruneKit | None,
    request: TurnRequest,
    control: TurnControl,
    ids: events.Ids,
    archiving: Archiving,
) -> TurnPruning:
    """Return what the end of a turn prunes; rules that cannot be used fail no turn.

    What would go is archived first if there is a memory.
    """
    if kit is None:
        return TurnPruning(ids=ids)
    window = kit.policy.window if request.window is None else request.window
    try:
        pruner = await settle(kit.pruner(window), control)
        await settle(archiving.take(pruner, ids), control)
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

    With `dry_run` nothing is removed. With a memory what goes is archived there first, without
    extraction, for which there is no model here.

    Raises:
        ConfigError: Rows would be deleted that the retention `forever` keeps, or the estimator
            cannot be used.
    """
    kit = PruneKit(policy=policy, rules=rules, clock=state.clock)
    pruner = await kit.pruner(policy.window)
    if dry_run:
        rows = await find_settled(state, key, session_id)
        is_told = pruner.is_told_uncovered
        pruner.choose(rows, await find_uncovered(state, key, rows) if is_told else ())
    else:
        if policy.memory is not None:
            memory = await MemoryKit.open(policy.memory, state=state, clock=state.clock)
            setting = FlushSetting(ask=None, context=NO_CONTEXT, ids={"key": key})
            archive = Archive(state=state, key=key, flush=memory.flush(setting))
            await archive.take(pruner, session_id=session_id)
        with observing.span("chat.prune"):
            await state.transcripts.prune(key, request=pruner.request(session_id=session_id))
        tell_pruned(pruner, {"key": key, "session_id": session_id})
    return pruner.plan or PrunePlan.empty()


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


def prune_kit_for(policy: ChatPolicy, state: AgentState | None, clock: Clock) -> PruneKit | None:
    """Return what prunes with the ends of turns, or None without rules or a state."""
    if policy.prune is None or state is None:
        return None
    return PruneKit(policy=policy, rules=policy.prune, clock=clock)
