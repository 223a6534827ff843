-- What stores need that are reached by requests. Times are microseconds since 1970.
CREATE TABLE {prefix}requests_schema (
    version INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

CREATE TABLE {prefix}scopes (
    scope TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    idle_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX {prefix}scopes_idle ON {prefix}scopes (idle_at) WHERE idle_at IS NOT NULL;

CREATE TABLE {prefix}counters (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO {prefix}counters (name, value)
SELECT 'floor', last_token FROM {prefix}meta WHERE id = 1;

INSERT INTO {prefix}counters (name, value) VALUES ('conversation', 0);

INSERT INTO {prefix}counters (name, value) VALUES (
    'session',
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{prefix}sessions'), 0)
);

CREATE TABLE {prefix}writes (
    at INTEGER NOT NULL,
    nonce TEXT NOT NULL,
    holds INTEGER NOT NULL CHECK (holds = 1),
    PRIMARY KEY (at, nonce)
) STRICT, WITHOUT ROWID;
