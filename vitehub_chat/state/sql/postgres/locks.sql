-- name: put
-- Insert or replace a lock.
INSERT INTO {prefix}locks (lock_key_hash, lock_key, token, ticket_id, owner, until)
VALUES (:lock_key_hash, :lock_key, :token, :ticket_id, :owner, :until)
ON CONFLICT (lock_key_hash) DO UPDATE SET
    token = excluded.token,
    ticket_id = excluded.ticket_id,
    owner = excluded.owner,
    until = excluded.until

-- name: delete
-- Delete a lock.
DELETE FROM {prefix}locks WHERE lock_key_hash = :lock_key_hash
