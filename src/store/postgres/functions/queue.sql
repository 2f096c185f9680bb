-- queue: queues and their settings; the mutexes of this family; totals.
--
-- Why several callers can use one queue at once: every op that changes jobs holds the mutex of
-- their queue shared, and locks the rows of the jobs. Whatever depends on other rows has its own
-- mutex: a parent and its children are changed under that of the parent's id; a unique key is taken
-- under that of the key; a claim runs under that of its id, so that a repeated claim waits for the
-- first; and a group with a limit is counted under the group's (queue_group.sql). So a job can be
-- pushed, claimed or finished in a long transaction of the caller's: only a push of the same unique
-- key or of another child of that parent waits for it, and so does creating the queue or changing
-- its limits (queue_alone()). mutexes_queue() names the mutexes before anything is read, so what it
-- looks up may have changed by the time they are granted. A verb therefore asks for them again
-- (job_alone()), which costs nothing when they are held. In the rare case that they are not, two
-- transactions may deadlock: PostgreSQL aborts one of them, and its batch is repeated.

-- ---- lanes --------------------------------------------------------------------------------------

-- Where jobs of a queue wait: see the table job_live. In a group, kind 0 are the claimed ones.
CREATE OR REPLACE FUNCTION lane(q int, kind int) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 8 * q::bigint + kind
$$;

-- ---- mutexes ------------------------------------------------------------------------------------

