"""A station: an agent whose driver stops at every message until it is told to go on.

Run as a script it is a process of its own, which does what the lines on its input say.
"""

from __future__ import annotations

import abc
import asyncio
import itertools
import json
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs

from vitehub_chat import Agent, chat, define_agent, open_agent_state, stream_agent_trigger
from vitehub_chat.agent.driver import DriverCall, ToolSpec
from vitehub_chat.agent.stream import AgentStream
from vitehub_chat.errors import ChatError
from vitehub_chat.model.events import Done, DriverEvent, TextDelta
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock

LIMIT_S = 60


@attrs.frozen(kw_only=True)
class Ended:
    """How a message ended; with `error` it was raised to the caller."""

    status: str = ""
    text: str = ""
    session_id: str | None = None
    finish_reason: str | None = None
    reason: str | None = None
    is_driven: bool = False
    message_id: str | None = None
    error: str | None = None
    code: str | None = None

    @property
    def short(self) -> str:
        """The end in a few words, such as `complete A[]` or `ChatBusyError timeout`."""
        return f"{self.error} {self.code}" if self.error else f"{self.status} {self.text}".strip()


class BoomError(Exception):
    """What the driver raises for a message that begins with `fail`."""


class SteppedDriver:
    """Answers `D` after B and C with `D[B,C]`, once it is told to go on with `D`."""

    kind = "stepped"
    profile: str | None = None
    model: str | None = None
    window_tokens: int | None = None
    tools: Sequence[ToolSpec] = ()

    def __init__(self, *, stops: bool) -> None:
        self.calls: list[str] = []
        self.cancelled: list[str] = []
        self.told: list[dict[str, Any]] = []
        self.most = 0
        self._active = 0
        self._stops = stops
        self._begun: dict[str, asyncio.Event] = {}
        self._go_on: dict[str, asyncio.Event] = {}

    async def stream(self, call: DriverCall, /) -> AsyncIterator[DriverEvent]:
        earlier = ",".join(message.text for message in call.messages[:-1])
        answer = f"{call.text}[{earlier}]"
        self.calls.append(answer)
        self.told.append(_told_in(call))
        self._active += 1
        self.most = max(self.most, self._active)
        try:
            self.begun(call.text).set()
            if self._stops:
                await self.go_on(call.text).wait()
            if call.text.startswith("fail"):
                raise BoomError(call.text)
            yield TextDelta("text", answer)
            yield Done("stop")
        except asyncio.CancelledError:
            self.cancelled.append(call.text)
            raise
        finally:
            self._active -= 1

    def begun(self, text: str) -> asyncio.Event:
        return self._begun.setdefault(text, asyncio.Event())

    def go_on(self, text: str) -> asyncio.Event:
        return self._go_on.setdefault(text, asyncio.Event())

    async def aclose(self) -> None:
        """Hold nothing."""


def _told_in(call: DriverCall) -> dict[str, Any]:
    """Return what a call says about its input, as JSON."""
    invoker = call.context.get("invoker")
    return {
        "invoker": invoker and invoker.id,
        "note": call.context.get("note"),
        "thread": call.run and call.run.thread_id,
        "coalesced": call.context.get("chat.coalesced_ids"),
    }


