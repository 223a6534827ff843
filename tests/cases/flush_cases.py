"""Cases of the memory flush, through the fit step of a turn on a store."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.cases.repeated import expand
from tests.cases.rolling_cases import Play
from tests.memory.notes import sections_in, sections_of
from vitehub_chat import open_agent_state
from vitehub_chat.config.context_model import MemoryModel
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.memory_options import lower_memory
from vitehub_chat.conversation.fit_kit import FitKit
from vitehub_chat.conversation.memory.folder import NoteFolder
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.memory.sinks import FileSink
from vitehub_chat.model.memory_policy import MemorySink
from vitehub_chat.state.contract import AgentState
from vitehub_chat.testing.clock import FakeClock


class CrashError(BaseException):
    """The process of a case ends."""


class Crashing:
    """Something whose process ends right after one of its methods."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner = inner
        self._method = method

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._and_crash(found) if name == self._method else found

    @staticmethod
    def _and_crash(call: Any) -> Any:
        async def crash(*args: Any, **options: Any) -> None:
            await call(*args, **options)
            raise CrashError

        return crash


class StateOfCase:
    """A state whose process may end within a write of a rolling state."""

    def __init__(self, state: AgentState, crash_after: str | None) -> None:
        self._state = state
        method = {"pending": "set_pending", "commit": "commit_roll"}.get(crash_after or "")
        self.summaries = state.summaries if method is None else Crashing(state.summaries, method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class CountedSink:
    """A sink that counts its calls, and may fail."""

    def __init__(self, inner: MemorySink, *, raises: bool) -> None:
        self._inner = inner
        self._raises = raises
        self.calls = 0

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Append a section, or fail."""
        self.calls += 1
        if self._raises:
            raise OSError("the sink of the case fails")
        await self._inner.append(section, date=date, flush_id=flush_id)


async def run(case: Mapping[str, Any], url: str | None) -> None:
    """Check one case."""
    assert url is not None
    given, expected = expand(case["input"]), case["expect"]
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        async with open_agent_state(url, clock=clock) as state:
            play = FlushPlay(state, clock, case["config"], given, Path(folder))
            await play.store(given["messages"])
            for step, wanted in zip(given["steps"], expected["steps"], strict=True):
                found = await play.take(step)
                if wanted is None:
                    assert found is None
                else:
                    assert {name: found[name] for name in wanted} == wanted
        play.check_files(expected["files"])
        assert play.sink.calls == expected.get("sink_calls", play.sink.calls)


class FlushPlay(Play):
    """The steps of one case on one session, with notes in a folder."""

    def __init__(
        self,
        state: AgentState,
        clock: FakeClock,
        config: Mapping[str, Any],
        given: Mapping[str, Any],
        folder: Path,
    ) -> None:
        super().__init__(state, config["context"], given["summarizer"])
        self._clock = clock
        self._memory = config.get("memory")
        self._folder = folder
        root = folder / (self._memory or {}).get("root", "memory")
        files = FileSink(NoteFolder(root), timedelta(seconds=5))
        self.sink = CountedSink(files, raises=given.get("sink") == "raises")
        self._has_own_sink = given.get("sink") == "raises"

    async def take(self, step: Mapping[str, Any]) -> Any:
        """Carry out a step; None if its process ended."""
        if step["do"] == "append":
            await self.store(step["messages"])
            return {}
        passed = datetime.fromisoformat(step["now"]) - self._clock.now()
        self._clock.advance(seconds=passed.total_seconds())
        crash_after = step.get("crash_after")
        state: Any = StateOfCase(self._state, crash_after)
        self._kit = FitKit(
            policy=self._policy,
            clock=self._clock,
            state=state,
            make_flush=await self._make_flush(state, crash_after),
        )
        try:
            return await self.prepare(step)
        except CrashError:
            assert crash_after is not None
            return None

    async def _make_flush(self, state: Any, crash_after: str | None) -> Any:
        if self._memory is None:
            return None
        options = {**self._memory, "root": self._folder / self._memory["root"]}
        if self._has_own_sink or crash_after == "note":
            del options["root"]
            options["sink"] = Crashing(self.sink, "append") if crash_after == "note" else self.sink
        policy = await asyncio.to_thread(
            lambda: lower_memory(read_options(MemoryModel, options, path="memory"))
        )
        assert policy is not None
        return (await MemoryKit.open(policy, state=state, clock=self._clock)).flush

    def check_files(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Check that there are these notes, with so many whole sections of different ids."""
        notes = sorted(self._folder.rglob("*.md"))
        sections_in(self._folder / "memory")
        found = {
            str(path.relative_to(self._folder)): len(sections_of(path.read_text(encoding="utf-8")))
            for path in notes
        }
        assert found == {name: facts["sections"] for name, facts in wanted.items()}
