"""Runtime: an agent with its state and driver at work."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from vitehub_chat import plugins
from vitehub_chat.agent.capability import TriggerContext
from vitehub_chat.agent.driver import Driver
from vitehub_chat.agent.invocation import AgentInvocation, invoke
from vitehub_chat.agent.replay import replay_result
from vitehub_chat.conversation import events
from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.driving import InvokeRequest, Sink
from vitehub_chat.conversation.engine import Caller, TurnEngine
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.events import AgentEvent, RunStarted
from vitehub_chat.model.ids import new_id
from vitehub_chat.model.messages import Message
from vitehub_chat.model.policies import UNSET, ChatPolicy, HistoryWindow, Retention
from vitehub_chat.model.requests import TurnRequest
from vitehub_chat.model.results import PreparedInvocation, RunResult
from vitehub_chat.model.ui_messages import read_messages
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.opening import open_agent_state

if TYPE_CHECKING:
    from vitehub_chat.agent.agent import Agent

MAX_ENDED_ENTRIES = 10_000
"""How many ended turns an agent without a state remembers, to answer repeats."""


class AgentRuntime:
    """What runs one agent; built at its first use, closed with it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._state, self._owns_state = _state_of(agent)
        self._clock: Clock = SystemClock() if self._state is None else self._state.clock
        self._is_open = False
        self._driver: Driver | None = None
        self._engine: TurnEngine | None = None
        self._turns: AgentState = open_agent_state(
            "memory:", clock=self._clock, max_ended_entries=MAX_ENDED_ENTRIES
        )
        self._running: dict[asyncio.Task[RunResult], TurnControl] = {}

    async def read(self, trigger: str, given: Mapping[str, Any]) -> TurnRequest:
        """Return the request that the input of a trigger means."""
        found = self._agent.find_trigger(trigger)
        request = await found.read(TriggerContext(agent=self._agent.name, trigger=trigger), given)
        return attrs.evolve(request, trigger=trigger)

    async def prepare(self, request: TurnRequest) -> PreparedInvocation:
        """Return what the driver would get; writes nothing."""
        return await (await self._open()).prepare(request)

    def start(
        self, request: TurnRequest, control: TurnControl, sink: Sink
    ) -> asyncio.Task[RunResult]:
        """Start a turn as a task of its own, which nothing but `control` stops."""
        return self._keep(self._run(request, control, sink), control)

    def start_directly(
        self, messages: Sequence[Message], control: TurnControl, sink: Sink
    ) -> asyncio.Task[RunResult]:
        """Start a call of the driver with these messages; nothing is stored or locked."""
        request = TurnRequest(messages=tuple(messages))
        return self._keep(self._run_directly(request, control, sink), control)

    async def open_state(self) -> AgentState | None:
        """Return the state, opened if it was given by URL, or None if there is none."""
        if self._state is not None and self._owns_state and not self._is_open:
            await self._state.__aenter__()
            self._is_open = True
        return self._state

    async def aclose(self) -> None:
        """Stop the turns and wait until they are recorded, then close driver and state."""
        await self._stop_turns()
        if self._engine is not None:
            await self._engine.aclose()
        if self._driver is not None:
            await self._driver.aclose()
        await self._turns.aclose()
        if self._state is not None and self._owns_state:
            await self._state.aclose()

    async def _stop_turns(self) -> None:
        """Stop the turns of this event loop, but not the one that asks for it."""
        loop, asking = asyncio.get_running_loop(), asyncio.current_task()
        mine = [t for t in tuple(self._running) if t.get_loop() is loop and t is not asking]
        for task in mine:
            self._running[task].stop("shutdown")
        if mine:
            await asyncio.wait(mine)

    def _keep(
        self, run: Coroutine[Any, Any, RunResult], control: TurnControl
    ) -> asyncio.Task[RunResult]:
        task = asyncio.create_task(run)
        self._running[task] = control
        task.add_done_callback(self._running.pop)
        return task

    async def _open(self) -> TurnEngine:
        state = await self.open_state()
        await self._turns.__aenter__()
        with self._lock:
            if self._engine is None:
                self._engine = self._build_engine(state, self._agent.policy)
            return self._engine

    def _build_engine(self, state: AgentState | None, policy: ChatPolicy) -> TurnEngine:
        return TurnEngine(
            agent=self._agent.name,
            policy=policy,
            turns=(state or self._turns).turns,
            state=state,
            invoke=self._invoke,
            clock=self._clock,
            new_id=new_id,
        )

    async def _run(self, request: TurnRequest, control: TurnControl, sink: Sink) -> RunResult:
        return await _run_through(await self._open(), request, control, sink)

    async def _run_directly(
        self, request: TurnRequest, control: TurnControl, sink: Sink
    ) -> RunResult:
        await self._turns.__aenter__()
        window = HistoryWindow(source="thread", max_messages=len(request.messages))
        policy = attrs.evolve(
            ChatPolicy(window=window),
            timeout=self._agent.policy.timeout,
            reply=self._agent.policy.reply,
        )
        return await _run_through(self._build_engine(None, policy), request, control, sink)

    async def _invoke(self, asked: InvokeRequest) -> AgentInvocation:
        driver = None if asked.is_dry_run else await self._open_driver()
        return await invoke(
            asked,
            agent=self._agent.name,
            capabilities=self._agent.capabilities,
            driver=driver,
        )

    async def _open_driver(self) -> Driver | None:
        if self._driver is None and self._agent.driver is not None:
            # Importing a model runtime takes a second or two, which other turns must not wait for,
            # and what logs takes a part of one, so it is not left to the first warning of a turn.
            self._driver = await asyncio.to_thread(self._build_driver)
        return self._driver

    def _build_driver(self) -> Driver:
        events.event_logger(events.LAYER)
        given: Any = self._agent.driver
        if callable(getattr(given, "stream", None)):
            return cast(Driver, given)
        with self._lock:
            if self._driver is None:
                factory = plugins.drivers.get(given.use, path="driver")
                self._driver = cast(Driver, factory(given.options))
            return self._driver


