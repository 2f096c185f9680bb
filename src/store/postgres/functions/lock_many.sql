-- lock_many: acquires, renewals and releases of many callers, each in the usual case: one statement
-- per kind instead of several per request. A request that is not the usual case is left undone, and
-- goes through apply() afterwards.
--
-- Why it is race-free: like everything in lock.sql, it works under the mutexes of all its keys,
-- which it takes first, in the global order, as apply() does; each statement after that has its own
-- snapshot. No request of a call reads what another one changes (lock_many.c ensures it), so their
-- order does not matter.
--
-- Rows are changed by their ctid, found by looking up the keys one by one. That leaves no choice to
-- the planner: a join could scan all leases, if it was planned while there were none. If a sweep
-- has moved a row meanwhile (look_ms), the row is found or the request is left; nothing else
-- changes it.

-- Parameters: arrays of equal length. kinds: OP_ACQUIRE, OP_RENEW or OP_RELEASE. ttls: 0 in a
-- renewal: as granted. granted, fences: which requests were granted, counted from 1, and their
-- fences. renewed, ttls_now: which were renewed, and for how long. ended: which were released. (Not
-- their fences: a request may carry the fence of another lease.)
CREATE OR REPLACE FUNCTION lock_many(kinds int[], ts text[], ks text[], hs text[], fs bigint[],
                                     ttls bigint[], settles bigint[], metas text[],
                                     places text[], test_now bigint,
                                     OUT granted bigint[], OUT fences bigint[],
                                     OUT renewed bigint[], OUT ttls_now bigint[],
                                     OUT ended bigint[])
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT
SET enable_seqscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    now   bigint := test_now;
    units text[]; -- that have many ended leases
    drawn bigint[]; -- a fence for each request
    shown bigint[]; -- requests whose lease's row somebody has locked
    r     text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM batch_begin('{}'); -- which refuses it
    END IF;
    -- Sorted before the first one is taken.
    PERFORM pg_advisory_xact_lock(o.m)
       FROM (SELECT mutex(@MUTEX_KEY@, u.t, u.k) AS m FROM unnest(ts, ks) AS u (t, k)
             ORDER BY m OFFSET 0) AS o;
    -- Only now, because the time must not be older than what was done before us.
    IF now IS NULL THEN
        now := clock_ms();
    END IF;

    IF @OP_RELEASE@ = ANY (kinds) THEN -- see v_release()
        WITH e AS (
            UPDATE lease x SET state = @LEASE_ON_RELEASE@, ended_ms = now
              FROM (SELECT l.ctid AS place, u.i
                      FROM unnest(kinds, ts, ks, hs, fs) WITH ORDINALITY AS u (kind, t, k, h, f, i),
                           LATERAL (SELECT y.ctid FROM lease y
                                     WHERE y.tenant = u.t AND y.key = u.k AND y.fence = u.f
                                       AND y.holder = u.h AND y.state = @LEASE_HELD@
                                       AND y.expires_ms > now
                                       AND y.mode = @MODE_EXCLUSIVE@ AND y.run = 0
                                       AND (SELECT 1 FROM waiter w
                                            WHERE w.tenant = u.t AND w.key = u.k
                                              AND w.ticket >= y.head LIMIT 1) IS NULL
                                    OFFSET 0) AS l
                     WHERE u.kind = @OP_RELEASE@
                    OFFSET 0) AS n
             WHERE x.ctid = n.place
            RETURNING n.i, x.xmax = '0' AS unseen)
        SELECT array_agg(e.i), array_agg(e.i) FILTER (WHERE NOT e.unseen) INTO ended, shown FROM e;
        IF shown IS NOT NULL THEN
            PERFORM release_shown(ts[i], ks[i], fs[i], now) FROM unnest(shown) AS u (i);
        END IF;
    END IF;

    IF @OP_RENEW@ = ANY (kinds) THEN -- see v_renew()
        WITH e AS (
            UPDATE lease x
               SET ttl_ms = n.ttl, renewed_ms = now, expires_ms = now + n.ttl,
                   look_ms = least(x.look_ms, now + n.ttl)
              FROM (SELECT l.ctid AS place, u.i,
                           CASE u.ttl WHEN 0 THEN l.ttl_ms ELSE u.ttl END AS ttl
                      FROM unnest(kinds, ts, ks, hs, fs, ttls)
                           WITH ORDINALITY AS u (kind, t, k, h, f, ttl, i),
                           LATERAL (SELECT y.ctid, y.ttl_ms, y.head FROM lease y
                                     WHERE y.tenant = u.t AND y.key = u.k AND y.fence = u.f
                                       AND y.holder = u.h AND y.state = @LEASE_HELD@
                                       AND y.expires_ms > now
                                       AND y.mode = @MODE_EXCLUSIVE@ AND y.run = 0 OFFSET 0) AS l
                     WHERE u.kind = @OP_RENEW@
                       AND (SELECT 1 FROM (SELECT w.drop_ms FROM waiter w
                                           WHERE w.tenant = u.t AND w.key = u.k
                                             AND w.ticket >= l.head ORDER BY w.ticket LIMIT 64) f
                             WHERE f.drop_ms <= now LIMIT 1) IS NULL
                    OFFSET 0) AS n
             WHERE x.ctid = n.place
            RETURNING n.i, x.ttl_ms)
        SELECT array_agg(e.i), array_agg(e.ttl_ms) INTO renewed, ttls_now FROM e;
    END IF;

    -- see v_acquire(). A unit that waits for something may be granted it by an earlier request that
    -- was left.
    IF @OP_ACQUIRE@ = ANY (kinds) THEN
        drawn := fences_draw(cardinality(kinds));
        WITH c AS MATERIALIZED (
            SELECT u.*, unit_of(u.t, u.h) AS root, coalesce(n.head, 0) AS head, o.n,
                   drawn[u.i] AS fence
              FROM unnest(kinds, ts, ks, hs, ttls, settles, metas,
                          places) WITH ORDINALITY AS u (kind, t, k, h, ttl, settle, meta, place, i)
              LEFT JOIN LATERAL (SELECT x.state, x.mode, x.head FROM lease x
                                 WHERE x.tenant = u.t AND x.key = u.k
                                  ORDER BY x.fence DESC LIMIT 1) AS n ON true,
                   LATERAL (SELECT count(*) AS n,
                                   bool_or(x.state < @LEASE_ENDED@
                                           OR (x.key = u.k AND x.holder = u.h
                                               AND x.ended_ms > now - @ENDED_KEEP_MS@)) AS busy
                              FROM lease x WHERE x.root = unit_of(u.t, u.h)) AS o
             WHERE u.kind = @OP_ACQUIRE@
               AND (n.state IS NULL OR (n.state >= @LEASE_ENDED@ AND n.mode = @MODE_EXCLUSIVE@))
               AND (SELECT 1 FROM waiter w
                    WHERE w.tenant = u.t AND w.key = u.k AND w.ticket >= coalesce(n.head, 0)
                    LIMIT 1) IS NULL
               AND o.busy IS NOT TRUE
               AND (SELECT 1 FROM waiter w WHERE w.root = unit_of(u.t, u.h) LIMIT 1) IS NULL
               AND (o.n = 0 OR (SELECT 1 FROM lease_of_holder(u.t, u.k, u.h, now)) IS NULL)),
        g AS (
            INSERT INTO lease (tenant, key, fence, run, ttl_ms, settle_ms, granted_ms, renewed_ms,
                               expires_ms, look_ms, floor, head,
                               permits, mode, state, holder, root, live, meta, place, reason)
            SELECT c.t, c.k, c.fence, 0, c.ttl, c.settle, now, now, now + c.ttl,
                   now + least(c.ttl, @LEASE_LOOK_MS@), 0, c.head,
                   0, @MODE_EXCLUSIVE@, @LEASE_HELD@, c.h, c.root, NULL, c.meta, c.place, ''
              FROM c)
        SELECT array_agg(c.i), array_agg(c.fence),
               array_agg(c.root) FILTER (WHERE c.n > 15 AND c.fence % 16 = 0)
          INTO granted, fences, units FROM c;
        IF units IS NOT NULL THEN
            FOREACH r IN ARRAY units LOOP
                PERFORM unit_tidy(r);
            END LOOP;
        END IF;
    END IF;
END
$$;
