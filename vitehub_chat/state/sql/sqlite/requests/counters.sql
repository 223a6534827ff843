-- name: reserve_conversations
-- Take some numbers for conversations, unless the one that is asked for is there.
UPDATE {prefix}counters
SET value = max(value, (SELECT coalesce(max(key), 0) FROM {prefix}conversations)) + :count
WHERE name = 'conversation'
    AND NOT EXISTS (SELECT 1 FROM {prefix}conversations WHERE encoded = :encoded)
RETURNING value

-- name: reserve_sessions
-- Take some numbers for sessions; each is higher than every one in use.
UPDATE {prefix}counters
SET value = max(value, (SELECT coalesce(max(key), 0) FROM {prefix}sessions)) + :count
WHERE name = 'session'
RETURNING value
