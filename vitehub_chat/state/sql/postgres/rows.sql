-- name: select_row
-- Rows, with the columns in the order of the record.
SELECT
    conversation_key, id & 4294967295, session_key, session_id, message_id, role, status,
    created_at, recorded_at, turn_no, turn_id, thread_id, author, is_shown, body, extra, fence_key,
    fence_token, expires_at
FROM {prefix}rows

-- name: live
-- A range of a conversation without what has expired.
id > :above AND id < :below AND (expires_at IS NULL OR expires_at > :now)

-- name: insert
-- A new row.
INSERT INTO {prefix}rows (
    id, conversation_key, session_key, session_id, message_id, role, status, created_at,
    recorded_at, turn_no, turn_id, thread_id, author, author_hash, is_shown, fence_key,
    fence_token, expires_at, body, extra, search_text
) VALUES (
    :id, :conversation_key, :session_key, :session_id, :message_id, :role, :status, :created_at,
    :recorded_at, :turn_no, :turn_id, :thread_id, :author, :author_hash, :is_shown, :fence_key,
    :fence_token, :expires_at, :body, :extra, :search_text
)

-- name: replace
-- Replace the row of a number.
UPDATE {prefix}rows SET
    session_key = :session_key,
    session_id = :session_id,
    message_id = :message_id,
    role = :role,
    status = :status,
    created_at = :created_at,
    recorded_at = :recorded_at,
    turn_no = :turn_no,
    turn_id = :turn_id,
    thread_id = :thread_id,
    author = :author,
    author_hash = :author_hash,
    is_shown = :is_shown,
    fence_key = :fence_key,
    fence_token = :fence_token,
    expires_at = :expires_at,
    body = :body,
    extra = :extra,
    search_text = :search_text
WHERE id = :id

-- name: conversation_ascending
-- Rows of a conversation, the oldest first.
{select_row} WHERE {live} AND is_shown >= :least_shown ORDER BY id LIMIT :limit

-- name: conversation_descending
-- Rows of a conversation, the newest first.
{select_row} WHERE {live} AND is_shown >= :least_shown ORDER BY id DESC LIMIT :limit

-- name: session_ascending
-- Rows of a session, the oldest first.
{select_row} WHERE session_key = :session_key AND {live} AND is_shown >= :least_shown
ORDER BY id LIMIT :limit

-- name: session_descending
-- Rows of a session, the newest first.
{select_row} WHERE session_key = :session_key AND {live} AND is_shown >= :least_shown
ORDER BY id DESC LIMIT :limit

-- name: conversation_hidden_ascending
-- Rows of a conversation that are not shown, the oldest first.
{select_row} WHERE NOT is_shown AND {live} ORDER BY id LIMIT :limit

-- name: conversation_hidden_descending
-- Rows of a conversation that are not shown, the newest first.
{select_row} WHERE NOT is_shown AND {live} ORDER BY id DESC LIMIT :limit

-- name: session_hidden_ascending
-- Rows of a session that are not shown, the oldest first.
{select_row} WHERE session_key = :session_key AND NOT is_shown AND {live}
ORDER BY id LIMIT :limit

-- name: session_hidden_descending
-- Rows of a session that are not shown, the newest first.
{select_row} WHERE session_key = :session_key AND NOT is_shown AND {live}
ORDER BY id DESC LIMIT :limit

-- name: delete_conversation
-- Delete the rows of a conversation.
DELETE FROM {prefix}rows WHERE id > :above AND id < :below

-- name: delete_session
-- Delete the rows of a session.
DELETE FROM {prefix}rows WHERE session_key = :session_key AND id > :above AND id < :below

-- name: after
-- Rows of all conversations above a number.
{select_row} WHERE id > :after ORDER BY id LIMIT :limit

-- name: by_author
-- Where messages of an author are.
SELECT written.id, home.encoded, written.message_id
FROM {prefix}rows AS written JOIN {prefix}conversations AS home
    ON home.key = written.conversation_key
WHERE written.author_hash = :author_hash AND written.author IS NOT NULL AND written.id > :after
ORDER BY written.id LIMIT :limit

-- name: purge
-- Delete some expired rows, the longest expired first.
DELETE FROM {prefix}rows WHERE id IN (
    SELECT id FROM {prefix}rows WHERE expires_at <= :now
    ORDER BY expires_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- name: search
-- Rows of some sessions in whose text words occur, and those whose text is not kept for search.
SELECT
    found.conversation_key, found.id & 4294967295, found.session_key, found.session_id,
    found.message_id, found.role, found.status, found.created_at, found.recorded_at, found.turn_no,
    found.turn_id, found.thread_id, found.author, found.is_shown, found.body, found.extra,
    found.fence_key, found.fence_token, found.expires_at, found.search_text IS NOT NULL
FROM json_array_elements_text(:sessions::json) WITH ORDINALITY AS chosen(key, place)
JOIN {prefix}rows AS found ON found.session_key = chosen.key::bigint
WHERE (chosen.place > 1 OR found.id & 4294967295 < :below)
    AND (found.expires_at IS NULL OR found.expires_at > :now)
    AND (:role::text IS NULL OR found.role = :role::text)
    AND coalesce(found.created_at, found.recorded_at) >= :after
    AND coalesce(found.created_at, found.recorded_at) < :before
    AND (
        coalesce(found.created_at, found.recorded_at) >= :since
        OR found.role = :spared_role::text
    )
    AND (
        found.search_text IS NULL OR NOT EXISTS (
            SELECT 1 FROM json_array_elements_text(:words::json) AS word(value)
            WHERE strpos(found.search_text, word.value) = 0
        )
    )
ORDER BY chosen.place, found.id DESC LIMIT :limit

-- name: unsearched
-- Rows of all conversations above a number whose text is not kept for search.
{select_row} WHERE id > :after AND search_text IS NULL ORDER BY id LIMIT :limit

-- name: keep_search_text
-- Keep the text of a row that has none and has not changed; who writes it now keeps it, too.
UPDATE {prefix}rows SET search_text = :search_text WHERE id = (
    SELECT id FROM {prefix}rows
    WHERE id = :id AND search_text IS NULL AND body = :body FOR UPDATE SKIP LOCKED
)
