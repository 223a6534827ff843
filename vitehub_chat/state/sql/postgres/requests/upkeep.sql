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

-- name: purge_scopes
-- Delete some idle scopes that nobody has locked, and raise the floor above them.
WITH gone AS (
    DELETE FROM {prefix}scopes WHERE scope_hash IN (
        SELECT scope_hash FROM {prefix}scopes
        WHERE idle_at <= :before ORDER BY idle_at LIMIT :limit FOR UPDATE SKIP LOCKED
    )
    RETURNING revision
)
UPDATE {prefix}counters SET value = greatest(value, (SELECT max(revision) + 1 FROM gone))
WHERE name = 'floor' AND EXISTS (SELECT 1 FROM gone)

-- name: purge_writes
-- Forget some writes of long ago.
DELETE FROM {prefix}writes WHERE (at, nonce) IN (
    SELECT at, nonce FROM {prefix}writes
    WHERE at <= :before ORDER BY at LIMIT :many FOR UPDATE SKIP LOCKED
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
-- Raise the scopes of conversations with rows that will expire, and let these rows not expire.
WITH chosen AS MATERIALIZED (
    SELECT id, conversation_key FROM {prefix}rows
    WHERE expires_at IS NOT NULL ORDER BY expires_at, id LIMIT :limit
),
raised AS (
    UPDATE {prefix}scopes SET revision = revision + 1 WHERE scope_hash IN (
        SELECT sha256(convert_to('conversation:' || encoded, 'UTF8')) FROM {prefix}conversations
        WHERE key IN (SELECT conversation_key FROM chosen)
    )
    RETURNING 1
)
UPDATE {prefix}rows SET expires_at = NULL
WHERE id IN (SELECT id FROM chosen) AND (SELECT count(*) FROM raised) >= 0

-- name: raise_expiring_documents
-- Raise the scopes of conversations with documents that will expire, and let these not expire.
WITH chosen AS MATERIALIZED (
    SELECT home_hash, kind, name_hash, home FROM {prefix}documents
    WHERE expires_at IS NOT NULL AND kind <> :besides ORDER BY expires_at LIMIT :limit
),
raised AS (
    UPDATE {prefix}scopes SET revision = revision + 1 WHERE scope_hash IN (
        SELECT sha256(convert_to('conversation:' || home, 'UTF8')) FROM chosen
    )
    RETURNING 1
)
UPDATE {prefix}documents SET expires_at = NULL
WHERE (home_hash, kind, name_hash) IN (SELECT home_hash, kind, name_hash FROM chosen)
    AND (SELECT count(*) FROM raised) >= 0
