-- sqlite_fence_make: the highest fence that was shown, of each key. In the transaction that shows the first one, so under the write lock: nobody else makes it at the same time.
CREATE TABLE IF NOT EXISTS main.interlock_fence (
    tenant      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    shown_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
