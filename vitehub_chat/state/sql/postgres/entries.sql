-- name: select_entry
-- Entries, with the columns in the order of the record.
SELECT
    ticket_id, position, lock_key, conversation, lane, claim_id, claim_key, payload,
    starts_session, coalesces, state, owner, attended_until, expires_at, claim_until, keep_until,
    run_ticket_id, session_key, ending
FROM {prefix}entries

-- name: get
-- One entry.
{select_entry} WHERE ticket_id = :ticket_id

-- name: by_claim
-- The entry that holds a claim.
{select_entry} WHERE claim_key_hash = :claim_key_hash AND claim_key IS NOT NULL

-- name: insert
-- Insert an entry behind all others.
INSERT INTO {prefix}entries (
    ticket_id, lock_key, lock_key_hash, conversation, conversation_hash, lane, claim_id, claim_key,
    claim_key_hash, payload, starts_session, coalesces, state, owner, attended_until, expires_at,
    claim_until, keep_until, run_ticket_id, session_key, ending
) VALUES (
    :ticket_id, :lock_key, :lock_key_hash, :conversation, :conversation_hash, :lane, :claim_id,
    :claim_key, :claim_key_hash, :payload, :starts_session, :coalesces, :state, :owner,
    :attended_until, :expires_at, :claim_until, :keep_until, :run_ticket_id, :session_key, :end
)
RETURNING position

-- name: update
-- Replace an entry; its ticket and its position stay.
UPDATE {prefix}entries SET
    lock_key = :lock_key,
    lock_key_hash = :lock_key_hash,
    conversation = :conversation,
    conversation_hash = :conversation_hash,
    lane = :lane,
    claim_id = :claim_id,
    claim_key = :claim_key,
    claim_key_hash = :claim_key_hash,
    payload = :payload,
    starts_session = :starts_session,
    coalesces = :coalesces,
    state = :state,
    owner = :owner,
    attended_until = :attended_until,
    expires_at = :expires_at,
    claim_until = :claim_until,
    keep_until = :keep_until,
    run_ticket_id = :run_ticket_id,
    session_key = :session_key,
    ending = :end
WHERE ticket_id = :ticket_id

-- name: delete
-- Delete one entry.
DELETE FROM {prefix}entries WHERE ticket_id = :ticket_id

-- name: first_waiting
-- The waiting entry that came first.
{select_entry}
WHERE lock_key_hash = :lock_key_hash AND state = 'waiting' ORDER BY position LIMIT 1

-- name: waiting_in_lane
-- The waiting entries of one lane.
{select_entry}
WHERE lock_key_hash = :lock_key_hash AND state = 'waiting' AND lane = :lane ORDER BY position

-- name: count_waiting
-- Count the waiting entries that are not expired.
SELECT count(*) FROM {prefix}entries
WHERE lock_key_hash = :lock_key_hash AND state = 'waiting'
    AND (expires_at IS NULL OR expires_at > :now)

-- name: of_run
-- The entries that a run answers.
{select_entry}
WHERE run_ticket_id = :run_ticket_id AND state IN ('running', 'recorded') ORDER BY position

-- name: open_in
-- The entries of a conversation that have not ended.
{select_entry}
WHERE conversation_hash = :conversation_hash AND state IN ('waiting', 'running', 'recorded')
ORDER BY position

-- name: purge
-- Delete some ended or lost entries whose time to be kept is over, the longest over first.
DELETE FROM {prefix}entries WHERE position IN (
    SELECT position FROM {prefix}entries
    WHERE keep_until <= :now AND state IN ('ended', 'lost')
    ORDER BY keep_until LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- name: delete_conversation
-- Delete the entries of a conversation.
DELETE FROM {prefix}entries WHERE conversation_hash = :conversation_hash

-- name: delete_session
-- Delete the entries of a conversation that were recorded in a session.
DELETE FROM {prefix}entries
WHERE conversation_hash = :conversation_hash AND session_key = :session_key

-- name: release_claim
-- Let an ended entry forget its claim.
UPDATE {prefix}entries SET claim_key = NULL
WHERE claim_key_hash = :claim_key_hash AND claim_key IS NOT NULL AND state = 'ended'