async def _run_through(
    engine: TurnEngine, request: TurnRequest, control: TurnControl, sink: Sink
) -> RunResult:
    """Run a turn; what another run answered is told as events, too."""
    has_started = False

    def listen(event: AgentEvent) -> None:
        nonlocal has_started
        has_started = has_started or isinstance(event, RunStarted)
        sink(event)

    result = await engine.run(Caller(request=request, control=control, sink=listen))
    if not has_started:
        for event in replay_result(result):
            sink(event)
    return result


def read_prompt(prompt: str | Sequence[Any]) -> tuple[Message, ...]:
    """Return a prompt as messages: a text is one user message.

    Raises:
        InputError: It is neither text nor a non-empty list of messages.
    """
    if isinstance(prompt, str):
        return (Message(None, "user", ({"type": "text", "text": prompt},)),)
    if not (isinstance(prompt, list | tuple) and prompt):
        raise InputError("must be text or a non-empty list of messages", path="messages")
    return read_messages(prompt)


def _state_of(agent: Agent) -> tuple[AgentState | None, bool]:
    """Return the state of an agent, not opened if it is given by URL, and whether it is ours."""
    from vitehub_chat.config.agent_definition import StateChoice  # noqa: PLC0415 - loads pydantic
    from vitehub_chat.config.environment import state_settings  # noqa: PLC0415

    given, retention = agent.state, agent.policy.retention
    if given is not None and not isinstance(given, StateChoice):
        _check_retention(getattr(given, "retention", None), retention)
        return given, False
    choice = state_settings(os.environ, given).choice
    if choice is None:
        return None, False
    options = dict(choice.options)
    if retention is not UNSET and "transcripts" not in options:
        options["transcripts"] = {"retention": _written(retention)}
    state = open_agent_state(choice.url, **options)
    _check_retention(getattr(state, "retention", None), retention)
    return state, True


def _check_retention(stored: Retention, asked: Any) -> None:
    if asked is not UNSET and asked != stored:
        raise ConfigError(
            "differs from the retention of the state",
            path="transcripts.retention",
            hint="retention belongs to the state; set it there alone",
        )


def _written(retention: Any) -> Any:
    """Return a retention as a state option: milliseconds for a duration."""
    if retention is None or isinstance(retention, str):
        return retention
    return int(retention.total_seconds() * 1000)
