-- What tells the writes of many processes apart. Times are microseconds since 1970.
CREATE TABLE {prefix}requests_schema (
    version integer PRIMARY KEY,
    at bigint NOT NULL,
    checksum text NOT NULL
);

CREATE TABLE {prefix}scopes (
    scope_hash bytea PRIMARY KEY,
    revision bigint NOT NULL,
    idle_at bigint
);

CREATE INDEX {prefix}scopes_idle ON {prefix}scopes (idle_at) WHERE idle_at IS NOT NULL;

CREATE TABLE {prefix}counters (
    name text PRIMARY KEY,
    value bigint NOT NULL
);

INSERT INTO {prefix}counters (name, value) VALUES ('floor', 0);

CREATE SEQUENCE {prefix}conversation_numbers INCREMENT BY 16 START WITH 16;

CREATE SEQUENCE {prefix}session_numbers INCREMENT BY 16 START WITH 16;

CREATE TABLE {prefix}writes (
    at bigint NOT NULL,
    nonce text NOT NULL,
    holds boolean NOT NULL CHECK (holds),
    PRIMARY KEY (at, nonce)
);

CREATE PROCEDURE {prefix}hold(scopes json, noted_at bigint, noted_nonce text)
LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
    found_revision bigint;
BEGIN
    FOR wanted IN
        SELECT sha256(convert_to(scope, 'UTF8')) AS hash, revision, next, idle_at, is_shared
        FROM json_to_recordset(scopes) AS each (
            scope text, revision bigint, next bigint, idle_at bigint, is_shared boolean
        )
        ORDER BY 1
    LOOP
        UPDATE {prefix}scopes SET revision = wanted.next, idle_at = wanted.idle_at
        WHERE scope_hash = wanted.hash AND revision = wanted.revision AND wanted.next IS NOT NULL;
        CONTINUE WHEN FOUND;
        LOOP
            IF wanted.is_shared THEN
                SELECT revision INTO found_revision FROM {prefix}scopes
                WHERE scope_hash = wanted.hash FOR SHARE;
            ELSE
                SELECT revision INTO found_revision FROM {prefix}scopes
                WHERE scope_hash = wanted.hash FOR UPDATE;
            END IF;
            EXIT WHEN FOUND;
            INSERT INTO {prefix}scopes (scope_hash, revision, idle_at)
            SELECT wanted.hash, value, noted_at FROM {prefix}counters WHERE name = 'floor' FOR SHARE
            ON CONFLICT DO NOTHING
            RETURNING revision INTO found_revision;
            EXIT WHEN FOUND;
        END LOOP;
        IF found_revision <> wanted.revision THEN
            RAISE integrity_constraint_violation USING MESSAGE = 'a scope has changed';
        END IF;
        IF wanted.next IS NOT NULL THEN
            UPDATE {prefix}scopes SET revision = wanted.next, idle_at = wanted.idle_at
            WHERE scope_hash = wanted.hash;
        END IF;
    END LOOP;
    INSERT INTO {prefix}writes (at, nonce, holds) VALUES (noted_at, noted_nonce, true);
END
$$;
