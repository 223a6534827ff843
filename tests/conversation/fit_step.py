"""The fit step of one turn over a store, without the turn."""

from __future__ import annotations

import attrs

from vitehub_chat.conversation.driving import CallFacts
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.fit_source import FitSource
from vitehub_chat.conversation.fitting import Fitted, Fitter
from vitehub_chat.conversation.selecting import Draft, draft_turn, prepare_turn, window_request
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import ChatPolicy, HistoryWindow
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import SessionRef, SessionRequest


@attrs.frozen(kw_only=True)
class FitStep:
    """Fits a current message behind what is stored; the window cuts nothing.

    Attributes:
        key: The conversation; its unnamed session.
    """

    kit: FitKit
    state: AgentState
    key: ConversationKey
    facts: CallFacts = attrs.field(factory=CallFacts)

    async def fit(self, current: Message) -> Fitted:
        """Carry it out for a message that is not stored."""
        fitter, source = await self.prepare(current)
        return await fitter.fit(source)

    async def prepare(self, current: Message) -> tuple[Fitter, FitSource]:
        """Return what fits such a message, and what it is fitted behind."""
        window = HistoryWindow(source="transcript", max_messages=10_000)
        policy = ChatPolicy(window=window, context=self.kit.policy)
        draft = draft_turn(TurnRequest(messages=(current,)), policy)
        session = await self.state.sessions.resolve(SessionRequest(conversation=self.key))
        fitter = await self.kit.fitter(
            self.facts, ids={}, session=session, reread=lambda: self._source(draft, session)
        )
        return fitter, await self._source(draft, session)

    async def _source(self, draft: Draft, session: SessionRef) -> FitSource:
        wanted = window_request(draft, self.state.clock.now())
        assert wanted is not None
        window = await self.state.transcripts.window(self.key, session=session, window=wanted)
        prepared = prepare_turn(draft, session, window, self.state.clock.now())
        return FitSource(selected=prepared, prepared=prepared, window=window)
