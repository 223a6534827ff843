-- name: counts
-- How many records each table has.
SELECT 'locks', count(*) FROM {prefix}locks
UNION ALL SELECT 'entries', count(*) FROM {prefix}entries
UNION ALL SELECT 'conversations', count(*) FROM {prefix}conversations
UNION ALL SELECT 'sessions', count(*) FROM {prefix}sessions
UNION ALL SELECT 'rows', count(*) FROM {prefix}rows
UNION ALL SELECT 'summaries', count(*) FROM {prefix}summaries
UNION ALL SELECT 'documents', count(*) FROM {prefix}documents

-- name: size
-- How many bytes the database takes.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()

-- name: over
-- How many records have expired and are still there.
SELECT
    (SELECT count(*) FROM {prefix}rows WHERE expires_at <= :now),
    (
        SELECT count(*) FROM {prefix}entries
        WHERE keep_until <= :now AND state IN ('ended', 'lost')
    ),
    (SELECT count(*) FROM {prefix}documents WHERE expires_at <= :now)

-- name: problems
-- Records that belong to nothing, by fault.
SELECT 'rows_without_session', count(*) FROM {prefix}rows AS found
WHERE NOT EXISTS (SELECT 1 FROM {prefix}sessions WHERE key = found.session_key)
UNION ALL SELECT 'rows_without_conversation', count(*) FROM {prefix}rows AS found
WHERE NOT EXISTS (
    SELECT 1 FROM {prefix}conversations
    WHERE key = found.conversation_key AND key = found.id / 4294967296
        AND last_seq >= found.id % 4294967296
)
UNION ALL SELECT 'sessions_without_conversation', count(*) FROM {prefix}sessions AS found
WHERE NOT EXISTS (
    SELECT 1 FROM {prefix}conversations
    WHERE key = found.conversation_key AND encoded = found.conversation
)
UNION ALL SELECT 'sessions_that_count_too_few', count(*) FROM {prefix}sessions AS found
WHERE message_count < (SELECT count(*) FROM {prefix}rows WHERE session_key = found.key)
UNION ALL SELECT 'summaries_without_session', count(*) FROM {prefix}summaries AS found
WHERE session_key <> 0
    AND NOT EXISTS (SELECT 1 FROM {prefix}sessions WHERE key = found.session_key)
UNION ALL SELECT 'documents_without_session', count(*) FROM {prefix}documents AS found
WHERE session_key <> 0
    AND NOT EXISTS (SELECT 1 FROM {prefix}sessions WHERE key = found.session_key)
UNION ALL SELECT 'entries_without_session', count(*) FROM {prefix}entries AS found
WHERE session_key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM {prefix}sessions WHERE key = found.session_key)

-- name: give_expiry
-- Give some rows without an expiry one, from when they were recorded.
UPDATE {prefix}rows SET expires_at = recorded_at + :keep WHERE id IN (
    SELECT id FROM {prefix}rows WHERE id > :after AND expires_at IS NULL ORDER BY id LIMIT :limit
) RETURNING id

-- name: take_expiry
-- Let some rows that have not expired yet not expire.
UPDATE {prefix}rows SET expires_at = NULL WHERE id IN (
    SELECT id FROM {prefix}rows WHERE id > :after AND expires_at > :now ORDER BY id LIMIT :limit
) RETURNING id

-- name: give_expiry_to_documents
-- Give documents without an expiry one, from when they were made, but those of one kind.
UPDATE {prefix}documents SET expires_at = created_at + :keep
WHERE expires_at IS NULL AND kind <> :besides

-- name: take_expiry_of_documents
-- Let documents that have not expired yet not expire, but those of one kind.
UPDATE {prefix}documents SET expires_at = NULL WHERE expires_at > :now AND kind <> :besides
