-- schema/once.sql: idempotency keys. The rules are in src/core/once.md.

-- A key: who has the claim, or gave the answer. The part that is renewed is small: answers, which
-- may be large, are separate rows.
CREATE TABLE once (
    tenant      text     COLLATE "C" NOT NULL,
    key         text     COLLATE "C" NOT NULL,
    attempt     text     COLLATE "C" NOT NULL,
    token       bigint   NOT NULL,
    fingerprint bytea    NOT NULL,
    state       smallint NOT NULL, -- ONCE_RUNNING, ONCE_DONE
    expires_ms  bigint   NOT NULL, -- of the claim, lease time
    keep_ms     bigint   NOT NULL,
    purge_ms    bigint   NOT NULL, -- RUNNING: lease time, DONE: wall clock
    created_at  bigint   NOT NULL, -- wall clock, of the first begin
    code        integer  NOT NULL,
    meta        text     NOT NULL,
    -- meta of the attempt that was taken over from; NULL = there was none
    before      text,
    PRIMARY KEY (tenant, key)
);
-- Sweeps read it from its start, once for each clock.
CREATE INDEX once_purge ON once (state, purge_ms, token);

-- The answer given under a token; it never changes. It is deleted with its key, in the same
-- transaction.
CREATE TABLE once_answer (
    token    bigint PRIMARY KEY,
    response bytea  NOT NULL
);
