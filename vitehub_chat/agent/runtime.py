"""Runtime: an agent with its state and driver at work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import attrs

from vitehub_chat import plugins
from vitehub_chat.agent.capability import TriggerContext
from vitehub_chat.agent.driver import Driver
from vitehub_chat.agent.invocation import AgentInvocation, invoke
from vitehub_chat.agent.replay import replay_result
from vitehub_chat.conversation import events
from vitehub_chat.conversation.acceptance import Acceptance
from vitehub_chat.conversation.admitting import Caller
from vitehub_chat.conversation.continuation import goes_on
from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.driving import InvokeRequest, Sink
from vitehub_chat.conversation.ending import end_turns
from vitehub_chat.conversation.engine import TurnEngine
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.outlet import Outlet
from vitehub_chat.errors import ConfigError, InputError
from vitehub_chat.model.clock import Clock, SystemClock
from vitehub_chat.model.events import AgentEvent, RunStarted
from vitehub_chat.model.forking import ForkSafeLock
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
    from vitehub_chat.config.agent_definition import StateChoice

MAX_ENDED_ENTRIES = 10_000
"""How many ended turns an agent without a state remembers, to answer repeats."""


DESK = "vitehub_chat.channels.desk:ChannelDesk"
"""What gives channels their messages and answers; a layer above, loaded with the first channel."""


class AgentRuntime:
    """What runs one agent; built at its first use, closed with it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = ForkSafeLock()
        self._building = ForkSafeLock()
        """Held for as long as a driver is imported, and never on an event loop."""
        self._state: AgentState | None = None
        self._owns_state = False
        self._clock: Clock = SystemClock()
        self._turns: AgentState | None = None
        self._is_open = False
        self._driver: Driver | None = None
        self._engine: TurnEngine | None = None
        self._desk: Any = None
        self._running: dict[asyncio.Task[RunResult], TurnControl] = {}

    async def read(self, trigger: str, given: Mapping[str, Any]) -> TurnRequest:
        """Return the request that the input of a trigger means."""
        found = self._agent.find_trigger(trigger)
        request = await found.read(TriggerContext(agent=self._agent.name, trigger=trigger), given)
        return attrs.evolve(request, trigger=trigger)

    async def prepare(self, request: TurnRequest) -> PreparedInvocation:
        """Return what the driver would get; writes nothing."""
        return await (await self._open()).prepare(request)

    async def accept(self, request: TurnRequest) -> Acceptance:
        """Accept a message of a channel, which nobody waits for, see `Acceptor.accept`."""
        return await (await self._open()).accept(request)

    async def settle(self, grace: timedelta) -> None:
        """Let the turns that run for others end, and their answers arrive; stop what is slower."""
        if self._engine is not None:
            await self._engine.settle(grace)
        if self._desk is not None:
            await self._desk.settle(grace)

    async def desk(self) -> Any:
        """Return the `ChannelDesk` of this agent, built at first use; None without channels."""
        await self._open()
        return self._desk

    async def sweep(self) -> int:
        """Run what waits for dead processes, and return how many turns that begins here."""
        return await (await self._open()).sweep()

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
        await self._find_state()
        if self._state is not None and self._owns_state and not self._is_open:
            await self._state.__aenter__()
            self._is_open = True
        return self._state

    async def aclose(self) -> None:
        """Stop the turns and wait until they are recorded, then close driver and state."""
        if self._engine is not None:
            self._engine.close()
        await self._stop_turns()
        if self._engine is not None:
            await self._engine.aclose()
        if self._desk is not None:
            await self._desk.aclose()
        if self._driver is not None:
            await self._driver.aclose()
        if self._turns is not None:
            await self._turns.aclose()
        if self._state is not None and self._owns_state:
            await self._state.aclose()

    async def _stop_turns(self) -> None:
        """Stop the turns, those of other event loops too, but not the one that asks for it."""
        asking = asyncio.current_task()
        await end_turns([turn for turn in tuple(self._running.items()) if turn[0] is not asking])

    def find_state(self) -> AgentState:
        """Find out which state there is; return where turns are kept if there is none.

        Looking for the provider of a scheme may search files and import them.

        Raises:
            ConfigError: The state, or where it is named, is wrong.
        """
        if self._turns is not None:
            return self._turns
        # Neither is open yet: nothing is lost where another thread is faster.
        state, owns_state = _state_of(self._agent)
        clock = SystemClock() if state is None else state.clock
        turns = open_agent_state("memory:", clock=clock, max_ended_entries=MAX_ENDED_ENTRIES)
        with self._lock:
            if self._turns is None:
                self._state, self._owns_state, self._clock = state, owns_state, clock
                self._turns = turns
            return self._turns

    async def _find_state(self) -> AgentState:
        if self._turns is None and _choice_of(self._agent) is not None:
            return await asyncio.to_thread(self.find_state)
        return self.find_state()

    def _keep(
        self, run: Coroutine[Any, Any, RunResult], control: TurnControl
    ) -> asyncio.Task[RunResult]:
        task = asyncio.create_task(run)
        self._running[task] = control
        task.add_done_callback(self._running.pop)
        return task

    async def _open(self) -> TurnEngine:
        turns = await (await self._find_state()).__aenter__()
        state = await self.open_state()
        if self._engine is not None:
            return self._engine
        desk = await self._build_desk(state)
        policy = self._agent.policy
        memory: MemoryKit | None = None
        if policy.memory is not None and state is not None:
            memory = await MemoryKit.open(policy.memory, state=state, clock=self._clock)
        with self._lock:
            if self._engine is None:
                self._desk = desk
                self._engine = self._build_engine(turns, state, policy, desk, memory)
            return self._engine

    async def _build_desk(self, state: AgentState | None) -> Any:
        if not self._agent.channels:
            return None
        build: Any = await asyncio.to_thread(plugins.import_path, DESK, path="channels")
        return build(
            agent=self._agent.name,
            channels=self._agent.channels,
            policy=self._agent.policy,
            state=state,
            clock=self._clock,
        )

    def _build_engine(
        self,
        turns: AgentState,
        state: AgentState | None,
        policy: ChatPolicy,
        outlet: Outlet | None = None,
        memory: MemoryKit | None = None,
    ) -> TurnEngine:
        return TurnEngine(
            agent=self._agent.name,
            policy=policy,
            turns=(state or turns).turns,
            state=state,
            invoke=self._invoke,
            clock=self._clock,
            new_id=new_id,
            outlet=outlet,
            memory=memory,
        )

    async def _run(self, request: TurnRequest, control: TurnControl, sink: Sink) -> RunResult:
        return await _run_through(await self._open(), request, control, sink)

    async def _run_directly(
        self, request: TurnRequest, control: TurnControl, sink: Sink
    ) -> RunResult:
        turns = await (await self._find_state()).__aenter__()
        window = HistoryWindow(source="thread", max_messages=len(request.messages))
        policy = attrs.evolve(
            ChatPolicy(window=window),
            timeout=self._agent.policy.timeout,
            reply=self._agent.policy.reply,
        )
        return await _run_through(self._build_engine(turns, None, policy), request, control, sink)

    async def _invoke(self, asked: InvokeRequest) -> AgentInvocation:
        # A dry run asks no driver; how much its model takes is a question to be answered.
        is_needed = not asked.is_dry_run or self._agent.policy.context is not None
        driver = await self._open_driver() if is_needed else None
        return await invoke(
            asked,
            agent=self._agent.name,
            capabilities=self._agent.capabilities,
            driver=driver,
            state=None if asked.request.trigger is None else self._state,
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
        with self._building:
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
        known = request.current if goes_on(request) else None
        for event in replay_result(result, known):
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


def _choice_of(agent: Agent) -> StateChoice | None:
    """Return which state the definition or the environment chooses, if none was passed in."""
    from vitehub_chat.config.agent_definition import StateChoice  # noqa: PLC0415 - loads pydantic
    from vitehub_chat.config.environment import state_settings  # noqa: PLC0415

    given = agent.state
    if given is not None and not isinstance(given, StateChoice):
        return None
    return state_settings(os.environ, given).choice


def _state_of(agent: Agent) -> tuple[AgentState | None, bool]:
    """Return the state of an agent, not opened if it is given by URL, and whether it is ours."""
    choice, retention = _choice_of(agent), agent.policy.retention
    if choice is None:
        given = cast("AgentState | None", agent.state)
        if given is not None:
            _check_retention(getattr(given, "retention", None), agent.policy)
        return given, False
    options = dict(choice.options)
    if retention is not UNSET and "transcripts" not in options:
        options["transcripts"] = {"retention": _written(retention)}
    state = open_agent_state(choice.url, **options)
    _check_retention(getattr(state, "retention", None), agent.policy)
    return state, True


def _check_retention(stored: Retention, policy: ChatPolicy) -> None:
    if stored == "forever" and policy.prune is not None and policy.prune.mode == "delete":
        raise ConfigError(
            "deletes what transcripts.retention='forever' of the state keeps",
            path="transcripts.prune.mode",
            hint="hide rows with mode='hide', or leave one of them out",
        )
    if policy.retention is not UNSET and policy.retention != stored:
        raise ConfigError(
            "differs from the retention of the state",
            path="transcripts.retention",
            hint="retention belongs to the state; set it there alone",
        )


def _written(retention: Any) -> Any:
    """Return a retention as a state option: milliseconds for a duration."""
    if retention is None or isinstance(retention, str):
        return retention
    return retention // timedelta(milliseconds=1)
