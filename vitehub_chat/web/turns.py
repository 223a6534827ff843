"""Turn routes: having a message answered, following the answer, stopping it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vitehub_chat.agent.agent import Agent
from vitehub_chat.agent.triggers import stream_agent_trigger
from vitehub_chat.errors import StateError
from vitehub_chat.model.results import RunResult
from vitehub_chat.streams.ag_ui import AgUiEncoder
from vitehub_chat.streams.encoders import Encoder
from vitehub_chat.streams.ui_message_stream import UIMessageStreamEncoder
from vitehub_chat.web.access import Access, Place
from vitehub_chat.web.ag_ui_messages import read_ag_ui_messages
from vitehub_chat.web.ag_ui_restoring import Restorer
from vitehub_chat.web.ag_ui_resuming import Resumer
from vitehub_chat.web.elsewhere import Elsewhere, FarRun
from vitehub_chat.web.following import RunResponse
from vitehub_chat.web.inputs import InputBuilder, Sent, take_trusted
from vitehub_chat.web.principals import Principal
from vitehub_chat.web.problems import internal_problem, json_response, problem_of
from vitehub_chat.web.reading import check_new_chat_id, read_body
from vitehub_chat.web.replacements import ReplacementFinder, find_continued
from vitehub_chat.web.runs import LiveRun, RunRegistry
from vitehub_chat.web.settings import RouteSettings
from vitehub_chat.web.wire import AgUiBody, StopBody, TurnBody, read_model

TRIGGER = "chat.message"


class TurnRoutes:
    """The routes that start, follow and stop turns."""

    def __init__(
        self,
        agent: Agent,
        access: Access,
        inputs: InputBuilder,
        runs: RunRegistry,
        settings: RouteSettings,
    ) -> None:
        self._agent = agent
        self._access = access
        self._inputs = inputs
        self._replacements = ReplacementFinder(agent, access)
        self._resumer = Resumer(agent, access)
        self._restorer = Restorer(agent, access, is_allowed=settings.read_routes)
        self._runs = runs
        self._settings = settings
        self._elsewhere = Elsewhere(agent, runs) if settings.replay == "state" else None

    async def post(self, request: Request) -> Response:
        """Have a message answered: as a stream, or where JSON is wanted as one object."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        turn = read_model(TurnBody, body)
        trusted = take_trusted(body, self._settings.trusted)
        place = await self._access.resolve(request, principal, check_new_chat_id(turn.id))
        replace = await self._replacements.find(turn, place, principal)
        sent = Sent(messages=turn.messages, trusted=trusted, replace=replace)
        encoder = UIMessageStreamEncoder(continued=sent.goes_on)
        run = await self._start(sent, place, principal, encoder)
        if _wants_json(request):
            return await self._whole(run)
        return await self._follow(run)

    async def ag_ui(self, request: Request) -> Response:
        """Have a message answered for an AG-UI client, or tell it what is stored."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        turn = read_model(AgUiBody, body)
        is_read = self._restorer.is_asked(turn)
        chat_id = turn.thread_id if is_read else check_new_chat_id(turn.thread_id, "threadId")
        place = await self._access.resolve(request, principal, chat_id, "threadId")
        if is_read:
            restored = await self._restorer.restore(turn, place, principal)
            return RunResponse(restored, self._settings.keepalive_s)
        return await self._answer_ag_ui(turn, place, principal)

    async def _answer_ag_ui(self, turn: AgUiBody, place: Place, principal: Principal) -> Response:
        data = {
            "state": turn.state,
            "context": turn.context,
            "tools": turn.tools,
            "forwarded_props": turn.forwarded_props,
        }
        given = {name: value for name, value in data.items() if value is not None}
        settled = await self._resumer.settle(turn.resume or (), place, principal)
        messages = read_ag_ui_messages(turn.messages, settled)
        sent = Sent(messages=messages, context={"ag_ui": given}, replace=find_continued(messages))
        encoder = AgUiEncoder(thread_id=turn.thread_id, run_id=turn.run_id, continued=sent.goes_on)
        run = await self._start(sent, place, principal, encoder)
        return await self._follow(run)

    async def resume(self, request: Request) -> Response:
        """Follow what runs in a conversation, from its start; 204 if nothing does."""
        principal = await self._access.principal(request)
        place = await self._access.resolve(request, principal, request.path_params["id"])
        run = self._runs.find(place)
        if run is not None and run.buffer.is_replayable:
            return RunResponse(run, self._settings.keepalive_s)
        if run is None and self._elsewhere is not None:
            far = await self._elsewhere.find(place)
            if far is not None:
                return RunResponse(far, self._settings.keepalive_s)
        return Response(status_code=204)

    async def stop(self, request: Request) -> Response:
        """Stop what runs in a conversation; answers once the partial answer is recorded."""
        principal = await self._access.principal(request)
        body = await read_body(request, self._settings.max_body_bytes)
        given = read_model(StopBody, body)
        place = await self._access.resolve(request, principal, request.path_params["id"])
        run: LiveRun | FarRun | None = await self._runs.stop(place, given.message_id)
        if self._elsewhere is not None:
            far = await self._elsewhere.stop(place, given.message_id)
            run = run or far
        answer: dict[str, Any] = {"stopped": run is not None}
        if run is not None and run.message_id is not None:
            answer["message_id"] = run.message_id
        return json_response(answer)

    async def _start(
        self, sent: Sent, place: Place, principal: Principal, encoder: Encoder
    ) -> LiveRun:
        given = await self._inputs.build(sent, place, principal)
        stream = stream_agent_trigger(self._agent, TRIGGER, given, output="events")
        message_id = given["messages"][-1].id
        if self._elsewhere is None:
            return self._runs.start(place, stream, encoder, message_id)
        mirror = await self._elsewhere.announce(place, encoder.form, message_id)
        run = self._runs.start(place, stream, encoder, message_id)
        self._elsewhere.show(mirror, run)
        return run

    async def _follow(self, run: LiveRun) -> Response:
        """Return the stream of a run, or what kept it from beginning."""
        await run.buffer.begun(self._settings.keepalive_s)
        if run.problem is not None:
            return run.problem.respond()
        return RunResponse(run, self._settings.keepalive_s)

    async def _whole(self, run: LiveRun) -> Response:
        await run.ended()
        if run.error is None:
            return json_response(_result_to_json(await run.result()))
        if run.problem is not None:
            return run.problem.respond()
        if isinstance(run.error, StateError):
            return problem_of(run.error, message_id=run.user_message_id).respond()
        return internal_problem(
            run.error, "internal", run.error_text or "", message_id=run.user_message_id
        ).respond()


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
