"""Flushing one batch: pending, note, entries; what fails, and what is not done twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.memory.notes import ranges, sections_in, sections_of, texts
from vitehub_chat import open_agent_state, plugins
from vitehub_chat.config.context_model import MemoryModel
from vitehub_chat.config.lowering import read_options
from vitehub_chat.config.memory_options import lower_memory
from vitehub_chat.conversation.flushing import FlushBatch, FlushSetting
from vitehub_chat.conversation.memory.kit import MemoryKit
from vitehub_chat.conversation.memory.sinks import NOTE, MemorySinkSetting
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.context_policy import FlushStatus
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.rolling import PendingFlush, Rolling
from vitehub_chat.state.context import NO_CONTEXT
from vitehub_chat.state.contract import AgentState
from vitehub_chat.state.values import NewRow, SessionRequest
from vitehub_chat.testing.clock import FakeClock

KEY = ConversationKey(None, "memory", None, "t")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
LOGGER = "vitehub_chat.conversation"


class ListSink:
    """Keeps sections in a list; may fail, or never end."""

    def __init__(self, *, raises: int = 0, hangs: bool = False) -> None:
        self.sections: list[tuple[str, date]] = []
        self.calls = 0
        self._raises = raises
        self._hangs = hangs

    async def append(self, section: str, /, *, date: date, flush_id: str) -> None:
        """Append a section."""
        self.calls += 1
        if self._hangs:
            await asyncio.Event().wait()
        if self.calls <= self._raises:
            raise OSError("the sink fails")
        assert flush_id in section
        self.sections.append((section, date))


class Model:
    """A model that names entries."""

    def __init__(self, *answers: str | Exception) -> None:
        self.prompts: list[str] = []
        self._answers = answers

    async def __call__(self, system: str, prompt: str, /, *, deadline: datetime | None) -> str:
        """Return the next answer."""
        assert "long-term memory" in system
        assert deadline is not None
        answer = self._answers[min(len(self.prompts), len(self._answers) - 1)]
        self.prompts.append(prompt)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """One session of four messages, and flushes of them."""

    def __init__(self, state: AgentState, clock: FakeClock, root: Path) -> None:
        self.state = state
        self.clock = clock
        self.root = root

    async def rolling(self) -> Rolling:
        found = await self.state.summaries.get_rolling(KEY, session_id=None)
        assert found is not None
        return found

    async def flush(
        self,
        *,
        model: Model | None = None,
        rolling: Rolling | None = None,
        to_seq: int = 4,
        **options: Any,
    ) -> FlushStatus:
        """Flush the first messages, to the folder unless there is a sink."""
        if "sink" not in options:
            options["root"] = str(self.root)
        policy = await asyncio.to_thread(
            lambda: lower_memory(read_options(MemoryModel, options, path="memory"))
        )
        assert policy is not None
        kit = await MemoryKit.open(policy, state=self.state, clock=self.clock)
        flush = kit.flush(FlushSetting(ask=model, context=NO_CONTEXT, ids={"key": KEY}))
        assert flush.blocks is (options.get("on_error") == "block")
        batch = FlushBatch(
            conversation=KEY,
            session_id=None,
            from_seq=1,
            to_seq=to_seq,
            messages=texts(*"abcdefgh"[:to_seq]),
            rolling=rolling or await self.rolling(),
        )
        return await flush.flush(batch)

    async def sections(self) -> list[tuple[int, int]]:
        return ranges(await asyncio.to_thread(sections_in, self.root))

    async def entries(self) -> list[str]:
        def read() -> list[str]:
            files = sorted((self.root / "entries").glob("*.md"))
            return sorted(path.read_text(encoding="utf-8").split("\n")[-2] for path in files)

        return await asyncio.to_thread(read)


@pytest.fixture(params=["memory", "file"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock(NOON)
    url = "memory:" if request.param == "memory" else f"file:{tmp_path}/state.db"
    async with open_agent_state(url, clock=clock) as state:
        rows = [NewRow(message=message) for message in texts(*"abcdefgh")]
        await state.transcripts.append(SessionRequest(conversation=KEY), rows=rows)
        yield Bench(state, clock, tmp_path / "notes")


async def test_a_batch_is_pending_and_its_note_is_written(bench: Bench) -> None:
    assert await bench.flush() == "done"
    pending = (await bench.rolling()).pending
    assert pending is not None
    assert (pending.from_seq, pending.to_seq, len(pending.flush_id)) == (1, 4, 32)
    note = await asyncio.to_thread((bench.root / "2026-05-04.md").read_text, "utf-8")
    assert [each.flush_id for each in sections_of(note)] == [pending.flush_id]


async def test_a_pending_batch_keeps_its_id_and_its_day(bench: Bench) -> None:
    sink = ListSink(raises=1)
    assert await bench.flush(sink=sink) == "failed"
    first = (await bench.rolling()).pending
    bench.clock.advance(days=2)
    assert await bench.flush(sink=sink) == "done"
    assert (await bench.rolling()).pending == first
    assert [day for _, day in sink.sections] == [date(2026, 5, 4)]


async def test_a_note_that_is_done_is_not_asked_for_again(bench: Bench) -> None:
    sink = ListSink()
    for _ in range(3):
        assert await bench.flush(sink=sink) == "done"
        bench.clock.advance(days=1)
    assert sink.calls == 1


async def test_a_smaller_batch_again_is_known_although_a_larger_one_is_pending(
    bench: Bench,
) -> None:
    sink = ListSink()
    for to_seq in (4, 8, 4, 8):
        assert await bench.flush(sink=sink, to_seq=to_seq) == "done"
    assert sink.calls == 2


async def test_an_id_that_is_pending_is_used_whatever_the_messages_say_now(bench: Bench) -> None:
    known = PendingFlush("f" * 32, 1, 4)
    rolling = attrs.evolve(await bench.rolling(), pending=known)
    assert await bench.flush(rolling=rolling) == "done"
    found = await asyncio.to_thread(sections_in, bench.root)
    assert [each.flush_id for each in found] == ["f" * 32]


async def test_another_state_of_the_session_is_not_flushed(bench: Bench) -> None:
    sink = ListSink()
    stale = attrs.evolve(await bench.rolling(), generation=7)
    assert await bench.flush(sink=sink, rolling=stale) == "failed"
    assert sink.calls == 0
    assert (await bench.rolling()).pending is None


async def test_a_sink_that_takes_too_long_has_failed(bench: Bench) -> None:
    sink = ListSink(hangs=True)
    assert await bench.flush(sink=sink, note_timeout_ms=1, on_error="block") == "failed"
    assert sink.calls == 1


async def test_a_failure_is_told_without_text(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        await bench.flush(sink=ListSink(raises=1))
    facts = [vars(each) for each in caplog.records]
    assert [(each["msg"], each["levelname"], each["step"]) for each in facts] == [
        ("chat.memory.flush_failed", "WARNING", "note")
    ]
    assert facts[0]["error"] == "OSError"
    assert "the sink fails" not in repr(facts)


async def test_what_was_archived_and_found_is_told(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        await bench.flush(model=Model("- [fact] one\n- [task] two"))
    told = {each.msg: vars(each) for each in caplog.records}
    flushed, extracted = told["chat.memory.flushed"], told["chat.memory.extracted"]
    assert (flushed["messages"], flushed["from_seq"], flushed["to_seq"]) == (4, 1, 4)
    assert (extracted["entries"], extracted["flush_id"]) == (2, flushed["flush_id"])


async def test_entries_are_extracted_once_and_equal_ones_added_once(bench: Bench) -> None:
    model = Model("- [fact] Lives in Oslo", "- [fact] lives in OSLO\n- [decision] uses SQLite")
    assert await bench.flush(model=model) == "done"
    assert await bench.flush(model=model) == "done"
    assert len(model.prompts) == 1
    assert await bench.flush(model=model, to_seq=8) == "done"
    assert len(model.prompts) == 2
    assert await bench.entries() == ["Lives in Oslo", "uses SQLite"]


async def test_extraction_that_failed_is_done_by_the_next_try(bench: Bench) -> None:
    model = Model(RuntimeError("away"), "- [fact] Lives in Oslo")
    assert await bench.flush(model=model) == "done"
    assert await bench.entries() == []
    assert await bench.flush(model=model) == "done"
    assert await bench.entries() == ["Lives in Oslo"]
    assert await bench.sections() == [(1, 4)]


async def test_without_a_daily_note_extraction_decides(bench: Bench) -> None:
    model = Model(RuntimeError("away"), "NONE")
    assert await bench.flush(model=model, daily_note=False) == "failed"
    assert await bench.flush(model=model, daily_note=False) == "done"
    assert await bench.sections() == []


@pytest.mark.parametrize("options", [{"extract": False}, {}])
async def test_with_nothing_to_do_it_is_off(bench: Bench, options: dict[str, Any]) -> None:
    assert await bench.flush(daily_note=False, **options) == "off"
    assert (await bench.rolling()).pending is None


async def test_a_sink_for_sections_alone_gets_no_entries(bench: Bench) -> None:
    model = Model("- [fact] Lives in Oslo")
    assert await bench.flush(model=model, sink=ListSink()) == "done"
    assert model.prompts == []


async def test_notes_can_be_kept_in_the_state(bench: Bench) -> None:
    model = Model("- [fact] Lives in Oslo")
    assert await bench.flush(sink="state", model=model) == "done"
    pending = (await bench.rolling()).pending
    assert pending is not None
    kept: Any = await bench.state.values.get(NOTE + pending.flush_id, scope=KEY)
    assert kept["date"] == "2026-05-04"
    assert ranges(sections_of(kept["section"])) == [(1, 4)]
    assert not await asyncio.to_thread(bench.root.exists)


async def test_a_sink_is_found_by_its_name(bench: Bench) -> None:
    sink, settings = ListSink(), []

    def create(setting: MemorySinkSetting) -> ListSink:
        settings.append(setting)
        return sink

    with plugins.memory_sinks.using(mine=create):
        assert await bench.flush(sink="mine") == "done"
    assert sink.calls == 1
    assert [each.conversation for each in settings] == [KEY]


async def test_an_unknown_name_is_refused_before_anything_is_written(bench: Bench) -> None:
    with pytest.raises(ConfigError) as caught:
        await bench.flush(sink="stat")
    assert caught.value.path == "memory.sink"
    assert "'state'" in str(caught.value)


async def test_where_files_do_not_last_a_folder_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERCEL", "1")
    with pytest.raises(ConfigError, match="Vercel") as caught:
        await bench.flush()
    assert caught.value.path == "memory.root"
    assert await bench.flush(sink="state") == "done"


async def test_the_day_is_that_of_the_zone(bench: Bench) -> None:
    bench.clock.advance(hours=3)
    assert await bench.flush(timezone="Asia/Tokyo") == "done"
    names = await asyncio.to_thread(lambda: sorted(path.name for path in bench.root.glob("*.md")))
    assert names == ["2026-05-05.md"]


async def test_two_sessions_on_one_folder_do_not_interleave(bench: Bench) -> None:
    policy = lower_memory(read_options(MemoryModel, {"root": str(bench.root)}))
    assert policy is not None
    kit = await MemoryKit.open(policy, state=bench.state, clock=bench.clock)
    setting = FlushSetting(ask=None, context=NO_CONTEXT, ids={})

    async def flush(thread: str) -> FlushStatus:
        key = attrs.evolve(KEY, thread=thread)
        rows = [NewRow(message=message) for message in texts(*"abcd")]
        await bench.state.transcripts.append(SessionRequest(conversation=key), rows=rows)
        rolling = await bench.state.summaries.get_rolling(key, session_id=None)
        assert rolling is not None
        batch = FlushBatch(
            conversation=key,
            session_id=None,
            from_seq=1,
            to_seq=4,
            messages=texts(*"abcd"),
            rolling=rolling,
        )
        return await kit.flush(setting).flush(batch)

    found = await asyncio.gather(*(flush(f"t{number}") for number in range(8)))
    assert set(found) == {"done"}
    assert await bench.sections() == [(1, 4)] * 8
