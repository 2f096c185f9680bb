-- queue_claim: claims. A claim takes due jobs in claiming order, as far as group limits and the
-- rate allow.
--
-- Jobs of a full group wait in a separate lane (queue_group.sql) and ended ones are in a separate
-- table, so the next jobs are always the first rows of one index. Several workers can claim from
-- one queue at once: a claim skips rows that another one has locked, so no worker waits for
-- another, and no two get the same job.
--
-- A claim may be part of a transaction of the caller's that stays open ("open": claim() of
-- public_queue.sql, since many drivers begin one implicitly). Other claims skip what it has locked
-- until it ends, so it locks no more than it needs: it promotes and recovers only as many jobs as
-- were requested, and takes no mutex that others wait for.

-- The maximum number of bytes of the jobs of one claim, unless its first job alone has more: from
-- the request, otherwise IL_RESULT_BYTES_MAX. A job counts as its payload plus 1,024
-- (IL__JOB_BYTES).
CREATE OR REPLACE FUNCTION claim_bytes_max(o jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce((o ->> 'bytes')::bigint, 8388608)
$$;

-- How many of a queue's first n jobs fit into one claim. For an open transaction, which must not
-- lock the others; a claim that is committed at once locks them for a moment.
CREATE OR REPLACE FUNCTION claim_fits(o jsonb, qn int, n int) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT greatest(1, count(*))
              FROM (SELECT sum(x.bytes + @JOB_BYTES@) OVER (ROWS UNBOUNDED PRECEDING) AS total
                      FROM (SELECT l.bytes FROM job_live l WHERE l.lane = lane(qn, @LANE_READY@)
                            ORDER BY l.ord, l.at, l.seq + 0 LIMIT n) AS x) AS y
             WHERE y.total <= claim_bytes_max(o));
END
$$;

-- ---- before a claim -----------------------------------------------------------------------------

-- How many pending changes a claim processes.
CREATE OR REPLACE FUNCTION claim_most(o jsonb, most int) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN o ? 'open' THEN (o ->> 'limit')::int ELSE most END
$$;

-- Recover dead claims of a queue. If the row or the parent is locked, the job is left to the next
-- claim or sweep; an open transaction also leaves jobs with a parent: ending or pushing another
-- child of it would have to wait.
CREATE OR REPLACE FUNCTION claim_recover(q queue, o jsonb, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    most int := claim_most(o, @RECOVER_MAX@);
    s    bigint;
    j    job_row;
BEGIN
    -- A heartbeat has postponed the expiry of these; from now on they are found at the new time.
    UPDATE job_live
       SET ord = expires_ms
     WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM job_live x
                              WHERE x.lane = @LANE_CLAIMED@ AND x.ord <= now
                                AND x.ord + 0 <> x.expires_ms AND x.queue + 0 = q.no
                              LIMIT most FOR UPDATE SKIP LOCKED));
    FOREACH s IN ARRAY ARRAY(SELECT x.seq FROM job_live x
                              WHERE x.lane = @LANE_CLAIMED@ AND x.ord <= now AND x.expires_ms <= now
                                AND x.queue + 0 = q.no
                                AND (x.parent IS NULL OR NOT o ? 'open')
                              ORDER BY x.ord, x.at, x.seq + 0 LIMIT most FOR UPDATE SKIP LOCKED)
    LOOP
        j := job_load(q.no, s);
        IF j.parent IS NULL OR mutex_try(mutex(@MUTEX_ID@, j.tenant, j.parent_id)) THEN
            PERFORM job_recover(q, j, now, wall);
        END IF;
    END LOOP;
END
$$;

