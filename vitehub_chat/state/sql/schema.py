"""Schema: the tables of a store that is reached by requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from vitehub_chat.errors import StateConflictError, StateError
from vitehub_chat.model.clock import Clock, to_epoch_us
from vitehub_chat.model.ids import new_id
from vitehub_chat.state.sql.driver import Statement, Value
from vitehub_chat.state.sql.loading import Loader
from vitehub_chat.state.sql.named import Migration
from vitehub_chat.state.sql.texts import Texts
from vitehub_chat.state.sql.versions import check_versions, refuse_to_migrate

_RACES: Final = 20


@attrs.frozen
class _Track:
    """Migrations, with the statements that read and note their versions."""

    versions: str
    add: str
    migrations: Sequence[Migration]


async def open_schema(loader: Loader, texts: Texts, clock: Clock, *, may_migrate: bool) -> bytes:
    """Bring the schema up to date and return the key of the store's cursors.

    Each version is one batch that begins with noting it, so that of many who open a new store one
    makes the tables and the others find them.

    Raises:
        SchemaVersionError: A newer release made the store; it was not touched.
        ConfigError: It would have to be migrated, and must not.
    """
    tracks = _tracks_of(texts)
    for _ in range(_RACES):
        missing, secret = await _read(loader, texts, tracks)
        if secret is not None and not missing:
            return secret
        if not may_migrate:
            raise refuse_to_migrate()
        try:
            for track, migration in missing:
                await loader.ask(_batch(texts, track, migration, to_epoch_us(clock.now())))
        except StateConflictError:
            continue  # somebody else did it meanwhile
    raise StateError("the schema kept changing while the state was opened")


async def read_versions(loader: Loader, texts: Texts) -> tuple[int, int]:
    """Return the version of a store, 0 for one without tables, and that of this release.

    Raises:
        SchemaVersionError: A newer release made the store.
    """
    missing, _ = await _read(loader, texts, _tracks_of(texts))
    newest = len(texts.migrations)
    return newest - sum(track.versions == "meta.versions" for track, _ in missing), newest


def _tracks_of(texts: Texts) -> tuple[_Track, _Track]:
    return (
        _Track("meta.versions", "meta.add_version", texts.migrations),
        _Track("versions.of_requests", "versions.add", texts.migrations_for_requests),
    )


async def drop_schema(loader: Loader, texts: Texts) -> None:
    """Delete the tables with everything in them."""
    names = [name for name in texts.statements if name.startswith("drop.")]
    await loader.ask([(texts[name], {}) for name in names])


async def _read(
    loader: Loader, texts: Texts, tracks: Sequence[_Track]
) -> tuple[Sequence[tuple[_Track, Migration]], bytes | None]:
    """Return the migrations that are missing, and the secret of the store if it has one."""
    are_there = (await loader.ask([(texts["versions.tables"], {})]))[0][0]
    found = [track for track, is_there in zip(tracks, are_there, strict=True) if is_there]
    names = [track.versions for track in found]
    if names:
        names.append("meta.secret")
    answers = await loader.ask([(texts[name], {}) for name in names]) if names else ()
    applied = dict(zip(names, answers, strict=True))
    missing = []
    for track in tracks:
        versions = [tuple(row) for row in applied.get(track.versions, ())]
        newest = check_versions(versions, track.migrations)
        missing += [(track, migration) for migration in track.migrations[newest:]]
    secrets = applied.get("meta.secret", ())
    return missing, bytes(secrets[0][0]) if secrets else None  # type: ignore[arg-type]


def _batch(texts: Texts, track: _Track, migration: Migration, at: int) -> Sequence[Statement]:
    noted: dict[str, Value] = {
        "version": migration.version,
        "at": at,
        "checksum": migration.checksum,
    }
    first, *others = migration.statements
    before: list[Statement] = []
    if migration.version == 1:
        # It makes the table in which it is noted.
        before.append((first.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1), {}))
    else:
        others.insert(0, first)
    secret: dict[str, Value] = {"secret": bytes.fromhex(new_id() + new_id())}
    return [*before, (texts[track.add], noted), *((text, secret) for text in others)]
