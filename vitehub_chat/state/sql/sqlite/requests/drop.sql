-- name: scopes
-- Drop the scopes.
DROP TABLE {prefix}scopes

-- name: counters
-- Drop the counters.
DROP TABLE {prefix}counters

-- name: writes
-- Drop the notes of writes.
DROP TABLE {prefix}writes

-- name: requests_schema
-- Drop the versions of the tables for requests.
DROP TABLE {prefix}requests_schema
