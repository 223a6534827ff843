"""The tables of the connection that writes; what it knows of the file is not asked for again.

Windows come from tails where these are long enough, conversations and sessions from heads.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

import attrs

from vitehub_chat.state.providers.sqlite.heads import Heads
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.passages import LARGEST_WINDOW
from vitehub_chat.state.providers.sqlite.rows import MOST_KEPT, SqliteRows
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.tables import SqliteTables
from vitehub_chat.state.records import ConversationRecord, RowRecord, SessionRecord
from vitehub_chat.state.sql.mapping import Columns, Values
from vitehub_chat.state.sql.sessions import SqlSessions
from vitehub_chat.state.sql.tables import SqlConversations
from vitehub_chat.state.tables import RowQuery


class TailingTables(SqliteTables):
    """What a step sees that writes."""

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        """Use a connection, and what is kept for all connections."""
        super().__init__(statements, kept)
        self._version: Hashable = None
        self.conversations = _Conversations(statements, kept.heads)
        self.sessions = _Sessions(statements, kept.heads)
        rows = _Rows(statements, kept)
        self.rows = rows
        self.forget_deleted = rows.forget_deleted

    @property
    def is_current(self) -> bool:
        """Whether nobody else has written since the last transaction began."""
        return self._version == self._find_version()

    def begin(self) -> None:
        """Note which version of the file the transaction sees that has begun."""
        self._version = self._find_version()
        self._kept.tails.begin(self._version)
        self._kept.heads.begin(self._version)

    def undo(self) -> None:
        """Rely on nothing that the transaction has written, because that is undone."""
        self._kept.tails.undo()
        self._kept.heads.clear()

    def ask(self, statements: Sequence[tuple[str, Values]]) -> Sequence[Sequence[Columns]]:
        """Run statements that no table is for, and return what each of them answers."""
        # They may have changed anything.
        self._kept.tails.clear()
        self._kept.heads.clear()
        return super().ask(statements)

    def _find_version(self) -> Hashable:
        # Numbers of different connections say nothing of each other.
        return self, self._statements.find_data_version()


class KnownTables(TailingTables):
    """What a step sees that reads a window without asking the file."""

    def __init__(self, kept: KeptRows) -> None:
        """Use what is kept for all connections."""
        super().__init__(cast("Statements", _NoStatements()), kept)


class _NoStatements:
    """No connection."""

    is_searched = False

    def fetch(self, name: str, _values: Values, /) -> Columns | None:
        """Answer nothing.

        Raises:
            LookupError: It has to be asked for.
        """
        raise LookupError(name)

    fetch_existing = fetch
    fetch_all = fetch
    exists = fetch
    change = fetch
    delete = fetch


class _Conversations(SqlConversations):
    """Conversations that are looked up once."""

    def __init__(self, statements: Statements, heads: Heads) -> None:
        super().__init__(statements)
        self._heads = heads

    def get(self, encoded: str, /) -> ConversationRecord | None:
        """Return a conversation by its encoded key."""
        found = self._heads.find_conversation(encoded)
        if found is None:
            found = super().get(encoded)
            if found is not None:
                self._heads.put_conversation(found)
        return found

    def allocate(self, key: int, count: int, /) -> int:
        """Take `count` numbers and return the first; numbers are never used again."""
        first = super().allocate(key, count)
        self._heads.count_up(key, first + count - 1)
        return first

    def next_generation(self, key: int, /) -> int:
        """Raise the generation and return it."""
        self._heads.forget_conversation(key)
        return super().next_generation(key)


class _Sessions(SqlSessions):
    """Sessions that are looked up once."""

    def __init__(self, statements: Statements, heads: Heads) -> None:
        super().__init__(statements)
        self._heads = heads

    def insert(self, session: SessionRecord, /) -> SessionRecord:
        """Insert a session and return it with its number."""
        self._heads.forget_sessions()
        return super().insert(session)

    def update(self, session: SessionRecord, /) -> None:
        """Replace a session by its number; its conversation, base and id do not change."""
        super().update(session)
        self._heads.change_session(session)

    def delete(self, key: int, /) -> None:
        """Delete a session."""
        self._heads.forget_sessions()
        super().delete(key)

    def _one(self, name: str, values: Values) -> SessionRecord | None:
        question = (name, *values.values())
        if not self._heads.knows(question):
            self._heads.put_session(question, super()._one(name, values))
        return self._heads.find_session(question)


class _Rows(SqliteRows):
    """Stored messages, of which the newest ones are known."""

    def __init__(self, statements: Statements, kept: KeptRows) -> None:
        super().__init__(statements, kept)
        self._tails = kept.tails
        self._quiet = kept.heads.quiet

    def insert(self, row: RowRecord, /) -> None:
        """Insert a row under its number, in place of an expired one of the same message."""
        if self._tails.is_wanted(row.conversation_key):
            self._learn(row)
        super().insert(row)
        self._tails.insert(row)
        self._note_status(row)

    def replace(self, row: RowRecord, /) -> None:
        """Replace the row of that number."""
        super().replace(row)
        self._tails.replace(row)
        self._note_status(row)

    def pending(self, conversation_key: int, /) -> Sequence[RowRecord]:
        """Return the rows of status `pending`, by number."""
        if conversation_key in self._quiet:
            return ()
        found = super().pending(conversation_key)
        if not found:
            self._quiet.add(conversation_key)
        return found

    def delete(self, conversation_key: int, session_key: int | None, /) -> int:
        """Delete the rows of a conversation, or of one of its sessions, and count them."""
        self._tails.drop(conversation_key)
        return super().delete(conversation_key, session_key)

    def remove(self, rows: Sequence[RowRecord], /) -> None:
        """Delete these rows."""
        self._tails.remove(rows)
        super().remove(rows)

    def select(self, query: RowQuery, /) -> Sequence[RowRecord]:
        """Return rows in the order asked for."""
        if query.order == "ascending" or query.limit > MOST_KEPT:
            return super().select(query)
        if query.below is None and not self._tails.is_long_enough(query):
            # In most conversations all of the newest rows are of one session, and shown.
            self._tails.want(query.conversation_key)
            whole = attrs.evolve(query, session_key=None, is_shown=None)
            self._tails.learn(whole, super().select(whole))
        found = self._tails.select(query)
        return super().select(query) if found is None else found

    def _learn(self, row: RowRecord) -> None:
        """Learn the newest rows before one, for those who read a window after it."""
        whole = RowQuery(
            conversation_key=row.conversation_key,
            order="descending",
            limit=LARGEST_WINDOW,
            now=row.recorded_at,
        )
        self._tails.learn(whole, super().select(whole))

    def _note_status(self, row: RowRecord) -> None:
        if row.status == "pending":
            self._quiet.discard(row.conversation_key)
