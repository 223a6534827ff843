-- name: tables
-- Whether there is a table of versions, of every store and of those by requests.
SELECT
    EXISTS (
        SELECT 1 FROM sqlite_schema
        WHERE type = 'table' AND name = '{prefix}schema' COLLATE NOCASE
    ),
    EXISTS (
        SELECT 1 FROM sqlite_schema
        WHERE type = 'table' AND name = '{prefix}requests_schema' COLLATE NOCASE
    )

-- name: of_requests
-- The migrations for requests that were applied, in order.
SELECT version, checksum FROM {prefix}requests_schema ORDER BY version

-- name: add
-- Note an applied migration for requests.
INSERT INTO {prefix}requests_schema (version, at, checksum) VALUES (:version, :at, :checksum)

-- name: now
-- The clock of the server, in microseconds since 1970.
SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
