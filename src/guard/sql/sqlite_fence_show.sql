-- sqlite_fence_show: show a fence: $1 tenant, $2 key, $3 fence, $4 now. No row comes back: a higher one was shown before.
-- Free of races: the write lock of the file is held since the begin, and kept until the end.
INSERT INTO main.interlock_fence (tenant, key, fence, shown_at_ms) VALUES ($1, $2, CAST($3 AS INTEGER), CAST($4 AS INTEGER))
    ON CONFLICT (tenant, key) DO UPDATE SET fence = excluded.fence, shown_at_ms = excluded.shown_at_ms
    WHERE interlock_fence.fence <= excluded.fence
    RETURNING fence;
