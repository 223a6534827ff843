CREATE PROCEDURE public.vitehub_agent_state_hold(IN scopes json, IN noted_at bigint, IN noted_nonce text)
    LANGUAGE plpgsql
    AS $$
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
        UPDATE vitehub_agent_state_scopes SET revision = wanted.next, idle_at = wanted.idle_at
        WHERE scope_hash = wanted.hash AND revision = wanted.revision AND wanted.next IS NOT NULL;
        CONTINUE WHEN FOUND;
        LOOP
            IF wanted.is_shared THEN
                SELECT revision INTO found_revision FROM vitehub_agent_state_scopes
                WHERE scope_hash = wanted.hash FOR SHARE;
            ELSE
                SELECT revision INTO found_revision FROM vitehub_agent_state_scopes
                WHERE scope_hash = wanted.hash FOR UPDATE;
            END IF;
            EXIT WHEN FOUND;
            INSERT INTO vitehub_agent_state_scopes (scope_hash, revision, idle_at)
            SELECT wanted.hash, value, noted_at FROM vitehub_agent_state_counters WHERE name = 'floor' FOR SHARE
            ON CONFLICT DO NOTHING
            RETURNING revision INTO found_revision;
            EXIT WHEN FOUND;
        END LOOP;
        IF found_revision <> wanted.revision THEN
            RAISE integrity_constraint_violation USING MESSAGE = 'a scope has changed';
        END IF;
        IF wanted.next IS NOT NULL THEN
            UPDATE vitehub_agent_state_scopes SET revision = wanted.next, idle_at = wanted.idle_at
            WHERE scope_hash = wanted.hash;
        END IF;
    END LOOP;
    INSERT INTO vitehub_agent_state_writes (at, nonce, holds) VALUES (noted_at, noted_nonce, true);
END
$$;

CREATE SEQUENCE public.vitehub_agent_state_conversation_numbers
    START WITH 16
    INCREMENT BY 16
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.vitehub_agent_state_conversations (
    key bigint NOT NULL,
    encoded text NOT NULL,
    encoded_hash bytea NOT NULL,
    last_seq bigint NOT NULL,
    generation bigint NOT NULL
);

CREATE TABLE public.vitehub_agent_state_counters (
    name text NOT NULL,
    value bigint NOT NULL
);

CREATE TABLE public.vitehub_agent_state_documents (
    home_hash bytea NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    name_hash bytea NOT NULL,
    home text NOT NULL,
    name text NOT NULL,
    session_key bigint NOT NULL,
    number bigint NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint
);

CREATE TABLE public.vitehub_agent_state_entries (
    "position" bigint NOT NULL,
    ticket_id text NOT NULL COLLATE pg_catalog."C",
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
    run_ticket_id text COLLATE pg_catalog."C",
    session_key bigint,
    ending text,
    settles_at bigint
);

ALTER TABLE public.vitehub_agent_state_entries ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.vitehub_agent_state_entries_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.vitehub_agent_state_locks (
    lock_key_hash bytea NOT NULL,
    lock_key text NOT NULL,
    token bigint NOT NULL,
    ticket_id text NOT NULL,
    owner text NOT NULL,
    until bigint NOT NULL
);

CREATE TABLE public.vitehub_agent_state_meta (
    id integer NOT NULL,
    secret bytea NOT NULL,
    CONSTRAINT vitehub_agent_state_meta_id_check CHECK ((id = 1))
);

CREATE TABLE public.vitehub_agent_state_requests_schema (
    version integer NOT NULL,
    at bigint NOT NULL,
    checksum text NOT NULL
);

CREATE TABLE public.vitehub_agent_state_rows (
    id bigint NOT NULL,
    conversation_key bigint NOT NULL,
    session_key bigint NOT NULL,
    session_id text,
    message_id text NOT NULL COLLATE pg_catalog."C",
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
    search_text text
);

CREATE TABLE public.vitehub_agent_state_schema (
    version integer NOT NULL,
    at bigint NOT NULL,
    checksum text NOT NULL
);

CREATE TABLE public.vitehub_agent_state_scopes (
    scope_hash bytea NOT NULL,
    revision bigint NOT NULL,
    idle_at bigint
);

