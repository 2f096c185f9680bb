-- queue_work: what workers spend their time with: finishes of the jobs that they had, and the claim of the next ones, together or each alone.
--
-- A statement of the library's own, work_rows(), carries out many finishes, a claim, or finishes and then a claim, in one transaction. A hundred jobs wait for it: what
-- they cost is shared by them, so whatever is done once is done in few statements. In a function, an expression costs a microsecond in each
-- transaction that comes to it, another function five, and a statement ten or more.

-- ---- finishes --------------------------------------------------------------------------------------------------------------

-- Finishes of jobs that the library has claimed itself. It knows where their rows are, and what of them never changes, so
-- nothing need be found, and `job` is not read: that a token goes with the id that a finish names, it has seen itself. Where a row is, is a hint: what
-- is there has to be running with one of the tokens; else, and if it has a group or is a child, it is left, and comes again in a batch. No token is there
-- twice. `keyed`: some may have a unique key. They need no mutex: see finish_plain().
--
-- Gives how many were done, and what the library does not know already, as JSON: "wall_ms"; "queue", its name; "done", their tokens, unless all were; "odd", those
-- of which there is more to be said than that they are done and were worker w's. Who waits for such a job is woken by the caller.
--
-- (One scan for all places: one for each would ask the file for its size each time. No column of job_live that is in an index is compared as it is: with a
-- plan that was made while few jobs were live, the planner would go through all of them.)
CREATE OR REPLACE FUNCTION finish_take(t text, qn int, w text, tokens bigint[], places tid[], ds bytea[], keyed boolean, now bigint, wall bigint,
                                       OUT n int, OUT says text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    name text;
    keep bigint;
    done bigint[];
    odd  json;
BEGIN
    SELECT k.name, k.keep_ms INTO name, keep FROM queue k WHERE k.no = qn AND k.tenant = t;
    IF NOT FOUND THEN
        n := 0;
        RETURN;
    END IF;
    IF keyed THEN
        WITH g AS (
            DELETE FROM job_live l
             WHERE l.ctid = ANY (places) AND l.token = ANY (tokens) AND l.lane + 0 = 0 AND l.expires_ms > now AND l.queue + 0 = qn
               AND l.parent IS NULL AND l.grp IS NULL
            RETURNING l.seq, l.token, l.run_at_ms, l.started_ms, l.attempt, l.flags, l.progress, l.worker, l.error, l.message),
        b AS MATERIALIZED (
            SELECT g.*, j.unique_until_ms, j.unique_key
              FROM g JOIN LATERAL (SELECT i.unique_until_ms, i.unique_key FROM job i WHERE i.seq = g.seq LIMIT 1) AS j ON true),
        e AS (
            INSERT INTO job_done (seq, purge_at_ms, token, run_at_ms, started_ms, completed_ms, queue, attempt, state, last, flags,
                                  progress, worker, error, message, result)
            SELECT b.seq, purge_at(keep, b.unique_until_ms, wall), b.token, b.run_at_ms, b.started_ms, wall, qn, b.attempt,
                   4, 1, b.flags, b.progress, b.worker, b.error, b.message,
                   CASE WHEN ds IS NULL THEN '' ELSE ds[array_position(tokens, b.token)] END
              FROM b),
        u AS (
            DELETE FROM job_unique x USING b
             WHERE b.unique_key IS NOT NULL AND b.unique_until_ms <= wall AND x.queue = qn AND x.key = b.unique_key AND x.seq = b.seq)
        SELECT count(*), array_agg(b.token), json_agg(finish_odd(b.token, b.progress, b.flags, b.worker, b.unique_key, b.error, b.message))
          INTO n, done, odd FROM b;
    ELSE
        WITH g AS (
            DELETE FROM job_live l
             WHERE l.ctid = ANY (places) AND l.token = ANY (tokens) AND l.lane + 0 = 0 AND l.expires_ms > now AND l.queue + 0 = qn
               AND l.parent IS NULL AND l.grp IS NULL
            RETURNING l.seq, l.token, l.run_at_ms, l.started_ms, l.attempt, l.flags, l.progress, l.worker, l.error, l.message),
        e AS (
            INSERT INTO job_done (seq, purge_at_ms, token, run_at_ms, started_ms, completed_ms, queue, attempt, state, last, flags,
                                  progress, worker, error, message, result)
            SELECT g.seq, purge_at(keep, 0, wall), g.token, g.run_at_ms, g.started_ms, wall, qn, g.attempt,
                   4, 1, g.flags, g.progress, g.worker, g.error, g.message,
                   CASE WHEN ds IS NULL THEN '' ELSE ds[array_position(tokens, g.token)] END
              FROM g)
        SELECT count(*), array_agg(g.token),
               json_agg(finish_odd(g.token, g.progress, g.flags, g.worker, NULL, g.error, g.message))
                   FILTER (WHERE g.worker <> w OR g.progress <> -1 OR g.flags & 1 <> 0 OR g.error <> '' OR g.message <> '')
          INTO n, done, odd FROM g;
    END IF;
    says := concat('{"wall_ms":', wall, ',"queue":', to_json(name), CASE WHEN n < cardinality(tokens) THEN ',"done":' || to_json(done) END,
                   ',"odd":' || odd, '}');
END
$$;

-- A job of which there is more to be said.
CREATE OR REPLACE FUNCTION finish_odd(token bigint, progress smallint, flags smallint, worker text, unique_key text, error text, message text) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT json_build_object('token', token, 'progress', progress, 'cancelled', flags & 1, 'worker', worker, 'unique_key', unique_key,
                             'error', nullif(error, ''), 'message', nullif(message, ''))
$$;

-- ---- finishes and a claim ----------------------------------------------------------------------------------------------------

-- o: a claim, or NULL. t and what follows: finishes (see finish_take()), or NULL. If some of the finishes were left, the claim has not happened either: it comes behind them.
--
-- Rows: i = -2: what was finished, if anything was. i = 0 (of the claim): `out` is the head of the answer, which comes last, or a part of it (of a claim that is
-- repeated or asks: then the head comes first). i NULL: a job that was taken, in claiming order. What a job has in common with the others or with the
-- request is not said again, and NULL is what is usual (src/store/remote/README.md).
--
-- With `alone` this is a statement of the library's own, not part of a batch: it takes its mutexes and reads the clock, as apply() does, and
-- wakes come as a row with i = -1. Who waits for a job that was taken is woken by the caller. The mutexes come first, and only then rows are locked: as in apply().
CREATE OR REPLACE FUNCTION work_rows(o jsonb, t text, qn int, w text, tokens bigint[], places tid[], ds bytea[], keyed boolean, test_now bigint,
                                     test_wall bigint, alone boolean)
RETURNS TABLE (i int, "out" text, data bytea, seq bigint, token bigint, place tid, created_ms bigint, run_at_ms bigint, attempt int,
               max_attempts int, priority int, id text, parent_id text, grp text, unique_key text, error text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT
SET enable_seqscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_sort = off
AS $$
DECLARE
    now    bigint := test_now;
    wall   bigint := test_wall;
    began  timestamptz;
    holder text;
    silent int;
    plain  boolean;
    says   text;
    n_done int;
    n_max  int;
    k      int := 0;
    flags  int := 0;
    qno    int;
    lease  bigint;
    n_was  bigint; -- the worker's last claim
    ord_0  bigint; -- the mark of kind 0, if there is one
    m_ord  bigint;
    m_at   bigint;
    m_seq  bigint;
    m      job_mark;
    q      queue;
    each   boolean; -- by the optimistic strategy
    c      job_claim;
    x      record;
    done   boolean;
BEGIN
    IF alone THEN
        IF o IS NOT NULL THEN
            done := claim_begin(o) IS NULL;
        ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
            PERFORM batch_begin('{}'); -- which refuses it
        END IF;
        IF now IS NULL THEN
            now  := clock_ms();
            wall := now;
        END IF;
    END IF;
    IF tokens IS NOT NULL THEN
        x      := finish_take(t, qn, w, tokens, places, ds, keyed, now, wall);
        n_done := x.n;
        IF n_done > 0 THEN
            i     := -2;
            "out" := x.says;
            RETURN NEXT;
        END IF;
        IF o IS NULL OR n_done < cardinality(tokens) THEN
            IF n_done > 0 THEN
                INSERT INTO job_total (queue, what, n) VALUES (qn, 3, n_done);
            END IF;
            RETURN;
        END IF;
    END IF;

    -- In general nothing is to be done before jobs are taken; then this one look is enough. NULL: there is no such queue.
    i      := 0;
    began  := clock_timestamp();
    holder := o ->> 'holder';
    silent := CASE WHEN coalesce((o ->> 'flags')::int, 0) & 8 <> 0 THEN 2 ELSE 0 END;
    SELECT z.group_limit = -1 AND z.rate_n = -1 AND z.strategy = 1 AND NOT z.paused
           AND (a.first_token IS NULL OR a.claim <> o ->> 'id' OR now - a.seen_ms >= 60000)
           AND (o ? 'ticked' OR NOT EXISTS (SELECT FROM cron h WHERE h.tenant = z.tenant AND h.queue = z.name AND h.next_ms <= wall))
           AND NOT EXISTS (SELECT FROM job_live l WHERE l.lane = 0 AND l.ord BETWEEN coalesce(m0.ord, -9223372036854775808) AND now AND l.queue + 0 = z.no)
           AND NOT EXISTS (SELECT FROM job_live l WHERE l.lane = lane(z.no, 1) AND l.ord <= wall
                                                    AND l.ord >= coalesce(m1.ord, -9223372036854775808)),
           z.no, CASE silent WHEN 0 THEN coalesce((o ->> 'lease_ms')::bigint, z.lease_ms) ELSE z.processing_timeout_ms END, a.n, m0.ord,
           coalesce(m2.ord, -9223372036854775808), coalesce(m2.at, -9223372036854775808), coalesce(m2.seq, -9223372036854775808)
      INTO plain, qno, lease, n_was, ord_0, m_ord, m_at, m_seq
      FROM queue z
      LEFT JOIN LATERAL (SELECT v.n, v.first_token, v.claim, v.seen_ms FROM job_worker v
                          WHERE v.queue = z.no AND v.worker = holder ORDER BY v.n DESC LIMIT 1) AS a ON true
      LEFT JOIN LATERAL (SELECT h.ord FROM job_mark h WHERE z.marked AND h.queue = z.no AND h.kind = 0
                          ORDER BY h.base DESC, h.ord, h.at, h.seq LIMIT 1) AS m0 ON true
      LEFT JOIN LATERAL (SELECT h.ord FROM job_mark h WHERE z.marked AND h.queue = z.no AND h.kind = 1
                          ORDER BY h.base DESC, h.ord, h.at, h.seq LIMIT 1) AS m1 ON true
      LEFT JOIN LATERAL (SELECT h.ord, h.at, h.seq FROM job_mark h WHERE z.marked AND h.queue = z.no AND h.kind = 2
                          ORDER BY h.base DESC, h.ord, h.at, h.seq LIMIT 1) AS m2 ON true
     WHERE z.tenant = o ->> 'tenant' AND z.name = o ->> 'key';
    IF plain THEN
        n_max := (o ->> 'limit')::int;
    ELSE
        x     := claim_open(o, now, wall);
        q     := x.q;
        qno   := q.no;
        n_was := (x.w).n;
        flags := x.flags;
        says  := x.says;
        IF says = 'ask' THEN
            FOR "out", data IN SELECT r.out, r.data FROM claim_ask(q, wall) AS r LOOP
                RETURN NEXT;
            END LOOP;
        ELSIF says = 'again' THEN
            FOR "out", data IN SELECT r.out, r.data FROM claim_again(q, o, x.w, now, wall) AS r LOOP
                RETURN NEXT;
            END LOOP;
        ELSIF says IS NOT NULL THEN
            "out" := says;
            RETURN NEXT;
        ELSE
            n_max := rate_left(q, (o ->> 'limit')::int, now);
            lease := CASE WHEN silent = 0 THEN coalesce((o ->> 'lease_ms')::bigint, q.lease_ms)
                          WHEN q.strategy = 2 THEN q.executing_timeout_ms ELSE q.processing_timeout_ms END;
            each  := q.strategy = 2;
            m     := mark_get(q, 2);
            m_ord := m.ord;
            m_at  := m.at;
            m_seq := m.seq;
        END IF;
    END IF;

    IF each AND n_max > 0 THEN
        c := claim_take_each(q, o, n_max, lease, now, wall);
        RETURN QUERY
            SELECT NULL::int, NULL::text, b.payload, b.seq, u.token, NULL::tid, b.created_ms, nullif(u.run_at_ms, b.created_ms), u.attempt,
                   b.max_attempts, nullif(b.priority, 0), b.id, b.parent_id, b.grp, b.unique_key, nullif(u.error, '')
              FROM unnest(c.seqs, c.tokens, c.attempts, c.run_ats, c.errors) AS u (seq, token, attempt, run_at_ms, error)
              JOIN LATERAL (SELECT * FROM job i WHERE i.seq = u.seq LIMIT 1) AS b ON true
             ORDER BY u.token;
        k := coalesce(cardinality(c.seqs), 0);
        IF k > 0 THEN
            done := claim_note(q, o, n_was, c.tokens[1], c.tokens[k], now) IS NULL;
        END IF;
    ELSIF n_max > 0 THEN
        -- Finds, locks and marks in one statement, and notes what it took. Tokens are drawn in the order in which the rows are found, and each row gets the one
        -- of its place there. The rows are changed by one scan of their places, as in finish_take(), in the order of places; the library sorts the jobs by their tokens. (A row that somebody else has
        -- changed since this statement began, and that is READY all the same, is not seen by its ctid: it is left to the next claim.) Without a row the sum gives none.
        -- xmax: who has locked or changed a row last. If he was at it when this statement began, the row is passed over as one that is locked, but
        -- without asking for the lock: that takes longer than all else, and in front of a busy queue most rows are another worker's. Whoever began
        -- later is not in the list, and SKIP LOCKED finds out. (The number of a group of lockers may be that of one who is at work: then the row is
        -- passed over for once.)
        RETURN QUERY
            WITH t AS MATERIALIZED (
                SELECT array_agg(f.tid) AS tids, array_agg(nextval('fence_seq')) AS tokens
                  FROM (SELECT l.ctid AS tid FROM job_live l
                         WHERE l.lane = lane(qno, 2) AND (l.ord, l.at, l.seq + 0) >= (m_ord, m_at, m_seq)
                           AND (l.xmax = '0' OR l.xmax <> ALL (ARRAY(SELECT r.n::xid FROM pg_snapshot_xip(pg_current_snapshot()) AS r (n))))
                         ORDER BY l.ord, l.at, l.seq + 0 LIMIT n_max
                           FOR UPDATE SKIP LOCKED) AS f),
            u AS (
                UPDATE job_live l
                   SET lane = 0, ord = now + lease, at = 0, glane = CASE WHEN l.grp IS NOT NULL THEN lane(qno, 0) END, last = 0,
                       attempt = l.attempt + 1, token = ((SELECT t.tokens FROM t))[array_position((SELECT t.tids FROM t), l.ctid)],
                       flags = (l.flags & 5) | silent, lease_ms = lease, expires_ms = now + lease, progress = -1, message = '',
                       started_ms = wall, updated_ms = wall, worker = holder
                 WHERE l.ctid = ANY ((SELECT t.tids FROM t)::tid[])
                RETURNING l.seq, l.token, l.ctid AS place, l.attempt, l.run_at_ms, l.error),
            n AS (
                INSERT INTO job_worker (n, seen_ms, first_token, last_token, queue, worker, claim)
                SELECT nextval('ticket_seq'), now, y.first, y.last, qno, holder, o ->> 'id'
                  FROM (SELECT min(u.token) AS first, max(u.token) AS last FROM u) AS y
                 WHERE y.first IS NOT NULL),
            p AS (DELETE FROM job_worker v WHERE v.queue = qno AND v.worker = holder AND v.n = n_was)
            SELECT NULL::int, NULL::text, b.payload, b.seq, u.token, u.place, b.created_ms, nullif(u.run_at_ms, b.created_ms),
                   nullif(u.attempt, 1), b.max_attempts, nullif(b.priority, 0), b.id, b.parent_id, b.grp, b.unique_key, nullif(u.error, '')
              FROM u JOIN LATERAL (SELECT * FROM job i WHERE i.seq = u.seq LIMIT 1) AS b ON true; -- with a LIMIT it is this one row, whatever the planner thinks
        GET DIAGNOSTICS k = ROW_COUNT;
    END IF;

    IF k > 0 OR n_done > 0 THEN
        INSERT INTO job_total (queue, what, n) SELECT v.* FROM (VALUES (qn, 3, n_done), (qno, 2, k)) AS v (queue, what, n) WHERE v.n > 0;
        IF random() < 0.004 THEN
            done := total_compact(coalesce(qno, qn)) IS NULL;
        END IF;
    END IF;
    IF plain AND k > 0 AND (ord_0 IS NULL OR now + lease >= ord_0) AND clock_timestamp() - began <= '2 ms'::interval + k * '30 us'::interval THEN
        "out" := concat('{"status":0,"flags":0,"now_ms":', now, ',"wall_ms":', wall, ',"expires_ms":', now + lease, ',"queue_no":', qno, '}');
        RETURN NEXT;
    ELSIF says IS NULL THEN
        IF plain THEN
            SELECT * INTO q FROM queue z WHERE z.no = qno;
        END IF;
        "out" := claim_close(q, o, n_was, flags, k, n_max, lease, began, now, wall);
        RETURN NEXT;
    END IF;
    IF alone AND current_setting('interlock.wakes', true) <> '' THEN
        "out" := wakes_take();
        i := -1;
        RETURN NEXT;
    END IF;
END
$$;
