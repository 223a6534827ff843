-- name: settings
-- What holds for one transaction; a sequential scan would conflict with every other writer.
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
SET LOCAL lock_timeout = :lock_timeout

-- name: begin
-- Begin a transaction that writes beside others.
BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE;
{settings};
LOCK TABLE {prefix}meta IN ROW SHARE MODE

-- name: begin_alone
-- Begin a transaction that writes while nobody else does.
BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE;
{settings};
LOCK TABLE {prefix}meta IN EXCLUSIVE MODE

-- name: begin_reading
-- Begin a transaction that sees one moment and writes nothing.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
{settings}

-- name: begin_upkeep
-- Begin a transaction that no step runs in.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
{settings}

-- name: commit_lazily
-- Do not wait for the disk when this transaction commits.
SET LOCAL synchronous_commit = off

-- name: server
-- The version of the server, and the encoding of the database.
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')

-- name: time
-- The time of the server in microseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: create_versions
-- Create the table of schema versions.
CREATE TABLE IF NOT EXISTS {prefix}schema (
    version integer PRIMARY KEY,
    at bigint NOT NULL,
    checksum text NOT NULL
)

-- name: lock_versions
-- Let only one process migrate at a time.
LOCK TABLE {prefix}schema IN EXCLUSIVE MODE

-- name: table_of_versions
-- Tell whether the table of schema versions exists.
SELECT 1 WHERE to_regclass('{prefix}schema') IS NOT NULL

-- name: versions
-- The migrations that were applied, in order.
SELECT version, checksum FROM {prefix}schema ORDER BY version

-- name: add_version
-- Note an applied migration.
INSERT INTO {prefix}schema (version, at, checksum) VALUES (:version, :at, :checksum)

-- name: secret
-- The random bytes of this store.
SELECT secret FROM {prefix}meta WHERE id = 1

-- name: holds_expired
-- Tell whether there is anything to clean up.
SELECT
    EXISTS (SELECT 1 FROM {prefix}rows WHERE expires_at <= :now)
    OR EXISTS (
        SELECT 1 FROM {prefix}entries WHERE keep_until <= :now AND state IN ('ended', 'lost')
    )
