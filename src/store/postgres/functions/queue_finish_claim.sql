-- queue_finish_claim: what workers spend their time on: finishing their jobs and claiming the next
-- ones, together or separately.
--
-- work_rows(), a statement dedicated to the library, runs many finishes, a claim, or finishes
-- followed by a claim, in one transaction. A hundred jobs share its cost, so the work done once per
-- call is done in few statements. In a function, an expression costs a microsecond in each
-- transaction that reaches it, a call of another function five, and a statement ten or more.

-- ---- finishes -----------------------------------------------------------------------------------

-- Finishes of jobs that the library has claimed itself. It knows where their rows are, and their
-- fields that never change, so nothing need be searched, and `job` is not read: the library itself
-- has checked that the token belongs to the id that a finish names. The location of a row is a
-- hint: the row there must be running with one of the tokens; otherwise, and if it has a group or
-- is a child, it is left, and comes again in a batch. No token occurs twice. `keyed`: some may have
-- a unique key. They need no mutex: see finish_plain().
--
-- Returns how many were done, and what the library does not already know, as JSON: "wall_ms";
-- "queue", its name; "done", their tokens, unless all were; "odd", those with more to report than
-- that they are done and belonged to worker w. The caller wakes those who wait for such a job.
--
-- (One scan for all locations: one for each would query the size of the file each time. No indexed
-- column of job_live is compared directly: with a plan made while few jobs were live, the planner
-- would scan all of them.)
CREATE OR REPLACE FUNCTION finish_take(t text, qn int, w text, tokens bigint[], places tid[],
                                       ds bytea[], keyed boolean, now bigint, wall bigint,
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
             WHERE l.ctid = ANY (places) AND l.token = ANY (tokens) AND l.lane + 0 = @LANE_CLAIMED@
               AND l.expires_ms > now AND l.queue + 0 = qn
               AND l.parent IS NULL AND l.grp IS NULL
            RETURNING l.seq, l.token, l.run_at_ms, l.started_ms, l.attempt, l.flags, l.progress,
                l.worker, l.error, l.message),
        b AS MATERIALIZED (
            SELECT g.*, j.unique_until_ms, j.unique_key
              FROM g JOIN LATERAL (SELECT i.unique_until_ms, i.unique_key FROM job i
                                   WHERE i.seq = g.seq LIMIT 1) AS j ON true),
        e AS (
            INSERT INTO job_done (@done_columns@)
            SELECT b.seq, purge_at(keep, b.unique_until_ms, wall), b.token, b.run_at_ms,
                   b.started_ms, wall, qn, b.attempt,
                   @JOB_ON_FINISH@, @LAST_FINISHED@, b.flags, b.progress, b.worker, b.error,
                   b.message,
                   CASE WHEN ds IS NULL THEN '' ELSE ds[array_position(tokens, b.token)] END
              FROM b),
        u AS (
            DELETE FROM job_unique x USING b
             WHERE b.unique_key IS NOT NULL AND b.unique_until_ms <= wall AND x.queue = qn
               AND x.key = b.unique_key AND x.seq = b.seq)
        SELECT count(*), array_agg(b.token),
               json_agg(finish_odd(b.token, b.progress, b.flags, b.worker, b.unique_key, b.error,
                                   b.message))
          INTO n, done, odd FROM b;
    ELSE
        WITH g AS (
            DELETE FROM job_live l
             WHERE l.ctid = ANY (places) AND l.token = ANY (tokens) AND l.lane + 0 = @LANE_CLAIMED@
               AND l.expires_ms > now AND l.queue + 0 = qn
               AND l.parent IS NULL AND l.grp IS NULL
            RETURNING l.seq, l.token, l.run_at_ms, l.started_ms, l.attempt, l.flags, l.progress,
                l.worker, l.error, l.message),
        e AS (
            INSERT INTO job_done (@done_columns@)
            SELECT g.seq, purge_at(keep, 0, wall), g.token, g.run_at_ms, g.started_ms, wall, qn,
                   g.attempt,
                   @JOB_ON_FINISH@, @LAST_FINISHED@, g.flags, g.progress, g.worker, g.error,
                   g.message,
                   CASE WHEN ds IS NULL THEN '' ELSE ds[array_position(tokens, g.token)] END
              FROM g)
        SELECT count(*), array_agg(g.token),
               json_agg(finish_odd(g.token, g.progress, g.flags, g.worker, NULL, g.error,
                                   g.message))
                   FILTER (WHERE g.worker <> w OR g.progress <> -1
                           OR g.flags & @JOB_FLAG_CANCELLED@ <> 0
                           OR g.error <> '' OR g.message <> '')
          INTO n, done, odd FROM g;
    END IF;
    says := concat('{"wall_ms":', wall, ',"queue":', to_json(name),
                   CASE WHEN n < cardinality(tokens) THEN ',"done":' || to_json(done) END,
                   ',"odd":' || odd, '}');