CREATE SEQUENCE public.vitehub_agent_state_session_numbers
    START WITH 16
    INCREMENT BY 16
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.vitehub_agent_state_sessions (
    key bigint NOT NULL,
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

CREATE TABLE public.vitehub_agent_state_summaries (
    conversation_key bigint NOT NULL,
    session_key bigint NOT NULL,
    text text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE public.vitehub_agent_state_writes (
    at bigint NOT NULL,
    nonce text NOT NULL,
    holds boolean NOT NULL,
    CONSTRAINT vitehub_agent_state_writes_holds_check CHECK (holds)
);

INSERT INTO public.vitehub_agent_state_conversations VALUES (1, '4:acme6:helper6:portal3:t''1', '\x0d27ef603628f9fcbc75360e5552b90001169e14db79cd789aa9fa609fff4865', 3, 0);

INSERT INTO public.vitehub_agent_state_counters VALUES ('floor', 0);

INSERT INTO public.vitehub_agent_state_documents VALUES ('\x0d27ef603628f9fcbc75360e5552b90001169e14db79cd789aa9fa609fff4865', 'value', '\x46a4eebd20d881ecfc0ecb54f6d8346524fadb143726d256b1a045303fc67717', '4:acme6:helper6:portal3:t''1', 'cursor', 0, 0, '{"at":3}', 1767225600000000, NULL);

INSERT INTO public.vitehub_agent_state_entries OVERRIDING SYSTEM VALUE VALUES (1, 'ticket 1', 'lock 1', '\x8f1a5407a10272afc6247f5a8f46a96e1342ab8ec473abaa9e55f312cfa6390d', '4:acme6:helper6:portal3:t''1', '\x0d27ef603628f9fcbc75360e5552b90001169e14db79cd789aa9fa609fff4865', '27:4:acme6:helper6:portal3:t''1-', 'm4', '27:4:acme6:helper6:portal3:t''12:m4', '\xe247d7b3f541370cb05957bf9d4c6b449775d627fa91dd967a0bd3e1dbdaac72', '{"text": "waits"}', false, false, 'running', 'process 1', 1767225610000000, NULL, 1767226200000000, 1767226200000000, 'ticket 1', NULL, NULL, NULL);

INSERT INTO public.vitehub_agent_state_locks VALUES ('\x8f1a5407a10272afc6247f5a8f46a96e1342ab8ec473abaa9e55f312cfa6390d', 'lock 1', 25953748, 'ticket 1', 'process 1', 1767225630000000);

INSERT INTO public.vitehub_agent_state_meta VALUES (1, '\x3b63bd49c03b465c99e07f3e35d10865f8bb89b9e8a848a1af8c66ef4d41ea7b');

INSERT INTO public.vitehub_agent_state_requests_schema VALUES (1, 1767225600000000, 'b2006c8033d7b4947b7f038baf0f88af7958e096fda2effa1d2fe47e9c56aadb');

INSERT INTO public.vitehub_agent_state_rows VALUES (4294967297, 1, 1, NULL, 'm1', 'user', 'complete', NULL, 1767225600000000, 1, NULL, NULL, NULL, '\xa8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89', true, NULL, NULL, NULL, '{"v":1,"parts":[{"type":"text","text":"é 1"}]}', NULL, 'é 1');
INSERT INTO public.vitehub_agent_state_rows VALUES (4294967298, 1, 1, NULL, 'm2', 'user', 'complete', NULL, 1767225600000000, 2, NULL, NULL, NULL, '\xa8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89', true, NULL, NULL, NULL, '{"v":1,"parts":[{"type":"text","text":"é 2"}]}', NULL, 'é 2');
INSERT INTO public.vitehub_agent_state_rows VALUES (4294967299, 1, 1, NULL, 'm3', 'user', 'complete', NULL, 1767225600000000, 3, NULL, NULL, NULL, '\xa8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89', true, NULL, NULL, NULL, '{"v":1,"parts":[{"type":"text","text":"é 3"}]}', NULL, 'é 3');

INSERT INTO public.vitehub_agent_state_schema VALUES (1, 1767225600000000, '2747f5d65b898a67f0ce673c9a298f7241a46f92f2fee65b14af70a3c31a7d8a');
INSERT INTO public.vitehub_agent_state_schema VALUES (2, 1767225600000000, '954dac8352bdc555e00f66015f4067a5bcc347bb1ce7c7f6292326ef58214e8c');

INSERT INTO public.vitehub_agent_state_scopes VALUES ('\x401fa225b77896a5a99b6d602cdacf9b30592fd150312341c8f38d15a2e058c5', 0, 1767225600000000);
INSERT INTO public.vitehub_agent_state_scopes VALUES ('\x961498eba6f586c39c7c55a0c6356add4b81270f84e57954ac81785bc6c1db13', 2, NULL);
INSERT INTO public.vitehub_agent_state_scopes VALUES ('\x158da38091b2621e9269b9b662320748046706ca3d210bfb29df13e28b3d19bb', 0, 1767225600000000);
INSERT INTO public.vitehub_agent_state_scopes VALUES ('\xbc765e7a53d8cc3afc253efee301708cb2598e96d115a51bc668f72ec3eb0f2e', 1, 1767225600000000);
INSERT INTO public.vitehub_agent_state_scopes VALUES ('\x6e183cd5d07b8d35e2364c39c20151bd3714b5b1c9389f43c996d45f3d34baa3', 1, NULL);

INSERT INTO public.vitehub_agent_state_sessions VALUES (1, '4:acme6:helper6:portal3:t''1', '\x0d27ef603628f9fcbc75360e5552b90001169e14db79cd789aa9fa609fff4865', NULL, '\xa8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89', NULL, '\xa8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89', 1, '4:acme6:helper6:portal3:t''1', 'acme', '\x822b33ad87c148a0a20a5ba7cd5ebcaa68d36a18e7aad165554903f52ca82757', 'helper', '\xe81d3b0e9d82feaaf5f6e55bdff24731d7eee08632ffa63801e6397290c5d20a', 'ann', '\x49915e0d7d4b402e3017d010bc1c0e83cac6c797d6c16e66340fe3268693a6a1', 'chat 1', NULL, NULL, 1767225600000000, 1767225600000000, 3, 3, 0, false);

INSERT INTO public.vitehub_agent_state_summaries VALUES (1, 0, 'They said hello.', 1767225600000000);

INSERT INTO public.vitehub_agent_state_writes VALUES (1767225600000000, '17c750e473c242b4a9a2949bba63bab5', true);
INSERT INTO public.vitehub_agent_state_writes VALUES (1767225600000000, 'c9487aef60c845d294246297c52158a0', true);
INSERT INTO public.vitehub_agent_state_writes VALUES (1767225600000000, 'e1ed5c68b98e48f7a3c9ffefd46ce677', true);
INSERT INTO public.vitehub_agent_state_writes VALUES (1767225600000000, 'c75cab4d35ee4f27a458b5c98e053152', true);

SELECT pg_catalog.setval('public.vitehub_agent_state_conversation_numbers', 16, true);

SELECT pg_catalog.setval('public.vitehub_agent_state_entries_position_seq', 1, true);

SELECT pg_catalog.setval('public.vitehub_agent_state_session_numbers', 16, true);

ALTER TABLE ONLY public.vitehub_agent_state_conversations
    ADD CONSTRAINT vitehub_agent_state_conversations_encoded_hash_key UNIQUE (encoded_hash);

ALTER TABLE ONLY public.vitehub_agent_state_conversations
    ADD CONSTRAINT vitehub_agent_state_conversations_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.vitehub_agent_state_counters
    ADD CONSTRAINT vitehub_agent_state_counters_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.vitehub_agent_state_documents
    ADD CONSTRAINT vitehub_agent_state_documents_pkey PRIMARY KEY (home_hash, kind, name_hash);

ALTER TABLE ONLY public.vitehub_agent_state_entries
    ADD CONSTRAINT vitehub_agent_state_entries_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.vitehub_agent_state_entries
    ADD CONSTRAINT vitehub_agent_state_entries_ticket_id_key UNIQUE (ticket_id);

ALTER TABLE ONLY public.vitehub_agent_state_locks
    ADD CONSTRAINT vitehub_agent_state_locks_pkey PRIMARY KEY (lock_key_hash);

ALTER TABLE ONLY public.vitehub_agent_state_meta
    ADD CONSTRAINT vitehub_agent_state_meta_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vitehub_agent_state_requests_schema
    ADD CONSTRAINT vitehub_agent_state_requests_schema_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.vitehub_agent_state_rows
    ADD CONSTRAINT vitehub_agent_state_rows_conversation_key_message_id_key UNIQUE (conversation_key, message_id);

ALTER TABLE ONLY public.vitehub_agent_state_rows
    ADD CONSTRAINT vitehub_agent_state_rows_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vitehub_agent_state_schema
    ADD CONSTRAINT vitehub_agent_state_schema_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.vitehub_agent_state_scopes
    ADD CONSTRAINT vitehub_agent_state_scopes_pkey PRIMARY KEY (scope_hash);

ALTER TABLE ONLY public.vitehub_agent_state_sessions
    ADD CONSTRAINT vitehub_agent_state_sessions_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.vitehub_agent_state_summaries
    ADD CONSTRAINT vitehub_agent_state_summaries_pkey PRIMARY KEY (conversation_key, session_key);

ALTER TABLE ONLY public.vitehub_agent_state_writes
    ADD CONSTRAINT vitehub_agent_state_writes_pkey PRIMARY KEY (at, nonce);

CREATE INDEX vitehub_agent_state_documents_aside ON public.vitehub_agent_state_documents USING btree (home_hash, kind, name_hash) WHERE (kind = ANY (ARRAY['hidden'::text, 'superseded'::text]));

CREATE INDEX vitehub_agent_state_documents_expiry ON public.vitehub_agent_state_documents USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX vitehub_agent_state_documents_number ON public.vitehub_agent_state_documents USING btree (home_hash, kind, number);

CREATE INDEX vitehub_agent_state_documents_session ON public.vitehub_agent_state_documents USING btree (home_hash, session_key, kind, number, created_at);

CREATE UNIQUE INDEX vitehub_agent_state_entries_claim ON public.vitehub_agent_state_entries USING btree (claim_key_hash) WHERE (claim_key IS NOT NULL);

CREATE INDEX vitehub_agent_state_entries_conversation ON public.vitehub_agent_state_entries USING btree (conversation_hash);

CREATE INDEX vitehub_agent_state_entries_over ON public.vitehub_agent_state_entries USING btree (keep_until) WHERE (state = ANY (ARRAY['ended'::text, 'lost'::text]));

CREATE INDEX vitehub_agent_state_entries_payload ON public.vitehub_agent_state_entries USING btree ("position") WHERE (payload IS NOT NULL);

CREATE INDEX vitehub_agent_state_entries_run ON public.vitehub_agent_state_entries USING btree (run_ticket_id) WHERE (state = ANY (ARRAY['running'::text, 'recorded'::text]));

CREATE INDEX vitehub_agent_state_entries_session ON public.vitehub_agent_state_entries USING btree (session_key) WHERE (session_key IS NOT NULL);

CREATE INDEX vitehub_agent_state_entries_waiting ON public.vitehub_agent_state_entries USING btree (lock_key_hash, "position") WHERE (state = 'waiting'::text);

CREATE INDEX vitehub_agent_state_rows_author ON public.vitehub_agent_state_rows USING btree (author_hash, id) WHERE (author IS NOT NULL);

CREATE INDEX vitehub_agent_state_rows_expiry ON public.vitehub_agent_state_rows USING btree (expires_at, id) WHERE (expires_at IS NOT NULL);

CREATE INDEX vitehub_agent_state_rows_hidden ON public.vitehub_agent_state_rows USING btree (id) WHERE (NOT is_shown);

CREATE INDEX vitehub_agent_state_rows_pending ON public.vitehub_agent_state_rows USING btree (conversation_key, id) WHERE (status = 'pending'::text);

CREATE INDEX vitehub_agent_state_rows_session ON public.vitehub_agent_state_rows USING btree (session_key, id);

CREATE INDEX vitehub_agent_state_rows_session_hidden ON public.vitehub_agent_state_rows USING btree (session_key, id) WHERE (NOT is_shown);

CREATE INDEX vitehub_agent_state_scopes_idle ON public.vitehub_agent_state_scopes USING btree (idle_at) WHERE (idle_at IS NOT NULL);

CREATE INDEX vitehub_agent_state_sessions_agent ON public.vitehub_agent_state_sessions USING btree (tenant_hash, agent_hash, last_message_at, key);

CREATE INDEX vitehub_agent_state_sessions_base ON public.vitehub_agent_state_sessions USING btree (scope_hash, base_hash, key);

CREATE INDEX vitehub_agent_state_sessions_conversation ON public.vitehub_agent_state_sessions USING btree (conversation_key, session_id_hash, key);

CREATE INDEX vitehub_agent_state_sessions_id ON public.vitehub_agent_state_sessions USING btree (scope_hash, session_id_hash, key);

CREATE INDEX vitehub_agent_state_sessions_tenant ON public.vitehub_agent_state_sessions USING btree (tenant_hash, last_message_at, key);

CREATE INDEX vitehub_agent_state_sessions_user ON public.vitehub_agent_state_sessions USING btree (tenant_hash, user_key_hash, last_message_at, key);
