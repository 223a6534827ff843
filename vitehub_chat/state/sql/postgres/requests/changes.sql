-- name: insert_conversation
-- A new conversation under a number of its own.
INSERT INTO {prefix}conversations (key, encoded, encoded_hash, last_seq, generation)
VALUES (:key, :encoded, :encoded_hash, :last_seq, :generation)

-- name: update_conversation
-- Move the counters of a conversation.
UPDATE {prefix}conversations SET last_seq = :last_seq, generation = :generation WHERE key = :key

-- name: insert_session
-- A new session under a number of its own.
INSERT INTO {prefix}sessions (
    key, scope, scope_hash, base, base_hash, session_id, session_id_hash, conversation_key,
    conversation, tenant, tenant_hash, agent, agent_hash, user_key, user_key_hash, chat_id, title,
    first_message_id, started_at, last_message_at, message_count, turn_count, generation,
    began_by_new
) VALUES (
    :key, :scope, :scope_hash, :base, :base_hash, :session_id, :session_id_hash,
    :conversation_key, :conversation, :tenant, :tenant_hash, :agent, :agent_hash, :user_key,
    :user_key_hash, :chat_id, :title, :first_message_id, :started_at, :last_message_at,
    :message_count, :turn_count, :generation, :began_by_new
)

-- name: delete_row
-- Delete one row.
DELETE FROM {prefix}rows WHERE id = :id
