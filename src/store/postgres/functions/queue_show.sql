-- queue_show: get and listings of jobs, which change nothing; and the purge that an operator
-- requests.

CREATE OR REPLACE FUNCTION v_job_get(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    s bigint;
    j job_row;
BEGIN
    SELECT b.seq INTO s FROM job b WHERE b.tenant = o ->> 'tenant' AND b.id = o ->> 'id';
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    j := job_peek(s);
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"now_ms":', now, ',"wall_ms":', wall, '}'),
                    NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT job_json(j, q.name), b.payload,
               coalesce((SELECT e.result FROM job_done e
                         WHERE e.queue = b.queue AND e.state = j.state AND e.seq = b.seq), '')
          FROM job b, queue q WHERE b.seq = s AND q.no = j.queue;
END
$$;

-- A page of jobs of one queue, newest first: from the live ones and from each final state, each
-- through its own index. `states`: as bits. Scheduled jobs whose time has come are READY, and READY
-- ones have no separate index: those that do not match are skipped, at most n_look.
CREATE OR REPLACE FUNCTION job_page(qn int, before bigint, states bigint, n int, n_look int,
                                    wall bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT x.seq FROM (
            (SELECT y.seq FROM (SELECT l.seq, CASE WHEN l.lane & 7 = @LANE_SCHEDULED@
                                                   AND l.run_at_ms <= wall THEN @JOB_READY@
                                                     ELSE @state_of_lane@ END AS state
                                  FROM job_live l
                                 WHERE l.queue = qn AND l.seq < before
                                   AND states & @JOB_BIT_READY@ <> 0
                                 ORDER BY l.seq DESC LIMIT n_look) AS y
              WHERE states >> y.state & 1 = 1 LIMIT n)
            UNION ALL
            (SELECT l.seq FROM job_live l
              WHERE l.queue::bigint = qn AND l.seq + 0 < before
                AND l.lane & 7 IN (@LANE_CLAIMED@, @LANE_PARENT@)
                AND states & (@JOB_BIT_READY@ + @JOB_BIT_RUNNING@) = @JOB_BIT_RUNNING@
              ORDER BY l.seq + 0 DESC LIMIT n)
            UNION ALL
            (SELECT y.seq FROM (SELECT l.seq, l.run_at_ms FROM job_live l
                                 WHERE l.queue::bigint = qn AND l.seq + 0 < before
                                   AND l.lane & 7 = @LANE_SCHEDULED@
                                   AND states & (@JOB_BIT_SCHEDULED@ + @JOB_BIT_READY@)
                                       = @JOB_BIT_SCHEDULED@
                                 ORDER BY l.seq + 0 DESC LIMIT n_look) AS y
              WHERE y.run_at_ms > wall LIMIT n)
            UNION ALL
            (SELECT e.seq FROM job_done e
             WHERE e.queue = qn AND e.state = @JOB_COMPLETED@ AND e.seq < before
               AND states & @JOB_BIT_COMPLETED@ <> 0
              ORDER BY e.seq DESC LIMIT n)
            UNION ALL
            (SELECT e.seq FROM job_done e
             WHERE e.queue = qn AND e.state = @JOB_FAILED@ AND e.seq < before
               AND states & @JOB_BIT_FAILED@ <> 0
              ORDER BY e.seq DESC LIMIT n)
            UNION ALL
            (SELECT e.seq FROM job_done e
             WHERE e.queue = qn AND e.state = @JOB_CANCELLED@ AND e.seq < before
               AND states & @JOB_BIT_CANCELLED@ <> 0
              ORDER BY e.seq DESC LIMIT n)) AS x
         ORDER BY x.seq DESC LIMIT n;
END
$$;

-- The seq of the last live job that job_page() has read, NULL if it has read all that may match.
CREATE OR REPLACE FUNCTION job_page_floor(qn int, before bigint, states bigint, n_look int)
RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF states & (@JOB_BIT_SCHEDULED@ + @JOB_BIT_READY@ + @JOB_BIT_RUNNING@)
       = @JOB_BIT_SCHEDULED@ + @JOB_BIT_READY@ + @JOB_BIT_RUNNING@ THEN
        RETURN NULL; -- it passes over nothing
    ELSIF states & @JOB_BIT_READY@ <> 0 THEN
        RETURN (SELECT l.seq FROM job_live l WHERE l.queue = qn AND l.seq < before
                ORDER BY l.seq DESC OFFSET n_look - 1 LIMIT 1);
    ELSIF states & @JOB_BIT_SCHEDULED@ <> 0 THEN
        RETURN (SELECT l.seq FROM job_live l
                 WHERE l.queue::bigint = qn AND l.seq + 0 < before AND l.lane & 7 = @LANE_SCHEDULED@
                 ORDER BY l.seq + 0 DESC OFFSET n_look - 1 LIMIT 1);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION v_job_list(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n_max  int    := (o ->> 'limit')::int;
    n_look int    := n_max + 1 + @LOOK_MAX@;
    states bigint := coalesce((o ->> 'states')::bigint, @JOB_BITS@);
    before bigint := coalesce((o ->> 'after_number')::bigint, 9223372036854775807);
    nos    int[]; -- one queue, or all: then the newest of their pages
    seqs   bigint[];
    floor  bigint;
    next   text;
BEGIN
    IF o ? 'key' THEN
        nos := ARRAY(SELECT q.no FROM queue q
                     WHERE q.tenant = o ->> 'tenant' AND q.name = o ->> 'key');
    ELSE
        nos := ARRAY(SELECT q.no FROM queue q WHERE q.tenant = o ->> 'tenant');
    END IF;
    seqs := ARRAY(SELECT p.seq FROM unnest(nos) AS u (no), job_page(u.no, before, states, n_max + 1,
        n_look, wall) AS p (seq)
                   ORDER BY p.seq DESC LIMIT n_max + 1);
    IF cardinality(seqs) <= n_max THEN
        floor := (SELECT max(job_page_floor(u.no, before, states, n_look))
                  FROM unnest(nos) AS u (no));
        IF floor IS NOT NULL THEN -- so far it has looked everywhere, and no further
            seqs := ARRAY(SELECT s FROM unnest(seqs) AS s WHERE s >= floor ORDER BY s DESC);
            next := concat(',"next":["-",', floor, ']'); -- IL__NO_ID
        END IF;
    ELSE
        seqs := seqs[1:n_max];
        next := (SELECT concat(',"next":[', to_json(b.id), ',', b.seq, ']') FROM job b
                 WHERE b.seq = seqs[n_max]);
    END IF;
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"now_ms":', now, ',"wall_ms":', wall, next, '}'),
                    NULL, NULL)::job_reply;
    RETURN QUERY -- a blob that is too long for a listing is not even read
        SELECT concat(left(job_json(job_peek(u.s), q.name), -1), ',"payload_bytes":',
                      octet_length(b.payload),
                      ',"result_bytes":', coalesce(octet_length(e.result), 0), '}'),
               CASE WHEN octet_length(b.payload) <= @TEXT_BYTES_MAX@ THEN b.payload END,
               CASE WHEN e.result IS NULL THEN ''
                    WHEN octet_length(e.result) <= @TEXT_BYTES_MAX@ THEN e.result END
          FROM unnest(seqs) WITH ORDINALITY AS u (s, i)
          JOIN LATERAL (SELECT x.seq, x.queue, x.payload FROM job x WHERE x.seq = u.s
                        LIMIT 1) AS b ON true
          JOIN queue q ON q.no = b.queue
          LEFT JOIN done_of(b.queue, b.seq) AS e ON true
         ORDER BY u.i;