END
$$;

-- A job with more to report.
CREATE OR REPLACE FUNCTION finish_odd(token bigint, progress smallint, flags smallint, worker text,
                                      unique_key text, error text, message text) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT json_build_object('token', token, 'progress', progress,
                             'cancelled', flags & @JOB_FLAG_CANCELLED@,
                             'worker', worker, 'unique_key', unique_key,
                             'error', nullif(error, ''), 'message', nullif(message, ''))
$$;

-- ---- finishes and a claim -----------------------------------------------------------------------

-- o: a claim, or NULL. t and the following: finishes (see finish_take()), or NULL. If some of the
-- finishes were left, the claim has not happened either: it comes after them.
--
-- Rows: i = -2: what was finished, if anything. i = 0 (of the claim): `out` is the head of the
-- reply, which comes last, or a part of it (of a claim that is repeated or asks: then the head
-- comes first). i NULL: a job that was taken, in claiming order. Values that a job shares with the
-- others or with the request are not repeated, and NULL means the usual value
-- (src/store/remote/README.md).
--
-- With `alone` this is a separate statement of the library, not part of a batch: it takes its
-- mutexes and reads the clock, like apply(), and wake-ups come as a row with i = -1. The caller
-- wakes those who wait for a job that was taken. The mutexes come first, and only then are rows
-- locked: as in apply().
CREATE OR REPLACE FUNCTION work_rows(o jsonb, t text, qn int, w text, tokens bigint[], places tid[],
                                     ds bytea[], keyed boolean, test_now bigint,
                                     test_wall bigint, alone boolean)
RETURNS TABLE (i int, "out" text, data bytea, seq bigint, token bigint, place tid,
               created_ms bigint, run_at_ms bigint, attempt int,
               max_attempts int, priority int, id text, parent_id text, grp text, unique_key text,
               error text)
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
    starts tid[];  -- of a queue with a rate
    rated  boolean := false;
    q      queue;
    x      record;
    done   boolean;
