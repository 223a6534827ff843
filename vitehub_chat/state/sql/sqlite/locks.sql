-- name: get
-- One lock.
SELECT lock_key, token, ticket_id, owner, until FROM {prefix}locks WHERE lock_key = :lock_key

-- name: put
-- Insert or replace a lock.
INSERT INTO {prefix}locks (lock_key, token, ticket_id, owner, until)
VALUES (:lock_key, :token, :ticket_id, :owner, :until)
ON CONFLICT (lock_key) DO UPDATE SET
    token = excluded.token,
    ticket_id = excluded.ticket_id,
    owner = excluded.owner,
    until = excluded.until

-- name: delete
-- Delete a lock.
DELETE FROM {prefix}locks WHERE lock_key = :lock_key

-- name: next_token
-- Take the next fencing token.
UPDATE {prefix}meta SET last_token = last_token + 1 WHERE id = 1 RETURNING last_token
