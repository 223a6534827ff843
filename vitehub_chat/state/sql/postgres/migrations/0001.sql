-- The first schema. Times are microseconds since 1970. Keys may be longer than an index takes, so
-- they are found by their SHA-256, in columns that end in _hash; absent ones have a hash, too.
CREATE TABLE {prefix}schema (
    version integer PRIMARY KEY,
    at bigint NOT NULL,
    checksum text NOT NULL
);

CREATE TABLE {prefix}meta (
    id integer PRIMARY KEY CHECK (id = 1),
    secret bytea NOT NULL
);

INSERT INTO {prefix}meta (id, secret) VALUES (1, :secret);

CREATE TABLE {prefix}locks (
    lock_key_hash bytea PRIMARY KEY,
    lock_key text NOT NULL,
    token bigint NOT NULL,
    ticket_id text NOT NULL,
    owner text NOT NULL,
    until bigint NOT NULL
);

CREATE TABLE {prefix}entries (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ticket_id text COLLATE "C" NOT NULL UNIQUE,
    lock_key text NOT NULL,
    lock_key_hash bytea NOT NULL,
    conversation text NOT NULL,
    conversation_hash bytea NOT NULL,
    lane text NOT NULL,
    claim_id text,
    claim_key text,
    claim_key_hash bytea NOT NULL,
    payload text,
    starts_session boolean NOT NULL,
    coalesces boolean NOT NULL,
    state text NOT NULL,
    owner text,
    attended_until bigint NOT NULL,
    expires_at bigint,
    claim_until bigint NOT NULL,
    keep_until bigint NOT NULL,
    run_ticket_id text COLLATE "C",
    session_key bigint,
    ending text,
    settles_at bigint
);

CREATE UNIQUE INDEX {prefix}entries_claim ON {prefix}entries (claim_key_hash)
    WHERE claim_key IS NOT NULL;
CREATE INDEX {prefix}entries_waiting ON {prefix}entries (lock_key_hash, position)
    WHERE state = 'waiting';
CREATE INDEX {prefix}entries_run ON {prefix}entries (run_ticket_id)
    WHERE state IN ('running', 'recorded');
CREATE INDEX {prefix}entries_conversation ON {prefix}entries (conversation_hash);
CREATE INDEX {prefix}entries_session ON {prefix}entries (session_key)
    WHERE session_key IS NOT NULL;
CREATE INDEX {prefix}entries_payload ON {prefix}entries (position) WHERE payload IS NOT NULL;
CREATE INDEX {prefix}entries_over ON {prefix}entries (keep_until)
    WHERE state IN ('ended', 'lost');

CREATE TABLE {prefix}conversations (
    key bigint PRIMARY KEY,
    encoded text NOT NULL,
    encoded_hash bytea NOT NULL UNIQUE,
    last_seq bigint NOT NULL,
    generation bigint NOT NULL
);

CREATE TABLE {prefix}sessions (
    key bigint PRIMARY KEY,
    scope text NOT NULL,
    scope_hash bytea NOT NULL,
    base text,
    base_hash bytea NOT NULL,
    session_id text,
    session_id_hash bytea NOT NULL,
    conversation_key bigint NOT NULL,
    conversation text NOT NULL,
    tenant text,
    tenant_hash bytea NOT NULL,
    agent text,
    agent_hash bytea NOT NULL,
    user_key text,
    user_key_hash bytea NOT NULL,
    chat_id text,
    title text,
    first_message_id text,
    started_at bigint NOT NULL,
    last_message_at bigint NOT NULL,
    message_count bigint NOT NULL,
    turn_count bigint NOT NULL,
    generation bigint NOT NULL,
    began_by_new boolean NOT NULL
);

CREATE INDEX {prefix}sessions_id ON {prefix}sessions (scope_hash, session_id_hash, key);
CREATE INDEX {prefix}sessions_base ON {prefix}sessions (scope_hash, base_hash, key);
CREATE INDEX {prefix}sessions_conversation
    ON {prefix}sessions (conversation_key, session_id_hash, key);
CREATE INDEX {prefix}sessions_tenant ON {prefix}sessions (tenant_hash, last_message_at, key);
CREATE INDEX {prefix}sessions_agent
    ON {prefix}sessions (tenant_hash, agent_hash, last_message_at, key);
CREATE INDEX {prefix}sessions_user
    ON {prefix}sessions (tenant_hash, user_key_hash, last_message_at, key);

CREATE TABLE {prefix}rows (
    id bigint PRIMARY KEY,
    conversation_key bigint NOT NULL,
    session_key bigint NOT NULL,
    session_id text,
    message_id text COLLATE "C" NOT NULL,
    role text NOT NULL,
    status text NOT NULL,
    created_at bigint,
    recorded_at bigint NOT NULL,
    turn_no bigint NOT NULL,
    turn_id text,
    thread_id text,
    author text,
    author_hash bytea NOT NULL,
    is_shown boolean NOT NULL,
    fence_key text,
    fence_token bigint,
    expires_at bigint,
    body text NOT NULL,
    extra text,
    UNIQUE (conversation_key, message_id)
);

CREATE INDEX {prefix}rows_session ON {prefix}rows (session_key, id);
CREATE INDEX {prefix}rows_hidden ON {prefix}rows (id) WHERE NOT is_shown;
CREATE INDEX {prefix}rows_session_hidden ON {prefix}rows (session_key, id) WHERE NOT is_shown;
CREATE INDEX {prefix}rows_pending ON {prefix}rows (conversation_key, id)
    WHERE status = 'pending';
CREATE INDEX {prefix}rows_expiry ON {prefix}rows (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX {prefix}rows_author ON {prefix}rows (author_hash, id) WHERE author IS NOT NULL;

CREATE TABLE {prefix}summaries (
    conversation_key bigint NOT NULL,
    session_key bigint NOT NULL,
    text text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (conversation_key, session_key)
);

CREATE TABLE {prefix}documents (
    home_hash bytea NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name_hash bytea NOT NULL,
    home text NOT NULL,
    name text NOT NULL,
    session_key bigint NOT NULL,
    number bigint NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    PRIMARY KEY (home_hash, kind, name_hash)
);

CREATE INDEX {prefix}documents_session
    ON {prefix}documents (home_hash, session_key, kind, number, created_at);
CREATE INDEX {prefix}documents_number ON {prefix}documents (home_hash, kind, number);
CREATE INDEX {prefix}documents_expiry ON {prefix}documents (expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX {prefix}documents_aside ON {prefix}documents (home_hash, kind, name_hash)
    WHERE kind IN ('hidden', 'superseded');
