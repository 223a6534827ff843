BEGIN TRANSACTION;
CREATE TABLE vitehub_agent_state_conversations (
    key INTEGER PRIMARY KEY,
    encoded TEXT NOT NULL UNIQUE,
    last_seq INTEGER NOT NULL,
    generation INTEGER NOT NULL
) STRICT;
INSERT INTO "vitehub_agent_state_conversations" VALUES(1,'4:acme6:helper6:portal3:t''1',3,0);
CREATE TABLE vitehub_agent_state_counters (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "vitehub_agent_state_counters" VALUES('conversation',16);
INSERT INTO "vitehub_agent_state_counters" VALUES('floor',0);
INSERT INTO "vitehub_agent_state_counters" VALUES('session',16);
CREATE TABLE vitehub_agent_state_documents (
    home TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    session_key INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (home, kind, name)
) STRICT;
INSERT INTO "vitehub_agent_state_documents" VALUES('4:acme6:helper6:portal3:t''1','value','cursor',0,0,'{"at":3}',1767225600000000,NULL);
CREATE TABLE vitehub_agent_state_entries (
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
, settles_at INTEGER) STRICT;
INSERT INTO "vitehub_agent_state_entries" VALUES(1,'ticket 1','lock 1','4:acme6:helper6:portal3:t''1','27:4:acme6:helper6:portal3:t''1-','m4','27:4:acme6:helper6:portal3:t''12:m4','{"text": "waits"}',0,0,'running','process 1',1767225610000000,NULL,1767226200000000,1767226200000000,'ticket 1',NULL,NULL,NULL);
CREATE TABLE vitehub_agent_state_locks (
    lock_key TEXT NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL,
    ticket_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "vitehub_agent_state_locks" VALUES('lock 1',17796804,'ticket 1','process 1',1767225630000000);
CREATE TABLE vitehub_agent_state_meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL,
    last_token INTEGER NOT NULL
) STRICT;
INSERT INTO "vitehub_agent_state_meta" VALUES(1,X'F3BD7250963D46E99520C5C6448E477B0D5C7CCF0BCE40F88DA0A9525ED28115',0);
CREATE TABLE vitehub_agent_state_requests_schema (
    version INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
INSERT INTO "vitehub_agent_state_requests_schema" VALUES(1,1767225600000000,'0ed1ead0a701d4be3f18ffbf0372dcaeeb48ab343052f28928dd65c43010cbfb');
CREATE TABLE vitehub_agent_state_rows (
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
, search_text TEXT) STRICT;
INSERT INTO "vitehub_agent_state_rows" VALUES(4294967297,1,1,NULL,'m1','user','complete',NULL,1767225600000000,1,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"v":1,"parts":[{"type":"text","text":"é 1"}]}',NULL,'é 1');
INSERT INTO "vitehub_agent_state_rows" VALUES(4294967298,1,1,NULL,'m2','user','complete',NULL,1767225600000000,2,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"v":1,"parts":[{"type":"text","text":"é 2"}]}',NULL,'é 2');
INSERT INTO "vitehub_agent_state_rows" VALUES(4294967299,1,1,NULL,'m3','user','complete',NULL,1767225600000000,3,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"v":1,"parts":[{"type":"text","text":"é 3"}]}',NULL,'é 3');
CREATE TABLE vitehub_agent_state_schema (
    version INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
INSERT INTO "vitehub_agent_state_schema" VALUES(1,1767225600000000,'8eb65707383e94eb2d8269372eb83c6f9792b7e1522b87f886a756f967439c6e');
INSERT INTO "vitehub_agent_state_schema" VALUES(2,1767225600000000,'a6eeded49689da472095a6501e115e27248d29cad0fe2eebf68c4b0cfc16d10c');
INSERT INTO "vitehub_agent_state_schema" VALUES(3,1767225600000000,'f45682a5f70499543d8dba587a0131709c21e3633bdd0e5f09800c9bf4053639');
CREATE TABLE vitehub_agent_state_scopes (
    scope TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    idle_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "vitehub_agent_state_scopes" VALUES('conversation:4:acme6:helper6:portal3:t''1',2,NULL);
INSERT INTO "vitehub_agent_state_scopes" VALUES('lock:lock 1',1,NULL);
INSERT INTO "vitehub_agent_state_scopes" VALUES('value:27:4:acme6:helper6:portal3:t''16:cursor',1,1767225600000000);
CREATE TABLE vitehub_agent_state_sessions (
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
INSERT INTO "vitehub_agent_state_sessions" VALUES(1,'4:acme6:helper6:portal3:t''1',NULL,NULL,1,'4:acme6:helper6:portal3:t''1','acme','helper','ann','chat 1',NULL,NULL,1767225600000000,1767225600000000,3,3,0,0);
CREATE TABLE vitehub_agent_state_summaries (
    conversation_key INTEGER NOT NULL,
    session_key INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, session_key)
) STRICT, WITHOUT ROWID;
INSERT INTO "vitehub_agent_state_summaries" VALUES(1,0,'They said hello.',1767225600000000);
CREATE TABLE vitehub_agent_state_writes (
    at INTEGER NOT NULL,
    nonce TEXT NOT NULL,
    holds INTEGER NOT NULL CHECK (holds = 1),
    PRIMARY KEY (at, nonce)
) STRICT, WITHOUT ROWID;
INSERT INTO "vitehub_agent_state_writes" VALUES(1767225600000000,'6f15b1af60de469dabc6eb51f2c958dc',1);
INSERT INTO "vitehub_agent_state_writes" VALUES(1767225600000000,'a595790345d04be8955fa4689cea5eba',1);
INSERT INTO "vitehub_agent_state_writes" VALUES(1767225600000000,'ad3b977f89b34915b05aadc7868e9aac',1);
INSERT INTO "vitehub_agent_state_writes" VALUES(1767225600000000,'bb60bdfd66314ef69813540992572816',1);
CREATE UNIQUE INDEX vitehub_agent_state_entries_claim ON vitehub_agent_state_entries (claim_key)
    WHERE claim_key IS NOT NULL;
CREATE INDEX vitehub_agent_state_entries_waiting ON vitehub_agent_state_entries (lock_key, position, lane, expires_at)
    WHERE state = 'waiting';
CREATE INDEX vitehub_agent_state_entries_run ON vitehub_agent_state_entries (run_ticket_id)
    WHERE state IN ('running', 'recorded');
CREATE INDEX vitehub_agent_state_entries_conversation ON vitehub_agent_state_entries (conversation, state);
CREATE INDEX vitehub_agent_state_entries_over ON vitehub_agent_state_entries (keep_until)
    WHERE state IN ('ended', 'lost');
CREATE INDEX vitehub_agent_state_sessions_id ON vitehub_agent_state_sessions (scope, session_id);
CREATE INDEX vitehub_agent_state_sessions_base ON vitehub_agent_state_sessions (scope, base);
CREATE INDEX vitehub_agent_state_sessions_conversation ON vitehub_agent_state_sessions (conversation_key, session_id);
CREATE INDEX vitehub_agent_state_sessions_tenant ON vitehub_agent_state_sessions (tenant, last_message_at);
CREATE INDEX vitehub_agent_state_sessions_agent ON vitehub_agent_state_sessions (tenant, agent, last_message_at);
CREATE INDEX vitehub_agent_state_sessions_user ON vitehub_agent_state_sessions (tenant, user_key, last_message_at);
CREATE UNIQUE INDEX vitehub_agent_state_rows_message ON vitehub_agent_state_rows (conversation_key, message_id);
CREATE INDEX vitehub_agent_state_rows_session ON vitehub_agent_state_rows (session_key);
CREATE INDEX vitehub_agent_state_rows_hidden ON vitehub_agent_state_rows (conversation_key) WHERE is_shown = 0;
CREATE INDEX vitehub_agent_state_rows_session_hidden ON vitehub_agent_state_rows (session_key) WHERE is_shown = 0;
CREATE INDEX vitehub_agent_state_rows_pending ON vitehub_agent_state_rows (conversation_key) WHERE status = 'pending';
CREATE INDEX vitehub_agent_state_rows_expiry ON vitehub_agent_state_rows (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX vitehub_agent_state_documents_session
    ON vitehub_agent_state_documents (home, session_key, kind, number, created_at);
CREATE INDEX vitehub_agent_state_documents_number ON vitehub_agent_state_documents (home, kind, number);
CREATE INDEX vitehub_agent_state_documents_expiry ON vitehub_agent_state_documents (expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX vitehub_agent_state_entries_session ON vitehub_agent_state_entries (session_key)
    WHERE session_key IS NOT NULL;
CREATE INDEX vitehub_agent_state_entries_payload ON vitehub_agent_state_entries (position) WHERE payload IS NOT NULL;
CREATE INDEX vitehub_agent_state_rows_author ON vitehub_agent_state_rows (author, id) WHERE author IS NOT NULL;
CREATE INDEX vitehub_agent_state_scopes_idle ON vitehub_agent_state_scopes (idle_at) WHERE idle_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('vitehub_agent_state_sessions',1);
COMMIT;
