-- name: select_entry
-- Entries, with the columns in the order of the record.
SELECT
    ticket_id, position, lock_key, conversation, lane, claim_id, claim_key, payload,
    starts_session, coalesces, state, owner, attended_until, expires_at, claim_until, keep_until,
    run_ticket_id, session_key, ending, settles_at
FROM {prefix}entries

-- name: get
-- One entry.
{select_entry} WHERE ticket_id = :ticket_id

-- name: by_claim
-- The entry that holds a claim.
{select_entry} WHERE claim_key = :claim_key

-- name: insert
-- Insert an entry behind all others.
INSERT INTO {prefix}entries (
    ticket_id, lock_key, conversation, lane, claim_id, claim_key, payload,
    starts_session, coalesces, state, owner, attended_until, expires_at, claim_until, keep_until,
    run_ticket_id, session_key, ending, settles_at
) VALUES (
    :ticket_id, :lock_key, :conversation, :lane, :claim_id, :claim_key, :payload,
    :starts_session, :coalesces, :state, :owner, :attended_until, :expires_at, :claim_until,
    :keep_until, :run_ticket_id, :session_key, :end, :settles_at
) RETURNING position

-- name: update
-- Replace an entry; its ticket and its position stay.
UPDATE {prefix}entries SET
    lock_key = :lock_key,
    conversation = :conversation,
    lane = :lane,
    claim_id = :claim_id,
    claim_key = :claim_key,
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
    ending = :end,
    settles_at = :settles_at
WHERE ticket_id = :ticket_id

-- name: delete
-- Delete one entry.
DELETE FROM {prefix}entries WHERE ticket_id = :ticket_id

-- name: first_waiting
-- The waiting entry that came first.
{select_entry} WHERE lock_key = :lock_key AND state = 'waiting' ORDER BY position LIMIT 1

-- name: last_waiting
-- The waiting entry that came last.
{select_entry} WHERE lock_key = :lock_key AND state = 'waiting' ORDER BY position DESC LIMIT 1

-- name: stalled
-- Open entries whose lock nobody holds, from the two small indexes of open entries.
SELECT * FROM (
    {select_entry} INDEXED BY {prefix}entries_waiting
    WHERE state = 'waiting' AND position > :above
    UNION ALL
    {select_entry} INDEXED BY {prefix}entries_run
    WHERE state IN ('running', 'recorded') AND position > :above
) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM {prefix}locks AS held
    WHERE held.lock_key = wanted.lock_key AND held.until > :now
) ORDER BY position LIMIT :limit

-- name: waiting_in_lane
-- The waiting entries of one lane.
{select_entry} WHERE lock_key = :lock_key AND state = 'waiting' AND lane = :lane ORDER BY position

-- name: count_waiting
-- Count the waiting entries that are not expired.
SELECT count(*) FROM {prefix}entries
WHERE lock_key = :lock_key AND state = 'waiting' AND (expires_at IS NULL OR expires_at > :now)

-- name: of_run
-- The entries that a run answers.
{select_entry}
WHERE run_ticket_id = :run_ticket_id AND state IN ('running', 'recorded') ORDER BY position

-- name: open_in
-- The entries of a conversation that have not ended.
{select_entry}
WHERE conversation = :conversation AND state IN ('waiting', 'running', 'recorded')
ORDER BY position

-- name: purge
-- Delete some ended or lost entries whose time to be kept is over, the longest over first.
DELETE FROM {prefix}entries WHERE position IN (
    SELECT position FROM {prefix}entries
    WHERE keep_until <= :now AND state IN ('ended', 'lost')
    ORDER BY keep_until LIMIT :limit
)

-- name: open_of_session
-- The entries recorded in a session that have not ended.
{select_entry}
WHERE session_key = :session_key AND state IN ('waiting', 'running', 'recorded')
ORDER BY position

-- name: with_payload
-- Entries that still have their payload.
{select_entry}
WHERE payload IS NOT NULL AND position > :above ORDER BY position LIMIT :limit

-- name: delete_conversation
-- Delete the entries recorded in the sessions of a conversation, and those that wait in it.
DELETE FROM {prefix}entries
WHERE (conversation = :conversation AND session_key IS NULL) OR session_key IN (
    SELECT key FROM {prefix}sessions WHERE conversation_key = :conversation_key
)

-- name: delete_session
-- Delete the entries recorded in a session, and those that wait for it.
DELETE FROM {prefix}entries
WHERE session_key = :session_key OR (
    conversation = :conversation AND session_key IS NULL
    AND lane IN (:lane, :base_lane) AND starts_session = 0
)

-- name: release_claims
-- Let the ended entries of a run that was recorded in a session forget their claims.
UPDATE {prefix}entries SET claim_key = NULL
WHERE session_key = :session_key AND run_ticket_id = :run_ticket_id AND state = 'ended'
