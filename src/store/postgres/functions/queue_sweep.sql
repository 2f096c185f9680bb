-- queue_sweep: what happens to jobs without an op: dead claims are recovered, and jobs past their
-- retention are deleted. Everything goes through an index and is bounded. A sweep starts without
-- mutexes: it takes those of the jobs it finds if they are free, and skips the rest.

-- Take the mutexes of a job if they are free.
CREATE OR REPLACE FUNCTION job_alone_try(q queue, j job_row) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN mutex_try(mutex_shared(@MUTEX_QUEUE@, q.tenant, q.name))
           AND (j.parent IS NULL OR mutex_try(mutex(@MUTEX_ID@, j.tenant, j.parent_id)));
END
$$;

CREATE OR REPLACE FUNCTION v_x_sweep_jobs(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_sort = off AS $$
DECLARE
    n_max int := (o ->> 'limit')::int;
    n     int := 0; -- looked at
    done  int := 0; -- recovered
    q     queue;
    j     job_row;
    x     record;
BEGIN
    -- A heartbeat has postponed the expiry of these; from now on they are found at the new time.
    UPDATE job_live
       SET ord = expires_ms
     WHERE ctid = ANY (ARRAY(SELECT i.ctid FROM job_live i
                              WHERE i.lane = @LANE_CLAIMED@ AND i.ord <= now
                                AND i.ord + 0 <> i.expires_ms LIMIT n_max FOR UPDATE SKIP LOCKED));
    -- Locked, so that a dead claim cannot be revived while we look at it.
    FOR x IN
        SELECT i.queue, i.seq
          FROM unnest(ARRAY(SELECT (l.queue, l.seq)::job_due FROM job_live l
                             WHERE l.lane = @LANE_CLAIMED@ AND l.ord <= now AND l.expires_ms <= now
                             ORDER BY l.ord, l.at, l.seq + 0 LIMIT n_max + 1
                               FOR UPDATE SKIP LOCKED))
               WITH ORDINALITY AS i (queue, seq, nth)
         ORDER BY i.nth
    LOOP
        n := n + 1;
        EXIT WHEN n > n_max;
        j := job_load(x.queue, x.seq);
        SELECT * INTO q FROM queue WHERE no = x.queue;
        IF job_alone_try(q, j) THEN
            SELECT * INTO q FROM queue WHERE no = x.queue; -- as it is now that nobody can change it
            PERFORM job_recover(q, j, now, wall);
            done := done + 1;
        END IF;
    END LOOP;
    RETURN jsonb_build_object('status', @STATUS_OK@,
                              'flags', CASE WHEN n > n_max THEN @OUT_MORE@ ELSE 0 END,
                              'sweep', jsonb_build_object('n_jobs', done));
END
$$;

CREATE OR REPLACE FUNCTION v_x_sweep_done(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_sort = off AS $$
DECLARE
    n_max  int := (o ->> 'limit')::int;
    qs     int[];
    states int[];
    ss     bigint[];
    n      int := 0;
BEGIN
    -- One more than are deleted shows whether there is more to do. A job that is being retried is
    -- locked and skipped, and so is one whose unique key is being taken over.
    SELECT array_agg(x.queue), array_agg(x.state), array_agg(x.seq) INTO qs, states, ss
      FROM (SELECT e.queue, e.state, e.seq
              FROM job_done e
              LEFT JOIN LATERAL (SELECT i.unique_key FROM job i WHERE i.seq = e.seq
                                 LIMIT 1) AS b ON true
             WHERE e.purge_at_ms <= wall AND e.purge_at_ms < @NEVER@
               AND (b.unique_key IS NULL OR unique_lock(e.queue, b.unique_key, e.seq))
             ORDER BY e.purge_at_ms, e.seq LIMIT n_max + 1 FOR UPDATE OF e SKIP LOCKED) AS x;
    IF ss IS NOT NULL THEN
        n := done_delete(qs[1:n_max], states[1:n_max], ss[1:n_max]);
    END IF;
    -- Workers that have not claimed for long.
    DELETE FROM job_worker w
      USING (SELECT i.queue, i.worker, i.n FROM job_worker i
              WHERE i.seen_ms <= now - @WORKER_SEEN_MS@
              ORDER BY i.seen_ms LIMIT n_max FOR UPDATE SKIP LOCKED) AS i
      WHERE w.queue = i.queue AND w.worker = i.worker AND w.n = i.n;
    RETURN jsonb_build_object('status', @STATUS_OK@,
                              'flags', CASE WHEN cardinality(ss) > n_max THEN @OUT_MORE@
                                            ELSE 0 END,
                              'sweep', jsonb_build_object('n_purged', n));
END
$$;

-- Would a sweep find something to do?
CREATE OR REPLACE FUNCTION overdue_queue(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM job_live l
                   WHERE l.lane = @LANE_CLAIMED@ AND l.ord <= now AND l.expires_ms <= now)
        OR EXISTS (SELECT FROM job_done e
                   WHERE e.purge_at_ms <= wall AND e.purge_at_ms < @NEVER@)
        OR EXISTS (SELECT FROM cron c WHERE c.next_ms <= wall)
        OR EXISTS (SELECT FROM job_worker w WHERE w.seen_ms <= now - @WORKER_SEEN_MS@);
END
$$;
