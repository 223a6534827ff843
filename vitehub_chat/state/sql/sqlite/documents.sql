-- name: select_document
-- Documents, with the columns in the order of the record.
SELECT home, kind, name, session_key, number, body, created_at, expires_at
FROM {prefix}documents

-- name: live
-- Without what has expired.
(expires_at IS NULL OR expires_at > :now)

-- name: get
-- The document of a name.
{select_document} WHERE home = :home AND kind = :kind AND name = :name AND {live}

-- name: newest
-- The document of a session with the highest number, of equal ones that made last.
{select_document}
WHERE home = :home AND kind = :kind AND session_key = :session_key AND {live}
ORDER BY number DESC, created_at DESC LIMIT 1

-- name: numbered_ascending
-- Documents of one kind by their numbers, the lowest first.
{select_document}
WHERE home = :home AND kind = :kind AND number > :above AND number < :below
    AND (:session_key IS NULL OR session_key = :session_key) AND {live}
ORDER BY number LIMIT :limit

-- name: numbered_descending
-- Documents of one kind by their numbers, the highest first.
{select_document}
WHERE home = :home AND kind = :kind AND number > :above AND number < :below
    AND (:session_key IS NULL OR session_key = :session_key) AND {live}
ORDER BY number DESC LIMIT :limit

-- name: put_aside
-- Rows of all conversations that were put aside.
{select_document}
WHERE (home, kind, name) > (:home, :kind, :name) AND kind IN ('hidden', 'superseded')
ORDER BY home, kind, name LIMIT :limit

-- name: put
-- Insert a document, or replace the one of that name.
INSERT INTO {prefix}documents (
    home, kind, name, session_key, number, body, created_at, expires_at
) VALUES (
    :home, :kind, :name, :session_key, :number, :body, :created_at, :expires_at
)
ON CONFLICT (home, kind, name) DO UPDATE SET
    session_key = excluded.session_key,
    number = excluded.number,
    body = excluded.body,
    created_at = excluded.created_at,
    expires_at = excluded.expires_at

-- name: delete
-- Delete one document.
DELETE FROM {prefix}documents WHERE home = :home AND kind = :kind AND name = :name

-- name: count_conversation
-- Count the documents of a conversation or a scope by kind.
SELECT kind, count(*) FROM {prefix}documents WHERE home = :home AND {live} GROUP BY kind

-- name: count_session
-- Count the documents of a session by kind.
SELECT kind, count(*) FROM {prefix}documents
WHERE home = :home AND session_key = :session_key AND {live} GROUP BY kind

-- name: delete_conversation
-- Delete the documents of a conversation or a scope.
DELETE FROM {prefix}documents WHERE home = :home

-- name: delete_session
-- Delete the documents of a session.
DELETE FROM {prefix}documents WHERE home = :home AND session_key = :session_key

-- name: purge
-- Delete some expired documents, the longest expired first.
DELETE FROM {prefix}documents WHERE (home, kind, name) IN (
    SELECT home, kind, name FROM {prefix}documents
    WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)

-- name: keep_forever
-- Let some of the documents that expire not expire, but those of one kind.
UPDATE {prefix}documents SET expires_at = NULL WHERE (home, kind, name) IN (
    SELECT home, kind, name FROM {prefix}documents
    WHERE expires_at IS NOT NULL AND kind <> :besides LIMIT :limit
)
