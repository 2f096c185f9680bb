-- postgres_fence_make: the highest fence that was shown, of each key; in the first schema of the connection's search_path. Two who make it at once: one of them is refused (duplicate_table,
-- duplicate_object or unique_violation), and looks again.
CREATE TABLE IF NOT EXISTS interlock_fence (
    tenant   text        NOT NULL,
    key      text        NOT NULL,
    fence    bigint      NOT NULL,
    shown_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, key)
);
