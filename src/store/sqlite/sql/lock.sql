-- lock.sql: leases, the memory of ended ones, and the learned lock order.
--
-- Before a statement changes a row, the caller has read it in the same write transaction;
-- transaction.sql explains why it cannot have changed meanwhile.

-- part: lease_columns
fence, holder, mode, permits, state, ttl_ms, settle_ms, granted_ms, renewed_ms, expires_ms,
meta, place, reason, run

-- ---- looking ------------------------------------------------------------------------------------

-- name: lease_of_key
-- The leases of a key, oldest first, overdue ones too.
-- params:  1 tenant  2 key
-- returns: lease_columns
SELECT @lease_columns@
  FROM il_lease
 WHERE tenant = ?1 AND key = ?2
 ORDER BY fence;

-- name: lease_list
-- Leases by key, then fence, including overdue ones: the caller skips them.
-- params:  1 tenant  2 key and 3 fence behind which the page begins
--          4 key below which (prefix, then a byte that no key has)  5 limit
-- returns: lease_columns, key
SELECT @lease_columns@, key
  FROM il_lease
 WHERE tenant = ?1 AND (key, fence) > (?2, ?3) AND key < ?4
 ORDER BY key, fence
 LIMIT ?5;

-- name: lease_of_unit
-- What a unit of work holds now, for the lock order. Ordered by key, so that messages do not depend
-- on chance.
-- params:  1 tenant  2 root  3 now_ms
-- returns: key, place
SELECT key, place FROM il_lease
 WHERE tenant = ?1 AND root = ?2 AND expires_ms > ?3
 ORDER BY key, fence;

-- name: lease_busy
-- Does the key have a lease, or the unit of work another one? If not, an acquire is the usual case:
-- nothing is in its way and there is no lock order to check. (As one INSERT … SELECT … WHERE NOT
-- EXISTS it took three times as long: SQLite then copies through a temporary table.)
-- params:  1 tenant  2 key  3 root
SELECT EXISTS (SELECT 1 FROM il_lease WHERE tenant = ?1 AND key = ?2)
    OR EXISTS (SELECT 1 FROM il_lease WHERE tenant = ?1 AND root = ?3);

-- ---- changing -----------------------------------------------------------------------------------

-- name: lease_add
-- A new lease. Its fence was drawn in this transaction, so the row cannot exist.
-- params:  1 tenant  2 key  3 fence  4 holder  5 root  6 mode  7 permits  8 state  9 ttl_ms
--          10 settle_ms  11 granted_ms  12 expires_ms  13 meta  14 place  15 run
INSERT INTO il_lease (tenant, key, fence, holder, root, mode, permits, state, ttl_ms, settle_ms,
                      granted_ms, renewed_ms, expires_ms, meta, place, reason, run)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13, ?14, '', ?15);

-- name: lease_change
-- Confirm, renew, break or settle.
-- params:  1 tenant  2 key  3 fence  4 state  5 ttl_ms  6 renewed_ms  7 expires_ms  8 reason
UPDATE il_lease
   SET state = ?4, ttl_ms = ?5, renewed_ms = ?6, expires_ms = ?7, reason = ?8
 WHERE tenant = ?1 AND key = ?2 AND fence = ?3;

-- name: lease_release
-- The usual case of a release in one statement: the lease is exclusive, held and current, of no
-- run, and there are no waiters (known before). If no row is deleted, the general case decides.
-- params:  1 tenant  2 key  3 fence  4 holder  5 now_ms  6 state HELD
DELETE FROM il_lease
 WHERE tenant = ?1 AND key = ?2 AND fence = ?3 AND holder = ?4 AND expires_ms > ?5 AND state = ?6
   AND mode = @MODE_EXCLUSIVE@ AND run = 0;

-- name: lease_remove
-- The lease has ended.
-- params:  1 tenant  2 key  3 fence
DELETE FROM il_lease WHERE tenant = ?1 AND key = ?2 AND fence = ?3;

-- name: lease_detach
-- The run of a lease has ended, and the lease continues without it.
-- params:  1 tenant  2 key  3 fence
UPDATE il_lease SET run = 0 WHERE tenant = ?1 AND key = ?2 AND fence = ?3;

-- ---- what is overdue ----------------------------------------------------------------------------

-- name: hold_due
-- The key of the lease or waiter that is overdue longest; among equals a lease, by tenant and key,
-- then a waiter, by ticket. Both indexes are read from their start, in their order.
-- params:  1 now_ms
-- returns: tenant, key
SELECT tenant, key FROM (
    SELECT * FROM (SELECT tenant, key, expires_ms AS due_ms, 0 AS waits FROM il_lease
                    WHERE expires_ms <= ?1 ORDER BY expires_ms, tenant, key LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT tenant, key, drop_ms, 1 FROM il_waiter
                    WHERE drop_ms <= ?1 ORDER BY drop_ms, ticket LIMIT 1))
 ORDER BY due_ms, waits LIMIT 1;

-- name: overdue
-- Would a sweep find something to do? Three looks at the start of a tree.
-- params:  1 now_ms  2 ended_ms up to which
SELECT EXISTS (SELECT 1 FROM il_lease WHERE expires_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_waiter)
    OR (SELECT ended_ms FROM il_ended ORDER BY seq LIMIT 1) <= ?2;

-- ---- ended leases -------------------------------------------------------------------------------

-- name: ended_add
-- What ended in this transaction.
-- params:  1 seq  2 ended_ms  3 entries
INSERT INTO il_ended (seq, ended_ms, entries) VALUES (?1, ?2, ?3);

-- name: ended_load
-- What other processes have added since our last read, as far as it still counts.
-- params:  1 seq after which  2 ended_ms after which
-- returns: ended_ms, entries, seq
SELECT ended_ms, entries, seq FROM il_ended WHERE seq > ?1 AND ended_ms > ?2 ORDER BY seq;

-- name: ended_purge
-- Delete what no longer counts. Reads only the front of the table, so the cost is that of the
-- deleted rows.
-- params:  1 ended_ms up to which  2 how many rows to look at
DELETE FROM il_ended
 WHERE seq <= (SELECT max(seq) FROM (SELECT seq, ended_ms FROM il_ended ORDER BY seq LIMIT ?2)
                WHERE ended_ms <= ?1);

-- ---- lock order ---------------------------------------------------------------------------------

-- name: order_add
-- Learn an edge.
-- params:  1 tenant  2 first  3 then_  4 first_place  5 then_place  6 against
INSERT OR IGNORE INTO il_order (tenant, first, then_, first_place, then_place, against)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: order_load
-- All learned edges; there are few (IL__ORDER_EDGES_MAX).
-- returns: tenant, first, then_, first_place, then_place, against
SELECT tenant, first, then_, first_place, then_place, against FROM il_order;

-- name: order_of_tenant
-- The same of one tenant.
-- params:  1 tenant
-- returns: as order_load
SELECT tenant, first, then_, first_place, then_place, against FROM il_order WHERE tenant = ?1;
