"""Elsewhere: the runs of other processes, as far as the Agent State tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

import attrs

from vitehub_chat.agent.agent import Agent
from vitehub_chat.errors import ConfigError
from vitehub_chat.model.ids import new_id
from vitehub_chat.streams.chunks import Chunk
from vitehub_chat.streams.encoders import Encoder, encoder_for
from vitehub_chat.streams.lost import OpenParts
from vitehub_chat.web.access import Place
from vitehub_chat.web.mirroring import Mirror, RunFacts, Shelf
from vitehub_chat.web.runs import LiveRun, RunRegistry

LOOK_S: Final = 0.1
"""How often it is looked for news of a run."""

ASK_S: Final = 1.0
"""After so long without news it is asked whether the process of a run still lives."""

STOP_S: Final = 60.0
"""How long a run of another process may take to be recorded once it was told to stop."""


class FarRun:
    """A run of another process.

    Attributes:
        encoder: What makes frames of its chunks.
        message_id: The id of its answer, or None while it has not begun.
    """

    def __init__(self, shelf: Shelf, run_id: str, facts: RunFacts) -> None:
        self.encoder: Encoder = encoder_for(facts.form)
        self.message_id = facts.message_id
        self._shelf = shelf
        self._run_id = run_id
        self._is_lost = False

    async def follow(self, idle_s: float | None = None) -> AsyncGenerator[Chunk | None]:
        """Yield the chunks from the start, then live; None whenever nothing came for `idle_s`.

        If its process died, the chunks after the last ones that it wrote say so.
        """
        parts = OpenParts()
        async with aclosing(self._read(idle_s)) as chunks:
            async for chunk in chunks:
                if chunk is not None:
                    parts.see(chunk)
                yield chunk
        if self._is_lost:
            for chunk in parts.end_lost(self.encoder.form):
                yield chunk

    async def _read(self, idle_s: float | None) -> AsyncGenerator[Chunk | None]:
        loop = asyncio.get_running_loop()
        number, heard_at, told_at = 0, loop.time(), loop.time()
        while True:
            block = await self._shelf.block(self._run_id, number)
            now = loop.time()
            if block is not None:
                number, heard_at, told_at = number + 1, now, now
                for chunk in block["chunks"]:
                    yield chunk
                if block["is_last"]:
                    return
                continue
            if now - heard_at >= ASK_S:
                heard_at = now
                if not await self._goes_on(number):
                    self._is_lost = True
                    return
            if idle_s is not None and now - told_at >= idle_s:
                told_at = now
                yield None
            await asyncio.sleep(LOOK_S)

    async def _goes_on(self, number: int) -> bool:
        """Tell whether there may be more; what was written in between is not overlooked."""
        facts = await self._shelf.facts(self._run_id)
        is_told = facts is not None and not facts.is_ended and facts.is_replayable
        if is_told and await self._shelf.is_running():
            return True
        return await self._shelf.block(self._run_id, number) is not None


@attrs.frozen
class Elsewhere:
    """Tells other processes of the runs here, and finds and stops theirs.

    Args:
        agent: The mounted agent.
        runs: The runs of this process.
    """

    agent: Agent
    runs: RunRegistry

    async def announce(self, place: Place, form: str, user_message_id: str | None) -> Mirror:
        """List a run that is about to begin.

        Raises:
            ConfigError: There is no state.
            StateError: The state failed.
        """
        mirror = Mirror(await self._shelf(place), new_id(), form)
        await mirror.open(user_message_id)
        return mirror

    def show(self, mirror: Mirror, run: LiveRun) -> None:
        """Write down what a run says, until it has ended."""
        run.far_id = mirror.run_id
        self.runs.accompany(mirror.follow(run))

    async def find(self, place: Place) -> FarRun | None:
        """Return the newest run of a place in another process that can be followed, or None."""
        shelf = await self._shelf(place)
        waiting: FarRun | None = None
        for run_id, facts in await self._living(shelf):
            if not facts.is_replayable or await self._lost_its_beginning(shelf, run_id, facts):
                continue
            found = FarRun(shelf, run_id, facts)
            if found.message_id is not None:
                return found
            waiting = waiting or found
        return waiting

    async def stop(self, place: Place, message_id: str | None) -> FarRun | None:
        """Stop what other processes run in a place; return the first of it once all is recorded.

        With a message id only the run of that answer or message; None if there is none.
        """
        shelf = await self._shelf(place)
        stopped = [
            (run_id, facts)
            for run_id, facts in await self._living(shelf)
            if message_id is None or message_id in {facts.message_id, facts.user_message_id}
        ]
        for run_id, _ in stopped:
            await shelf.ask_to_stop(run_id)
        ended = [await _recorded(shelf, run_id, facts) for run_id, facts in stopped]
        return FarRun(shelf, *ended[0]) if ended else None

    async def _living(self, shelf: Shelf) -> list[tuple[str, RunFacts]]:
        """Return the runs of other processes that have not ended, the newest first."""
        here = self.runs.far_ids(shelf.place)
        listed = [run_id for run_id in await shelf.run_ids() if run_id not in here]
        if not listed or not await shelf.is_running():
            return []
        return [each async for each in _living_of(shelf, reversed(listed))]

    async def _lost_its_beginning(self, shelf: Shelf, run_id: str, facts: RunFacts) -> bool:
        return facts.message_id is not None and await shelf.block(run_id, 0) is None

    async def _shelf(self, place: Place) -> Shelf:
        state = await self.agent.runtime().open_state()
        if state is None:
            raise ConfigError("'state' needs a state", path="replay")
        return Shelf(state=state, place=place)


async def _living_of(shelf: Shelf, run_ids: Iterable[str]) -> AsyncGenerator[tuple[str, RunFacts]]:
    for run_id in run_ids:
        facts = await shelf.facts(run_id)
        if facts is not None and not facts.is_ended:
            yield run_id, facts


async def _recorded(shelf: Shelf, run_id: str, facts: RunFacts) -> tuple[str, RunFacts]:
    """Wait until a run is recorded, or its process is dead; return what is known of it then."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + STOP_S
    while loop.time() < give_up_at:
        now = await shelf.facts(run_id)
        if now is None or now.is_ended:
            return run_id, now or facts
        facts = now
        if not await shelf.is_running():
            # What ended is written a moment later, what died never.
            await asyncio.sleep(LOOK_S)
            return run_id, await shelf.facts(run_id) or facts
        await asyncio.sleep(LOOK_S)
    return run_id, facts
