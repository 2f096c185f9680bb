-- schema/cache.sql: cached values and their builds. The rules are in src/core/cache.md.

-- The last fill. Fills and drops write it; looking up, leading and renewing a build do not.
CREATE TABLE cache_value (
    tenant      text    COLLATE "C" NOT NULL,
    key         text    COLLATE "C" NOT NULL,
    filled      bigint  NOT NULL, -- token of the build that filled it
    began_at    bigint  NOT NULL, -- all times on the wall clock
    fresh_until bigint  NOT NULL,
    stale_until bigint  NOT NULL,
    purge_at    bigint  NOT NULL,
    build_ms    bigint  NOT NULL,
    code        int     NOT NULL,
    negative    boolean NOT NULL,
    value       bytea   NOT NULL,
    PRIMARY KEY (tenant, key)
);
-- Not compressed: it is read often and written once, and its length is known without reading it.
ALTER TABLE cache_value ALTER COLUMN value SET STORAGE EXTERNAL;
-- Sweeps read it from its start.
CREATE INDEX cache_value_purge ON cache_value (purge_at, filled);

-- The build, dead or alive. A separate row, so that renewing a build does not write the value
-- again.
CREATE TABLE cache_build (
    tenant     text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C" NOT NULL,
    holder     text   COLLATE "C" NOT NULL,
    token      bigint NOT NULL,
    expires_ms bigint NOT NULL, -- lease time
    began_ms   bigint NOT NULL, -- lease time
    began_at   bigint NOT NULL, -- wall clock
    PRIMARY KEY (tenant, key)
);
CREATE INDEX cache_build_expires ON cache_build (expires_ms, token);