-- Names of the mutexes besides the queue's own. Real names have no control characters, so these
-- cannot collide with one.
CREATE OR REPLACE FUNCTION mutex_unique(t text, queue text, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(@MUTEX_QUEUE@, t, queue || E'\x01u' || key)
$$;

-- The mutex of one claim of a worker. Another claim of the same worker does not wait for it.
CREATE OR REPLACE FUNCTION mutex_claim(t text, queue text, worker text, id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(@MUTEX_QUEUE@, t, queue || E'\x01w' || worker || E'\x01' || id)
$$;

CREATE OR REPLACE FUNCTION mutex_group(t text, queue text, grp text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(@MUTEX_QUEUE@, t, queue || E'\x01g' || grp)
$$;

-- The mutex for changing a queue's settings.
CREATE OR REPLACE FUNCTION mutex_settings(t text, queue text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(@MUTEX_QUEUE@, t, queue || E'\x01s')
$$;

CREATE OR REPLACE FUNCTION mutex_cron(t text, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(@MUTEX_QUEUE@, t, E'\x01c' || name)
$$;

-- The mutexes of a job that will be changed, as mutexes_queue() has named them if it knew the job.
CREATE OR REPLACE FUNCTION job_alone(q queue, j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    done := pg_advisory_xact_lock_shared(mutex(@MUTEX_QUEUE@, q.tenant, q.name)) IS NULL;
    IF j.parent IS NOT NULL THEN
        done := pg_advisory_xact_lock(mutex(@MUTEX_ID@, j.tenant, j.parent_id)) IS NULL;
    ELSIF j.is_parent THEN
        done := pg_advisory_xact_lock(mutex(@MUTEX_ID@, j.tenant, j.id)) IS NULL;
    END IF;
END
$$;

-- Of an op that names a job.
CREATE OR REPLACE FUNCTION mutexes_job(o jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t text := o ->> 'tenant';
    b record;
BEGIN
    SELECT j.seq, j.id, j.parent, j.parent_id, j.is_parent, j.unique_key,
           (SELECT q.name FROM queue q WHERE q.no = j.queue) INTO b
      FROM job j
     WHERE j.tenant = t AND j.id = o ->> 'id';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, b.name);
    IF o ->> 'op' = 'heartbeat' THEN
        RETURN; -- nothing follows from one
    END IF;
    IF b.parent IS NOT NULL THEN
        RETURN NEXT mutex(@MUTEX_ID@, t, b.parent_id);
    ELSIF b.is_parent THEN
        RETURN NEXT mutex(@MUTEX_ID@, t, b.id);
        -- its children, in whatever queues, are cancelled with it
        IF o ->> 'op' = 'job_cancel' THEN
            RETURN QUERY
                SELECT DISTINCT mutex_shared(@MUTEX_QUEUE@, t, q.name) FROM job_live l
                       JOIN queue q ON q.no = l.queue WHERE l.parent = b.seq;
        END IF;
    END IF;
    IF b.unique_key IS NOT NULL AND o ->> 'op' = 'job_retry' THEN
        RETURN NEXT mutex_unique(t, b.name, b.unique_key);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION mutexes_queue(o jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    op text := o ->> 'op';
    t  text := o ->> 'tenant';
    k  text := o ->> 'key';
BEGIN
    IF op = 'push' THEN
        RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, k);
        IF o ? 'unique_key' THEN
            RETURN NEXT mutex_unique(t, k, o ->> 'unique_key');
        END IF;
        IF o ? 'parent' THEN
            RETURN NEXT mutex(@MUTEX_ID@, t, o ->> 'parent');
        END IF;
    ELSIF op = 'claim' THEN
        RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, k);
        RETURN NEXT mutex_claim(t, k, o ->> 'holder', o ->> 'id');
    ELSIF op IN ('heartbeat', 'job_finish', 'job_fail', 'snooze', 'job_cancel', 'job_retry',
                 'job_seal') THEN
        RETURN QUERY SELECT mutexes_job(o);
    ELSIF op = 'queue_set' THEN
        RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, k);
        RETURN NEXT mutex_settings(t, k);
    ELSIF op IN ('queue_pause', 'job_purge') THEN
        RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, k);
    ELSIF op IN ('cron_set', 'cron_remove', 'x_tick') THEN
        IF k IS NOT NULL THEN
            RETURN NEXT mutex_shared(@MUTEX_QUEUE@, t, k);
        END IF;
        RETURN NEXT mutex_cron(t, o ->> 'name');
    END IF; -- sweeps take what they need when they have found it, if it is free
END
$$;

-- The same for many pushes or finishes at once.
CREATE OR REPLACE FUNCTION mutexes_push_many(ops jsonb[]) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT mutex_shared(@MUTEX_QUEUE@, u.o ->> 'tenant', u.o ->> 'key')
                 FROM unnest(ops) AS u (o);
    RETURN QUERY SELECT m FROM unnest(ops) AS u (o), mutexes_queue(u.o) AS m
                 WHERE u.o ?| ARRAY['unique_key', 'parent'];
END
$$;

-- Many finishes start without mutexes; job_finish_many() takes those of the few that need some,
-- with the next function.
CREATE OR REPLACE FUNCTION mutexes_finish_many(ops jsonb[]) RETURNS SETOF bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
END
$$;

CREATE OR REPLACE FUNCTION mutexes_finish_rest(ops jsonb[]) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        WITH b AS MATERIALIZED (
            SELECT j.tenant, j.queue, j.parent_id
              FROM unnest(ops) AS u (o),
                   LATERAL (SELECT * FROM job x
                            WHERE x.tenant = u.o ->> 'tenant' AND x.id = u.o ->> 'id' LIMIT 1) AS j)
        SELECT mutex_shared(@MUTEX_QUEUE@, q.tenant, q.name) FROM queue q
         WHERE q.no IN (SELECT b.queue FROM b)
        UNION ALL
        SELECT mutex(@MUTEX_ID@, b.tenant, b.parent_id) FROM b WHERE b.parent_id IS NOT NULL;
END
$$;

-- ---- waking -------------------------------------------------------------------------------------

-- Many wake-ups at once, in the format of the setting (base.sql).
CREATE OR REPLACE FUNCTION wakes_add(w text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes', concat(current_setting('interlock.wakes', true), w),
                       true);
END
$$;

-- Many jobs have changed: like wake(tenant, id, '#job') for each.
CREATE OR REPLACE FUNCTION wake_jobs(t text, ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM wakes_add((SELECT string_agg(concat('[', to_json(t), ',', to_json(i), ',"#job"],'), '')
                       FROM unnest(ids) AS i));
END
$$;

-- ---- totals -------------------------------------------------------------------------------------

-- Merge up to 1,000 rows of a queue. Race-free: locked rows are skipped, and deleting and adding is
-- one statement of one transaction, so a reader always gets a complete sum. Not with an old
-- snapshot: the rows it shows may be deleted, and the transaction would fail because of that.
CREATE OR REPLACE FUNCTION total_compact(q int) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN;
    END IF;
    WITH old AS (
        DELETE FROM job_total
         WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM job_total t WHERE t.queue = q LIMIT 1000
                                 FOR UPDATE SKIP LOCKED))
        RETURNING what, n)
    INSERT INTO job_total (queue, what, n) SELECT q, old.what, sum(old.n) FROM old
        GROUP BY old.what;
END
$$;

-- Count. One in 250 calls merges 1,000 rows, so there are never many, whatever the load.
CREATE OR REPLACE FUNCTION total_add(q int, w int, k bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO job_total (queue, what, n) VALUES (q, w, k);
    IF random() < 0.004 THEN
        PERFORM total_compact(q);
    END IF;
END
$$;

-- The number of jobs in each state follows from the totals, as far as these tell: a push makes a
-- READY job, a claim makes it RUNNING, and a job that is COMPLETED or FAILED was RUNNING. So the
-- ops that all jobs go through count nothing more; the others add the difference here:
--   s  SCHEDULED jobs                r  RUNNING ones, in addition to claimed - completed - failed
--   l  live ones, in addition to pushed - completed - failed - cancelled
--   d  FAILED ones that still exist, in addition to failed
-- The rows belong to the same transaction as the jobs that they count, and never change: no one
-- waits, and a sum read with the snapshot of the jobs is the number of their rows.
CREATE OR REPLACE FUNCTION depth_add(q int, s bigint, r bigint, l bigint, d bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO job_total (queue, what, n)
    SELECT q, v.what, v.n
      FROM (VALUES (@DEPTH_SCHEDULED@, s), (@DEPTH_RUNNING@, r), (@DEPTH_LIVE@, l),
                   (@DEPTH_FAILED@, d)) AS v (what, n)
     WHERE v.n <> 0;
END
$$;

-- ---- queues -------------------------------------------------------------------------------------

-- Find a queue, or create it with default settings. Race-free: a concurrent creator waits for the
-- other's commit, and then finds it.
CREATE OR REPLACE FUNCTION queue_get(t text, k text) RETURNS queue
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q queue;
BEGIN
    LOOP -- ends: queues are never deleted
        SELECT * INTO q FROM queue WHERE tenant = t AND name = k;
        IF FOUND THEN
            RETURN q;
        END IF;
        INSERT INTO queue (tenant, name) VALUES (t, k) ON CONFLICT (tenant, name) DO NOTHING;
    END LOOP;
END
$$;

-- The smallest run_at of the READY jobs in a lane, NULL if there are none. They are ordered by
-- priority first, of which there are at most 2,001: the first of each is read.
CREATE OR REPLACE FUNCTION lane_oldest(ln bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    oldest bigint;
    p      bigint := -9223372036854775808;
    t      bigint;
BEGIN
    LOOP
        SELECT l.ord, l.at INTO p, t FROM job_live l WHERE l.lane = ln AND l.ord > p
               ORDER BY l.lane, l.ord, l.at LIMIT 1;
        EXIT WHEN NOT FOUND;
        oldest := least(oldest, t);
    END LOOP;
    RETURN oldest;
END
$$;

-- A queue as shown: settings, jobs by state, totals. Of the SCHEDULED jobs whose time has come, as
-- many count as READY as the next claim promotes.
CREATE OR REPLACE FUNCTION queue_json(q queue, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    n         bigint[] := array_fill(0::bigint, ARRAY[@TOTALS@]);
    due       bigint   := (SELECT count(*)
                           FROM (SELECT FROM job_live l
                                 WHERE l.lane = lane(q.no, @LANE_SCHEDULED@) AND l.ord <= wall
                                 LIMIT @PROMOTE_MAX@) AS x);
    n_live    bigint;
    n_running bigint;
    oldest    bigint   := least(lane_oldest(lane(q.no, @LANE_READY@)),
                                lane_oldest(lane(q.no, @LANE_BLOCKED@)),
                                lane_oldest(lane(q.no, @LANE_UNDECIDED@)));
    x         record;
BEGIN
    FOR x IN SELECT s.what, sum(s.n)::bigint AS n FROM job_total s WHERE s.queue = q.no
        GROUP BY s.what LOOP
        n[x.what] := x.n;
    END LOOP;
    n_live    := n[@TOTAL_PUSHED@] - n[@TOTAL_COMPLETED@] - n[@TOTAL_FAILED@]
                 - n[@TOTAL_CANCELLED@] + n[@DEPTH_LIVE@];
    n_running := n[@TOTAL_CLAIMED@] - n[@TOTAL_COMPLETED@] - n[@TOTAL_FAILED@]
                 + n[@DEPTH_RUNNING@];
    IF due > 0 THEN
        oldest := least(oldest, (SELECT l.ord FROM job_live l
                                 WHERE l.lane = lane(q.no, @LANE_SCHEDULED@) ORDER BY l.lane, l.ord
                                 LIMIT 1));
    END IF;
    RETURN jsonb_build_object(
        'n_scheduled', greatest(n[@DEPTH_SCHEDULED@] - due, 0),
        'n_ready', greatest(n_live - n_running - n[@DEPTH_SCHEDULED@] + due, 0),
        'n_running', greatest(n_running, 0),
        'n_failed', greatest(n[@TOTAL_FAILED@] + n[@DEPTH_FAILED@], 0),
        'oldest_ms', greatest(wall - oldest, 0),
        'pushed', n[@TOTAL_PUSHED@], 'claimed', n[@TOTAL_CLAIMED@],
        'completed', n[@TOTAL_COMPLETED@], 'failed_attempts', n[@TOTAL_FAILED_ATTEMPTS@],
        'failed', n[@TOTAL_FAILED@], 'snoozed', n[@TOTAL_SNOOZED@],
        'cancelled', n[@TOTAL_CANCELLED@], 'recovered', n[@TOTAL_RECOVERED@],
        'duplicates', n[@TOTAL_DUPLICATES@], 'stale', n[@TOTAL_STALE@])
        || jsonb_build_object(
        'name', q.name, 'reason', q.reason, 'paused', q.paused::int,
        'n_workers', (SELECT count(*) FROM (SELECT FROM job_worker w
                                            WHERE w.queue = q.no
                                              AND w.seen_ms > now - @WORKER_SEEN_MS@
                                            LIMIT @COUNT_MAX@) AS y),
        'strategy', q.strategy, 'max_attempts', q.max_attempts, 'lease_ms', q.lease_ms,
        'backoff_ms', q.backoff_ms,
        'backoff_max_ms', q.backoff_max_ms, 'group_limit', q.group_limit, 'rate_n', q.rate_n,
        'rate_ms', q.rate_ms,
        'keep_ms', q.keep_ms, 'keep_failed_ms', q.keep_failed_ms,
        'processing_timeout_ms', q.processing_timeout_ms,
        'executing_timeout_ms', q.executing_timeout_ms);
END
$$;

-- Get exclusive access to a queue, to change its group limit or rate. A transaction that has
-- pushed, claimed or finished a job there may stay open for long; and while we wait for the mutex,
-- everyone else queues behind us. So we wait for 20 ms at a time, with pauses in between, and
-- eventually give up. Under the mutex of settings, so no one else does this.
CREATE OR REPLACE FUNCTION queue_alone(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    FOR i IN 1 .. 30 LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '20ms', true);
            PERFORM pg_advisory_xact_lock(mutex(@MUTEX_QUEUE@, q.tenant, q.name));
            PERFORM set_config('lock_timeout', was, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN -- and the setting is as it was
            PERFORM pg_sleep(0.1);
        END;
    END LOOP;
    RAISE EXCEPTION
        'cannot change the limits of queue %: another transaction has used it and is still open',
        quote_literal(q.name) USING ERRCODE = 'object_in_use';
END
$$;

-- The group limit has changed: in each group the first (limit - running) READY jobs in claiming
-- order can be claimed, the others wait for their group. With exclusive access to the queue, so no
-- job enters or leaves a group meanwhile.
CREATE OR REPLACE FUNCTION queue_regroup(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE job_live l
       SET lane = p.lane, glane = p.lane
      FROM (SELECT w.seq,
                   lane(q.no, CASE WHEN q.group_limit = -1
                                     OR w.place <= q.group_limit
                                        - (SELECT count(*) FROM job_live r
                                            WHERE r.grp = w.grp
                                              AND r.glane = lane(q.no, @LANE_CLAIMED@))
                                   THEN @LANE_READY@ ELSE @LANE_BLOCKED@ END) AS lane
              FROM (SELECT x.seq, x.grp, row_number() OVER (PARTITION BY x.grp
                                                            ORDER BY x.ord, x.at, x.seq) AS place
                      FROM job_live x
                     WHERE x.queue = q.no AND x.grp IS NOT NULL
                       AND x.lane & 7 IN (@LANE_READY@, @LANE_BLOCKED@,
                                          @LANE_UNDECIDED@)) AS w) AS p
     WHERE l.queue = q.no AND l.seq = p.seq AND l.lane + 0 <> p.lane;
    DELETE FROM job_left i WHERE i.queue = q.no;
END
$$;

CREATE OR REPLACE FUNCTION v_queue_set(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was queue := queue_get(o ->> 'tenant', o ->> 'key');
    q   queue;
BEGIN
    IF (o ->> 'group_limit')::int NOT IN (0, was.group_limit)
       OR (o ->> 'rate_n')::int NOT IN (0, was.rate_n) THEN
        PERFORM queue_alone(was);
    END IF;
    UPDATE queue -- 0 or nothing leaves a setting as it is
       SET strategy              = coalesce(nullif((o ->> 'strategy')::int, 0), strategy),
           max_attempts          = coalesce(nullif((o ->> 'max_attempts')::int, 0), max_attempts),
           lease_ms              = coalesce(nullif((o ->> 'lease_ms')::bigint, 0), lease_ms),
           backoff_ms            = coalesce(nullif((o ->> 'backoff_ms')::bigint, 0), backoff_ms),
           backoff_max_ms        = coalesce(nullif((o ->> 'backoff_max_ms')::bigint, 0),
                                            backoff_max_ms),
           group_limit           = coalesce(nullif((o ->> 'group_limit')::int, 0), group_limit),
           rate_n                = coalesce(nullif((o ->> 'rate_n')::int, 0), rate_n),
           rate_ms               = coalesce(nullif((o ->> 'rate_ms')::bigint, 0), rate_ms),
           keep_ms               = coalesce(nullif((o ->> 'keep_ms')::bigint, 0), keep_ms),
           keep_failed_ms          = coalesce(nullif((o ->> 'keep_failed_ms')::bigint, 0),
                                            keep_failed_ms),
           processing_timeout_ms = coalesce(nullif((o ->> 'processing_timeout_ms')::bigint, 0),
                                            processing_timeout_ms),
           executing_timeout_ms  = coalesce(nullif((o ->> 'executing_timeout_ms')::bigint, 0),
                                            executing_timeout_ms)
     WHERE no = was.no
    RETURNING * INTO q;
    IF q.group_limit <> was.group_limit THEN
        PERFORM queue_regroup(q);
    END IF;
    IF q.rate_n <> was.rate_n THEN
        PERFORM rate_resize(q);
    END IF;
    PERFORM wake(q.tenant, q.name, '#queue');
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"queues":[', queue_json(q, now, wall), ']}'),
                    NULL, NULL)::job_reply;
END
$$;

-- Pause, or resume (FLAG_RESUME).
CREATE OR REPLACE FUNCTION v_queue_pause(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    resume boolean := coalesce((o ->> 'flags')::int, 0) & @FLAG_RESUME@ <> 0;
    q      queue;
BEGIN
    UPDATE queue
       SET paused = NOT resume, reason = CASE WHEN resume THEN ''
                                              ELSE coalesce(o ->> 'text', '') END
     WHERE tenant = o ->> 'tenant' AND name = o ->> 'key'
    RETURNING * INTO q;
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    IF resume THEN
        PERFORM wake(q.tenant, q.name, '#queue');
    END IF;
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"queues":[', queue_json(q, now, wall), ']}'),
                    NULL, NULL)::job_reply;
END
$$;

-- A page of the tenant's queues, by name.
CREATE OR REPLACE FUNCTION v_queue_list(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    prefix text  := coalesce(o ->> 'prefix', '');
    n_max  int   := (o ->> 'limit')::int;
    shown  jsonb := '[]';
    n      int   := 0;
    last   text;
    next   jsonb;
    q      queue;
BEGIN
    FOR q IN
        SELECT * FROM queue
         WHERE tenant = o ->> 'tenant' AND name >= prefix AND name < prefix_end(prefix)
           AND name > coalesce(o ->> 'after_key', '')
         ORDER BY name LIMIT n_max + 1
    LOOP
        IF n = n_max THEN
            next := jsonb_build_array(last, 0);
            EXIT;
        END IF;
        shown := shown || jsonb_build_array(queue_json(q, now, wall));
        n     := n + 1;
        last  := q.name;
    END LOOP;
    RETURN NEXT ROW(jsonb_strip_nulls(jsonb_build_object('status', @STATUS_OK@, 'queues', shown,
                                                         'next', next))::text,
                                                         NULL, NULL)::job_reply;
END
$$;
