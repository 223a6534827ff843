"""Opening: from a place and options to connections that are ready."""

from __future__ import annotations

import sqlite3

import attrs

from vitehub_chat.model.clock import Clock
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.sqlite.cleanup import Cleanup
from vitehub_chat.state.providers.sqlite.connections import connect, create_file, prepare_file
from vitehub_chat.state.providers.sqlite.location import Location
from vitehub_chat.state.providers.sqlite.reader import Reader
from vitehub_chat.state.providers.sqlite.schema import keep_forever, migrate
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.providers.sqlite.writer import Writer
from vitehub_chat.state.sql.named import load_migrations, load_statements
from vitehub_chat.state.sql.versions import read_version, refuse_to_migrate


@attrs.define
class Opening:
    """Opens the connections of one store; blocks, so it is called by workers only.

    A relative path is one of the working directory in which the store is opened first.
    """

    location: Location
    options: StateOptions
    clock: Clock

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

    def open_reader(self) -> Reader:
        """Open a connection that reads."""
        connection = connect(self.location, self.options, is_reader=True)
        return Reader(connection, self._statements(connection))

    def _prepare(self, connection: sqlite3.Connection) -> Writer:
        options, statements = self.options, self._statements(connection)
        migrations = load_migrations("sqlite", options.table_prefix)
        version = read_version(statements, migrations)
        if version < len(migrations) and not options.migrate:
            raise refuse_to_migrate()
        prepare_file(connection, options.busy_timeout_ms)
        if version < len(migrations):
            migrate(connection, statements, migrations, self.clock)
        if options.retention == "forever":
            keep_forever(connection, statements)
        cleanup = Cleanup(statements, self.clock, options.cleanup_interval_ms)
        return Writer(connection, statements, cleanup, options.busy_timeout_ms)

    def _statements(self, connection: sqlite3.Connection) -> Statements:
        return Statements(connection, load_statements("sqlite", self.options.table_prefix))
