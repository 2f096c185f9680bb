-- lock_sweep: recovery of locks, and what the library's deadlock search and learned lock order read
-- and write.

-- ---- the deadlock search ------------------------------------------------------------------------

-- What a unit of work waits for, the youngest wait first: the reported cycle depends on it.
CREATE OR REPLACE FUNCTION waits_of(t text, holder text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('status', @STATUS_OK@, 'keys', to_jsonb(ARRAY(
        SELECT w.key FROM waiter w WHERE w.root = unit_of(t, waits_of.holder) AND w.verdict = ''
               ORDER BY w.ticket DESC)));
END
$$;

-- Of one, or a list of many.
CREATE OR REPLACE FUNCTION v_x_waits(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o ? 'roots' THEN
        RETURN jsonb_build_object('status', @STATUS_OK@,
            'many', (SELECT jsonb_agg(waits_of(o ->> 'tenant', u.r) ORDER BY u.i)
                       FROM jsonb_array_elements_text(o -> 'roots') WITH ORDINALITY AS u (r, i)));
    END IF;
    RETURN waits_of(o ->> 'tenant', o ->> 'root');
END
$$;

-- Does a unit of work wait for another key than this one? 1 or 0; also 1 if it has so many waiters
-- that checking would cost more than being asked.
CREATE OR REPLACE FUNCTION waits_elsewhere(unit text, k text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT (count(*) > 16 OR coalesce(bool_or(w.key <> k AND w.verdict = ''), false))::int
              FROM (SELECT x.key, x.verdict FROM waiter x WHERE x.root = unit LIMIT 17) w);
END
$$;

-- The leases and the queue of a key. C leaves out the leases that have ended or will end by
-- themselves. For each, whether its unit of work also waits for another key: most do not, and need
-- not be queried one by one.
CREATE OR REPLACE FUNCTION queue_of(t text, k text, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', @STATUS_OK@, 'now_ms', now,
        'leases', to_jsonb(ARRAY(SELECT jsonb_build_array(l.holder, l.mode, l.permits, l.state,
                                                          l.expires_ms, l.settle_ms, e.n)
                                   FROM leases_of_key(t, k) l,
                                        LATERAL waits_elsewhere(l.root, k) e (n) ORDER BY l.fence)),
        'waits', to_jsonb(ARRAY(SELECT jsonb_build_array(w.ticket, w.holder, w.mode, w.permits, e.n)
                                  FROM waiter w, LATERAL waits_elsewhere(w.root, k) e (n)
                                 WHERE w.tenant = t AND w.key = k AND w.verdict = ''
                                   AND w.drop_ms > queue_of.now
                                 ORDER BY w.ticket)));
END
$$;

-- Of one, or a list of many.
CREATE OR REPLACE FUNCTION v_x_queue(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o ? 'keys' THEN
        RETURN jsonb_build_object('status', @STATUS_OK@,
            'many', (SELECT jsonb_agg(queue_of(o ->> 'tenant', u.k, now) ORDER BY u.i)
                       FROM jsonb_array_elements_text(o -> 'keys') WITH ORDINALITY AS u (k, i)));
    END IF;
    RETURN queue_of(o ->> 'tenant', o ->> 'key', now);
END
$$;

-- Give the youngest waiter of a cycle its verdict, if it still waits, and wake it; those behind it
-- may be able to proceed. The waiter of a run is removed together with its run, which then carries
-- the verdict.
CREATE OR REPLACE FUNCTION v_x_verdict(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w waiter;
BEGIN
    PERFORM place_forget();
    UPDATE waiter SET verdict = o ->> 'text'
        WHERE ticket = (o ->> 'ticket')::bigint AND verdict = '' RETURNING * INTO w;
    IF NOT FOUND THEN
        RETURN '{"status": @STATUS_OK@, "found": 0}';
    END IF;
    PERFORM wake(w.tenant, w.key, w.holder);
    IF w.run <> 0 THEN
        PERFORM run_cancelled_cycle(w.run, w.verdict, now, wall);
        w.run := 0;
        PERFORM waiter_leave(w, now, wall);
    END IF;
    PERFORM key_offer_next(w.tenant, w.key, now, wall);
    RETURN '{"status": @STATUS_OK@, "found": 1}';
END
$$;

-- The victim's own caller got the verdict at once, so its waiter has nothing to wait for. It has
-- blocked no one since its verdict.
CREATE OR REPLACE FUNCTION v_x_take(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    told text;
BEGIN
    DELETE FROM waiter
     WHERE root = unit_of(o ->> 'tenant', o ->> 'holder')
       AND holder || E'\x1f' || key = concat(o ->> 'holder', E'\x1f', o ->> 'key') AND verdict <> ''
    RETURNING verdict INTO told;
    IF NOT FOUND THEN
        RETURN '{"status": @STATUS_OK@, "found": 0}';
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'found', 1, 'detail', told);
END
$$;

-- Waiters whose unit of work also holds or waits for something else: only those can be part of a
-- cycle.
CREATE OR REPLACE FUNCTION waiters_entangled(after text) RETURNS SETOF waiter
LANGUAGE sql STABLE AS $$
    SELECT * FROM waiter w
     WHERE w.tenant > after AND w.verdict = ''
       AND (EXISTS (SELECT 1 FROM lease l WHERE l.root = w.root AND l.state < @LEASE_ENDED@)
            OR EXISTS (SELECT 1 FROM waiter x WHERE x.root = w.root AND x.ticket <> w.ticket))
$$;

-- Those of the first tenant after the given one that has any, by ticket.
CREATE OR REPLACE FUNCTION v_x_entangled(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t text;
    h jsonb;
BEGIN
    SELECT e.tenant, jsonb_agg(e.holder ORDER BY e.ticket) INTO t, h
      FROM waiters_entangled(coalesce(o ->> 'tenant', '')) e GROUP BY e.tenant ORDER BY e.tenant
           LIMIT 1;
    IF t IS NULL THEN
        RETURN '{"status": @STATUS_OK@, "holders": []}';
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'tenant', t, 'holders', h);
END
$$;

-- ---- learned lock order -------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION v_x_edges(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', @STATUS_OK@, 'order_n', (SELECT order_n FROM state),
        'edges', to_jsonb(ARRAY(SELECT jsonb_build_array(tenant, first, then_, first_place,
                                                         then_place, against)
                                  FROM order_edge ORDER BY n LIMIT @ORDER_EDGES_MAX@)));
END
$$;

-- The edges of one tenant, all of them: the library makes the page.
CREATE OR REPLACE FUNCTION v_order_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', @STATUS_OK@,
        'edges', to_jsonb(ARRAY(SELECT jsonb_build_array(tenant, first, then_, first_place,
                                                         then_place, against)
                                  FROM order_edge WHERE tenant = o ->> 'tenant'
                                 LIMIT @ORDER_EDGES_MAX@)));
END
$$;

-- Race-free: the row of state, which counts the edges, is locked first.
CREATE OR REPLACE FUNCTION v_x_learn(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    learned bigint;
BEGIN
    SELECT order_n INTO learned FROM state FOR NO KEY UPDATE;
    IF learned < @ORDER_EDGES_MAX@ THEN
        INSERT INTO order_edge (tenant, first, then_, n, first_place, then_place, against)
        VALUES (o ->> 'tenant', o ->> 'first', o ->> 'then', learned + 1,
                coalesce(o ->> 'first_place', ''),
                coalesce(o ->> 'then_place', ''), (o ->> 'against')::int)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            learned := learned + 1;
            UPDATE state SET order_n = learned;
        END IF;
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'order_n', learned);
END
$$;

-- ---- the sweep ----------------------------------------------------------------------------------
--
-- A sweep looks at a row of lease at its look_ms: at its expiry, but at most 30 s after the grant.
-- Neither a renewal nor a release changes look_ms, so neither writes to an index. Usually the lease
-- has been released by then: it stays as it is, and is deleted after it has been remembered for a
-- minute. A lease that is still held is checked again at its expiry, or in five minutes, so that a
-- lease released meanwhile does not stay for the length of a long TTL.
--
-- Sweeps begin where the last one ended. Without these marks each would begin with all the index
-- entries that earlier sweeps have left behind and that an old snapshot keeps from being vacuumed.
-- The marks stay 2 s behind, for open transactions (what they grant is due a second later at the
-- earliest). Everything is checked once a minute, in case one took even longer, and when the
-- server's clock was set back.

-- Where to begin: {for overdue rows, for rows to be forgotten}.
CREATE OR REPLACE FUNCTION sweep_marks(now bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at_full bigint := (SELECT last_value FROM look_full);
    due     bigint := (SELECT last_value FROM look_due);
    gone    bigint := (SELECT last_value FROM look_gone);
BEGIN
    IF now BETWEEN at_full AND at_full + 60000 AND due <= now - 2000 AND gone <= now - 62000 THEN
        RETURN ARRAY[due, gone];
    END IF;
    RETURN '{0,0}';
END
$$;

-- How far to look for rows to be forgotten. Hardly any that were looked at less than a minute ago,
-- unless everything is checked.
CREATE OR REPLACE FUNCTION gone_until(marks bigint[], now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN marks[2] = 0 THEN now ELSE now - 60000 END
$$;

-- Record where the next sweep begins: before everything that is left.
CREATE OR REPLACE FUNCTION sweep_mark(marks bigint[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    due  bigint := (SELECT l.look_ms FROM lease l
                    WHERE l.look_ms BETWEEN marks[1] AND now AND l.state < @LEASE_ENDED@
                     ORDER BY l.look_ms LIMIT 1);
    gone bigint := (SELECT l.look_ms FROM lease l WHERE l.look_ms BETWEEN marks[2] AND now
                    ORDER BY l.look_ms LIMIT 1);
BEGIN
    PERFORM setval('look_due', greatest(least(due, now - 2000), 0)),
            setval('look_gone', greatest(least(gone, now - 62000), 0));
    IF marks[1] = 0 THEN
        PERFORM setval('look_full', greatest(now, 0));
    END IF;
END
$$;

-- Forget rows that have been remembered for a minute, and advance look_ms where it was too early.
-- Locked rows are skipped, so a sweep never waits. Ended rows no longer change; in the others only
-- look_ms is changed here, which no decision depends on: expires_ms was read under the row's lock.
-- In overdue rows, look_ms becomes the expiry: they are processed in that order.
CREATE OR REPLACE FUNCTION sweep_rows(marks bigint[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM lease
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM lease l
                              WHERE l.look_ms BETWEEN marks[2] AND gone_until(marks, sweep_rows.now)
                                AND l.state >= @LEASE_ENDED@
                                AND coalesce(l.ended_ms <= sweep_rows.now - @ENDED_KEEP_MS@, true)
                              ORDER BY l.look_ms LIMIT 20000 FOR UPDATE SKIP LOCKED));
    UPDATE lease
       SET look_ms = CASE WHEN expires_ms <= sweep_rows.now THEN expires_ms
                          ELSE least(expires_ms, sweep_rows.now + 300000) END
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM lease l
                              WHERE l.look_ms BETWEEN marks[1] AND sweep_rows.now
                                AND l.state < @LEASE_ENDED@ AND l.expires_ms <> l.look_ms
                              ORDER BY l.look_ms LIMIT 20000 FOR NO KEY UPDATE SKIP LOCKED));
END
$$;

-- Everything that is overdue, longest first; among equals leases, by tenant and key, then waiters,
-- by ticket. At most n of each.
CREATE OR REPLACE FUNCTION overdue_holds(since bigint, n int, now bigint)
RETURNS TABLE (tenant text, key text)
LANGUAGE sql STABLE AS $$
    SELECT h.tenant, h.key FROM (
        (SELECT l.tenant, l.key, l.look_ms AS due, 0 AS ticket FROM lease l
          WHERE l.look_ms BETWEEN since AND overdue_holds.now AND l.state < @LEASE_ENDED@
            AND l.expires_ms <= overdue_holds.now
          ORDER BY l.look_ms, l.tenant, l.key LIMIT n)
        UNION ALL
        (SELECT w.tenant, w.key, w.drop_ms, w.ticket FROM waiter w
          WHERE w.drop_ms + 0 <= overdue_holds.now ORDER BY w.drop_ms + 0, w.ticket LIMIT n)) h
     ORDER BY h.due, h.ticket, h.tenant, h.key
$$;

CREATE OR REPLACE FUNCTION v_x_sweep_locks(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    bound int      := coalesce((o ->> 'limit')::int, 1000);
    marks bigint[] := sweep_marks(now);
    sums  int[]    := '{0,0,0,0}'; -- expired, dropped, offered, runs
    n     int[];
    seen  int      := 0;
    more  boolean  := false;
    t     text;
    k     text;
BEGIN
    PERFORM sweep_rows(marks, now);
    FOR t, k IN SELECT h.tenant, h.key FROM overdue_holds(marks[1], bound, now) h LOOP
        IF sums[1] + sums[2] >= bound THEN
            more := true;
            EXIT;
        END IF;
        seen := seen + 1;
        -- The holder of the mutex expires the key itself. A key that was expired here for an
        -- earlier row yields nothing more.
        CONTINUE WHEN NOT mutex_try(mutex(@MUTEX_KEY@, t, k));
        n    := key_expire(t, k, now, wall, true);
        sums := ARRAY[sums[1] + n[1], sums[2] + n[2], sums[3] + n[3], sums[4] + n[4]];
    END LOOP;
    -- otherwise all that is left cannot be ended now: it is busy, or its holder is committing
    IF more OR seen >= bound THEN
        more := EXISTS (SELECT 1 FROM overdue_holds(marks[1], 1, now));
    END IF;
    PERFORM sweep_mark(marks, now);
    RETURN jsonb_build_object(
        'status', @STATUS_OK@, 'flags', CASE WHEN more THEN @OUT_MORE@ ELSE 0 END,
        'sweep', jsonb_build_object('n_expired', sums[1], 'n_dropped', sums[2],
                                    'n_offered', sums[3], 'n_runs', sums[4]));
END
$$;

-- Would a sweep have something to do? Three lookups at the start of an index. The first leases may
-- not all be overdue; if very many are not, skipping them counts as something to do.
CREATE OR REPLACE FUNCTION overdue_locks(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    marks bigint[] := sweep_marks(now);
    n     bigint;
    due   boolean;
BEGIN
    SELECT count(*), bool_or(l.state < @LEASE_ENDED@ AND l.expires_ms <= overdue_locks.now)
      INTO n, due
      FROM (SELECT x.state, x.expires_ms FROM lease x
             WHERE x.look_ms BETWEEN marks[1] AND overdue_locks.now ORDER BY x.look_ms
             LIMIT 1000) l;
    RETURN coalesce(due, false) OR n = 1000 OR EXISTS (SELECT 1 FROM waiter)
           OR EXISTS (SELECT 1 FROM lease l
                       WHERE l.look_ms BETWEEN marks[2] AND gone_until(marks, overdue_locks.now)
                         AND l.state >= @LEASE_ENDED@
                         AND coalesce(l.ended_ms <= overdue_locks.now - @ENDED_KEEP_MS@, true));
END
$$;
