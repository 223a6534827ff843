-- name: select_document
-- Documents, with the columns in the order of the record.
SELECT home, kind, name, session_key, number, body, created_at, expires_at
FROM {prefix}documents

-- name: live
-- Without what has expired.
(expires_at IS NULL OR expires_at > :now)

-- name: get
-- The document of a name.
{select_document}
WHERE home_hash = :home_hash AND kind = :kind AND name_hash = :name_hash AND {live}

-- name: numbered_ascending
-- Documents of one kind by their numbers, the lowest first.
{select_document}
WHERE home_hash = :home_hash AND kind = :kind AND number > :above AND number < :below
    AND (:session_key::bigint IS NULL OR session_key = :session_key) AND {live}
ORDER BY number LIMIT :limit

-- name: numbered_descending
-- Documents of one kind by their numbers, the highest first.
{select_document}
WHERE home_hash = :home_hash AND kind = :kind AND number > :above AND number < :below
    AND (:session_key::bigint IS NULL OR session_key = :session_key) AND {live}
ORDER BY number DESC LIMIT :limit

-- name: put_aside
-- Rows of all conversations that were put aside, in an order of their own.
{select_document}
WHERE kind IN ('hidden', 'superseded')
    AND (:home = '' OR (home_hash, kind, name_hash) > (:home_hash, :kind, :name_hash))
ORDER BY home_hash, kind, name_hash LIMIT :limit

-- name: put
-- Insert a document, or replace the one of that name.
INSERT INTO {prefix}documents (
    home_hash, kind, name_hash, home, name, session_key, number, body, created_at, expires_at
) VALUES (
    :home_hash, :kind, :name_hash, :home, :name, :session_key, :number, :body, :created_at,
    :expires_at
)
ON CONFLICT (home_hash, kind, name_hash) DO UPDATE SET
    session_key = excluded.session_key,
    number = excluded.number,
    body = excluded.body,
    created_at = excluded.created_at,
    expires_at = excluded.expires_at

-- name: delete
-- Delete one document.
DELETE FROM {prefix}documents
WHERE home_hash = :home_hash AND kind = :kind AND name_hash = :name_hash

-- name: count_conversation
-- Count the documents of a conversation or a scope by kind.
SELECT kind, count(*) FROM {prefix}documents WHERE home_hash = :home_hash AND {live} GROUP BY kind

-- name: count_session
-- Count the documents of a session by kind.
SELECT kind, count(*) FROM {prefix}documents
WHERE home_hash = :home_hash AND session_key = :session_key AND {live} GROUP BY kind

-- name: delete_conversation
-- Delete the documents of a conversation or a scope.
DELETE FROM {prefix}documents WHERE home_hash = :home_hash

-- name: delete_session
-- Delete the documents of a session.
DELETE FROM {prefix}documents WHERE home_hash = :home_hash AND session_key = :session_key

-- name: purge
-- Delete some expired documents, the longest expired first.
DELETE FROM {prefix}documents WHERE (home_hash, kind, name_hash) IN (
    SELECT home_hash, kind, name_hash FROM {prefix}documents
    WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
)
