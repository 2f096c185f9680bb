-- queue_show: get and listings of jobs, which change nothing; and the purge that an operator asks for.

CREATE OR REPLACE FUNCTION v_job_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    s bigint;
    j job_row;
BEGIN
    SELECT b.seq INTO s FROM job b WHERE b.tenant = o ->> 'tenant' AND b.id = o ->> 'id';
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status":26}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    j := job_peek(s);
    RETURN NEXT ROW(concat('{"status":0,"now_ms":', now, ',"wall_ms":', wall, '}'), NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT job_json(j, q.name), b.payload,
               coalesce((SELECT e.result FROM job_done e WHERE e.queue = b.queue AND e.state = j.state AND e.seq = b.seq), '')
          FROM job b, queue q WHERE b.seq = s AND q.no = j.queue;
END
$$;

-- The numbers of a page of jobs of one queue and one more, newest first: from the live ones and from each way of having ended, each through
-- its own index. `states`: as bits.
CREATE OR REPLACE FUNCTION job_page(qn int, before bigint, states bigint, n_max int, wall bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT x.seq FROM (
            (SELECT l.seq FROM job_live l
              WHERE l.queue = qn AND l.seq < before AND states & 14 <> 0
                AND states & (1 << CASE l.lane & 7 WHEN 1 THEN CASE WHEN l.run_at_ms <= wall THEN 2 ELSE 1 END
                                                   WHEN 0 THEN 3 WHEN 3 THEN 3 ELSE 2 END) <> 0
              ORDER BY l.seq DESC LIMIT n_max + 1)
            UNION ALL
            (SELECT e.seq FROM job_done e WHERE e.queue = qn AND e.state = 4 AND e.seq < before AND states & 16 <> 0
              ORDER BY e.seq DESC LIMIT n_max + 1)
            UNION ALL
            (SELECT e.seq FROM job_done e WHERE e.queue = qn AND e.state = 5 AND e.seq < before AND states & 32 <> 0
              ORDER BY e.seq DESC LIMIT n_max + 1)
            UNION ALL
            (SELECT e.seq FROM job_done e WHERE e.queue = qn AND e.state = 6 AND e.seq < before AND states & 64 <> 0
              ORDER BY e.seq DESC LIMIT n_max + 1)) AS x
         ORDER BY x.seq DESC LIMIT n_max + 1;
END
$$;

CREATE OR REPLACE FUNCTION v_job_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n_max int := (o ->> 'limit')::int;
    next  text;
    seqs  bigint[] := ARRAY( -- of one queue, or of all: then the newest of their pages
        SELECT p.seq
          FROM queue q,
               job_page(q.no, coalesce((o ->> 'after_number')::bigint, 9223372036854775807), coalesce((o ->> 'states')::bigint, 126),
                        n_max, wall) AS p (seq)
         WHERE q.tenant = o ->> 'tenant' AND (NOT o ? 'key' OR q.name = o ->> 'key')
         ORDER BY p.seq DESC LIMIT n_max + 1);
BEGIN
    IF cardinality(seqs) > n_max THEN
        seqs := seqs[1:n_max];
        next := (SELECT concat(',"next":[', to_json(b.id), ',', b.seq, ']') FROM job b WHERE b.seq = seqs[n_max]);
    END IF;
    RETURN NEXT ROW(concat('{"status":0,"now_ms":', now, ',"wall_ms":', wall, next, '}'), NULL, NULL)::job_reply;
    RETURN QUERY -- a blob that is too long for a listing is not even read
        SELECT concat(left(job_json(job_peek(u.s), q.name), -1), ',"payload_bytes":', octet_length(b.payload),
                      ',"result_bytes":', coalesce(octet_length(e.result), 0), '}'),
               CASE WHEN octet_length(b.payload) <= 4096 THEN b.payload END,
               CASE WHEN e.result IS NULL THEN '' WHEN octet_length(e.result) <= 4096 THEN e.result END
          FROM unnest(seqs) WITH ORDINALITY AS u (s, i)
          JOIN LATERAL (SELECT x.seq, x.queue, x.payload FROM job x WHERE x.seq = u.s LIMIT 1) AS b ON true
          JOIN queue q ON q.no = b.queue
          LEFT JOIN done_of(b.queue, b.seq) AS e ON true
         ORDER BY u.i;
END
$$;

-- ---- purge -----------------------------------------------------------------------------------------------------------------

-- Delete ended jobs that nobody else is at. Returns how many there were.
CREATE OR REPLACE FUNCTION done_delete(qs int[], states int[], ss bigint[]) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    -- By their places. (One that somebody has changed since is left alone: it is no longer there.)
    WITH e AS (
        DELETE FROM job_done
         WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM unnest(qs, states, ss) AS u (queue, state, seq),
                                        LATERAL (SELECT x.ctid FROM job_done x
                                                  WHERE x.queue = u.queue AND x.state = u.state AND x.seq = u.seq LIMIT 1) AS d))
        RETURNING seq),
    b AS (DELETE FROM job WHERE seq = ANY (ARRAY(SELECT e.seq FROM e)) RETURNING queue, unique_key, seq),
    x AS (DELETE FROM job_unique
           WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM b, LATERAL (SELECT u.ctid FROM job_unique u
                                                                   WHERE u.queue = b.queue AND u.key = b.unique_key AND u.seq = b.seq LIMIT 1) AS d)))
    SELECT count(*) INTO n FROM b;
    RETURN n;
