"""Fit kit: what all turns of an agent share to make their calls fit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.conversation.driving import CallFacts
from vitehub_chat.conversation.fit_source import FitSource
from vitehub_chat.conversation.fitting import Fitter
from vitehub_chat.conversation.flushing import FlushSetting, MakeFlush
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.roll_store import RollStore
from vitehub_chat.conversation.sizing import CountCache, Sizer, counter_for
from vitehub_chat.model.clock import Clock
from vitehub_chat.model.context_policy import ContextPolicy
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.selection.tokens_counter import TokenCounter
from vitehub_chat.state.context import NO_CONTEXT, StateContext
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRef


@attrs.define(kw_only=True, eq=False)
class FitKit:
    """Makes calls fit by one policy.

    Attributes:
        policy: What was decided.
        clock: What deadlines are told by.
        state: Where rolling states are, or None: then nothing is condensed.
        make_flush: Makes what takes what is condensed into the memory, or None.
        counts: The sizes of messages that were counted before.
    """

    policy: ContextPolicy
    clock: Clock
    state: AgentState | None = None
    make_flush: MakeFlush | None = None
    counts: CountCache = attrs.field(factory=CountCache)
    _counter: TokenCounter | None = attrs.field(default=None, init=False)

    async def fitter(
        self,
        facts: CallFacts,
        *,
        ids: events.Ids,
        session: SessionRef | None = None,
        context: StateContext = NO_CONTEXT,
        reread: Callable[[], Awaitable[FitSource]] | None = None,
    ) -> Fitter:
        """Return what makes the call of one turn fit.

        Args:
            facts: What is sent beside the messages, and to whom.
            ids: What events are about.
            session: The session whose messages may be condensed, or None: they are only left out.
            context: The context under which the turn writes.
            reread: Gives the source by what is stored now.

        Raises:
            ConfigError: The estimator or the limit cannot be used.
        """
        flush = None
        if self.make_flush is not None:
            flush = self.make_flush(FlushSetting(ask=facts.ask, context=context, ids=ids))
        return Fitter(
            facts=facts,
            sizer=Sizer(counter=await self.counter(), policy=self.policy, cache=self.counts),
            clock=self.clock,
            store=self._store(session, context),
            flush=flush,
            reread=reread,
            ids=ids,
        )

    async def counter(self) -> TokenCounter:
        """Return what counts, found at first use; that may import and read files."""
        if self._counter is None:
            self._counter = await asyncio.to_thread(counter_for, self.policy.estimator)
        return self._counter

    def _store(self, session: SessionRef | None, context: StateContext) -> RollStore | None:
        if self.state is None or session is None:
            return None
        return RollStore(
            conversation=ConversationKey.decode(session.conversation),
            session_id=session.session_id,
            context=context,
            summaries=self.state.summaries,
        )


def fit_kit_for(
    policy: ContextPolicy | None,
    clock: Clock,
    state: AgentState | None,
    memory: MemoryKit | None,
) -> FitKit | None:
    """Return what makes the calls of an agent fit, or None where nothing was decided."""
    if policy is None:
        return None
    make_flush = None if memory is None else memory.flush
    return FitKit(policy=policy, clock=clock, state=state, make_flush=make_flush)
