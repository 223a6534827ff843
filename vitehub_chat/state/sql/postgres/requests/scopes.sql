-- name: floor
-- The revision of every scope that is not there, above all that were deleted.
(SELECT value FROM {prefix}counters WHERE name = 'floor')

-- name: revision
-- The revision of one scope.
SELECT coalesce(
    (SELECT revision FROM {prefix}scopes WHERE scope_hash = :scope_hash), {floor}
)