class Station:
    """An agent with an opened state, and the turns that it runs now."""

    def __init__(self, options: Mapping[str, Any], clock: FakeClock, *, stops: bool = True) -> None:
        self.clock = clock
        self.driver = SteppedDriver(stops=stops)
        self.agent: Agent = define_agent(
            name="station", driver=self.driver, capabilities=[chat(options)]
        )
        self._state: AgentState | None = None
        self._streams: dict[str, AgentStream] = {}
        self._tasks: dict[str, asyncio.Task[Ended]] = {}

    async def open(self, url: str | None, **options: Any) -> None:
        if url is not None:
            state = open_agent_state(url, clock=self.clock, **options)
            self._state = await state.__aenter__()
            self.agent.state = self._state

    async def close(self) -> None:
        await self.agent.aclose()
        if self._state is not None:
            await self._state.aclose()

    async def do(self, op: str, arguments: Mapping[str, Any]) -> Any:
        answer: Any = await getattr(self, f"_{op}")(**arguments)
        return answer

    async def _run(self, key: str, given: Mapping[str, Any]) -> dict[str, Any]:
        stream = stream_agent_trigger(self.agent, "chat.message", given, output="events")
        self._streams[key] = stream
        self._tasks[key] = asyncio.create_task(_end_of(stream))
        return attrs.asdict(await self._tasks[key])

    async def _begun(self, text: str) -> None:
        await self.driver.begun(text).wait()

    async def _release(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.driver.go_on(text).set()

    async def _stop(self, key: str) -> None:
        self._streams[key].stop()

    async def _cancel(self, key: str) -> None:
        self._tasks[key].cancel()

    async def _advance(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    async def _seats(self, count: int) -> None:
        await until(lambda: self._engine is not None and len(self._engine._room) >= count)

    async def _sweep(self) -> int:
        return await self.agent.sweep()

    async def _calls(self) -> list[str]:
        return self.driver.calls

    async def _most(self) -> int:
        return self.driver.most

    async def _cancelled(self) -> list[str]:
        return self.driver.cancelled

    async def _told(self) -> list[dict[str, Any]]:
        return self.driver.told

    async def _leftovers(self) -> dict[str, int]:
        left = await leftovers_of(self.agent)
        return {**left, "driving": self.driver._active}

    @property
    def _engine(self) -> Any:
        return self.agent.runtime()._engine


async def leftovers_of(agent: Agent) -> dict[str, int]:
    """Count what an agent holds for its turns, once those in the background are over."""
    runtime = agent.runtime()
    engine = runtime._engine
    if engine is None:
        return {}
    await asyncio.gather(*(task for task, _ in engine._background), return_exceptions=True)
    return {
        "seats": len(engine._room),
        "background": len(engine._background),
        "lines": len(engine._limiter),
        "running": len(runtime._running),
    }


async def _end_of(stream: AgentStream) -> Ended:
    """Follow a turn to its end; cancelling this cancels who waits for the turn."""
    running = stream._begin()
    try:
        result = await running
    except ChatError as error:
        return Ended(error=type(error).__name__, code=error.code)
    except BoomError as error:
        return Ended(error="Boom", code=str(error))
    except asyncio.CancelledError:
        return Ended(error="CancelledError")
    return Ended(
        status=result.status,
        text=result.text,
        session_id=result.session_id,
        finish_reason=result.finish_reason,
        reason=result.reason,
        is_driven=result.prepared is not None,
        message_id=None if result.message is None else result.message.id,
    )


class Site(abc.ABC):
    """Where a test meets a station: in this process, or in one of its own."""

    @abc.abstractmethod
    def ask(self, op: str, **arguments: Any) -> Coroutine[Any, Any, Any]:
        """Have the station do something and return its answer."""

    def send(
        self, text: str, *, key: str | None = None, thread: str | None = "t", **fields: Any
    ) -> asyncio.Task[Ended]:
        """Send a message whose id is `key`, by default its text, and return its end to come."""
        message_id = text if key is None else key
        metadata = {"metadata": fields.pop("metadata")} if "metadata" in fields else {}
        message = {
            "id": message_id or None,
            "role": "user",
            "parts": [{"type": "text", "text": text}],
            **metadata,
        }
        run = {
            "threadId": thread,
            "channelId": fields.pop("channel", None),
            "messageId": fields.pop("run_message_id", None),
        }
        given = {"messages": [message], "run": run, **fields}
        return asyncio.create_task(self._send(message_id or text, given))

    async def _send(self, key: str, given: Mapping[str, Any]) -> Ended:
        return Ended(**await self.ask("run", key=key, given=given))

    async def start(self, text: str, **fields: Any) -> asyncio.Task[Ended]:
        """Send a message and wait until the driver has it."""
        task = self.send(text, **fields)
        await self.begun(text)
        return task

    async def begun(self, text: str) -> None:
        """Wait until the driver has a message."""
        await self.ask("begun", text=text)

    async def release(self, *texts: str) -> None:
        """Let the driver go on with some messages, now or when it gets them."""
        await self.ask("release", texts=texts)

    async def stop(self, key: str) -> None:
        """Stop the turn of a message."""
        await self.ask("stop", key=key)

    async def cancel(self, key: str) -> None:
        """Cancel who waits for a message."""
        await self.ask("cancel", key=key)

    async def advance(self, seconds: float) -> None:
        """Let time pass at the station."""
        await self.ask("advance", seconds=seconds)

    async def calls(self) -> list[str]:
        """Return what the driver answered, in order."""
        calls: list[str] = await self.ask("calls")
        return calls

    async def leftovers(self) -> dict[str, int]:
        """Return what is still there, once background turns are over."""
        left: dict[str, int] = await self.ask("leftovers")
        return {name: count for name, count in left.items() if count}


class LocalSite(Site):
    """A station of this process."""

    def __init__(self, station: Station) -> None:
        self.station = station

    async def ask(self, op: str, **arguments: Any) -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await self.station.do(op, arguments)

    async def advance(self, seconds: float) -> None:
        """Do nothing: the clock is the test's."""


class StationProcess:
    """A process with a station, for any number of tests one after the other."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._numbers = itertools.count()
        self._answers: dict[int, Future[Any]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, op: str, arguments: Mapping[str, Any]) -> Future[Any]:
        number, answer = next(self._numbers), Future[Any]()
        self._answers[number] = answer
        assert self.process.stdin is not None
        print(json.dumps([number, op, arguments]), file=self.process.stdin, flush=True)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(LIMIT_S) == 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            number, answer, error = json.loads(line)
            if error is None:
                self._answers.pop(number).set_result(answer)
            else:
                self._answers.pop(number).set_exception(AssertionError(error))
        self.process.stdout.close()


class RemoteSite(Site):
    """A station of another process."""

    def __init__(self, process: StationProcess) -> None:
        self._process = process

    async def ask(self, op: str, **arguments: Any) -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await asyncio.wrap_future(self._process.ask(op, arguments))


class _Server:
    """The process side: one station at a time, told by lines."""

    def __init__(self) -> None:
        self._station: Station | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def read() -> None:
            for line in sys.stdin:
                loop.call_soon_threadsafe(self._begin, line)
            loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=read, daemon=True).start()
        await ended.wait()
        await self._close()

    def _begin(self, line: str) -> None:
        task = asyncio.create_task(self._answer(*json.loads(line)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, op: str, arguments: dict[str, Any]) -> None:
        answer, problem = None, None
        try:
            answer = await self._do(op, arguments)
        except Exception as error:  # noqa: BLE001 - told to the test
            problem = repr(error)
        print(json.dumps([number, answer, problem]), flush=True)

    async def _do(self, op: str, arguments: dict[str, Any]) -> Any:
        if op == "open":
            await self._close()
            self._station = Station(arguments["options"], FakeClock())
            return await self._station.open(**arguments["store"])
        if op == "close":
            return await self._close()
        assert self._station is not None
        return await self._station.do(op, arguments)

    async def _close(self) -> None:
        station, self._station = self._station, None
        if station is not None:
            await station.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks go on until a condition holds."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - the package tells nobody
            await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(_Server().serve())
