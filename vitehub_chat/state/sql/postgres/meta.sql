-- name: versions
-- The migrations that were applied, in order.
SELECT version, checksum FROM {prefix}schema ORDER BY version

-- name: add_version
-- Note an applied migration.
INSERT INTO {prefix}schema (version, at, checksum) VALUES (:version, :at, :checksum)

-- name: secret
-- The random bytes of this store.
SELECT secret FROM {prefix}meta WHERE id = 1
