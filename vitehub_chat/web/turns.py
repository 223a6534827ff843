"""Turn routes: having a message answered, following the answer, stopping it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from starlette.requests import Request
from starlette.responses import Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.triggers import stream_agent_trigger
from vitehub_chat.errors import InputError
from vitehub_chat.model.results import RunResult
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.encoders import Encoder
from vitehub_chat.streams.ui_message_stream import UIMessageStreamEncoder
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.ag_ui_messages import read_ag_ui_messages
from vitehub_chat.web.following import RunResponse
from vitehub_chat.web.inputs import InputBuilder, Sent, take_trusted
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.problems import internal_problem, json_response, problem_of
from vitehub_chat.web.reading import read_body
from vitehub_chat.web.replacements import ReplacementFinder
from vitehub_chat.web.runs import LiveRun, RunRegistry
from vitehub_chat.web.wire import AgUiBody, StopBody, TurnBody, read_model

TRIGGER = "chat.message"


@attrs.frozen(kw_only=True)
class TurnSettings:
    """What the application decided about turns.

    Attributes:
        trusted_fields: Which body fields a client may set, by their snake_case names.
        max_body_bytes: The largest body that is read.
        keepalive_s: After so many silent seconds a comment is sent.
    """

    trusted_fields: frozenset[str]
    max_body_bytes: int
    keepalive_s: float


class TurnRoutes:
    """The routes that start, follow and stop turns."""

    def __init__(
        self,
        agent: Agent,
        access: Access,
        inputs: InputBuilder,
        runs: RunRegistry,
        settings: TurnSettings,
    ) -> None:
        self._agent = agent
        self._access = access
        self._inputs = inputs
        self._replacements = ReplacementFinder(agent, access)
        self._runs = runs
        self._settings = settings

    async def post(self, request: Request) -> Response:
        """Have a message answered: as a stream, or where JSON is wanted as one object."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        turn = read_model(TurnBody, body)
        trusted = take_trusted(body, self._settings.trusted_fields)
        place = await self._access.resolve(request, principal, turn.id)
        _check_kind(turn)
        replace = await self._replacements.find(turn, place, principal)
        sent = Sent(messages=turn.messages, trusted=trusted, replace=replace)
        run = await self._start(sent, place, principal, UIMessageStreamEncoder())
        if _wants_json(request):
            return await self._whole(run)
        return await self._follow(run)

    async def ag_ui(self, request: Request) -> Response:
        """Have a message answered for an AG-UI client."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        turn = read_model(AgUiBody, body)
        place = await self._access.resolve(request, principal, turn.thread_id, "threadId")
        data = {
            "state": turn.state,
            "context": turn.context,
            "tools": turn.tools,
            "forwarded_props": turn.forwarded_props,
        }
        given = {name: value for name, value in data.items() if value is not None}
        messages = read_ag_ui_messages(turn.messages)
        sent = Sent(messages=messages, context={"ag_ui": given})
        encoder = AgUiEncoder(thread_id=turn.thread_id, run_id=turn.run_id)
        run = await self._start(sent, place, principal, encoder)
        return await self._follow(run, ends_with_mark=False)

    async def resume(self, request: Request) -> Response:
        """Follow what runs in a conversation, from its start; 204 if nothing does."""
        place = await self._place_of_path(request)
        run = self._runs.find(place)
        if run is None or not run.buffer.is_replayable:
            return Response(status_code=204)
        is_ag_ui = isinstance(run.encoder, AgUiEncoder)
        return RunResponse(run, self._settings.keepalive_s, ends_with_mark=not is_ag_ui)

    async def stop(self, request: Request) -> Response:
        """Stop what runs in a conversation; answers once the partial answer is recorded."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        given = read_model(StopBody, body)
        place = await self._access.resolve(request, principal, request.path_params["id"])
        run = await self._runs.stop(place, given.message_id)
        answer: dict[str, Any] = {"stopped": run is not None}
        if run is not None and run.message_id is not None:
            answer["message_id"] = run.message_id
        return json_response(answer)

    async def _place_of_path(self, request: Request) -> Place:
        principal = await self._access.principal(request)
        return await self._access.resolve(request, principal, request.path_params["id"])

    async def _start(
        self, sent: Sent, place: Place, principal: Principal, encoder: Encoder
    ) -> LiveRun:
        given = await self._inputs.build(sent, place, principal)
        stream = stream_agent_trigger(self._agent, TRIGGER, given, output="events")
        return self._runs.start(place, stream, encoder, given["messages"][-1].id)

    async def _follow(self, run: LiveRun, *, ends_with_mark: bool = True) -> Response:
        """Return the stream of a run, or what kept it from beginning."""
        await run.buffer.begun(self._settings.keepalive_s)
        if run.buffer.is_empty and run.error is not None:
            return problem_of(run.error).respond()
        return RunResponse(run, self._settings.keepalive_s, ends_with_mark=ends_with_mark)

    async def _whole(self, run: LiveRun) -> Response:
        await run.ended()
        if run.error is None:
            return json_response(_result_to_json(await run.result()))
        if run.buffer.is_empty:
            return problem_of(run.error).respond()
        return internal_problem(run.error, "internal", run.error_text or "").respond()


def _check_kind(turn: TurnBody) -> None:
    """Refuse what is not offered yet.

    Raises:
        InputError: The client brings outputs of tools or decisions.
    """
    last = turn.messages[-1] if turn.messages else None
    is_answer = isinstance(last, Mapping) and last.get("role") == "assistant"
    if is_answer and turn.trigger == "submit-message":
        raise InputError(
            "outputs of tools are not available yet",
            path="messages",
            hint="end with a message of the user",
        )


def _wants_json(request: Request) -> bool:
    accept = request.headers.get("accept", "").lower()
    return "application/json" in accept and "text/event-stream" not in accept


def _result_to_json(result: RunResult) -> dict[str, Any]:
    message, budget = result.message, result.context_budget
    fields: dict[str, Any] = {
        "text": result.text,
        "message": None if message is None else message.to_json(),
        "new_messages": [each.to_json() for each in result.new_messages],
        "status": result.status,
        "finish_reason": result.finish_reason,
        "session_id": result.session_id,
        "context_budget": None if budget is None else budget.to_json(),
        "reason": result.reason,
    }
    return {name: value for name, value in fields.items() if value is not None}
