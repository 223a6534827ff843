-- name: tables_for_requests
-- Drop what tells writes apart.
DROP TABLE {prefix}scopes, {prefix}counters, {prefix}writes, {prefix}requests_schema

-- name: numbers
-- Drop what hands out numbers.
DROP SEQUENCE {prefix}conversation_numbers, {prefix}session_numbers

-- name: hold
-- Drop what locks scopes.
DROP PROCEDURE {prefix}hold(json, bigint, text)