END
$$;

-- Delete a job that is SCHEDULED or READY, unless it is something else by now.
CREATE OR REPLACE FUNCTION live_delete(q queue, s bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j job_row := job_load(q.no, s);
BEGIN
    IF j.state IS NULL OR j.state NOT IN (1, 2) THEN
        RETURN false;
    END IF;
    DELETE FROM job_live l WHERE l.queue = q.no AND l.seq = s;
    DELETE FROM job b WHERE b.seq = s;
    IF j.unique_key IS NOT NULL THEN
        DELETE FROM job_unique u WHERE u.queue = q.no AND u.key = j.unique_key AND u.seq = s;
    END IF;
    IF j.state = 2 AND NOT j.blocked THEN
        PERFORM group_leave(q, j.grp);
    END IF;
    RETURN true;
END
$$;

-- The jobs of a queue that a purge may delete and one more, by seq. The children of a live parent stay.
CREATE OR REPLACE FUNCTION job_purgeable(qn int, newest bigint, states bigint, n_max int, wall bigint)
RETURNS TABLE (seq bigint, state int)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT x.seq, x.state FROM (
            (SELECT l.seq, 0 AS state FROM job_live l
              WHERE l.queue = qn AND states & 6 <> 0 AND l.lane & 7 IN (1, 2, 4, 5) AND l.updated_ms <= newest
                AND states & (1 << CASE WHEN l.lane & 7 = 1 AND l.run_at_ms > wall THEN 1 ELSE 2 END) <> 0
                AND job_lives(l.parent) IS NOT TRUE
              ORDER BY l.seq LIMIT n_max + 1)
            UNION ALL
            (SELECT e.seq, e.state::int FROM job_done e
              WHERE e.queue = qn AND e.state IN (4, 5, 6) AND states & (1 << e.state::int) <> 0 AND e.completed_ms <= newest
                AND job_lives((SELECT c.parent FROM job c WHERE c.seq = e.seq)) IS NOT TRUE
              ORDER BY e.seq LIMIT n_max + 1)) AS x
         ORDER BY x.seq LIMIT n_max + 1;
END
$$;

CREATE OR REPLACE FUNCTION v_job_purge(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
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
        FOR x IN SELECT * FROM job_purgeable(q.no, wall - coalesce((o ->> 'older_ms')::bigint, 0), (o ->> 'states')::bigint, n_max, wall) LOOP
            n := n + 1;
            EXIT WHEN n > n_max;
            IF x.state > 0 THEN
                ended  := ended || x.seq;
                states := states || x.state;
            ELSIF live_delete(q, x.seq) THEN
                purged := purged + 1;
            END IF;
        END LOOP;
        purged := purged + done_delete(ARRAY(SELECT q.no FROM unnest(ended)), states, ended);
    END IF;
    RETURN NEXT ROW(concat('{"status":0,"flags":', CASE WHEN n > n_max THEN 4 ELSE 0 END, ',"sweep":{"n_purged":', purged, '}}'),
                    NULL, NULL)::job_reply;
END
$$;
