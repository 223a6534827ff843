"""The schema: how a store gets the newest, and what else is in order before it is used."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from vitehub_chat.errors import ConfigError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.options import StateOptions
from vitehub_chat.state.providers.postgres.link import READING, UPKEEP, Link
from vitehub_chat.state.providers.postgres.statements import compile_text
from vitehub_chat.state.providers.postgres.tables import PostgresTables
from vitehub_chat.state.sql.named import Migration, load_migrations
from vitehub_chat.state.sql.versions import read_version, refuse_to_migrate

OLDEST_SERVER: Final = 130_000
_UNEXPIRED_PER_TRANSACTION: Final = 5000


class Preparation:
    """Brings a store in order, once for all who wait for it; who comes later gets the same end."""

    def __init__(self, options: StateOptions, clock: Clock, *, is_done: bool = False) -> None:
        self._options = options
        self._clock = clock
        self._is_done = is_done
        self._error: BaseException | None = None
        self._turn = threading.Lock()

    def ensure(self, link: Link) -> None:
        """Prepare the store unless that was done.

        Raises:
            ConfigError: The server is too old or the database has another encoding, or the schema
                is old or missing and `migrate` is off.
            SchemaVersionError: The schema is newer; nothing was written.
        """
        with self._turn:
            if self._error is not None:
                raise self._error
            if self._is_done:
                return
            try:
                self._prepare(link)
            except BaseException as error:
                self._error = error
                raise
            self._is_done = True

    def _prepare(self, link: Link) -> None:
        migrations = load_migrations("postgres", self._options.table_prefix)
        link.transact(READING, check_server)
        version = link.transact(READING, lambda tx: read_version(tx.statements, migrations))
        if version < len(migrations):
            if not self._options.migrate:
                raise refuse_to_migrate()
            migrate(link, migrations, self._clock)
        if self._options.retention == "forever":
            keep_forever(link)


def check_server(tables: PostgresTables) -> None:
    """Refuse a server that does not have what the statements use.

    Raises:
        ConfigError: It is too old, or its database cannot store every character.
    """
    version, encoding = tables.statements.fetch_existing("meta.server", {})
    if version < OLDEST_SERVER:
        raise ConfigError("is of a server before PostgreSQL 13", path="state.url")
    if encoding != "UTF8":
        raise ConfigError(
            f"is of a database with the encoding {encoding!r}",
            path="state.url",
            hint="create one with the encoding UTF8",
        )


def migrate(link: Link, migrations: Sequence[Migration], clock: Clock) -> None:
    """Bring a store to the newest version in one transaction; no-op if somebody else did."""
    values = {"secret": bytes.fromhex(new_id() + new_id())}

    def work(tables: PostgresTables) -> None:
        statements = tables.statements
        statements.change("meta.create_versions", {})
        statements.change("meta.lock_versions", {})
        for migration in migrations[read_version(statements, migrations) :]:
            for text in migration.statements:
                statements.execute(compile_text(text), values)
            applied = {"version": migration.version, "checksum": migration.checksum}
            at = to_epoch_us(clock.now())
            statements.change("meta.add_version", {**applied, "at": at})

    link.transact(UPKEEP, work, is_repeatable=True)


def keep_forever(link: Link) -> None:
    """Let no stored row expire, those that have expired included, in short transactions."""

    def work(tables: PostgresTables) -> int:
        return tables.statements.change("rows.keep_forever", {"limit": _UNEXPIRED_PER_TRANSACTION})

    while link.transact(UPKEEP, work, is_repeatable=True) == _UNEXPIRED_PER_TRANSACTION:
        pass
