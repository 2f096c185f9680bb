-- 0000--0001: the first version. Version rule: data_meta.version is the version of these tables, min_version the oldest version of the code that may still use
-- them. A change that older code can live with (a new table, a new column with a default) raises the first only. The store's own version is another one.
CREATE TABLE data_meta (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    version     bigint NOT NULL,
    min_version bigint NOT NULL
);

-- What only servers know: `pepper`, unless it is in a file of its own, and `pepper_check`, an HMAC with it, by which another pepper is noticed.
CREATE TABLE secret (
    name  text PRIMARY KEY,
    value text NOT NULL -- hex digits
);

-- 0 is no limit. Texts that are listed in order are so byte by byte, whatever the database's collation.
CREATE TABLE tenant (
    id                  text COLLATE "C" PRIMARY KEY,
    name                text   NOT NULL,
    requests_per_second bigint NOT NULL,
    burst               bigint NOT NULL,
    waiters             bigint NOT NULL,
    streams             bigint NOT NULL,
    locks               bigint NOT NULL,
    jobs                bigint NOT NULL,
    created_at_ms       bigint NOT NULL
);

CREATE TABLE api_key (
    id            text COLLATE "C" PRIMARY KEY, -- UUIDv7: in order of age
    tenant        text COLLATE "C" NOT NULL REFERENCES tenant (id),
    name          text   NOT NULL,
    role          text   NOT NULL, -- none, read, write, operator, admin
    permissions   text   NOT NULL, -- separated by spaces
    prefix        text   NOT NULL,
    hash          text COLLATE "C" NOT NULL, -- HMAC-SHA-256(pepper, key) in hex digits; the key itself is nowhere
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL, -- 0 = never
    used_at_ms    bigint NOT NULL DEFAULT 0,
    revoked_at_ms bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
CREATE INDEX api_key_tenant ON api_key (tenant, id);

CREATE TABLE audit (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms   bigint NOT NULL,
    tenant  text COLLATE "C" NOT NULL,
    who     text   NOT NULL,
    act     text COLLATE "C" NOT NULL,
    what    text   NOT NULL,
    reason  text   NOT NULL,
    outcome text   NOT NULL,
    details text   NOT NULL
);
CREATE INDEX audit_at ON audit (at_ms);
CREATE INDEX audit_tenant ON audit (tenant, seq);
CREATE INDEX audit_act ON audit (act, seq);
CREATE INDEX audit_both ON audit (tenant, act, seq);
