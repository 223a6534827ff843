-- name: is_due
-- Tell whether there is anything to clean up.
SELECT
    EXISTS (SELECT 1 FROM {prefix}rows WHERE expires_at <= :now)
    OR EXISTS (
        SELECT 1 FROM {prefix}entries WHERE keep_until <= :now AND state IN ('ended', 'lost')
    )
    OR EXISTS (SELECT 1 FROM {prefix}documents WHERE expires_at <= :now)
    OR EXISTS (SELECT 1 FROM {prefix}scopes WHERE idle_at <= :before)
    OR EXISTS (SELECT 1 FROM {prefix}writes WHERE at <= :before)

-- name: idle
-- Some scopes of locks that nobody wants, the longest idle first.
SELECT scope FROM {prefix}scopes WHERE idle_at <= :before ORDER BY idle_at LIMIT :limit

-- name: raise_floor
-- Raise the floor above the scopes that are about to be deleted.
UPDATE {prefix}counters SET value = max(value, coalesce(
    (SELECT max(revision) + 1 FROM {prefix}scopes WHERE scope IN ({idle})), 0
)) WHERE name = 'floor'

-- name: purge_scopes
-- Delete some idle scopes.
DELETE FROM {prefix}scopes WHERE scope IN ({idle})

-- name: purge_writes
-- Forget some writes of long ago.
DELETE FROM {prefix}writes WHERE (at, nonce) IN (
    SELECT at, nonce FROM {prefix}writes WHERE at <= :before ORDER BY at LIMIT :many
)

-- name: raise_scopes
-- Raise every scope.
UPDATE {prefix}scopes SET revision = revision + 1

-- name: lift_floor
-- Raise the floor, and with it every scope that is not there.
UPDATE {prefix}counters SET value = value + 1 WHERE name = 'floor'

-- name: has_expiring
-- Tell whether any row will expire, or has, or a document that is not of one kind.
SELECT
    EXISTS (SELECT 1 FROM {prefix}rows WHERE expires_at IS NOT NULL)
    OR EXISTS (
        SELECT 1 FROM {prefix}documents WHERE expires_at IS NOT NULL AND kind <> :besides
    )

-- name: raise_expiring
-- Raise the scopes of conversations with rows that are about to expire no more.
UPDATE {prefix}scopes SET revision = revision + 1 WHERE scope IN (
    SELECT 'conversation:' || encoded FROM {prefix}conversations WHERE key IN (
        SELECT id >> 32 FROM (
            SELECT id FROM {prefix}rows WHERE expires_at IS NOT NULL LIMIT :limit
        )
    )
)

-- name: raise_expiring_documents
-- Raise the scopes of conversations with documents that are about to expire no more.
UPDATE {prefix}scopes SET revision = revision + 1 WHERE scope IN (
    SELECT 'conversation:' || home FROM (
        SELECT home FROM {prefix}documents
        WHERE expires_at IS NOT NULL AND kind <> :besides LIMIT :limit
    )
)
