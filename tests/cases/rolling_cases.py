"""Cases of the rolling summary, through the fit step of a turn on a store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from tests.cases.repeated import expand
from tests.conversation.fit_step import FitStep
from vitehub_chat import open_agent_state
from vitehub_chat.config.context_model import ContextModel
from vitehub_chat.config.context_options import find_context, lower_context
from vitehub_chat.config.lowering import read_options
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.fitting import Fitted
from vitehub_chat.errors import NotFoundError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.messages import Message
from vitehub_chat.model.ui_messages import read_message
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.row_requests import TruncateRequest
from vitehub_chat.state.values import NewRow, SessionRequest, WindowRequest

KEY = ConversationKey(None, "cases", None, "t")
NOBODY = Message("current", "assistant", ())
"""Stands for the current message where a case has none; it has no size and answers nothing."""


async def run(case: Mapping[str, Any], url: str | None) -> None:
    """Check one case."""
    assert url is not None
    given = expand(case["input"])
    async with open_agent_state(url) as state:
        play = Play(state, case["config"], given["summarizer"])
        await play.store(given["messages"])
        for step, expected in zip(given["steps"], case["expect"]["steps"], strict=True):
            found = await getattr(play, step["do"])(step)
            wanted = {name: expand(value) for name, value in expected.items()}
            results = wanted.pop("results_in_any_order", None)
            if results is not None:
                told = [{name: each[name] for name in results[0]} for each in found["results"]]
                assert sorted(told, key=_reason_of) == sorted(results, key=_reason_of)
            assert {name: found.get(name) for name in wanted} == wanted
        play.check_that_equal_steps_gave_equal_payloads()


class Play:
    """The steps of one case on one session."""

    def __init__(
        self, state: AgentState, config: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> None:
        options = {**config, "summarizer": self._summarize}
        self._state = state
        self._answers = list(answers)
        self._policy = lower_context(find_context(read_options(ContextModel, options), {}))
        self._kit = FitKit(policy=self._policy, clock=state.clock, state=state)
        self._calls = 0
        self._meanwhile: Mapping[str, Any] | None = None
        self._together: asyncio.Barrier | None = None
        self._prepared: list[tuple[Any, Any]] = []

    async def store(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Store the conversation; its numbers are those of the case."""
        rows = [
            NewRow(message=attrs.evolve(read_message(message), id=f"m{message['seq']}"))
            for message in messages
        ]
        stored = await self._state.transcripts.append(SessionRequest(conversation=KEY), rows=rows)
        assert [row.seq for row in stored] == [message["seq"] for message in messages]

    async def prepare(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out the fit step of one turn."""
        self._calls, self._meanwhile = 0, step.get("while_summarizing")
        fitted = await self._fit(step["current"])
        payload = (fitted.prepared.system, [m.to_json() for m in fitted.prepared.messages])
        self._prepared.append((step["current"], payload))
        return {
            **await self._stored(),
            **_result(fitted),
            "summarizer_calls": self._calls,
        }

    async def prepare_together(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out two fit steps that both read before one of them writes."""
        self._together = asyncio.Barrier(2)
        both = await asyncio.gather(self._fit(step["current"]), self._fit(step["current"]))
        self._together = None
        stored = await self._stored()
        results = [{**_result(fitted), "anchor": stored["anchor"]} for fitted in both]
        return {**stored, "results": results}

    async def truncate(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Cut the conversation off."""
        cut = await self._state.transcripts.truncate(
            KEY, request=TruncateRequest(message_id=f"m{step['from_seq']}")
        )
        stored = await self._stored()
        return {
            **stored,
            "deleted": cut.deleted,
            "summary": cut.summary,
            "summary_text": stored["summary"],
            "generation": cut.generation,
        }

    async def delete_session(self, _step: Mapping[str, Any]) -> None:
        """Delete the session with all that belongs to it."""
        await self._state.sessions.clear(KEY, session_id=None, delete_session=True)

    def check_that_equal_steps_gave_equal_payloads(self) -> None:
        """Check that preparing again without new rows gives the same bytes."""
        for (one, first), (other, second) in zip(self._prepared, self._prepared[1:], strict=False):
            if one == other:
                assert first == second

    async def _fit(self, current: Mapping[str, Any] | None) -> Fitted:
        message = NOBODY if current is None else attrs.evolve(read_message(current), id="current")
        return await FitStep(kit=self._kit, state=self._state, key=KEY).fit(message)

    async def _summarize(
        self, _previous: str, _messages: Sequence[Message], **_limits: object
    ) -> str:
        self._calls += 1
        if self._together is not None:
            await self._together.wait()
        if self._meanwhile is not None:
            step, self._meanwhile = self._meanwhile, None
            await getattr(self, step["do"])(step)
        answer = self._answers[min(self._calls, len(self._answers)) - 1]
        if answer.get("raises"):
            raise RuntimeError("the summarizer of the case fails")
        return str(answer["returns"])

    async def _stored(self) -> dict[str, Any]:
        page = await self._state.transcripts.window(
            KEY, session=None, window=WindowRequest(limit=10_000, whole_conversation=True)
        )
        found: dict[str, Any] = {"rows": [row.seq for row in page.shown]}
        try:
            await self._state.sessions.get(KEY, session_id=None)
        except NotFoundError:
            return {**found, "session_exists": False}
        rolling = await self._state.summaries.get_rolling(KEY, session_id=None)
        checkpoints = await self._state.summaries.get_checkpoints(KEY, session_id=None)
        assert rolling is not None
        return {
            **found,
            "session_exists": True,
            "anchor": rolling.anchor,
            "version": rolling.version,
            "summary": rolling.summary,
            "checkpoints": [each.through_seq for each in checkpoints],
        }


def _result(fitted: Fitted) -> dict[str, Any]:
    budget = fitted.budget
    sent = [message for message in fitted.prepared.messages if message.role != "system"]
    return {
        "loops": budget.loops,
        "rolled": budget.rolled,
        "trimmed": budget.trimmed,
        "used": budget.used,
        "over": budget.over,
        "reason": budget.reason,
        "flush_status": budget.flush_status,
        "payload": [
            int((message.id or "m")[1:]) for message in sent if (message.id or "").startswith("m")
        ],
    }


def _reason_of(result: Mapping[str, Any]) -> str:
    return str(result["reason"])
