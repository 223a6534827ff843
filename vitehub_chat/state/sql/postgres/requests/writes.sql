-- name: hold
-- Lock some scopes to the end of the write, refuse it if one has changed, and raise some of them.
CALL {prefix}hold(:scopes, :at, :nonce)

-- name: go_on
-- Refuse a write if more that it relies on does not hold any more.
UPDATE {prefix}writes SET holds = :conditions WHERE at = :at AND nonce = :nonce

-- name: exists
-- Tell whether a write has happened.
SELECT 1 FROM {prefix}writes WHERE at = :at AND nonce = :nonce

-- name: newest_by_id_is
-- A condition: this is the newest session of an id, or there is none.
(
    SELECT key FROM {prefix}sessions
    WHERE scope_hash = :scope_hash AND session_id_hash = :name_hash ORDER BY key DESC LIMIT 1
) IS NOT DISTINCT FROM :key::bigint

-- name: newest_by_base_is
-- A condition: this is the newest session of a base, or there is none.
(
    SELECT key FROM {prefix}sessions
    WHERE scope_hash = :scope_hash AND base_hash = :name_hash ORDER BY key DESC LIMIT 1
) IS NOT DISTINCT FROM :key::bigint

-- name: claim_is_free
-- A condition: no entry holds a claim.
NOT EXISTS (
    SELECT 1 FROM {prefix}entries
    WHERE claim_key_hash = :claim_key_hash AND claim_key IS NOT NULL
)

-- name: message_is_free
-- A condition: no row has a message id.
NOT EXISTS (
    SELECT 1 FROM {prefix}rows
    WHERE conversation_key = :conversation_key AND message_id = :message_id
)

-- name: open_entries_are
-- A condition: so many entries of a conversation have not ended.
(
    SELECT count(*) FROM {prefix}entries
    WHERE conversation_hash = :conversation_hash AND state IN ('waiting', 'running', 'recorded')
) = :count
