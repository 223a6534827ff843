-- name: reserve_conversations
-- Take a block of numbers for conversations, unless the one that is asked for is there.
SELECT nextval('{prefix}conversation_numbers')
WHERE NOT EXISTS (SELECT 1 FROM {prefix}conversations WHERE encoded_hash = :encoded_hash)

-- name: reserve_sessions
-- Take a block of numbers for sessions; each is higher than every one taken before.
SELECT nextval('{prefix}session_numbers')
