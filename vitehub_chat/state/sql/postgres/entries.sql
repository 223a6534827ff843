-- name: select_entry
-- Entries, with the columns in the order of the record.
SELECT
    ticket_id, position, lock_key, conversation, lane, claim_id, claim_key, payload,
    starts_session, coalesces, state, owner, attended_until, expires_at, claim_until, keep_until,
    run_ticket_id, session_key, ending, settles_at
FROM {prefix}entries

-- name: insert
-- Insert an entry behind all others.
INSERT INTO {prefix}entries (
    ticket_id, lock_key, lock_key_hash, conversation, conversation_hash, lane, claim_id, claim_key,
    claim_key_hash, payload, starts_session, coalesces, state, owner, attended_until, expires_at,
    claim_until, keep_until, run_ticket_id, session_key, ending, settles_at
) VALUES (
    :ticket_id, :lock_key, :lock_key_hash, :conversation, :conversation_hash, :lane, :claim_id,
    :claim_key, :claim_key_hash, :payload, :starts_session, :coalesces, :state, :owner,
    :attended_until, :expires_at, :claim_until, :keep_until, :run_ticket_id, :session_key, :end,
    :settles_at
)

-- name: update
-- Replace what may change of an entry: not what it wants, nor where.
UPDATE {prefix}entries SET
    claim_key = :claim_key,
    claim_key_hash = :claim_key_hash,
    payload = :payload,
    state = :state,
    owner = :owner,
    attended_until = :attended_until,
    expires_at = :expires_at,
    claim_until = :claim_until,
    keep_until = :keep_until,
    run_ticket_id = :run_ticket_id,
    session_key = :session_key,
    ending = :end,
    settles_at = :settles_at
WHERE ticket_id = :ticket_id

-- name: delete
-- Delete one entry.
DELETE FROM {prefix}entries WHERE ticket_id = :ticket_id

-- name: unheld
-- The lock of an entry is held by nobody, or its lease is over.
NOT EXISTS (
    SELECT 1 FROM {prefix}locks AS held
    WHERE held.lock_key_hash = {prefix}entries.lock_key_hash AND held.until > :now
)

-- name: stalled
-- Open entries whose lock nobody holds, from the two small indexes of open entries.
SELECT * FROM (
    {select_entry} WHERE state = 'waiting' AND position > :above AND {unheld}
    UNION ALL
    {select_entry} WHERE state IN ('running', 'recorded') AND position > :above AND {unheld}
) AS open_entries ORDER BY position LIMIT :limit

-- name: with_payload
-- Entries that still have their payload.
{select_entry}
WHERE payload IS NOT NULL AND position > :above ORDER BY position LIMIT :limit

-- name: purge
-- Delete some ended or lost entries whose time to be kept is over, the longest over first.
DELETE FROM {prefix}entries WHERE position IN (
    SELECT position FROM {prefix}entries
    WHERE keep_until <= :now AND state IN ('ended', 'lost')
    ORDER BY keep_until LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- name: delete_conversation
-- Delete the entries recorded in the sessions of a conversation, and those that wait in it.
DELETE FROM {prefix}entries
WHERE (conversation_hash = :conversation_hash AND session_key IS NULL) OR session_key = ANY (
    ARRAY(SELECT key FROM {prefix}sessions WHERE conversation_key = :conversation_key)
)

-- name: delete_session
-- Delete the entries recorded in a session, and those that wait for it.
DELETE FROM {prefix}entries
WHERE session_key = :session_key OR (
    conversation_hash = :conversation_hash AND session_key IS NULL
    AND lane IN (:lane, :base_lane) AND NOT starts_session
)

-- name: release_claims
-- Let the ended entries of a run that was recorded in a session forget their claims.
UPDATE {prefix}entries SET claim_key = NULL
WHERE session_key = :session_key AND run_ticket_id = :run_ticket_id AND state = 'ended'