-- Promote scheduled jobs whose time has come to READY: of the first 1,000, as many as this claim
-- processes, in claiming order.
CREATE OR REPLACE FUNCTION claim_promote(q queue, o jsonb, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    most int := claim_most(o, @PROMOTE_MAX@);
    -- of one with a group
    kind int := CASE q.group_limit WHEN -1 THEN @LANE_READY@ ELSE @LANE_UNDECIDED@ END;
    due  tid[] := ARRAY(SELECT x.ctid FROM (SELECT l.ctid, l.priority, l.run_at_ms, l.seq
                                            FROM job_live l
                                             WHERE l.lane = lane(q.no, @LANE_SCHEDULED@)
                                               AND l.ord <= wall
                                             ORDER BY l.ord, l.at, l.seq + 0
                                             LIMIT @PROMOTE_MAX@) AS x
                         ORDER BY x.priority, x.run_at_ms, x.seq);
    seqs bigint[];
BEGIN
    WITH u AS (
        UPDATE job_live
           SET lane = lane(q.no, CASE WHEN grp IS NULL THEN @LANE_READY@ ELSE kind END),
               ord = priority, at = run_at_ms,
               glane = CASE WHEN grp IS NOT NULL THEN lane(q.no, kind) END
         -- locks no more than are taken: without an ORDER BY they come one by one
         WHERE ctid = ANY (ARRAY(SELECT l.ctid
                                   FROM unnest(due) AS d (tid),
                                        LATERAL (SELECT k.ctid FROM job_live k
                                                 WHERE k.ctid = d.tid
                                                   AND k.lane + 0 = lane(q.no, @LANE_SCHEDULED@)
                                                    FOR UPDATE SKIP LOCKED) AS l
                                  LIMIT most))
        RETURNING seq)
    SELECT array_agg(u.seq) INTO seqs FROM u;
    IF seqs IS NULL THEN
        RETURN;
    END IF;
    -- mutant depth_not_lowered:
    PERFORM depth_add(q.no, -cardinality(seqs), 0, 0, 0);
    PERFORM wake_jobs(q.tenant, ARRAY(SELECT b.id FROM job b WHERE b.seq = ANY (seqs)));
    PERFORM wake(q.tenant, q.name, '#queue');
END
$$;

-- ---- the rate -----------------------------------------------------------------------------------
--
-- In lease time: setting the wall clock does not allow more. A job needs one of the queue's rate_n
-- rows of job_start, and gives it the time of its claim. A locked row counts as used: so two claims
-- never use the same one, and there are never more than rate_n within rate_ms, including
-- uncommitted ones.

-- The rate has changed. The most recently used ones get the first numbers. With exclusive access to
-- the queue.
CREATE OR REPLACE FUNCTION rate_resize(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.rate_n = -1 THEN -- what it counted is forgotten
        DELETE FROM job_start s WHERE s.queue = q.no;
        RETURN;
    END IF;
    UPDATE job_start s SET no = x.nth
      FROM (SELECT i.ctid AS tid, row_number() OVER (ORDER BY i.at_ms DESC) AS nth FROM job_start i
            WHERE i.queue = q.no) AS x
     WHERE s.ctid = x.tid;
    INSERT INTO job_start (queue, at_ms, no)
    SELECT q.no, -9223372036854775808, k
      FROM generate_series(1 + (SELECT count(*) FROM job_start s WHERE s.queue = q.no),
                           q.rate_n) AS k;
END
$$;

-- How many unlocked jobs there are, at most `most`. It locks them, and releases them at once.
CREATE OR REPLACE FUNCTION rate_wanted(q queue, most int) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    BEGIN
        n := (SELECT count(*) FROM (SELECT FROM job_live l WHERE l.lane = lane(q.no, @LANE_READY@)
                                     ORDER BY l.ord, l.at, l.seq + 0 LIMIT most
                                              FOR UPDATE SKIP LOCKED) AS x);
        RAISE EXCEPTION USING ERRCODE = 'IL999';
    EXCEPTION WHEN SQLSTATE 'IL999' THEN
    END;
    RETURN n;
END
$$;

-- What n jobs need of the rate, as far as available: locked, so that no one else uses it.
CREATE OR REPLACE FUNCTION rate_take(q queue, n int, now bigint) RETURNS tid[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN ARRAY(SELECT s.ctid FROM job_start s
                 WHERE s.queue = q.no AND s.at_ms <= now - q.rate_ms AND s.no <= q.rate_n
                  ORDER BY s.at_ms LIMIT n FOR UPDATE SKIP LOCKED);
END
$$;

CREATE OR REPLACE FUNCTION rate_use(starts tid[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE job_start s SET at_ms = now WHERE s.ctid = ANY (starts);
END
$$;

-- The rate allows none: when will it allow one more? Unknown if another open claim has them.
CREATE OR REPLACE FUNCTION rate_wait(q queue, now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    at bigint := (SELECT s.at_ms FROM job_start s WHERE s.queue = q.no AND s.no <= q.rate_n
                  ORDER BY s.at_ms LIMIT 1);
BEGIN
    RETURN CASE WHEN at > now - q.rate_ms THEN at + q.rate_ms - now ELSE 100 END;
END
$$;

-- ---- a claim ------------------------------------------------------------------------------------

-- A repeated claim returns those of its jobs that are still running with the tokens it gave. They
-- are found by worker and tokens: others may have drawn tokens in between.
CREATE OR REPLACE FUNCTION claim_again(q queue, o jsonb, w job_worker, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    flags int := @OUT_RENEWED@ + CASE q.strategy
                                      WHEN @QUEUE_OPTIMISTIC@ THEN @OUT_OPTIMISTIC@
                                           ELSE 0 END;
    seqs  bigint[] := ARRAY(SELECT l.seq FROM job_live l
                             WHERE l.lane = @LANE_CLAIMED@ AND l.queue + 0 = q.no
                               AND l.expires_ms > now
                               AND l.worker = w.worker
                               AND l.token BETWEEN w.first_token AND w.last_token
                             ORDER BY l.token);
BEGIN
    IF cardinality(seqs) = 0 THEN
        RETURN NEXT ROW(concat('{"status":@STATUS_EMPTY@,"flags":', flags, ',"remaining_ms":-1}'),
                        NULL, NULL)::job_reply;
        RETURN;
    END IF;
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"flags":', flags, ',"now_ms":', now,
                           ',"wall_ms":', wall, '}'), NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT job_json(job_peek(u.s), q.name), b.payload, NULL::bytea
          FROM unnest(seqs) WITH ORDINALITY AS u (s, i)
          JOIN LATERAL (SELECT x.payload FROM job x WHERE x.seq = u.s LIMIT 1) AS b ON true
         ORDER BY u.i;
END
$$;

-- Nothing was claimed: when might a job become available by itself? -1: unknown. Releasing the
-- mutex of a group wakes no one.
CREATE OR REPLACE FUNCTION claim_wait(q queue, rated boolean, now bigint, wall bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    at_ms bigint := least((SELECT min(c.next_ms) FROM cron c
                            WHERE c.tenant = q.tenant AND c.queue = q.name
                              AND c.next_ms < @TICK_NEVER@),
                          (SELECT l.ord FROM job_live l WHERE l.lane = lane(q.no, @LANE_SCHEDULED@)
                           ORDER BY l.ord, l.at, l.seq + 0 LIMIT 1));
BEGIN
    RETURN coalesce(least(CASE WHEN at_ms > wall THEN at_ms - wall WHEN at_ms <= wall THEN 0 END,
                          CASE WHEN rated THEN rate_wait(q, now) END,
                          CASE WHEN q.group_limit <> -1
                                AND (EXISTS (SELECT FROM job_left i WHERE i.queue = q.no)
                                     OR EXISTS (SELECT FROM job_live l
                                                 WHERE l.lane = lane(q.no, @LANE_UNDECIDED@)))
                               THEN 100 END), -1);
END
$$;

-- Record a worker's claim; the row of its last one (n_was) is deleted, unless another claim of the
-- same worker has locked it.
CREATE OR REPLACE FUNCTION claim_note(q queue, o jsonb, n_was bigint, first bigint, last bigint,
                                      now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF n_was IS NOT NULL THEN
        DELETE FROM job_worker
         WHERE ctid = ANY (ARRAY(SELECT w.ctid FROM job_worker w
                                 WHERE w.queue = q.no AND w.worker = o ->> 'holder' AND w.n = n_was
                                    FOR UPDATE SKIP LOCKED));
    END IF;
    INSERT INTO job_worker (n, seen_ms, first_token, last_token, queue, worker, claim)
    VALUES (nextval('ticket_seq'), now, first, last, q.no, o ->> 'holder', o ->> 'id');
END
$$;

-- The due schedules of a queue: the caller is asked to tick them first.
CREATE OR REPLACE FUNCTION claim_ask(q queue, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM asked();
    RETURN NEXT ROW(concat('{"ask":"tick","status":@STATUS_OK@,"wall_ms":', wall, '}'),
                    NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT cron_json(c), NULL::bytea, NULL::bytea
          FROM cron c
         WHERE c.tenant = q.tenant AND c.queue = q.name AND c.next_ms <= wall
         ORDER BY c.next_ms, c.name LIMIT 1000;
END
$$;

-- Everything that happens before jobs are taken. w: the worker's last claim. `says` is NULL if jobs
-- may be taken; otherwise the reason: a head, 'ask' (see claim_ask()), or 'again' (claim_again() of
-- w).
CREATE OR REPLACE FUNCTION claim_open(o jsonb, now bigint, wall bigint, OUT q queue,
                                      OUT w job_worker, OUT flags int, OUT says text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    x    record;
    done boolean;
BEGIN
    -- One statement reads everything we need to know.
    SELECT k AS q, NOT o ? 'ticked'
           AND EXISTS (SELECT FROM cron c
                       WHERE c.tenant = k.tenant AND c.queue = k.name
                         AND c.next_ms <= wall) AS ticks,
           (SELECT v FROM job_worker v WHERE v.queue = k.no AND v.worker = o ->> 'holder'
            ORDER BY v.n DESC LIMIT 1) AS w,
           EXISTS (SELECT FROM job_live l
                   WHERE l.lane = @LANE_CLAIMED@ AND l.ord <= now AND l.queue + 0 = k.no) AS dead,
           EXISTS (SELECT FROM job_live l
                   WHERE l.lane = lane(k.no, @LANE_SCHEDULED@) AND l.ord <= wall) AS due
      INTO x
      FROM queue k WHERE k.tenant = o ->> 'tenant' AND k.name = o ->> 'key';
    IF NOT FOUND THEN
        says := '{"status":@STATUS_NOT_FOUND@}';
        RETURN;
    END IF;
    q     := x.q;
    w     := x.w;
    flags := CASE q.strategy WHEN @QUEUE_OPTIMISTIC@ THEN @OUT_OPTIMISTIC@ ELSE 0 END;
    IF coalesce((o ->> 'flags')::int, 0) & @FLAG_CLAIM_LEAVE@ <> 0 THEN -- the worker has finished
        DELETE FROM job_worker
         WHERE ctid = ANY (ARRAY(SELECT v.ctid FROM job_worker v
                                 WHERE v.queue = q.no AND v.worker = o ->> 'holder'
                                    FOR UPDATE SKIP LOCKED));
        says := concat('{"status":@STATUS_EMPTY@,"flags":', flags, ',"remaining_ms":-1}');
        RETURN;
    END IF;
    IF w.first_token IS NOT NULL AND w.claim = o ->> 'id'
       AND now - w.seen_ms < @WORKER_SEEN_MS@ THEN
        says := 'again';
        RETURN;
    END IF;
    IF x.ticks THEN
        says := 'ask';
        RETURN;
    END IF;
    IF x.dead THEN
        done := claim_recover(q, o, now, wall) IS NULL;
    END IF;
    IF x.due THEN
        done := claim_promote(q, o, wall) IS NULL;
    END IF;
    IF q.paused THEN
        done := claim_note(q, o, w.n, NULL, NULL, now) IS NULL;
        says := concat('{"status":@STATUS_EMPTY@,"flags":', flags + @OUT_PAUSED@,
                       ',"remaining_ms":-1}');
    ELSIF q.group_limit <> -1 THEN
        done := claim_decide(q, o) IS NULL;
    END IF;
END
$$;

-- Process the groups; in an open transaction few at a time, until there is a job to take.
CREATE OR REPLACE FUNCTION claim_decide(q queue, o jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    most int := claim_most(o, 20000);
BEGIN
    WHILE group_decide(q, most) > 0 AND o ? 'open' LOOP
        PERFORM FROM job_live l WHERE l.lane = lane(q.no, @LANE_READY@)
                ORDER BY l.ord, l.at, l.seq + 0 LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- Finish a claim that took k jobs (the worker's claim, in place of n_was, and the totals are
-- already recorded, unless k is 0): returns the head of the reply. rated: the rate allowed none.
CREATE OR REPLACE FUNCTION claim_close(q queue, o jsonb, n_was bigint, flags int, k int,
                                       rated boolean, lease bigint, now bigint, wall bigint)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    more boolean := false;
    done boolean;
BEGIN
    -- Without a limit, READY jobs that were not returned are for another worker.
    IF k < (o ->> 'limit')::int AND (q.group_limit <> -1 OR q.rate_n <> -1) THEN
        more := EXISTS (SELECT FROM job_live l
                        WHERE l.lane IN (lane(q.no, @LANE_READY@), lane(q.no, @LANE_BLOCKED@),
                                         lane(q.no, @LANE_UNDECIDED@)));
    END IF;
    IF more THEN
        flags := flags + @OUT_LIMITED@;
    END IF;
    IF k = 0 THEN
        done := claim_note(q, o, n_was, NULL, NULL, now) IS NULL;
        RETURN concat('{"status":@STATUS_EMPTY@,"flags":', flags, ',"remaining_ms":',
                      claim_wait(q, rated, now, wall), '}');
    END IF;
    RETURN concat('{"status":@STATUS_OK@,"flags":', flags, ',"now_ms":', now, ',"wall_ms":', wall,
                  ',"expires_ms":', now + lease, ',"queue_no":', q.no, '}');
END
$$;

-- A claim as a verb of a batch. (As a separate statement: work_rows().)
CREATE OR REPLACE FUNCTION v_claim(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    parts job_reply[] := '{}';
    ids   text[]      := '{}';
    name  text        := to_json(o ->> 'key');
    times text;       -- the same for all
    x     record;
BEGIN
    FOR x IN SELECT *
        FROM work_rows(o, NULL, NULL, NULL, NULL, NULL, NULL, NULL, now, wall, false) LOOP
        IF x.out IS NOT NULL AND cardinality(ids) = 0 THEN
            RETURN NEXT ROW(x.out, x.data, NULL)::job_reply;
        ELSIF x.out IS NOT NULL THEN
            times := concat(',"state":@JOB_ON_CLAIM@,"progress":-1,"started_at_ms":', wall,
                            ',"updated_at_ms":', wall, ',"expires_ms":',
                            (x.out::json ->> 'expires_ms')::bigint, ',"worker":',
                            to_json(o ->> 'holder'), '}');
            RETURN NEXT ROW(x.out, NULL, NULL)::job_reply;
        ELSE
            ids   := ids || x.id;
            parts := parts || ROW(concat('{"queue":', name, ',"id":', to_json(x.id), ',"seq":',
                                         x.seq, ',"priority":', coalesce(x.priority, 0),
                                         ',"attempt":', coalesce(x.attempt, 1), ',"max_attempts":',
                                         x.max_attempts, ',"token":', x.token,
                                         ',"run_at_ms":', coalesce(x.run_at_ms, x.created_ms),
                                         ',"created_at_ms":', x.created_ms,
                                         ',"error":' || to_json(x.error),
                                         ',"parent":' || to_json(x.parent_id),
                                         ',"group":' || to_json(x.grp),
                                         ',"unique_key":' || to_json(x.unique_key)),
                                  x.data, NULL)::job_reply;
        END IF;
    END LOOP;
    IF cardinality(ids) > 0 THEN
        PERFORM wake_jobs(o ->> 'tenant', ids);
        RETURN QUERY SELECT p.out || times, p.data, p.data2 FROM unnest(parts) AS p;
    END IF;
END
$$;
