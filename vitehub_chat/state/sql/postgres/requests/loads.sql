-- name: floor
-- The revision of every scope that is not there.
(SELECT value FROM {prefix}counters WHERE name = 'floor')

-- name: conversation
-- The number of a conversation that is named by its key.
(SELECT key FROM {prefix}conversations WHERE encoded_hash = :encoded_hash)

-- name: wanted
-- The key of a lock: itself, or that of an entry named by its ticket or its claim.
coalesce(
    :lock_key,
    (SELECT lock_key FROM {prefix}entries WHERE ticket_id = :ticket_id),
    (
        SELECT lock_key FROM {prefix}entries
        WHERE claim_key_hash = :claim_key_hash AND claim_key IS NOT NULL
    )
)

-- name: wanted_hash
-- The hash of that key.
sha256(convert_to({wanted}, 'UTF8'))

-- name: lock_columns
-- The key of a lock, the revision of its scope, and who holds it, if anybody.
wanted.key, coalesce(
    (
        SELECT revision FROM {prefix}scopes
        WHERE scope_hash = sha256(convert_to('lock:' || wanted.key, 'UTF8'))
    ),
    {floor}
), held.lock_key, held.token, held.ticket_id, held.owner, held.until

-- name: holder
-- Who holds the locks that are wanted.
LEFT JOIN {prefix}locks AS held ON held.lock_key_hash = sha256(convert_to(wanted.key, 'UTF8'))

-- name: lock
-- A lock, also if nobody holds it.
SELECT {lock_columns} FROM (SELECT {wanted} AS key) AS wanted {holder}
WHERE wanted.key IS NOT NULL

-- name: locks_of_pending
-- The locks under which answers of a conversation are written.
SELECT {lock_columns} FROM (
    SELECT DISTINCT fence_key AS key FROM {prefix}rows
    WHERE conversation_key = {conversation} AND status = 'pending' AND fence_key IS NOT NULL
) AS wanted {holder}

-- name: sessions_here
-- Any of the sessions whose rows a conversation has; as an array, which an index can look up.
ANY (ARRAY(SELECT key FROM {prefix}sessions WHERE conversation_key = {conversation}))

-- name: locks_of_open
-- The locks that open entries of a conversation and of its sessions want.
SELECT {lock_columns} FROM (
    SELECT DISTINCT lock_key AS key FROM {prefix}entries
    WHERE (conversation_hash = :encoded_hash OR session_key = {sessions_here})
        AND state IN ('waiting', 'running', 'recorded')
) AS wanted {holder}

-- name: named
-- An entry by its ticket or its claim.
{select_entry}
WHERE ticket_id = :ticket_id OR (claim_key_hash = :claim_key_hash AND claim_key IS NOT NULL)

-- name: waiting
-- The entries that wait for a lock.
{select_entry} WHERE lock_key_hash = {wanted_hash} AND state = 'waiting'

-- name: running
-- The entries that a lock is held for, and those of one run.
{select_entry} WHERE state IN ('running', 'recorded') AND run_ticket_id IN (
    :ticket_id, (SELECT ticket_id FROM {prefix}locks WHERE lock_key_hash = {wanted_hash})
)

-- name: open_entries
-- The entries of a conversation and of its sessions that have not ended.
{select_entry}
WHERE (conversation_hash = :encoded_hash OR session_key = {sessions_here})
    AND state IN ('waiting', 'running', 'recorded')

-- name: count_entries
-- Count the entries of a conversation's sessions, and those that wait in it.
SELECT count(*) FROM {prefix}entries
WHERE (
    (conversation_hash = :encoded_hash AND session_key IS NULL) OR session_key = {sessions_here}
) AND NOT (state IN ('ended', 'lost') AND keep_until <= :now)

-- name: count_entries_of_session
-- Count the entries of a session, and those that wait for it.
SELECT count(*) FROM {prefix}entries
WHERE (
    session_key = :session_key OR (
        conversation_hash = :encoded_hash AND session_key IS NULL
        AND lane IN (:lane, :base_lane) AND NOT starts_session
    )
) AND NOT (state IN ('ended', 'lost') AND keep_until <= :now)

-- name: place
-- A conversation with the revision of its scope, also if there is none yet.
SELECT
    coalesce(
        (
            SELECT revision FROM {prefix}scopes
            WHERE scope_hash = sha256(convert_to('conversation:' || wanted.encoded, 'UTF8'))
        ),
        {floor}
    ),
    found.key, found.encoded, found.last_seq, found.generation
FROM (SELECT :encoded::text AS encoded) AS wanted
LEFT JOIN {prefix}conversations AS found ON found.encoded_hash = :encoded_hash

-- name: pending
-- The rows of a conversation whose answer is not complete.
{select_row} WHERE conversation_key = {conversation} AND status = 'pending'

