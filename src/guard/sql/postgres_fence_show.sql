-- postgres_fence_show: make a fence the highest that was shown: $1 tenant, $2 key, $3 fence. No row comes back: a higher one was shown before. In a transaction that is committed at once.
-- Free of races: it waits for whoever keeps the row, then looks at the row as that one left it (READ COMMITTED).
INSERT INTO interlock_fence AS f (tenant, key, fence) VALUES ($1, $2, $3::bigint)
    ON CONFLICT (tenant, key) DO UPDATE SET fence = excluded.fence, shown_at = now()
    WHERE f.fence <= excluded.fence
    RETURNING f.fence;
