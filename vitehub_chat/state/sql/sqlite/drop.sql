-- name: locks
-- Drop the locks.
DROP TABLE {prefix}locks

-- name: entries
-- Drop the accepted messages.
DROP TABLE {prefix}entries

-- name: conversations
-- Drop the conversations and their counters.
DROP TABLE {prefix}conversations

-- name: sessions
-- Drop the sessions.
DROP TABLE {prefix}sessions

-- name: rows
-- Drop the stored messages.
DROP TABLE {prefix}rows

-- name: summaries
-- Drop the manual summaries.
DROP TABLE {prefix}summaries

-- name: documents
-- Drop the documents.
DROP TABLE {prefix}documents

-- name: meta
-- Drop the secret and the last token.
DROP TABLE {prefix}meta

-- name: schema
-- Drop the versions; without them the store counts as new.
DROP TABLE {prefix}schema
