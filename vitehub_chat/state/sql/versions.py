"""Versions: which schema a store has, and whether this release can use it."""

from __future__ import annotations

from collections.abc import Sequence

from vitehub_chat.errors import ConfigError, SchemaVersionError
from vitehub_chat.state.sql.mapping import Columns, Statements
from vitehub_chat.state.sql.named import Migration


def read_version(statements: Statements, migrations: Sequence[Migration]) -> int:
    """Return the version of a store, 0 for one without tables; writes nothing.

    Raises:
        SchemaVersionError: A newer release made it, or one with another schema of this number.
    """
    if statements.fetch("meta.table_of_versions", {}) is None:
        return 0
    return check_versions(statements.fetch_all("meta.versions", {}), migrations)


def check_versions(applied: Sequence[Columns], migrations: Sequence[Migration]) -> int:
    """Return the newest of the versions that were applied, with their checksums; 0 without any.

    Raises:
        SchemaVersionError: One is newer than this release, or has another schema.
    """
    known = {migration.version: migration.checksum for migration in migrations}
    newest: int = max((version for version, _ in applied), default=0)
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
