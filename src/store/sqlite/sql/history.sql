-- history.sql: the recorded expiries, breaks and refusals of keys. Each key has one row with all of
-- its events, which core/history.c reads and writes.
--
-- No event is lost and no limit exceeded: the row is read, changed and written in one write
-- transaction (transaction.sql), and so is the number of keys of a tenant.

-- name: history_of_key
-- params:  1 tenant  2 key
-- returns: events
SELECT events FROM il_history WHERE tenant = ?1 AND key = ?2;

-- name: history_put
-- params:  1 tenant  2 key  3 last_ms  4 events
INSERT INTO il_history (tenant, key, last_ms, events) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (tenant, key) DO UPDATE SET last_ms = max(last_ms, ?3), events = ?4;

-- name: history_count
-- Keys of a tenant were added or removed.
-- params:  1 tenant  2 how many
-- returns: how many it has now
INSERT INTO il_history_size (tenant, n) VALUES (?1, ?2)
    ON CONFLICT (tenant) DO UPDATE SET n = n + ?2
RETURNING n;

-- name: history_oldest
-- The key of a tenant whose newest event is oldest. The index is read from the tenant's start.
-- params:  1 tenant
-- returns: id
SELECT id FROM il_history WHERE tenant = ?1 ORDER BY last_ms, key LIMIT 1;

-- name: history_due
-- The key, of any tenant, whose newest event is oldest, if that is over.
-- params:  1 last_ms up to which
-- returns: id, tenant
SELECT id, tenant FROM il_history WHERE last_ms <= ?1 ORDER BY last_ms, id LIMIT 1;

-- name: history_remove
-- params:  1 id
DELETE FROM il_history WHERE id = ?1;
