"""The schema: which version a store has, and how it gets the newest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from vitehub_chat.errors import ConfigError, SchemaVersionError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.sql.named import Migration

_UNEXPIRED_PER_TRANSACTION: Final = 5000


def read_version(statements: Statements, migrations: Sequence[Migration]) -> int:
    """Return the version of a store, 0 for one without tables; writes nothing.

    Raises:
        SchemaVersionError: A newer release made it, or one with another schema of this number.
    """
    if statements.fetch("meta.table_of_versions", {}) is None:
        return 0
    known = {migration.version: migration.checksum for migration in migrations}
    applied: list[tuple[int, str]] = statements.execute("meta.versions", {}).fetchall()
    newest = max((version for version, _ in applied), default=0)
    if newest > len(migrations):
        raise SchemaVersionError(
            f"the state has schema version {newest}, this release knows {len(migrations)}",
            hint="upgrade vitehub-chat",
        )
    for version, checksum in applied:
        if known.get(version) != checksum:
            raise SchemaVersionError(
                f"schema version {version} of the state is not the one of this release",
                hint="use the release that made it, or another table_prefix",
            )
    return newest


def refuse_to_migrate() -> ConfigError:
    """Return the error for a store that needs what the option `migrate` forbids."""
    return ConfigError(
        "is False, but the state has no schema or an older one",
        path="state.migrate",
        code="invalid_option",
        hint="set it to True once, or migrate before",
    )


def migrate(
    connection: sqlite3.Connection,
    statements: Statements,
    migrations: Sequence[Migration],
    clock: Clock,
) -> None:
    """Bring a store to the newest version in one transaction; no-op if somebody else did."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = read_version(statements, migrations)
        for migration in migrations[version:]:
            _apply(connection, statements, migration, clock)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def keep_forever(connection: sqlite3.Connection, statements: Statements) -> None:
    """Let no stored row expire, those that have expired included, in short transactions."""
    while True:
        connection.execute("BEGIN IMMEDIATE")
        cursor = statements.execute("rows.keep_forever", {"limit": _UNEXPIRED_PER_TRANSACTION})
        connection.execute("COMMIT")
        if cursor.rowcount < _UNEXPIRED_PER_TRANSACTION:
            return


def _apply(
    connection: sqlite3.Connection, statements: Statements, migration: Migration, clock: Clock
) -> None:
    values = {"secret": bytes.fromhex(new_id() + new_id())}
    for text in migration.statements:
        connection.execute(text, values)
    statements.execute(
        "meta.add_version",
        {
            "version": migration.version,
            "at": to_epoch_us(clock.now()),
            "checksum": migration.checksum,
        },
    )