END
$$;

-- ---- purge --------------------------------------------------------------------------------------
--
-- A purge waits for nobody: a caller's transaction may stay open for hours. It deletes the jobs
-- whose rows it could lock, and leaves the others to the next purge. So what it has found stays
-- true: no job is claimed, retried or purged by others meanwhile; a parent that has ended never
-- lives again, so a child that was found purgeable stays so.

-- May an ended job with the unique key k be deleted? If the key is still its own (an end within the
-- period keeps it), the row of the key is deleted with it, and is locked here. If that row is
-- locked, another job is about to take the key over (job_live_add()); until that transaction ends,
-- nobody knows whose row it will be: no.
CREATE OR REPLACE FUNCTION unique_lock(qn int, k text, s bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM job_unique u
      WHERE u.queue = qn AND u.key = k AND u.seq = s
      -- mutant purge_waits: FOR UPDATE;
      FOR UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM job_unique u
                                WHERE u.queue = qn AND u.key = k AND u.seq = s);
END
$$;

-- Delete ended jobs, whose rows and keys are locked. Returns how many there were.
CREATE OR REPLACE FUNCTION done_delete(qs int[], states int[], ss bigint[]) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    -- By their locations.
    WITH e AS (
        DELETE FROM job_done
         WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM unnest(qs, states, ss) AS u (queue, state, seq),
                                        LATERAL (SELECT x.ctid FROM job_done x
                                                  WHERE x.queue = u.queue AND x.state = u.state
                                                    AND x.seq = u.seq LIMIT 1) AS d))
        RETURNING queue, state, seq),
    t AS (INSERT INTO job_total (queue, what, n) SELECT e.queue, @DEPTH_FAILED@, -count(*) FROM e
          WHERE e.state = @JOB_FAILED@ GROUP BY e.queue),
    b AS (DELETE FROM job WHERE seq = ANY (ARRAY(SELECT e.seq FROM e))
          RETURNING queue, unique_key, seq),
    x AS (DELETE FROM job_unique
           WHERE ctid = ANY (ARRAY(SELECT d.ctid
                                     FROM b, LATERAL (SELECT u.ctid FROM job_unique u
                                                       WHERE u.queue = b.queue
                                                         AND u.key = b.unique_key
                                                         AND u.seq = b.seq LIMIT 1) AS d)))
    SELECT count(*) INTO n FROM b;
    RETURN n;
