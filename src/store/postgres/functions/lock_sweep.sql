-- lock_sweep: recovery of locks, and what the deadlock search and the learned lock order of the library read and write.

-- ---- the deadlock search -------------------------------------------------------------------------------------------------

-- What a unit of work waits for, the youngest wait first: the cycle that is told depends on it.
CREATE OR REPLACE FUNCTION waits_of(t text, holder text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('status', 0, 'keys', to_jsonb(ARRAY(
        SELECT w.key FROM waiter w WHERE w.root = unit_of(t, waits_of.holder) AND w.verdict = '' ORDER BY w.ticket DESC)));
END
$$;

-- Of one, or a list of many.
CREATE OR REPLACE FUNCTION v_x_waits(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o ? 'roots' THEN
        RETURN jsonb_build_object('status', 0, 'many', (SELECT jsonb_agg(waits_of(o ->> 'tenant', u.r) ORDER BY u.i)
                                                          FROM jsonb_array_elements_text(o -> 'roots') WITH ORDINALITY AS u (r, i)));
    END IF;
    RETURN waits_of(o ->> 'tenant', o ->> 'root');
END
$$;

-- Does a unit of work wait for another key than this one? 1 or 0; 1 also when it has so many waiters that looking would cost more than being asked.
CREATE OR REPLACE FUNCTION waits_elsewhere(unit text, k text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT (count(*) > 16 OR coalesce(bool_or(w.key <> k AND w.verdict = ''), false))::int
              FROM (SELECT x.key, x.verdict FROM waiter x WHERE x.root = unit LIMIT 17) w);
END
$$;

-- The leases and the queue of a key. What is over, or ends by itself, is for C to leave out of the leases. Of each, whether its unit of
-- work waits for another key, too: most do not, and need not be asked for one by one.
CREATE OR REPLACE FUNCTION queue_of(t text, k text, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', 0, 'now_ms', now,
        'leases', to_jsonb(ARRAY(SELECT jsonb_build_array(l.holder, l.mode, l.permits, l.state, l.expires_ms, l.settle_ms, e.n)
                                   FROM leases_of_key(t, k) l, LATERAL waits_elsewhere(l.root, k) e (n) ORDER BY l.fence)),
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
        RETURN jsonb_build_object('status', 0, 'many', (SELECT jsonb_agg(queue_of(o ->> 'tenant', u.k, now) ORDER BY u.i)
                                                          FROM jsonb_array_elements_text(o -> 'keys') WITH ORDINALITY AS u (k, i)));
    END IF;
    RETURN queue_of(o ->> 'tenant', o ->> 'key', now);
END
$$;

-- The youngest of a cycle gets its verdict, if it still waits, and is woken; those behind it may be free to go. The waiter of a run
-- goes, with its run: that is where the verdict is told.
CREATE OR REPLACE FUNCTION v_x_verdict(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w waiter;
BEGIN
    PERFORM place_forget();
    UPDATE waiter SET verdict = o ->> 'text' WHERE ticket = (o ->> 'ticket')::bigint AND verdict = '' RETURNING * INTO w;
    IF NOT FOUND THEN
        RETURN '{"status": 0, "found": 0}';
    END IF;
    PERFORM wake(w.tenant, w.key, w.holder);
    IF w.run <> 0 THEN
        PERFORM run_cancelled_cycle(w.run, w.verdict, now, wall);
        w.run := 0;
        PERFORM waiter_leave(w, now, wall);
    END IF;
    PERFORM key_give_on(w.tenant, w.key, now, wall);
    RETURN '{"status": 0, "found": 1}';
END
$$;

-- The victim's own caller was told at once: its waiter has nothing to wait for. It has stood in nobody's way since its verdict.
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
        RETURN '{"status": 0, "found": 0}';
    END IF;
    RETURN jsonb_build_object('status', 0, 'found', 1, 'detail', told);
END
$$;

-- Waiters whose unit of work also holds or waits for something else: only those can be part of a cycle.
CREATE OR REPLACE FUNCTION waiters_entangled(after text) RETURNS SETOF waiter
LANGUAGE sql STABLE AS $$
    SELECT * FROM waiter w
     WHERE w.tenant > after AND w.verdict = ''
       AND (EXISTS (SELECT 1 FROM lease l WHERE l.root = w.root AND l.state < 5)
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
      FROM waiters_entangled(coalesce(o ->> 'tenant', '')) e GROUP BY e.tenant ORDER BY e.tenant LIMIT 1;
    IF t IS NULL THEN
        RETURN '{"status": 0, "holders": []}';
    END IF;
    RETURN jsonb_build_object('status', 0, 'tenant', t, 'holders', h);
END
$$;

-- ---- learned lock order --------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION v_x_edges(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', 0, 'order_n', (SELECT order_n FROM state),
        'edges', to_jsonb(ARRAY(SELECT jsonb_build_array(tenant, first, then_, first_place, then_place)
                                  FROM order_edge ORDER BY n LIMIT 4096)));
END
$$;

-- Race-free: the row of state is locked first, and that is what counts the edges.
CREATE OR REPLACE FUNCTION v_x_learn(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    learned bigint;
BEGIN
    SELECT order_n INTO learned FROM state FOR NO KEY UPDATE;
    IF learned < 4096 THEN
        INSERT INTO order_edge (tenant, first, then_, n, first_place, then_place)
        VALUES (o ->> 'tenant', o ->> 'first', o ->> 'then', learned + 1, coalesce(o ->> 'first_place', ''),
                coalesce(o ->> 'then_place', ''))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            learned := learned + 1;
            UPDATE state SET order_n = learned;
        END IF;
    END IF;
    RETURN jsonb_build_object('status', 0, 'order_n', learned);
END
$$;

-- ---- the sweep -----------------------------------------------------------------------------------------------------------
--
-- A row of lease is looked at when its look_ms comes: at its expiry, but 30 s after the grant at the latest. Neither a renewal nor a release
-- changes look_ms, so neither writes to an index. What is found then is mostly a lease that has been given back: it
-- stays as it is, and is deleted when it has been remembered for a minute. One that is still held is looked at again at its
-- expiry, or in five minutes: so what is given back meanwhile does not stay for as long as a TTL may be.
--
-- Sweeps begin where the last one ended. Without these marks each would begin with all the entries of the index that sweeps have left behind
-- and that somebody's old snapshot keeps from being vacuumed. The marks stay 2 s behind, for transactions that are under way (what they
-- grant is due a second later at the earliest). Once a minute everything is looked at, in case one took even longer; and when the
-- server's clock was set back.

-- Where to begin: {for what is overdue, for what is to be forgotten}.
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

-- How far to look for what is to be forgotten. Hardly any that was looked at less than a minute ago: unless everything is looked at.
CREATE OR REPLACE FUNCTION gone_until(marks bigint[], now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN marks[2] = 0 THEN now ELSE now - 60000 END
$$;

-- Say where the next sweep begins: before everything that is left.
CREATE OR REPLACE FUNCTION sweep_mark(marks bigint[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    due  bigint := (SELECT l.look_ms FROM lease l WHERE l.look_ms BETWEEN marks[1] AND now AND l.state < 5
                     ORDER BY l.look_ms LIMIT 1);
    gone bigint := (SELECT l.look_ms FROM lease l WHERE l.look_ms BETWEEN marks[2] AND now ORDER BY l.look_ms LIMIT 1);
BEGIN
    PERFORM setval('look_due', greatest(least(due, now - 2000), 0)), setval('look_gone', greatest(least(gone, now - 62000), 0));
    IF marks[1] = 0 THEN
        PERFORM setval('look_full', greatest(now, 0));
    END IF;
END
$$;

-- Forget what has been remembered for a minute, and move look_ms on where it was too early. Locked rows are passed over, so a sweep
-- waits for nobody. Ended rows change no more; and of the others only look_ms is changed here, which decides nothing: expires_ms was
-- read with the row's lock. Of what is overdue, look_ms becomes the expiry: that is the order in which it is dealt with.
CREATE OR REPLACE FUNCTION sweep_rows(marks bigint[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM lease
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM lease l
                              WHERE l.look_ms BETWEEN marks[2] AND gone_until(marks, sweep_rows.now) AND l.state >= 5
                                AND coalesce(l.ended_ms <= sweep_rows.now - 60000, true)
                              ORDER BY l.look_ms LIMIT 20000 FOR UPDATE SKIP LOCKED));
    UPDATE lease
       SET look_ms = CASE WHEN expires_ms <= sweep_rows.now THEN expires_ms ELSE least(expires_ms, sweep_rows.now + 300000) END
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM lease l
                              WHERE l.look_ms BETWEEN marks[1] AND sweep_rows.now AND l.state < 5 AND l.expires_ms <> l.look_ms
                              ORDER BY l.look_ms LIMIT 20000 FOR NO KEY UPDATE SKIP LOCKED));
END
$$;

-- Everything that is overdue, longest first; of equal ones leases, by tenant and key, then waiters, by ticket. At most n of each.
CREATE OR REPLACE FUNCTION overdue_holds(since bigint, n int, now bigint) RETURNS TABLE (tenant text, key text)
LANGUAGE sql STABLE AS $$
    SELECT h.tenant, h.key FROM (
        (SELECT l.tenant, l.key, l.look_ms AS due, 0 AS ticket FROM lease l
          WHERE l.look_ms BETWEEN since AND overdue_holds.now AND l.state < 5 AND l.expires_ms <= overdue_holds.now
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
        -- Who has the mutex settles the key himself. What was settled here for an earlier row gives nothing more.
        CONTINUE WHEN NOT mutex_try(mutex(4, t, k));
        n    := key_settle(t, k, now, wall, true);
        sums := ARRAY[sums[1] + n[1], sums[2] + n[2], sums[3] + n[3], sums[4] + n[4]];
    END LOOP;
    IF more OR seen >= bound THEN -- else there is only what cannot be ended now: it is busy, or its holder is committing
        more := EXISTS (SELECT 1 FROM overdue_holds(marks[1], 1, now));
    END IF;
    PERFORM sweep_mark(marks, now);
    RETURN jsonb_build_object(
        'status', 0, 'flags', CASE WHEN more THEN 4 ELSE 0 END,
        'sweep', jsonb_build_object('n_expired', sums[1], 'n_dropped', sums[2], 'n_offered', sums[3], 'n_runs', sums[4]));
END
$$;

-- Would a sweep find something to do? Three looks at the start of an index. Among the first leases there may be some that are not
-- overdue; when there are very many of them, passing them is something to do.
CREATE OR REPLACE FUNCTION overdue_locks(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    marks bigint[] := sweep_marks(now);
    n     bigint;
    due   boolean;
BEGIN
    SELECT count(*), bool_or(l.state < 5 AND l.expires_ms <= overdue_locks.now) INTO n, due
      FROM (SELECT x.state, x.expires_ms FROM lease x
             WHERE x.look_ms BETWEEN marks[1] AND overdue_locks.now ORDER BY x.look_ms LIMIT 1000) l;
    RETURN coalesce(due, false) OR n = 1000 OR EXISTS (SELECT 1 FROM waiter)
           OR EXISTS (SELECT 1 FROM lease l
                       WHERE l.look_ms BETWEEN marks[2] AND gone_until(marks, overdue_locks.now) AND l.state >= 5
                         AND coalesce(l.ended_ms <= overdue_locks.now - 60000, true));
END
$$;
