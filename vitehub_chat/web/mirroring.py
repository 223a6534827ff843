"""Mirroring: what a run says and whether it is to stop, in the Agent State, for other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import attrs

from vitehub_chat.conversation import events
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import fit_id
from vitehub_chat.state.contract import AgentState
from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.web.access import Place
from vitehub_chat.web.runs import LiveRun

TTL: Final = timedelta(minutes=10)
"""How long everything of a run is kept after it was written."""

RELIST_S: Final = 240
"""How often a run that goes on is listed again, before the list is gone."""

FLUSH_S: Final = 0.25
FLUSH_SIZE: Final = 4096
MOST_LISTED: Final = 64
RETRIES: Final = 8


@attrs.frozen(kw_only=True)
class RunFacts:
    """What other processes know of a run.

    Attributes:
        form: The form of its stream, as `output` names it.
        message_id: The id of its answer, once it has begun.
        user_message_id: The id of the message that it answers, or None.
        is_ended: Whether its answer is recorded.
        is_replayable: Whether somebody may still begin to follow.
    """

    form: str
    message_id: str | None = None
    user_message_id: str | None = None
    is_ended: bool = False
    is_replayable: bool = True


@attrs.frozen(kw_only=True)
class Shelf:
    """The values of the runs of one place.

    A run has its facts, its chunks in numbered blocks, and the wish that it stop. A list names the
    runs. They belong to the conversation and are deleted with it.
    """

    state: AgentState
    place: Place

    async def run_ids(self) -> tuple[str, ...]:
        """Return the runs that are listed, the newest last."""
        listed = await self.state.values.get_list(self._list, scope=self.place.key)
        return tuple(dict.fromkeys(str(run_id) for run_id in listed))

    async def list_run(self, run_id: str) -> None:
        """List a run; repeating keeps the list."""
        await self.state.values.append_to_list(
            self._list, items=[run_id], max_length=MOST_LISTED, ttl=TTL, scope=self.place.key
        )

    async def unlist(self, run_id: str) -> None:
        """Take a run off the list; gives up, and leaves it to its expiry, while others write."""
        for _ in range(RETRIES):
            listed = list(await self.state.values.get_list(self._list, scope=self.place.key))
            if run_id not in listed:
                return
            left = [each for each in listed if each != run_id]
            if await self._replace_list(listed, left):
                return

    async def _replace_list(self, listed: list[Any], left: list[Any]) -> bool:
        values, key = self.state.values, self.place.key
        if not left:
            return await values.compare_and_delete(self._list, expected=listed, scope=key)
        return await values.compare_and_set(
            self._list, expected=listed, value=left, ttl=TTL, scope=key
        )

    async def facts(self, run_id: str) -> RunFacts | None:
        """Return what is known of a run, or None once that is gone."""
        found = await self._get("run", run_id)
        return RunFacts(**found) if isinstance(found, Mapping) else None

    async def set_facts(self, run_id: str, facts: RunFacts) -> None:
        """Write down what is known of a run."""
        await self._set("run", run_id, attrs.asdict(facts))

    async def replace_facts(self, run_id: str, known: RunFacts, facts: RunFacts) -> bool:
        """Write down what is known of a run now, for as long again, unless that has changed."""
        return await self.state.values.compare_and_set(
            f"replay.run:{run_id}",
            expected=attrs.asdict(known),
            value=attrs.asdict(facts),
            ttl=TTL,
            scope=self.place.key,
        )

    async def block(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        """Return a block of chunks, `{"chunks", "is_last"}`, or None if there is none."""
        found = await self._get("block", f"{run_id}:{number}")
        return found if isinstance(found, Mapping) else None

    async def set_block(
        self, run_id: str, number: int, chunks: Sequence[Chunk], *, is_last: bool
    ) -> None:
        """Write a block of chunks."""
        block = {"chunks": list(chunks), "is_last": is_last}
        await self._set("block", f"{run_id}:{number}", block)

    async def delete_block(self, run_id: str, number: int) -> None:
        """Delete a block of chunks; no-op if there is none."""
        await self.state.values.delete(f"replay.block:{run_id}:{number}", scope=self.place.key)

    async def ask_to_stop(self, run_id: str) -> None:
        """Ask the process of a run to stop it."""
        await self._set("stop", run_id, {"stop": True})

    async def is_to_stop(self, run_id: str) -> bool:
        """Tell whether somebody asked to stop a run."""
        return await self._get("stop", run_id) is not None

    async def is_running(self) -> bool:
        """Tell whether a turn of the place waits or runs, in whatever process."""
        return await self.state.turns.running(self.place.key, session_id=self.place.session_id)

    @property
    def _list(self) -> str:
        session = self.place.session_id
        return "replay.runs" if session is None else fit_id(f"replay.runs:{session}")

    async def _get(self, kind: str, name: str) -> Any:
        return await self.state.values.get(f"replay.{kind}:{name}", scope=self.place.key)

    async def _set(self, kind: str, name: str, value: Any) -> None:
        key = f"replay.{kind}:{name}"
        await self.state.values.set(key, value=value, ttl=TTL, scope=self.place.key)


class Mirror:
    """Writes down what one run says, and stops it where another process asks for that.

    While the state is away nothing is lost: what was said goes out with the next write. Once its
    facts are gone the run was deleted with its conversation, and nothing of it is written any more.

    Attributes:
        run_id: The name of the run.
    """

    def __init__(self, shelf: Shelf, run_id: str, form: str) -> None:
        self.run_id = run_id
        self._shelf = shelf
        self._facts = RunFacts(form=form)
        self._number = 0
        self._held: list[Chunk] = []
        self._block: _Block | None = None
        self._has_last_block = False
        self._is_over = False
        self._is_deleted = False
        self._is_away = False

    async def open(self, user_message_id: str | None) -> None:
        """List the run, before it begins.

        Raises:
            StateError: The state failed.
        """
        self._facts = attrs.evolve(self._facts, user_message_id=user_message_id)
        await self._shelf.set_facts(self.run_id, self._facts)
        await self._shelf.list_run(self.run_id)

    async def follow(self, run: LiveRun) -> None:
        """Write until the run has ended and everything is written."""
        loop = asyncio.get_running_loop()
        relist_at = loop.time() + RELIST_S
        with run.buffer.read() as reader:
            while not run.buffer.is_closed:
                await reader.wait(FLUSH_S, FLUSH_SIZE)
                self._held.extend(reader.take())
                await self._try(self._tick(run))
                if loop.time() >= relist_at:
                    relist_at = loop.time() + RELIST_S
                    await self._try(self._keep_listed())
            await run.ended()
            self._held.extend(reader.take())
        for _ in range(RETRIES):
            await self._try(self._write(run, is_last=True))
            if self._is_over or self._is_deleted:
                break
            await asyncio.sleep(FLUSH_S)
        await self._try(self._shelf.unlist(self.run_id))

    async def _tick(self, run: LiveRun) -> None:
        await self._write(run, is_last=False)
        if await self._shelf.is_to_stop(self.run_id):
            run.stop()

    async def _keep_listed(self) -> None:
        if await self._shelf.replace_facts(self.run_id, self._facts, self._facts):
            await self._shelf.list_run(self.run_id)

    async def _write(self, run: LiveRun, *, is_last: bool) -> None:
        """Write what was said since the last time; what is not known to be written comes again."""
        if not run.buffer.is_replayable:
            self._held = []
        if self._block is not None:
            await self._write_block(self._block)
        if self._held or (is_last and not self._has_last_block):
            chunks, self._held = self._held, []
            await self._write_block(_Block(chunks, is_last))
        facts = attrs.evolve(
            self._facts,
            message_id=run.message_id,
            is_ended=is_last,
            is_replayable=run.buffer.is_replayable,
        )
        if facts != self._facts and not self._is_deleted:
            await self._shelf.replace_facts(self.run_id, self._facts, facts)
            # Not what was tried: a write that seemed to fail may have happened.
            self._facts = await self._shelf.facts(self.run_id) or self._facts
        self._is_over = is_last and facts == self._facts

    async def _write_block(self, block: _Block) -> None:
        if self._is_deleted:
            return
        # The same again under the same number: somebody may have read it already.
        self._block = block
        await self._shelf.set_block(self.run_id, self._number, block.chunks, is_last=block.is_last)
        if await self._shelf.facts(self.run_id) is None:
            await self._shelf.delete_block(self.run_id, self._number)
            self._is_deleted = True
        self._block = None
        self._number += 1
        self._has_last_block = block.is_last

    async def _try(self, step: Coroutine[Any, Any, None]) -> bool:
        """Take a step and tell whether that went well; the log has the first of some failures."""
        try:
            await step
        except StateError as error:
            if not self._is_away:
                events.turn_failed(error, code=error.code, message_id=self._facts.message_id)
            self._is_away = True
            return False
        self._is_away = False
        return True


@attrs.frozen
class _Block:
    """Some chunks that are written together."""

    chunks: Sequence[Chunk]
    is_last: bool
