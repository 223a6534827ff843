-- name: tables
-- Whether there is a table of versions, of every store and of those by requests.
SELECT to_regclass('{prefix}schema') IS NOT NULL, to_regclass('{prefix}requests_schema') IS NOT NULL

-- name: of_requests
-- The migrations for requests that were applied, in order.
SELECT version, checksum FROM {prefix}requests_schema ORDER BY version

-- name: add
-- Note an applied migration for requests.
INSERT INTO {prefix}requests_schema (version, at, checksum) VALUES (:version, :at, :checksum)

-- name: now
-- The clock of the server, in microseconds since 1970.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
