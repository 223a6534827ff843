"""Opening: from a place and options to connections that are ready."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import attrs

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.sqlite.cleanup import Cleanup
from vitehub_chat.state.providers.sqlite.connections import connect, create_file, prepare_file
from vitehub_chat.state.providers.sqlite.identity import FileIdentity
from vitehub_chat.state.providers.sqlite.kept import KeptRows
from vitehub_chat.state.providers.sqlite.location import Location
from vitehub_chat.state.providers.sqlite.reader import Reader
from vitehub_chat.state.providers.sqlite.schema import keep_forever, migrate
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.writer import Writer
from vitehub_chat.state.sql.named import Migration, load_migrations, load_statements
from vitehub_chat.state.sql.versions import read_version, refuse_to_migrate


@attrs.define
class Opening:
    """Opens the connections of one store; blocks, so it is called by workers only.

    A relative path is one of the working directory in which the store is opened first.

    Attributes:
        kept: Rows that were read or written lately, for all connections.
    """

    location: Location
    options: StateOptions
    clock: Clock
    kept: KeptRows = attrs.field(factory=KeptRows, init=False)
    _prepared: FileIdentity | None = attrs.field(default=None, init=False)

    def open_writer(self) -> Writer:
        """Open the connection that writes: file, schema and retention are in order afterwards.

        Raises:
            ConfigError: The schema is old or missing and `migrate` is off.
            SchemaVersionError: The schema is newer; nothing was written.
        """
        path = self.location.path
        if path is not None and not path.is_absolute():
            path = path.absolute()
            self.location = Location(path)
        if path is not None and not path.exists():
            if not self.options.migrate:
                raise refuse_to_migrate()
            create_file(path)
        connection = connect(self.location, self.options, is_reader=False)
        try:
            return self._prepare(connection)
        except BaseException:
            connection.close()
            raise

    def load_migrations(self) -> Sequence[Migration]:
        """Return what leads to the newest version."""
        return load_migrations("sqlite", self.options.table_prefix)

    def read_versions(self) -> tuple[int, int]:
        """Return the version of the file, 0 for none, and that of this release; writes nothing."""
        known = self.load_migrations()
        path = self.location.path
        if path is None or not path.exists():
            return 0, len(known)
        location = Location(path.absolute())
        with closing(connect(location, self.options, is_reader=True)) as connection:
            return read_version(self._statements(connection), known), len(known)

    def open_reader(self) -> Reader:
        """Open a connection that reads; a file that has taken the place of another is prepared."""
        if self._prepared is not None and not self._prepared.is_there:
            self.open_writer().close()
        connection = connect(self.location, self.options, is_reader=True)
        return Reader(
            connection,
            self._statements(connection),
            self._prepared,
            self.kept,
            self.options.busy_timeout_ms,
        )

    def _prepare(self, connection: sqlite3.Connection) -> Writer:
        options, statements = self.options, self._statements(connection)
        migrations = self.load_migrations()
        version = read_version(statements, migrations)
        if version < len(migrations) and not options.migrate:
            raise refuse_to_migrate()
        prepare_file(connection, options.busy_timeout_ms)
        if version < len(migrations):
            migrate(connection, statements, migrations, self.clock)
        if options.retention == "forever":
            keep_forever(connection, statements)
        cleanup = Cleanup(statements, self.clock, options.cleanup_interval_ms, self.kept)
        if self.location.path is not None:
            self._prepared = self._identify(connection, self.location.path)
        return Writer(
            connection, statements, cleanup, options.busy_timeout_ms, self._prepared, self.kept
        )

    def _identify(self, connection: sqlite3.Connection, path: Path) -> FileIdentity:
        """Return who the file is, the same object for all who have the same file open."""
        connection.execute("SELECT 1 FROM sqlite_schema").close()  # makes what is beside the file
        found = FileIdentity.of(path)
        return self._prepared if self._prepared == found else found

    def _statements(self, connection: sqlite3.Connection) -> Statements:
        texts = load_statements("sqlite", self.options.table_prefix)
        return Statements(connection, texts, is_searched=self.options.search)
