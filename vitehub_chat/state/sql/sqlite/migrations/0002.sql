-- Documents: plans of turns, rolling summaries, values of keys.
CREATE TABLE {prefix}documents (
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

CREATE INDEX {prefix}documents_session
    ON {prefix}documents (home, session_key, kind, number, created_at);
CREATE INDEX {prefix}documents_number ON {prefix}documents (home, kind, number);
CREATE INDEX {prefix}documents_expiry ON {prefix}documents (expires_at)
    WHERE expires_at IS NOT NULL;

ALTER TABLE {prefix}entries ADD COLUMN settles_at INTEGER;

CREATE INDEX {prefix}entries_session ON {prefix}entries (session_key)
    WHERE session_key IS NOT NULL;
CREATE INDEX {prefix}entries_payload ON {prefix}entries (position) WHERE payload IS NOT NULL;

CREATE INDEX {prefix}rows_author ON {prefix}rows (author, id) WHERE author IS NOT NULL;
