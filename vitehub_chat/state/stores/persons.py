"""Persons: finding what is stored of one, bit by bit, and erasing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from vitehub_chat.errors import ChatBusyError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract_admin import PersonRecord
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.records import DocumentRecord, EntryRecord, SessionRecord
from vitehub_chat.state.steps import collecting, erasing
from vitehub_chat.state.steps.erasing import SLICE, Person
from vitehub_chat.state.steps.recording import Writing
from vitehub_chat.state.stores.store import TimedStep

Run = Callable[[TimedStep[Any], Needs], Awaitable[Any]]
"""Runs a step that is told what it will probably look at."""

_SESSIONS_AT_ONCE: Final = 20
_MESSAGES_AT_ONCE: Final = 10


@attrs.define
class PersonFinder:
    """What is stored of a person, found in many short reads."""

    person: Person
    read: Run
    now: int

    async def sessions(self) -> AsyncIterator[SessionRecord]:
        """Yield the sessions that belong to the person."""
        after: tuple[int, int] | None = None
        while True:
            step = _bind(erasing.sessions_of, self.person, after, _SESSIONS_AT_ONCE)
            found: Sequence[SessionRecord] = await self._look(step)
            for session in found:
                yield session
            if len(found) < _SESSIONS_AT_ONCE:
                return
            after = found[-1].last_message_at, found[-1].key

    async def messages(self) -> AsyncIterator[tuple[str, list[str]]]:
        """Yield what the person wrote, wherever it is: conversations with some message ids."""
        after = 0
        while True:
            found = await self._look(_bind(erasing.written_by, self.person, after))
            by_place: dict[str, list[str]] = {}
            for row in found:
                if self.person.is_here(row.conversation):
                    by_place.setdefault(row.conversation, []).append(row.message_id)
            for encoded, ids in by_place.items():
                for start in range(0, len(ids), _MESSAGES_AT_ONCE):
                    yield encoded, ids[start : start + _MESSAGES_AT_ONCE]
            if len(found) < SLICE:
                return
            after = found[-1].id

    async def entries(self) -> AsyncIterator[EntryRecord]:
        """Yield messages of the person that wait to be run."""
        above = 0
        while True:
            found = await self._look(_bind(erasing.with_payload, above))
            for entry in found:
                if erasing.names_person(entry, self.person):
                    yield entry
            if len(found) < SLICE:
                return
            above = found[-1].position

    async def aside(self) -> AsyncIterator[DocumentRecord]:
        """Yield rows of the person that were put aside."""
        after = ("", "", "")
        while True:
            found = await self._look(_bind(erasing.put_aside_after, after))
            for document in found:
                if erasing.is_by_person(document, self.person):
                    yield document
            if len(found) < SLICE:
                return
            last = found[-1]
            after = last.home, last.kind, last.name

    async def records(self) -> AsyncIterator[PersonRecord]:
        """Yield everything of the person: their sessions, then what is elsewhere."""
        seen: set[tuple[str, str]] = set()
        sessions: set[int] = set()
        async for session in self.sessions():
            above: int | None = 0
            while above is not None:
                step = _bind(collecting.collect, session, above, self.now)
                found: collecting.Collected = await self._look(step, _needs_of(session, self.now))
                seen.update((session.conversation, each) for each in found.messages)
                for record in found.records:
                    yield record
                above = found.next
            sessions.add(session.key)
        async for record in self._elsewhere(seen, sessions):
            yield record

    async def _elsewhere(
        self, seen: set[tuple[str, str]], sessions: set[int]
    ) -> AsyncIterator[PersonRecord]:
        """Yield what is not among messages by conversation and id, nor in sessions by number."""
        async for encoded, ids in self.messages():
            wanted = [each for each in ids if (encoded, each) not in seen]
            key = ConversationKey.decode(encoded)
            needs = Needs(now=self.now, conversation=key, message_ids=tuple(wanted))
            step = _bind(collecting.collect_messages, key, wanted, self.now)
            for record in await self._look(step, needs):
                yield record
        async for document in self.aside():
            if document.session_key not in sessions:
                yield collecting.record_of_document(document)
        async for entry in self.entries():
            yield collecting.record_of_entry(entry)

    async def _look(self, step: TimedStep[Any], needs: Needs | None = None) -> Any:
        return await self.read(step, Needs(now=self.now) if needs is None else needs)


@attrs.define
class Erasure:
    """The erasure of a person, in many short writes.

    Attributes:
        receipt: What was erased so far, by store.
        busy: Why some of it could not be erased now, or None.
    """

    finder: PersonFinder
    write: Run
    writing: Writing
    receipt: Counter[str] = attrs.field(factory=Counter)
    busy: ChatBusyError | None = None

    async def run(self) -> None:
        """Erase everything that is not in use at this moment."""
        person, now = self.finder.person, self.finder.now
        async for session in self.finder.sessions():
            step = _bind(erasing.erase_session, person, session.key, now)
            await self._erase(step, _needs_of(session, now))
        async for encoded, ids in self.finder.messages():
            key = ConversationKey.decode(encoded)
            needs = Needs(now=now, conversation=key, message_ids=tuple(ids))
            await self._erase(
                _bind(erasing.erase_messages, person, encoded, ids, self.writing), needs
            )
        async for entry in self.finder.entries():
            needs = Needs(now=now, ticket_id=entry.ticket_id)
            await self._erase(_bind(erasing.erase_entry, person, entry.ticket_id, now), needs)
        async for document in self.finder.aside():
            needs = Needs(now=now, conversation=ConversationKey.decode(document.home))
            await self._erase(_bind(erasing.erase_aside, person, document, now), needs)

    async def _erase(self, step: TimedStep[Mapping[str, int]], needs: Needs) -> None:
        try:
            self.receipt.update(await self.write(step, needs))
        except ChatBusyError as error:
            self.busy = error


def _bind(step: Callable[..., Any], *arguments: object) -> TimedStep[Any]:
    """Return a step with its arguments, among them the time that all steps for a person have."""
    return lambda tx, _now: step(tx, *arguments)


def _needs_of(session: SessionRecord, now: int) -> Needs:
    key = ConversationKey.decode(session.conversation)
    return Needs(now=now, conversation=key, session_ids=(session.session_id,), has_open=True)
