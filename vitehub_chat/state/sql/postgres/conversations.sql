-- name: get
-- A conversation by its encoded key.
SELECT key, encoded, last_seq, generation FROM {prefix}conversations
WHERE encoded_hash = :encoded_hash

-- name: insert
-- A new conversation.
INSERT INTO {prefix}conversations (encoded, encoded_hash, last_seq, generation)
VALUES (:encoded, :encoded_hash, 0, 0)
RETURNING key

-- name: allocate
-- Take some numbers and return the last of them.
UPDATE {prefix}conversations SET last_seq = last_seq + :count WHERE key = :key RETURNING last_seq

-- name: next_generation
-- Raise the generation.
UPDATE {prefix}conversations SET generation = generation + 1 WHERE key = :key RETURNING generation
