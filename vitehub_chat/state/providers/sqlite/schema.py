"""The schema: how a store gets the newest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.providers.sqlite.statements import Statements
from vitehub_chat.state.sql.named import Migration
from vitehub_chat.state.sql.versions import read_version

_UNEXPIRED_PER_TRANSACTION: Final = 5000


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
    """Let no row, plan or summary expire, expired ones included, in short transactions."""
    values = {"limit": _UNEXPIRED_PER_TRANSACTION, "besides": "value"}
    for name in ("rows.keep_forever", "documents.keep_forever"):
        is_more = True
        while is_more:
            connection.execute("BEGIN IMMEDIATE")
            cursor = statements.execute(name, values)
            connection.execute("COMMIT")
            is_more = cursor.rowcount == _UNEXPIRED_PER_TRANSACTION


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
