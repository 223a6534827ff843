-- name: revision
-- The revision of one scope; one that is not there has the floor, above all that were deleted.
SELECT coalesce(
    (SELECT revision FROM {prefix}scopes WHERE scope = :scope),
    (SELECT value FROM {prefix}counters WHERE name = 'floor')
)

-- name: raise
-- A new revision of one scope.
INSERT INTO {prefix}scopes (scope, revision, idle_at) VALUES (:scope, :revision, :idle_at)
ON CONFLICT (scope) DO UPDATE SET revision = excluded.revision, idle_at = excluded.idle_at
