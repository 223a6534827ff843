-- name: tables
-- Drop every table of this store.
DROP TABLE {prefix}locks, {prefix}entries, {prefix}conversations, {prefix}sessions, {prefix}rows,
    {prefix}summaries, {prefix}meta, {prefix}schema

-- name: tokens
-- Drop what hands out fencing tokens.
DROP SEQUENCE {prefix}tokens