BEGIN
    IF alone THEN
        IF o IS NOT NULL THEN
            done := batch_begin(ARRAY[mutex_shared(@MUTEX_QUEUE@, o ->> 'tenant', o ->> 'key'),
                                      mutex_claim(o ->> 'tenant', o ->> 'key', o ->> 'holder',
                                                  o ->> 'id')]) IS NULL;
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
                INSERT INTO job_total (queue, what, n) VALUES (qn, @TOTAL_COMPLETED@, n_done);
            END IF;
            RETURN;
        END IF;
    END IF;

    -- Usually nothing needs to be done before jobs are taken; then this single lookup is enough.
    -- NULL: there is no such queue.
    i      := 0;
    holder := o ->> 'holder';
    silent := CASE WHEN coalesce((o ->> 'flags')::int, 0) & @FLAG_CLAIM_SILENT@ <> 0
                   THEN @JOB_FLAG_SILENT@ ELSE 0 END;
    SELECT coalesce((o ->> 'flags')::int, 0) & @FLAG_CLAIM_LEAVE@ = 0
           AND z.group_limit = -1 AND z.rate_n = -1 AND z.strategy = @QUEUE_PESSIMISTIC@
           AND NOT z.paused
           AND (a.first_token IS NULL OR a.claim <> o ->> 'id'
                OR now - a.seen_ms >= @WORKER_SEEN_MS@)
           AND (o ? 'ticked' OR NOT EXISTS (SELECT FROM cron h
                                            WHERE h.tenant = z.tenant AND h.queue = z.name
                                              AND h.next_ms <= wall))
           AND NOT EXISTS (SELECT FROM job_live l
                           WHERE l.lane = @LANE_CLAIMED@ AND l.ord <= now AND l.queue + 0 = z.no)
           AND NOT EXISTS (SELECT FROM job_live l
                           WHERE l.lane = lane(z.no, @LANE_SCHEDULED@) AND l.ord <= wall),
           z.no, CASE silent WHEN 0 THEN coalesce((o ->> 'lease_ms')::bigint, z.lease_ms)
                      ELSE z.processing_timeout_ms END, a.n
      INTO plain, qno, lease, n_was
      FROM queue z
      LEFT JOIN LATERAL (SELECT v.n, v.first_token, v.claim, v.seen_ms FROM job_worker v
                          WHERE v.queue = z.no AND v.worker = holder ORDER BY v.n DESC
                          LIMIT 1) AS a ON true
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
            n_max := (o ->> 'limit')::int;
            lease := CASE WHEN silent = 0 THEN coalesce((o ->> 'lease_ms')::bigint, q.lease_ms)
                          WHEN q.strategy = @QUEUE_OPTIMISTIC@ THEN q.executing_timeout_ms
                               ELSE q.processing_timeout_ms END;
            IF q.rate_n <> -1 THEN
                n_max  := rate_wanted(q, n_max);
                -- mutant rate_by_wall_clock: starts := rate_take(q, n_max, wall);
                starts := rate_take(q, n_max, now);
                rated  := n_max > 0 AND cardinality(starts) = 0;
                n_max  := cardinality(starts);
            END IF;
        END IF;
    END IF;

    IF n_max > 0 THEN
        IF o ? 'open' THEN
            n_max := claim_fits(o, qno, n_max);
        END IF;
        -- Finds, locks and marks in one statement, and records what it took. Tokens are drawn in
        -- the order in which the rows are found, and assigned to them in that order. The rows are
        -- changed by one scan of their locations, as in finish_take(). (A row that was changed
        -- since this statement began, but is still READY, is not found by its ctid: it is left to
        -- the next claim.) Without a row the sum returns none.
        RETURN QUERY
            WITH f AS MATERIALIZED (
                SELECT l.ctid AS tid, l.bytes FROM job_live l
                 WHERE l.lane = lane(qno, @LANE_READY@)
                 ORDER BY l.ord, l.at, l.seq + 0
                 LIMIT n_max
                   FOR UPDATE SKIP LOCKED),
            t AS MATERIALIZED (
                SELECT a.tids, fences_draw(cardinality(a.tids)) AS tokens
                  FROM (SELECT array_agg(s.tid) AS tids
                          FROM (SELECT f.tid, row_number() OVER () AS nth,
                                sum(f.bytes + @JOB_BYTES@) OVER (ROWS UNBOUNDED PRECEDING) AS total
                                    FROM f) AS s
                         -- mutant claim_without_budget: WHERE s.nth > 0) AS a),
                         WHERE s.nth = 1 OR s.total <= claim_bytes_max(o)) AS a),
            u AS (
                UPDATE job_live l
                   SET lane = @LANE_CLAIMED@, ord = now + lease, at = 0,
                       glane = CASE WHEN l.grp IS NOT NULL THEN lane(qno, @LANE_CLAIMED@) END,
                       last = @LAST_NONE@,
                       attempt = l.attempt + 1,
            -- mutant token_not_renewed: token = CASE l.token WHEN 0 THEN ((SELECT t.tokens FROM t))
                       token = ((SELECT t.tokens FROM t))
    -- mutant token_not_renewed: [array_position((SELECT t.tids FROM t), l.ctid)] ELSE l.token END,
                                [array_position((SELECT t.tids FROM t), l.ctid)],
                       flags = (l.flags & ~@JOB_FLAG_SILENT@) | silent, lease_ms = lease,
                       expires_ms = now + lease, progress = -1, message = '',
                       started_ms = wall, updated_ms = wall, worker = holder
                 WHERE l.ctid = ANY ((SELECT t.tids FROM t)::tid[])
                RETURNING l.seq, l.token, l.ctid AS place, l.attempt, l.run_at_ms, l.error),
            n AS (
                INSERT INTO job_worker (n, seen_ms, first_token, last_token, queue, worker, claim)
                SELECT nextval('ticket_seq'), now, y.first, y.last, qno, holder, o ->> 'id'
                  FROM (SELECT min(u.token) AS first, max(u.token) AS last FROM u) AS y
                 WHERE y.first IS NOT NULL),
            p AS (
                DELETE FROM job_worker
                 WHERE ctid = ANY (ARRAY(SELECT v.ctid FROM job_worker v
                                         WHERE v.queue = qno AND v.worker = holder AND v.n = n_was
                                            FOR UPDATE SKIP LOCKED)))
            SELECT NULL::int, NULL::text, b.payload, b.seq, u.token, u.place, b.created_ms,
                   nullif(u.run_at_ms, b.created_ms),
                   nullif(u.attempt, 1), b.max_attempts, nullif(b.priority, 0), b.id, b.parent_id,
                   b.grp, b.unique_key, nullif(u.error, '')
              -- with a LIMIT it is this single row, whatever the planner thinks
              FROM u JOIN LATERAL (SELECT * FROM job i WHERE i.seq = u.seq LIMIT 1) AS b ON true
             ORDER BY u.token;
        GET DIAGNOSTICS k = ROW_COUNT;
        IF starts IS NOT NULL THEN
            -- mutant rate_by_wall_clock: done := rate_use(starts[1:k], wall) IS NULL;
            done := rate_use(starts[1:k], now) IS NULL;
        END IF;
    END IF;

    IF k > 0 OR n_done > 0 THEN
        INSERT INTO job_total (queue, what, n) SELECT v.*
            FROM (VALUES (qn, @TOTAL_COMPLETED@, n_done),
                         (qno, @TOTAL_CLAIMED@, k)) AS v (queue, what, n) WHERE v.n > 0;
        IF random() < 0.004 THEN
            done := total_compact(coalesce(qno, qn)) IS NULL;
        END IF;
    END IF;
    IF plain AND k > 0 THEN
        -- Fewer than requested, and more are READY: they do not fit into the reply.
        flags := CASE WHEN k < n_max
                      AND EXISTS (SELECT FROM job_live l
                                  WHERE l.lane = lane(qno, @LANE_READY@)) THEN @OUT_LIMITED@
                                  ELSE 0 END;
        "out" := concat('{"status":@STATUS_OK@,"flags":', flags, ',"now_ms":', now, ',"wall_ms":',
                        wall, ',"expires_ms":', now + lease, ',"queue_no":', qno, '}');
        RETURN NEXT;
    ELSIF says IS NULL THEN
        IF plain THEN
            SELECT * INTO q FROM queue z WHERE z.no = qno;
        END IF;
        "out" := claim_close(q, o, n_was, flags, k, rated, lease, now, wall);
        RETURN NEXT;
    END IF;
    IF alone AND current_setting('interlock.wakes', true) <> '' THEN
        "out" := wakes_take();
        i := -1;
        RETURN NEXT;
    END IF;
END
$$;
