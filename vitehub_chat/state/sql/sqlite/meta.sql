-- name: table_of_versions
-- Tell whether the table of schema versions exists.
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '{prefix}schema' COLLATE NOCASE

-- name: versions
-- The migrations that were applied, in order.
SELECT version, checksum FROM {prefix}schema ORDER BY version

-- name: add_version
-- Note an applied migration.
INSERT INTO {prefix}schema (version, at, checksum) VALUES (:version, :at, :checksum)

-- name: secret
-- The random bytes of this store.
SELECT secret FROM {prefix}meta WHERE id = 1

-- name: holds_expired
-- Tell whether there is anything to clean up.
SELECT
    EXISTS (SELECT 1 FROM {prefix}rows WHERE expires_at <= :now)
    OR EXISTS (
        SELECT 1 FROM {prefix}entries WHERE keep_until <= :now AND state IN ('ended', 'lost')
    )
    OR EXISTS (SELECT 1 FROM {prefix}documents WHERE expires_at <= :now)
