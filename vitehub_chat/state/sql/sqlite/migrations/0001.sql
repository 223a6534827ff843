-- The first schema. Times are microseconds since 1970.
CREATE TABLE {prefix}schema (
    version INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

CREATE TABLE {prefix}meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL,
    last_token INTEGER NOT NULL
) STRICT;

INSERT INTO {prefix}meta (id, secret, last_token) VALUES (1, :secret, 0);

CREATE TABLE {prefix}locks (
    lock_key TEXT NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL,
    ticket_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE {prefix}entries (
    position INTEGER PRIMARY KEY,
    ticket_id TEXT NOT NULL UNIQUE,
    lock_key TEXT NOT NULL,
    conversation TEXT NOT NULL,
    lane TEXT NOT NULL,
    claim_id TEXT,
    claim_key TEXT,
    payload TEXT,
    starts_session INTEGER NOT NULL,
    coalesces INTEGER NOT NULL,
    state TEXT NOT NULL,
    owner TEXT,
    attended_until INTEGER NOT NULL,
    expires_at INTEGER,
    claim_until INTEGER NOT NULL,
    keep_until INTEGER NOT NULL,
    run_ticket_id TEXT,
    session_key INTEGER,
    ending TEXT
) STRICT;

CREATE UNIQUE INDEX {prefix}entries_claim ON {prefix}entries (claim_key)
    WHERE claim_key IS NOT NULL;
CREATE INDEX {prefix}entries_waiting ON {prefix}entries (lock_key, position, lane, expires_at)
    WHERE state = 'waiting';
CREATE INDEX {prefix}entries_run ON {prefix}entries (run_ticket_id)
    WHERE state IN ('running', 'recorded');
CREATE INDEX {prefix}entries_conversation ON {prefix}entries (conversation, state);
CREATE INDEX {prefix}entries_over ON {prefix}entries (keep_until)
    WHERE state IN ('ended', 'lost');

CREATE TABLE {prefix}conversations (
    key INTEGER PRIMARY KEY,
    encoded TEXT NOT NULL UNIQUE,
    last_seq INTEGER NOT NULL,
    generation INTEGER NOT NULL
) STRICT;

CREATE TABLE {prefix}sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    base TEXT,
    session_id TEXT,
    conversation_key INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    tenant TEXT,
    agent TEXT,
    user_key TEXT,
    chat_id TEXT,
    title TEXT,
    first_message_id TEXT,
    started_at INTEGER NOT NULL,
    last_message_at INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    turn_count INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    began_by_new INTEGER NOT NULL
) STRICT;

CREATE INDEX {prefix}sessions_id ON {prefix}sessions (scope, session_id);
CREATE INDEX {prefix}sessions_base ON {prefix}sessions (scope, base);
CREATE INDEX {prefix}sessions_conversation ON {prefix}sessions (conversation_key, session_id);
CREATE INDEX {prefix}sessions_tenant ON {prefix}sessions (tenant, last_message_at);
CREATE INDEX {prefix}sessions_agent ON {prefix}sessions (tenant, agent, last_message_at);
CREATE INDEX {prefix}sessions_user ON {prefix}sessions (tenant, user_key, last_message_at);

CREATE TABLE {prefix}rows (
    id INTEGER PRIMARY KEY,
    conversation_key INTEGER NOT NULL,
    session_key INTEGER NOT NULL,
    session_id TEXT,
    message_id TEXT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER,
    recorded_at INTEGER NOT NULL,
    turn_no INTEGER NOT NULL,
    turn_id TEXT,
    thread_id TEXT,
    author TEXT,
    is_shown INTEGER NOT NULL,
    fence_key TEXT,
    fence_token INTEGER,
    expires_at INTEGER,
    body TEXT NOT NULL,
    extra TEXT
) STRICT;

CREATE UNIQUE INDEX {prefix}rows_message ON {prefix}rows (conversation_key, message_id);
CREATE INDEX {prefix}rows_session ON {prefix}rows (session_key);
CREATE INDEX {prefix}rows_hidden ON {prefix}rows (conversation_key) WHERE is_shown = 0;
CREATE INDEX {prefix}rows_session_hidden ON {prefix}rows (session_key) WHERE is_shown = 0;
CREATE INDEX {prefix}rows_pending ON {prefix}rows (conversation_key) WHERE status = 'pending';
CREATE INDEX {prefix}rows_expiry ON {prefix}rows (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE {prefix}summaries (
    conversation_key INTEGER NOT NULL,
    session_key INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, session_key)
) STRICT, WITHOUT ROWID;