END
$$;

-- Delete a job that is SCHEDULED or READY, and locked.
CREATE OR REPLACE FUNCTION live_delete(q queue, s bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j job_row := job_load(q.no, s);
BEGIN
    DELETE FROM job_live l WHERE l.queue = q.no AND l.seq = s;
    DELETE FROM job b WHERE b.seq = s;
    PERFORM depth_add(q.no, -(j.state = @JOB_SCHEDULED@)::int, 0, -1, 0);
    IF j.unique_key IS NOT NULL THEN
        DELETE FROM job_unique u WHERE u.queue = q.no AND u.key = j.unique_key AND u.seq = s;
    END IF;
    IF j.state = @JOB_READY@ AND NOT j.blocked THEN
        PERFORM group_leave(q, j.grp);
    END IF;
END
$$;

-- The first ended jobs of a queue and state that a purge may delete, locked. (One state only: the
-- index has them in this order, so no more rows are read and locked than are taken.)
CREATE OR REPLACE FUNCTION done_purgeable(qn int, st int, newest bigint, n_max int)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        SELECT e.seq
          FROM job_done e
          LEFT JOIN LATERAL (SELECT i.parent, i.unique_key FROM job i WHERE i.seq = e.seq
                             LIMIT 1) AS b ON true
         WHERE e.queue = qn AND e.state = st AND e.completed_ms <= newest
           AND job_lives(b.parent) IS NOT TRUE
           AND (b.unique_key IS NULL OR unique_lock(qn, b.unique_key, e.seq))
         ORDER BY e.seq LIMIT n_max FOR UPDATE OF e SKIP LOCKED;
END
$$;

-- The jobs of a queue that a purge may delete and one more, by seq, locked. The children of a live
-- parent stay.
CREATE OR REPLACE FUNCTION job_purgeable(qn int, newest bigint, states bigint, n_max int,
                                         wall bigint)
RETURNS TABLE (seq bigint, state int)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        SELECT x.seq, x.state FROM (
            SELECT y.seq, @JOB_NONE@ AS state FROM (
                SELECT l.seq FROM job_live l
                 WHERE l.queue = qn AND states & (@JOB_BIT_SCHEDULED@ + @JOB_BIT_READY@) <> 0
                   AND l.lane & 7 IN (@LANE_SCHEDULED@, @LANE_READY@, @LANE_BLOCKED@,
                                      @LANE_UNDECIDED@)
                   AND l.updated_ms <= newest
                   AND states & CASE WHEN l.lane & 7 = @LANE_SCHEDULED@
                                     AND l.run_at_ms > wall THEN @JOB_BIT_SCHEDULED@
                                         ELSE @JOB_BIT_READY@ END <> 0
                   AND job_lives(l.parent) IS NOT TRUE
                 ORDER BY l.seq LIMIT n_max + 1 FOR UPDATE SKIP LOCKED) AS y
            UNION ALL
            SELECT y.seq, u.state
              FROM unnest(ARRAY[@JOB_COMPLETED@, @JOB_FAILED@, @JOB_CANCELLED@]) AS u (state),
                   done_purgeable(qn, u.state, newest, n_max + 1) AS y (seq)
             WHERE states & (1 << u.state) <> 0) AS x
         ORDER BY x.seq LIMIT n_max + 1;
END
$$;

CREATE OR REPLACE FUNCTION v_job_purge(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_max  int      := (o ->> 'limit')::int;
    n      int      := 0; -- looked at
    purged int      := 0;
    ended  bigint[] := '{}';
    states int[]    := '{}';
    q      queue;
    x      record;
BEGIN
    SELECT * INTO q FROM queue WHERE tenant = o ->> 'tenant' AND name = o ->> 'key';
    IF FOUND THEN
        FOR x IN SELECT *
            FROM job_purgeable(q.no, wall - coalesce((o ->> 'older_ms')::bigint, 0),
                               (o ->> 'states')::bigint, n_max, wall) LOOP
            n := n + 1;
            EXIT WHEN n > n_max;
            IF x.state <> @JOB_NONE@ THEN
                ended  := ended || x.seq;
                states := states || x.state;
            ELSE
                PERFORM live_delete(q, x.seq);
                purged := purged + 1;
            END IF;
        END LOOP;
        purged := purged + done_delete(ARRAY(SELECT q.no FROM unnest(ended)), states, ended);
    END IF;
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"flags":',
                           CASE WHEN n > n_max THEN @OUT_MORE@ ELSE 0 END, ',"sweep":{"n_purged":',
                           purged, '}}'),
                    NULL, NULL)::job_reply;
END
$$;
