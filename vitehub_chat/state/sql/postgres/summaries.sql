-- name: put
-- Save a manual summary in place of the last.
INSERT INTO {prefix}summaries (conversation_key, session_key, text, created_at)
VALUES (:conversation_key, :session_key, :text, :created_at)
ON CONFLICT (conversation_key, session_key) DO UPDATE SET
    text = excluded.text,
    created_at = excluded.created_at

-- name: delete_conversation
-- Delete the manual summaries of a conversation.
DELETE FROM {prefix}summaries WHERE conversation_key = :conversation_key

-- name: delete_session
-- Delete the manual summary of a session.
DELETE FROM {prefix}summaries
WHERE conversation_key = :conversation_key AND session_key = :session_key
