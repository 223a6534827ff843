-- name: select_session
-- Sessions, with the columns in the order of the record.
SELECT
    key, scope, base, session_id, conversation_key, conversation, tenant, agent, user_key, chat_id,
    title, first_message_id, started_at, last_message_at, message_count, turn_count, generation,
    began_by_new
FROM {prefix}sessions

-- name: get
-- One session.
{select_session} WHERE key = :key

-- name: by_id
-- The newest session of an id.
{select_session}
WHERE scope_hash = :scope_hash AND session_id_hash = :session_id_hash ORDER BY key DESC LIMIT 1

-- name: latest
-- The newest session of a base.
{select_session}
WHERE scope_hash = :scope_hash AND base_hash = :base_hash ORDER BY key DESC LIMIT 1

-- name: update
-- Replace what may change of a session: not its place, nor what it is called there.
UPDATE {prefix}sessions SET
    user_key = :user_key,
    user_key_hash = :user_key_hash,
    chat_id = :chat_id,
    title = :title,
    first_message_id = :first_message_id,
    started_at = :started_at,
    last_message_at = :last_message_at,
    message_count = :message_count,
    turn_count = :turn_count,
    generation = :generation,
    began_by_new = :began_by_new
WHERE key = :key

-- name: delete
-- Delete one session.
DELETE FROM {prefix}sessions WHERE key = :key

-- name: page
-- What every list asks for besides its subject: a place to go on, and an order.
tenant_hash = :tenant_hash
    AND last_message_at >= :since AND (last_message_at, key) < (:after_at, :after_key)
    AND (:agent::text IS NULL OR agent = :agent)
    AND (:user_key::text IS NULL OR user_key = :user_key)
ORDER BY last_message_at DESC, key DESC LIMIT :limit

-- name: list_conversation
-- Sessions of a conversation.
{select_session} WHERE conversation_key = :conversation_key AND {page}

-- name: list_user
-- Sessions of an owner.
{select_session} WHERE user_key_hash = :user_key_hash AND {page}

-- name: list_agent
-- Sessions of an agent.
{select_session} WHERE agent_hash = :agent_hash AND {page}

-- name: list_tenant
-- Sessions of a tenant.
{select_session} WHERE {page}
