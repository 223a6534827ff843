-- name: begin
-- Note a write, if what it relies on still holds; else the constraint refuses all of it.
INSERT INTO {prefix}writes (at, nonce, holds) VALUES (:at, :nonce, :conditions)

-- name: go_on
-- Refuse a write if more that it relies on does not hold any more.
UPDATE {prefix}writes SET holds = :conditions WHERE at = :at AND nonce = :nonce

-- name: exists
-- Tell whether a write has happened.
SELECT 1 FROM {prefix}writes WHERE at = :at AND nonce = :nonce

-- name: scope_is
-- A condition: a scope has this revision.
coalesce(
    (SELECT revision FROM {prefix}scopes WHERE scope = :scope),
    (SELECT value FROM {prefix}counters WHERE name = 'floor')
) = :revision

-- name: newest_by_id_is
-- A condition: this is the newest session of an id, or there is none.
(
    SELECT key FROM {prefix}sessions WHERE scope = :scope AND session_id = :name
    ORDER BY key DESC LIMIT 1
) IS :key

-- name: newest_by_base_is
-- A condition: this is the newest session of a base, or there is none.
(
    SELECT key FROM {prefix}sessions WHERE scope = :scope AND base IS :name
    ORDER BY key DESC LIMIT 1
) IS :key

-- name: claim_is_free
-- A condition: no entry holds a claim.
NOT EXISTS (SELECT 1 FROM {prefix}entries WHERE claim_key = :claim_key)

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
    WHERE conversation = :conversation AND state IN ('waiting', 'running', 'recorded')
) = :count
