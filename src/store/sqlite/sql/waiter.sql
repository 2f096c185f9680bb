-- waiter.sql: queues of keys: acquires that wait for their turn.
--
-- verdict is the cycle for which a waiter was cancelled, or ''. transaction.sql explains why a row
-- cannot change between reading and changing it.

-- part: waiter_columns
ticket, holder, mode, permits, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms,
meta, place, verdict, run

-- ---- looking ------------------------------------------------------------------------------------

-- name: waiter_of_key
-- A part of the queue of a key in ticket order, including dead and cancelled waiters.
-- params:  1 tenant  2 key  3 ticket behind which  4 limit
-- returns: waiter_columns
SELECT @waiter_columns@
  FROM il_waiter
 WHERE tenant = ?1 AND key = ?2 AND ticket > ?3
 ORDER BY ticket
 LIMIT ?4;

-- name: waiter_of_holder
-- The waiter of a holder.
-- params:  1 tenant  2 key  3 holder
-- returns: waiter_columns
SELECT @waiter_columns@
  FROM il_waiter
 WHERE tenant = ?1 AND key = ?2 AND holder = ?3;

-- name: waiter_list
-- Waiters by key, then ticket, including dead and cancelled ones: the caller skips them. The first
-- key may be continued after a ticket: separately, so that both are found by a seek.
-- params:  1 tenant  2 key and 3 ticket behind which the page begins
--          4 key below which (prefix, then a byte that no key has)  5 limit
-- returns: waiter_columns, key
SELECT * FROM (SELECT @waiter_columns@, key
                 FROM il_waiter INDEXED BY il_waiter_key
                WHERE tenant = ?1 AND key = ?2 AND ticket > ?3
                ORDER BY ticket LIMIT ?5)
UNION ALL
SELECT * FROM (SELECT @waiter_columns@, key
                 FROM il_waiter INDEXED BY il_waiter_key
                WHERE tenant = ?1 AND key > ?2 AND key < ?4
                ORDER BY key, ticket LIMIT ?5)
 LIMIT ?5;

-- name: waiter_of_unit
-- The keys that a unit of work waits for, the youngest wait first, as on the memory engine: the
-- cycle that is reported depends on it.
-- params:  1 tenant  2 root
-- returns: key, whether it was cancelled
SELECT key, verdict <> '' FROM il_waiter WHERE tenant = ?1 AND root = ?2 ORDER BY ticket DESC;

-- name: waiter_entangled
-- Waiters whose unit of work also holds or waits for something else: only those can be part of a
-- cycle.
-- params:  1 tenant after which
-- returns: tenant, holder
SELECT tenant, holder FROM il_waiter w
 WHERE verdict = '' AND tenant > ?1
   AND (EXISTS (SELECT 1 FROM il_lease l WHERE l.tenant = w.tenant AND l.root = w.root)
        OR EXISTS (SELECT 1 FROM il_waiter o
                    WHERE o.tenant = w.tenant AND o.root = w.root AND o.ticket <> w.ticket))
 ORDER BY tenant, ticket;

-- name: waiter_any
-- Is there a waiter for any key? Checked once per transaction; usually there is none, and then no
-- op reads the queue of its key.
SELECT EXISTS (SELECT 1 FROM il_waiter);

-- name: waiter_again
-- A waiter that polls, where nothing of its key is overdue: then it only needs a sign of life, and
-- its queue, which may be long, is not read.
-- params:  1 tenant  2 key  3 holder  4 now_ms  5 mode  6 permits
-- returns: ticket (no row: not that simple)
SELECT w.ticket
  FROM il_waiter w
 WHERE w.tenant = ?1 AND w.key = ?2 AND w.holder = ?3 AND w.mode = ?5 AND w.permits = ?6
   AND w.verdict = ''
   AND NOT EXISTS (SELECT 1 FROM il_waiter d INDEXED BY il_waiter_drop
                    WHERE d.drop_ms <= ?4 AND d.tenant = ?1 AND d.key = ?2)
   AND NOT EXISTS (SELECT 1 FROM il_lease l
                    WHERE l.tenant = ?1 AND l.key = ?2 AND (l.expires_ms <= ?4 OR l.holder = ?3));

-- name: waiter_between
-- How many waiters of a key have tickets in a range, without cancelled ones. The cost is that of
-- the range.
-- params:  1 tenant  2 key  3 from ticket  4 below ticket
SELECT count(*) FROM il_waiter
 WHERE tenant = ?1 AND key = ?2 AND ticket >= ?3 AND ticket < ?4 AND verdict = '';

-- name: waiter_count
-- Live waiters of a key, counted up to a limit.
-- params:  1 tenant  2 key  3 now_ms  4 limit
SELECT count(*)
  FROM (SELECT 1 FROM il_waiter
         WHERE tenant = ?1 AND key = ?2 AND drop_ms > ?3 AND verdict = ''
         LIMIT ?4);

-- name: waiter_overdue
-- Is a waiter of the key dead? The cost is that of everything overdue, in all queues.
-- params:  1 tenant  2 key  3 now_ms
SELECT EXISTS (SELECT 1 FROM il_waiter INDEXED BY il_waiter_drop
                WHERE drop_ms <= ?3 AND tenant = ?1 AND key = ?2);

-- ---- changing -----------------------------------------------------------------------------------

-- name: waiter_add
-- A queued acquire.
-- params:  1 ticket  2 tenant  3 key  4 holder  5 root  6 mode  7 permits  8 ttl_ms  9 settle_ms
--          10 now_ms  11 deadline_ms  12 drop_ms  13 meta  14 place  15 run
INSERT INTO il_waiter (ticket, tenant, key, holder, root, mode, permits, ttl_ms, settle_ms,
                       queued_ms, seen_ms, deadline_ms, drop_ms, meta, place, verdict, run)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, '', ?15);

-- name: waiter_refresh
-- A sign of life, and the deadline as the caller sees it now.
-- params:  1 ticket  2 seen_ms  3 deadline_ms  4 drop_ms
UPDATE il_waiter SET seen_ms = ?2, deadline_ms = ?3, drop_ms = ?4 WHERE ticket = ?1;

-- name: waiter_cancel
-- The verdict for the youngest waiter of a cycle. Only if it still waits.
-- params:  1 ticket  2 verdict
-- returns: tenant, key, holder, run (no row: it does not wait any more)
UPDATE il_waiter SET verdict = ?2 WHERE ticket = ?1 AND verdict = ''
RETURNING tenant, key, holder, run;

-- name: waiter_remove
-- It got its offer, gave up, or went silent.
-- params:  1 ticket
DELETE FROM il_waiter WHERE ticket = ?1;