-- name: home_columns
-- A session, and the revision of the conversation that has its rows.
found.*, coalesce(
    (
        SELECT revision FROM {prefix}scopes
        WHERE scope_hash = sha256(convert_to('conversation:' || found.conversation, 'UTF8'))
    ),
    {floor}
)

-- name: session
-- One session.
SELECT {home_columns} FROM ({session_by_key}) AS found

-- name: newest_by_id
-- The newest session of an id in a scope.
SELECT {home_columns} FROM ({session_by_id}) AS found

-- name: newest_by_base
-- The newest session of a base in a scope.
SELECT {home_columns} FROM ({session_by_base}) AS found

-- name: session_of_ticket
-- The session that an entry was recorded in.
SELECT {home_columns} FROM (
    {select_session}
    WHERE key = (SELECT session_key FROM {prefix}entries WHERE ticket_id = :ticket_id)
) AS found

-- name: session_of_conversation
-- The newest session of an id whose rows a conversation has.
{select_session}
WHERE conversation_key = {conversation} AND session_id_hash = :session_id_hash
ORDER BY key DESC LIMIT 1

-- name: sessions_of_conversation
-- Every session whose rows a conversation has.
{select_session} WHERE conversation_key = {conversation}

-- name: summary
-- The manual summary of a conversation or of a session.
SELECT conversation_key, session_key, text, created_at FROM {prefix}summaries
WHERE conversation_key = {conversation} AND session_key = :session_key

-- name: count_summaries
-- Count the manual summaries of a conversation, or of one session.
SELECT count(*) FROM {prefix}summaries
WHERE conversation_key = {conversation}
    AND (:session_key::bigint IS NULL OR session_key = :session_key)

-- name: count_rows
-- Count the rows of a conversation that have not expired.
SELECT count(*) FROM {prefix}rows
WHERE id > ({conversation} << 32) AND id < ({conversation} << 32) + 4294967296
    AND (expires_at IS NULL OR expires_at > :now)

-- name: count_rows_of_session
-- Count the rows of a session that have not expired.
SELECT count(*) FROM {prefix}rows
WHERE session_key = :session_key AND (expires_at IS NULL OR expires_at > :now)

-- name: messages
-- The rows of some message ids, expired ones too.
{select_row} WHERE conversation_key = {conversation} AND message_id IN (:message_ids)

-- name: named_answer
-- The id of the answer with which an entry ended, as JSON; its text may be no json to the server.
substring(ending from '.*"message_id": ?("(?:[^"\\]|\\.)*")')::json #>> '{{}}'

-- name: answer_of_ticket
-- The row of the answer with which an entry ended.
{select_row}
WHERE conversation_key = (
    SELECT conversation_key FROM {prefix}sessions
    WHERE key = (SELECT session_key FROM {prefix}entries WHERE ticket_id = :ticket_id)
) AND message_id = (
    SELECT {named_answer} FROM {prefix}entries WHERE ticket_id = :ticket_id
)

-- name: session_of_rows
-- The number of the session whose rows are wanted, known or by what it is the newest of.
CASE :session_by
    WHEN 'base' THEN (
        SELECT key FROM {prefix}sessions
        WHERE scope_hash = :session_scope_hash AND base_hash = :session_name_hash
        ORDER BY key DESC LIMIT 1
    )
    WHEN 'id' THEN (
        SELECT key FROM {prefix}sessions
        WHERE conversation_key = {conversation} AND session_id_hash = :session_name_hash
        ORDER BY key DESC LIMIT 1
    )
    ELSE :session_key
END

-- name: newest_document
-- The document of a session with the highest number, of equal ones that made last.
{select_document}
WHERE home_hash = :encoded_hash AND kind = :kind AND session_key = {session_of_rows}
    AND {live_document}
ORDER BY number DESC, created_at DESC LIMIT 1

-- name: middle
-- The place of the row around which rows are wanted.
(
    SELECT id & 4294967295 FROM {prefix}rows
    WHERE conversation_key = {conversation} AND message_id = :around
)

-- name: anchor
-- The number of the last row that is condensed in the session whose rows are wanted.
coalesce((
    SELECT number FROM {prefix}documents
    WHERE home_hash = :encoded_hash AND kind = 'rolling' AND session_key = {session_of_rows}
        AND {live_document}
    ORDER BY number DESC, created_at DESC LIMIT 1
), 0)

-- name: above
-- The number in the table above which rows are wanted.
({conversation} << 32) + CASE :side
    WHEN 'newer' THEN {middle} WHEN 'anchor' THEN {anchor} ELSE :above
END

-- name: below
-- The number in the table below which rows are wanted.
({conversation} << 32) + CASE :side WHEN 'older' THEN {middle} ELSE :below END
