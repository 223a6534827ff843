"""Processes that append to one file when they are told to; also what each of them runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, too

from tests.benchmarks.scenes import Subject, Turns
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.opening import open_agent_state
from vitehub_chat.state.values import SessionRequest


class Crew:
    """Some processes, each with a thread of messages of its own.

    Attributes:
        failed: How many turns could not be appended.
    """

    def __init__(self, members: Sequence[asyncio.subprocess.Process]) -> None:
        self._members = members
        self.failed = 0

    @classmethod
    async def start(cls, url: str, count: int, stack: AsyncExitStack) -> Crew:
        """Start processes that have a store open; they end with the stack."""
        members = []
        for number in range(count):
            member = await asyncio.create_subprocess_exec(
                sys.executable,
                __file__,
                url,
                str(number),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            stack.push_async_callback(_end, member)
            members.append(member)
        crew = cls(members)
        await crew.appending(count, 1)()
        return crew

    def appending(self, count: int, turns: int) -> Subject:
        """Return what lets the first of them append so many turns each."""

        async def run() -> None:
            answers = await asyncio.gather(*(_tell(m, turns) for m in self._members[:count]))
            self.failed += sum(answers)

        return run


async def _tell(member: asyncio.subprocess.Process, turns: int) -> int:
    assert member.stdin is not None
    assert member.stdout is not None
    member.stdin.write(b"%d\n" % turns)
    await member.stdin.drain()
    return int(await member.stdout.readline())


async def _end(member: asyncio.subprocess.Process) -> None:
    assert member.stdin is not None
    member.stdin.close()
    await member.wait()


async def serve(url: str, name: str) -> None:
    """Append as many turns as each line of the input says, and answer how many failed."""
    turns = Turns(name)
    session = SessionRequest(conversation=ConversationKey(None, "benchmark", None, name))
    async with open_agent_state(url) as state:
        while line := await asyncio.to_thread(sys.stdin.readline):
            turns.make(int(line))
            failed = 0
            for _ in range(int(line)):
                try:
                    await state.transcripts.append(session, rows=turns.take())
                except StateError:
                    failed += 1
            sys.stdout.write(f"{failed}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
