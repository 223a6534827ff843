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

-- name: by_message
-- The row of a message id.
{select_row}
WHERE conversation_key = :conversation_key AND message_id = :message_id
    AND (expires_at IS NULL OR expires_at > :now)

-- name: insert
-- A new row.
INSERT INTO {prefix}rows (
    id, conversation_key, session_key, session_id, message_id, role, status, created_at,
    recorded_at, turn_no, turn_id, thread_id, author, is_shown, fence_key, fence_token, expires_at,
    body, extra, search_text
) VALUES (
    :id, :conversation_key, :session_key, :session_id, :message_id, :role, :status, :created_at,
    :recorded_at, :turn_no, :turn_id, :thread_id, :author, :is_shown, :fence_key, :fence_token,
    :expires_at, :body, :extra, :search_text
)

-- name: delete_expired
-- Make room for a message whose id an expired row still has; the step saw that it is not live.
DELETE FROM {prefix}rows
WHERE conversation_key = :conversation_key AND message_id = :message_id AND expires_at IS NOT NULL

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
{select_row} INDEXED BY {prefix}rows_session
WHERE session_key = :session_key AND {live} AND is_shown >= :least_shown ORDER BY id LIMIT :limit

-- name: session_descending
-- Rows of a session, the newest first.
{select_row} INDEXED BY {prefix}rows_session
WHERE session_key = :session_key AND {live} AND is_shown >= :least_shown
ORDER BY id DESC LIMIT :limit

-- name: conversation_hidden_ascending
-- Rows of a conversation that are not shown, the oldest first.
{select_row} INDEXED BY {prefix}rows_hidden
WHERE conversation_key = :conversation_key AND is_shown = 0 AND {live} ORDER BY id LIMIT :limit

-- name: conversation_hidden_descending
-- Rows of a conversation that are not shown, the newest first.
{select_row} INDEXED BY {prefix}rows_hidden
WHERE conversation_key = :conversation_key AND is_shown = 0 AND {live}
ORDER BY id DESC LIMIT :limit

-- name: session_hidden_ascending
-- Rows of a session that are not shown, the oldest first.
{select_row} INDEXED BY {prefix}rows_session_hidden
WHERE session_key = :session_key AND is_shown = 0 AND {live} ORDER BY id LIMIT :limit

-- name: session_hidden_descending
-- Rows of a session that are not shown, the newest first.
{select_row} INDEXED BY {prefix}rows_session_hidden
WHERE session_key = :session_key AND is_shown = 0 AND {live} ORDER BY id DESC LIMIT :limit

-- name: pending
-- The rows of a conversation whose answer is not complete.
{select_row} WHERE conversation_key = :conversation_key AND status = 'pending' ORDER BY id

-- name: delete_conversation
-- Delete the rows of a conversation.
DELETE FROM {prefix}rows WHERE id > :above AND id < :below

-- name: delete_session
-- Delete the rows of a session.
DELETE FROM {prefix}rows INDEXED BY {prefix}rows_session
WHERE session_key = :session_key AND id > :above AND id < :below

-- name: remove
-- Delete one row.
DELETE FROM {prefix}rows WHERE id = :id

-- name: after
-- Rows of all conversations above a number.
{select_row} WHERE id > :after ORDER BY id LIMIT :limit

-- name: by_author
-- Where messages of an author are.
SELECT written.id, home.encoded, written.message_id
FROM {prefix}rows AS written JOIN {prefix}conversations AS home
    ON home.key = written.conversation_key
WHERE written.author = :author AND written.id > :after ORDER BY written.id LIMIT :limit

-- name: purge
-- Delete some expired rows, the longest expired first.
DELETE FROM {prefix}rows WHERE id IN (
    SELECT id FROM {prefix}rows WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)

-- name: keep_forever
-- Let some of the rows that expire not expire.
UPDATE {prefix}rows SET expires_at = NULL WHERE id IN (
    SELECT id FROM {prefix}rows WHERE expires_at IS NOT NULL LIMIT :limit
)

-- name: search
-- Rows of some sessions in whose text words occur, and those whose text is not kept for search.
SELECT
    found.conversation_key, found.id & 4294967295, found.session_key, found.session_id,
    found.message_id, found.role, found.status, found.created_at, found.recorded_at, found.turn_no,
    found.turn_id, found.thread_id, found.author, found.is_shown, found.body, found.extra,
    found.fence_key, found.fence_token, found.expires_at, found.search_text IS NOT NULL
FROM json_each(:sessions) AS chosen CROSS JOIN {prefix}rows AS found
    INDEXED BY {prefix}rows_session ON found.session_key = chosen.value
WHERE (chosen.key > 0 OR found.id & 4294967295 < :below)
    AND (found.expires_at IS NULL OR found.expires_at > :now)
    AND (:role IS NULL OR found.role = :role)
    AND coalesce(found.created_at, found.recorded_at) >= :after
    AND coalesce(found.created_at, found.recorded_at) < :before
    AND (
        coalesce(found.created_at, found.recorded_at) >= :since
        OR found.role = :spared_role
    )
    AND (
        found.search_text IS NULL OR NOT EXISTS (
            SELECT 1 FROM json_each(:words) AS word
            WHERE instr(found.search_text, word.value) = 0
        )
    )
ORDER BY chosen.key, found.id DESC LIMIT :limit

-- name: unsearched
-- Rows of all conversations above a number whose text is not kept for search.
{select_row} WHERE id > :after AND search_text IS NULL ORDER BY id LIMIT :limit

-- name: keep_search_text
-- Keep the text of a row for search, if it has none yet and is still the same row.
UPDATE {prefix}rows SET search_text = :search_text
WHERE id = :id AND search_text IS NULL AND body = :body
