-- name: tables
-- Drop every table of this store.
DROP TABLE {prefix}locks, {prefix}entries, {prefix}conversations, {prefix}sessions, {prefix}rows,
    {prefix}summaries, {prefix}documents, {prefix}meta, {prefix}schema
