"""A state machine that does the same to the tables of a provider and to plain tables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.providers.plain_tables import PlainTables
from tests.providers.table_values import (
    CONVERSATIONS,
    LOCKS,
    OWNERS,
    SESSIONS,
    SHOWN,
    START,
    TENANTS,
    TICKETS,
    documents,
    entries,
    maybe_times,
    rows,
    session_record,
    times,
)
from tests.providers.table_views import (
    delete_bit_by_bit,
    delete_entries_of,
    everything,
    neutral,
    walk,
)
from vitehub_chat.state.records import (
    DocumentRecord,
    EntryRecord,
    LockRecord,
    RowRecord,
    SessionRecord,
    SummaryRecord,
)
from vitehub_chat.state.stepped import SteppedAgentState
from vitehub_chat.state.tables import RowQuery, SessionQuery, Transaction

T = TypeVar("T")
Opener = Callable[[], SteppedAgentState]

fails = st.sampled_from([False, False, False, True])


class RolledBack(Exception):  # noqa: N818 - the machine raises it on purpose
    """Ends a step that must leave no trace; carries what the step saw before."""

    def __init__(self, answer: object) -> None:
        super().__init__("rolled back")
        self.answer = answer


class TableMachine(RuleBasedStateMachine):
    """Random steps on both; every answer must be the same, and afterwards everything seen."""

    def __init__(self, open_state: Opener) -> None:
        super().__init__()
        self.plain = PlainTables()
        self.runner = asyncio.Runner()
        self.state = self.runner.run(_opened(open_state))
        self.tokens = [0]

    def teardown(self) -> None:
        self.runner.run(self.state.aclose())
        self.runner.close()

    def both(self, step: Callable[[Transaction], T], *, fails: bool = False) -> T:
        before = self.plain.copy() if fails else self.plain
        expected = step(self.plain)
        if fails:
            self.plain = before
        actual = self.runner.run(_run(self.state, step, fails=fails))
        assert neutral(actual) == neutral(expected)
        return actual

    @rule(key=st.sampled_from(LOCKS), token=st.integers(1, 9), until=times, fails=fails)
    def put_lock(self, key: str, token: int, until: int, *, fails: bool) -> None:
        lock = LockRecord(lock_key=key, token=token, ticket_id="t", owner="o", until=until)
        self.both(lambda tx: tx.locks.put(lock), fails=fails)

    @rule(key=st.sampled_from(LOCKS), fails=fails)
    def delete_lock(self, key: str, *, fails: bool) -> None:
        self.both(lambda tx: tx.locks.delete(key), fails=fails)

    @rule()
    def next_token(self) -> None:
        self.tokens.append(self.runner.run(self.state.run_write(lambda tx: tx.locks.next_token())))
        assert self.tokens[-1] > self.tokens[-2]

    @rule(drawn=st.lists(entries(), min_size=1, max_size=5), fails=fails)
    def write_entries(self, drawn: Sequence[EntryRecord], *, fails: bool) -> None:
        self.both(lambda tx: [write_entry(tx, entry) for entry in drawn], fails=fails)

    @rule(ticket=st.sampled_from(TICKETS), fails=fails)
    def delete_entry(self, ticket: str, *, fails: bool) -> None:
        self.both(lambda tx: tx.entries.delete(ticket), fails=fails)

    @rule(now=times, limit=st.integers(1, 3), fails=fails)
    def purge_entries(self, now: int, limit: int, *, fails: bool) -> None:
        # Which ones go first is free, so the rest goes in the same step.
        def step(tx: Transaction) -> object:
            return tx.entries.purge(now, limit), tx.entries.purge(now, 1000)

        self.both(step, fails=fails)

    @rule(
        conversation=st.sampled_from(CONVERSATIONS),
        session=st.none() | st.integers(1, 2),
        fails=fails,
    )
    def delete_entries(self, conversation: str, session: int | None, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            return delete_entries_of(tx, conversation, session)

        self.both(step, fails=fails)

    @rule(
        session=st.integers(1, 2),
        tickets=st.lists(st.sampled_from(TICKETS), max_size=3),
        fails=fails,
    )
    def release_claims(self, session: int, tickets: Sequence[str], *, fails: bool) -> None:
        self.both(lambda tx: tx.entries.release_claims(session, tickets), fails=fails)

    @rule(encoded=st.sampled_from(CONVERSATIONS), count=st.integers(1, 3), fails=fails)
    def count(self, encoded: str, count: int, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            key = tx.conversations.ensure(encoded).key
            first = tx.conversations.allocate(key, count)
            return key, first, tx.conversations.next_generation(key)

        self.both(step, fails=fails)

    @rule(
        encoded=st.sampled_from(CONVERSATIONS),
        session_id=st.sampled_from(SESSIONS),
        base=st.sampled_from(SESSIONS),
        owner=st.sampled_from(OWNERS),
        at=times,
        fails=fails,
    )
    def insert_session(
        self,
        encoded: str,
        session_id: str | None,
        base: str | None,
        owner: str | None,
        at: int,
        *,
        fails: bool,
    ) -> None:
        def step(tx: Transaction) -> object:
            if session_id is not None and tx.sessions.by_id(encoded, session_id) is not None:
                return None
            key = tx.conversations.ensure(encoded).key
            session = session_record(encoded, key, session_id, base, owner, at)
            return tx.sessions.insert(session)

        self.both(step, fails=fails)

    @rule(
        encoded=st.sampled_from(CONVERSATIONS),
        session_id=st.sampled_from(SESSIONS),
        at=times,
        fails=fails,
    )
    def touch_session(self, encoded: str, session_id: str | None, at: int, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            session = find_session(tx, encoded, session_id)
            if session is not None:
                count = session.message_count + 1
                tx.sessions.update(attrs.evolve(session, last_message_at=at, message_count=count))
            return session is not None

        self.both(step, fails=fails)

    @rule(encoded=st.sampled_from(CONVERSATIONS), session_id=st.sampled_from(SESSIONS), fails=fails)
    def delete_session(self, encoded: str, session_id: str | None, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            session = find_session(tx, encoded, session_id)
            if session is None:
                return None
            rows = tx.rows.delete(session.conversation_key, session.key)
            summaries = tx.summaries.delete(session.conversation_key, session.key)
            tx.sessions.delete(session.key)
            return rows, summaries

        self.both(step, fails=fails)

    @rule(data=st.data(), encoded=st.sampled_from(CONVERSATIONS), now=times, fails=fails)
    def write_rows(self, data: st.DataObject, encoded: str, now: int, *, fails: bool) -> None:
        session_id = data.draw(st.sampled_from(SESSIONS))
        blanks = data.draw(st.lists(rows(), min_size=1, max_size=4))

        def step(tx: Transaction) -> object:
            session = find_session(tx, encoded, session_id)
            if session is None:
                key = tx.conversations.ensure(encoded).key
                new = session_record(encoded, key, session_id, session_id, None, now)
                session = tx.sessions.insert(new)
            return [write_row(tx, session, blank, now) for blank in blanks]

        self.both(step, fails=fails)

    @rule(encoded=st.sampled_from(CONVERSATIONS), limit=st.integers(1, 2), now=times, fails=fails)
    def remove_rows(self, encoded: str, limit: int, now: int, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            conversation = tx.conversations.get(encoded)
            if conversation is None:
                return None
            query = RowQuery(conversation_key=conversation.key, limit=limit, now=now)
            found = tx.rows.select(query)
            tx.rows.remove(found)
            return [tx.rows.by_message(row.conversation_key, row.message_id, now) for row in found]

        self.both(step, fails=fails)

    @rule(encoded=st.sampled_from(CONVERSATIONS), fails=fails)
    def delete_rows(self, encoded: str, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            conversation = tx.conversations.get(encoded)
            if conversation is None:
                return None
            return tx.rows.delete(conversation.key, None), tx.summaries.delete(
                conversation.key, None
            )

        self.both(step, fails=fails)

    @rule(
        encoded=st.sampled_from(CONVERSATIONS),
        session_id=st.sampled_from(SESSIONS),
        text=st.sampled_from(["", "said\0 🙂"]),
        fails=fails,
    )
    def put_summary(self, encoded: str, session_id: str | None, text: str, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            session = find_session(tx, encoded, session_id)
            key = tx.conversations.ensure(encoded).key
            summary = SummaryRecord(
                conversation_key=key,
                session_key=0 if session is None else session.key,
                text=text,
                created_at=START,
            )
            tx.summaries.put(summary)
            return tx.summaries.get(key, summary.session_key)

        self.both(step, fails=fails)

    @rule(drawn=st.lists(documents(), min_size=1, max_size=4), fails=fails)
    def put_documents(self, drawn: Sequence[DocumentRecord], *, fails: bool) -> None:
        def step(tx: Transaction) -> None:
            for each in drawn:
                tx.documents.put(each)

        self.both(step, fails=fails)

    @rule(drawn=documents(), fails=fails)
    def delete_document(self, drawn: DocumentRecord, *, fails: bool) -> None:
        self.both(lambda tx: tx.documents.delete(drawn.home, drawn.kind, drawn.name), fails=fails)

    @rule(
        encoded=st.sampled_from(CONVERSATIONS),
        session=st.none() | st.integers(0, 2),
        now=times,
        fails=fails,
    )
    def delete_documents(self, encoded: str, session: int | None, now: int, *, fails: bool) -> None:
        def step(tx: Transaction) -> object:
            return sorted(tx.documents.delete_of(encoded, session, now).items())

        self.both(step, fails=fails)

    @rule(data=st.data(), encoded=st.sampled_from(CONVERSATIONS), now=times)
    def select_rows(self, data: st.DataObject, encoded: str, now: int) -> None:
        session_id = data.draw(st.just("every one") | st.sampled_from(SESSIONS))
        bound = st.none() | st.integers(0, 12)
        query = RowQuery(
            conversation_key=0,
            is_shown=data.draw(st.sampled_from(SHOWN)),
            above=data.draw(bound),
            below=data.draw(bound),
            order=data.draw(st.sampled_from(["ascending", "descending"])),
            limit=data.draw(st.integers(0, 5)),
            now=now,
        )

        def step(tx: Transaction) -> object:
            conversation = tx.conversations.get(encoded)
            if conversation is None:
                return None
            session = find_session(tx, encoded, session_id)
            narrowed = attrs.evolve(
                query,
                conversation_key=conversation.key,
                session_key=None if session is None else session.key,
            )
            return tx.rows.select(narrowed), tx.rows.exists(narrowed)

        self.both(step)

    @rule(
        tenant=st.sampled_from(TENANTS),
        agent=st.sampled_from([None, "helper", "other"]),
        owner=st.sampled_from(OWNERS),
        encoded=st.none() | st.sampled_from(CONVERSATIONS),
        since=maybe_times,
        limit=st.integers(1, 3),
    )
    def walk_sessions(
        self,
        tenant: str | None,
        agent: str | None,
        owner: str | None,
        encoded: str | None,
        since: int | None,
        limit: int,
    ) -> None:
        def step(tx: Transaction) -> object:
            conversation = None if encoded is None else tx.conversations.get(encoded)
            query = SessionQuery(
                tenant=tenant,
                agent=agent,
                user_key=owner,
                conversation_key=None if conversation is None else conversation.key,
                updated_since=since,
                limit=limit,
            )
            return walk(tx, query)

        self.both(step)

    @invariant()
    def everything_seen_is_the_same(self) -> None:
        self.both(everything)

    @invariant()
    def every_deletion_would_do_the_same(self) -> None:
        self.both(delete_bit_by_bit, fails=True)


def check_tables(open_state: Opener, *, examples: int) -> None:
    """Compare the tables of freshly opened states with plain ones, over many random stories."""

    class Machine(TableMachine):
        def __init__(self) -> None:
            super().__init__(open_state)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=[Phase.generate],  # a story of 25 steps can be read; shrinking takes minutes
        ),
    )


def find_session(tx: Transaction, encoded: str, session_id: str | None) -> SessionRecord | None:
    conversation = tx.conversations.get(encoded)
    if conversation is None:
        return None
    return tx.sessions.of_conversation(conversation.key, session_id)


def write_entry(tx: Transaction, entry: EntryRecord) -> EntryRecord | None:
    holder = None if entry.claim_key is None else tx.entries.by_claim(entry.claim_key)
    if holder is not None and holder.ticket_id != entry.ticket_id:
        entry = attrs.evolve(entry, claim_key=None)
    old = tx.entries.get(entry.ticket_id)
    if old is None:
        return tx.entries.insert(entry)
    tx.entries.update(attrs.evolve(entry, position=old.position))
    return None


def write_row(tx: Transaction, session: SessionRecord, blank: RowRecord, now: int) -> int:
    key = session.conversation_key
    stored = tx.rows.by_message(key, blank.message_id, now)
    seq = tx.conversations.allocate(key, 1) if stored is None else stored.seq
    row = attrs.evolve(
        blank,
        conversation_key=key,
        seq=seq,
        session_key=session.key if stored is None else stored.session_key,
        session_id=session.session_id if stored is None else stored.session_id,
    )
    if stored is None:
        tx.rows.insert(row)
    else:
        tx.rows.replace(row)
    return seq


async def _opened(open_state: Opener) -> SteppedAgentState:
    return await open_state().__aenter__()


async def _run(state: SteppedAgentState, step: Callable[[Transaction], T], *, fails: bool) -> T:
    if not fails:
        return await state.run_write(step)

    def failing(tx: Transaction) -> T:
        raise RolledBack(step(tx))

    try:
        return await state.run_write(failing)
    except RolledBack as seen:
        answer: T = seen.answer  # type: ignore[assignment]
        return answer
