-- queue: queues and their settings; the mutexes of this family; totals.
--
-- Why several callers can use one queue at once. Every op that changes jobs holds the mutex of their queue shared, and locks the jobs by their rows. What
-- depends on other rows has a mutex of its own: a parent and its children are changed under that of the parent's id; a unique key is taken
-- under that of the key; a worker claims under its own, so that a claim that is repeated waits for the first; and a queue with a rate or
-- a group limit has one for claims, which alone count there. So a job can be pushed or finished in somebody's long transaction: only who pushes
-- the same unique key, or another child of that parent, waits for it; and who makes the queue, or changes its group limit, which is done alone in the queue.
-- mutexes_queue() names them before anything is read, so what it looks up may have changed when they are granted; a verb therefore asks for
-- them again (job_alone()), which costs nothing when they are held. In the rare case that they are not, two of those may wait for each
-- other: PostgreSQL ends one of them, and its batch is repeated.

-- ---- lanes -----------------------------------------------------------------------------------------------------------

-- Where jobs of a queue wait: see the table job_live. Of a group, kind 0 are the claimed ones.
CREATE OR REPLACE FUNCTION lane(q int, kind int) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 8 * q::bigint + kind
$$;

-- ---- mutexes ---------------------------------------------------------------------------------------------------------

-- Names of the mutexes beside the queue's own. Names have no control characters, so these are nobody's name.
CREATE OR REPLACE FUNCTION mutex_unique(t text, queue text, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(2, t, queue || E'\x01u' || key)
$$;

CREATE OR REPLACE FUNCTION mutex_worker(t text, queue text, worker text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(2, t, queue || E'\x01w' || worker)
$$;

CREATE OR REPLACE FUNCTION mutex_claims(t text, queue text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(2, t, queue || E'\x01k')
$$;

CREATE OR REPLACE FUNCTION mutex_cron(t text, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(2, t, E'\x01c' || name)
$$;

-- The mutexes of a job that is going to be changed, as mutexes_queue() has named them if it knew the job.
CREATE OR REPLACE FUNCTION job_alone(q queue, j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    done := pg_advisory_xact_lock_shared(mutex(2, q.tenant, q.name)) IS NULL;
    IF j.parent IS NOT NULL THEN
        done := pg_advisory_xact_lock(mutex(3, j.tenant, j.parent_id)) IS NULL;
    ELSIF j.is_parent THEN
        done := pg_advisory_xact_lock(mutex(3, j.tenant, j.id)) IS NULL;
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
    SELECT j.seq, j.id, j.parent, j.parent_id, j.is_parent, j.unique_key, (SELECT q.name FROM queue q WHERE q.no = j.queue) INTO b
      FROM job j
     WHERE j.tenant = t AND j.id = o ->> 'id';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN NEXT mutex_shared(2, t, b.name);
    IF o ->> 'op' = 'heartbeat' THEN
        RETURN; -- nothing follows from one
    END IF;
    IF b.parent IS NOT NULL THEN
        RETURN NEXT mutex(3, t, b.parent_id);
    ELSIF b.is_parent THEN
        RETURN NEXT mutex(3, t, b.id);
        IF o ->> 'op' = 'job_cancel' THEN -- its children are cancelled with it, in whatever queues they are
            RETURN QUERY
                SELECT DISTINCT mutex_shared(2, t, q.name) FROM job_live l JOIN queue q ON q.no = l.queue WHERE l.parent = b.seq;
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
        RETURN NEXT mutex_shared(2, t, k);
        IF o ? 'unique_key' THEN
            RETURN NEXT mutex_unique(t, k, o ->> 'unique_key');
        END IF;
        IF o ? 'parent' THEN
            RETURN NEXT mutex(3, t, o ->> 'parent');
        END IF;
    ELSIF op = 'claim' THEN
        RETURN NEXT mutex_shared(2, t, k);
        IF EXISTS (SELECT FROM queue WHERE tenant = t AND name = k AND (group_limit <> -1 OR rate_n <> -1)) THEN
            RETURN NEXT mutex_claims(t, k);
        END IF;
        RETURN NEXT mutex_worker(t, k, o ->> 'holder');
    ELSIF op IN ('heartbeat', 'job_finish', 'job_fail', 'snooze', 'job_cancel', 'job_retry', 'job_seal') THEN
        RETURN QUERY SELECT mutexes_job(o);
    ELSIF op = 'queue_set' THEN
        RETURN NEXT CASE WHEN o ? 'group_limit' THEN mutex(2, t, k) ELSE mutex_shared(2, t, k) END;
        RETURN NEXT mutex_claims(t, k);
    ELSIF op IN ('queue_pause', 'job_purge') THEN
        RETURN NEXT mutex_shared(2, t, k);
    ELSIF op IN ('cron_set', 'cron_remove', 'x_tick') THEN
        IF k IS NOT NULL THEN
            RETURN NEXT mutex_shared(2, t, k);
        END IF;
        RETURN NEXT mutex_cron(t, o ->> 'name');
    END IF; -- sweeps take what they need when they have found it, if it is free
END
$$;

-- The same for many pushes or finishes at once.
CREATE OR REPLACE FUNCTION mutexes_push_many(ops jsonb[]) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT mutex_shared(2, u.o ->> 'tenant', u.o ->> 'key') FROM unnest(ops) AS u (o);
    RETURN QUERY SELECT m FROM unnest(ops) AS u (o), mutexes_queue(u.o) AS m WHERE u.o ?| ARRAY['unique_key', 'parent'];
END
$$;

-- Many finishes begin without any; job_finish_many() takes those of the few that need some, by the next function.
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
                   LATERAL (SELECT * FROM job x WHERE x.tenant = u.o ->> 'tenant' AND x.id = u.o ->> 'id' LIMIT 1) AS j)
        SELECT mutex_shared(2, q.tenant, q.name) FROM queue q WHERE q.no IN (SELECT b.queue FROM b)
        UNION ALL
        SELECT mutex(3, b.tenant, b.parent_id) FROM b WHERE b.parent_id IS NOT NULL;
END
$$;

-- ---- waking ----------------------------------------------------------------------------------------------------------

-- Many wakes at once, as they stand in the setting (base.sql).
CREATE OR REPLACE FUNCTION wakes_add(w text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes', concat(current_setting('interlock.wakes', true), w), true);
END
$$;

-- Many jobs have changed: as wake(tenant, id, '#job') for each.
CREATE OR REPLACE FUNCTION wake_jobs(t text, ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM wakes_add((SELECT string_agg(concat('[', to_json(t), ',', to_json(i), ',"#job"],'), '') FROM unnest(ids) AS i));
END
$$;

-- ---- totals ----------------------------------------------------------------------------------------------------------

-- Put up to 1,000 rows of a queue together. Race-free: rows that somebody else is at are passed over, and deleting and adding
-- is one statement of one transaction, so a sum that is read is always whole.
CREATE OR REPLACE FUNCTION total_compact(q int) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH old AS (
        DELETE FROM job_total
         WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM job_total t WHERE t.queue = q LIMIT 1000 FOR UPDATE SKIP LOCKED))
        RETURNING what, n)
    INSERT INTO job_total (queue, what, n) SELECT q, old.what, sum(old.n) FROM old GROUP BY old.what;
END
$$;

-- Count. Each of 250 calls puts 1,000 rows together: so there are never many, whoever comes.
CREATE OR REPLACE FUNCTION total_add(q int, w int, k bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO job_total (queue, what, n) VALUES (q, w, k);
    IF random() < 0.004 THEN
        PERFORM total_compact(q);
    END IF;
END
$$;

-- ---- queues ----------------------------------------------------------------------------------------------------------

-- Find a queue, or make it with default settings. Race-free: who makes it at the same time waits for the other's commit, and finds it then.
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

-- A queue as it is shown: settings, jobs by state, totals.
CREATE OR REPLACE FUNCTION queue_json(q queue, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    shown jsonb;
BEGIN
    SELECT jsonb_build_object(
               'n_scheduled', count(*) FILTER (WHERE x.kind = 1),
               'n_ready', count(*) FILTER (WHERE x.kind = 2),
               'n_running', count(*) FILTER (WHERE x.kind = 3),
               'oldest_ms', greatest(wall - min(x.run_at_ms) FILTER (WHERE x.kind = 2), 0))
      INTO shown
      FROM (SELECT CASE l.lane & 7 WHEN 1 THEN CASE WHEN l.run_at_ms <= wall THEN 2 ELSE 1 END WHEN 0 THEN 3 WHEN 3 THEN 3 ELSE 2 END AS kind,
                   l.run_at_ms
              FROM job_live l WHERE l.queue = q.no) AS x;
    SELECT shown || jsonb_build_object(
               'pushed', coalesce(sum(s.n) FILTER (WHERE s.what = 1), 0),
               'claimed', coalesce(sum(s.n) FILTER (WHERE s.what = 2), 0),
               'completed', coalesce(sum(s.n) FILTER (WHERE s.what = 3), 0),
               'failed', coalesce(sum(s.n) FILTER (WHERE s.what = 4), 0),
               'dead', coalesce(sum(s.n) FILTER (WHERE s.what = 5), 0),
               'snoozed', coalesce(sum(s.n) FILTER (WHERE s.what = 6), 0),
               'cancelled', coalesce(sum(s.n) FILTER (WHERE s.what = 7), 0),
               'recovered', coalesce(sum(s.n) FILTER (WHERE s.what = 8), 0),
               'duplicates', coalesce(sum(s.n) FILTER (WHERE s.what = 9), 0),
               'stale', coalesce(sum(s.n) FILTER (WHERE s.what = 10), 0))
      INTO shown
      FROM job_total s WHERE s.queue = q.no;
    RETURN shown || jsonb_build_object(
        'name', q.name, 'reason', q.reason, 'paused', q.paused::int,
        'n_dead', (SELECT count(*) FROM job_done d WHERE d.queue = q.no AND d.state = 5),
        'n_workers', (SELECT count(*) FROM job_worker w WHERE w.queue = q.no AND w.seen_ms > now - 60000),
        'strategy', q.strategy, 'max_attempts', q.max_attempts, 'lease_ms', q.lease_ms, 'backoff_ms', q.backoff_ms,
        'backoff_max_ms', q.backoff_max_ms, 'group_limit', q.group_limit, 'rate_n', q.rate_n, 'rate_ms', q.rate_ms,
        'keep_ms', q.keep_ms, 'keep_dead_ms', q.keep_dead_ms, 'processing_timeout_ms', q.processing_timeout_ms,
        'executing_timeout_ms', q.executing_timeout_ms);
END
$$;

-- The group limit has changed: of each group the first (limit - running) READY jobs in claiming order can be claimed, the others wait
-- for their group. Alone in the queue, so nobody enters or leaves a group meanwhile.
CREATE OR REPLACE FUNCTION queue_regroup(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE job_live l
       SET lane = p.lane, glane = p.lane
      FROM (SELECT w.seq,
                   lane(q.no, CASE WHEN q.group_limit = -1
                                     OR w.place <= q.group_limit - (SELECT count(*) FROM job_live r
                                                                     WHERE r.grp = w.grp AND r.glane = lane(q.no, 0))
                                   THEN 2 ELSE 4 END) AS lane
              FROM (SELECT x.seq, x.grp, row_number() OVER (PARTITION BY x.grp ORDER BY x.ord, x.at, x.seq) AS place
                      FROM job_live x
                     WHERE x.queue = q.no AND x.grp IS NOT NULL AND x.lane & 7 IN (2, 4, 5)) AS w) AS p
     WHERE l.queue = q.no AND l.seq = p.seq AND l.lane + 0 <> p.lane;
    DELETE FROM job_left i WHERE i.queue = q.no;
    IF q.marked THEN
        PERFORM mark_forget(q);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_queue_set(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was queue := queue_get(o ->> 'tenant', o ->> 'key');
    q   queue;
BEGIN
    UPDATE queue -- 0 or nothing leaves a setting as it is
       SET strategy              = coalesce(nullif((o ->> 'strategy')::int, 0), strategy),
           max_attempts          = coalesce(nullif((o ->> 'max_attempts')::int, 0), max_attempts),
           lease_ms              = coalesce(nullif((o ->> 'lease_ms')::bigint, 0), lease_ms),
           backoff_ms            = coalesce(nullif((o ->> 'backoff_ms')::bigint, 0), backoff_ms),
           backoff_max_ms        = coalesce(nullif((o ->> 'backoff_max_ms')::bigint, 0), backoff_max_ms),
           group_limit           = coalesce(nullif((o ->> 'group_limit')::int, 0), group_limit),
           rate_n                = coalesce(nullif((o ->> 'rate_n')::int, 0), rate_n),
           rate_ms               = coalesce(nullif((o ->> 'rate_ms')::bigint, 0), rate_ms),
           keep_ms               = coalesce(nullif((o ->> 'keep_ms')::bigint, 0), keep_ms),
           keep_dead_ms          = coalesce(nullif((o ->> 'keep_dead_ms')::bigint, 0), keep_dead_ms),
           processing_timeout_ms = coalesce(nullif((o ->> 'processing_timeout_ms')::bigint, 0), processing_timeout_ms),
           executing_timeout_ms  = coalesce(nullif((o ->> 'executing_timeout_ms')::bigint, 0), executing_timeout_ms)
     WHERE no = was.no
    RETURNING * INTO q;
    IF q.group_limit <> was.group_limit THEN
        PERFORM queue_regroup(q);
    END IF;
    IF q.rate_n = -1 AND was.rate_n <> -1 THEN -- what it counted is forgotten
        DELETE FROM job_start s WHERE s.queue = q.no;
    END IF;
    PERFORM wake(q.tenant, q.name, '#queue');
    RETURN NEXT ROW(concat('{"status":0,"queues":[', queue_json(q, now, wall), ']}'), NULL, NULL)::job_reply;
END
$$;

-- Pause, or resume (flag 128).
CREATE OR REPLACE FUNCTION v_queue_pause(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    resume boolean := coalesce((o ->> 'flags')::int, 0) & 128 <> 0;
    q      queue;
BEGIN
    UPDATE queue
       SET paused = NOT resume, reason = CASE WHEN resume THEN '' ELSE coalesce(o ->> 'text', '') END
     WHERE tenant = o ->> 'tenant' AND name = o ->> 'key'
    RETURNING * INTO q;
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status":26}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    IF resume THEN
        PERFORM wake(q.tenant, q.name, '#queue');
    END IF;
    RETURN NEXT ROW(concat('{"status":0,"queues":[', queue_json(q, now, wall), ']}'), NULL, NULL)::job_reply;
END
$$;

-- A page of the tenant's queues, by name.
CREATE OR REPLACE FUNCTION v_queue_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
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
         WHERE tenant = o ->> 'tenant' AND name >= prefix AND starts_with(name, prefix)
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
    RETURN NEXT ROW(jsonb_strip_nulls(jsonb_build_object('status', 0, 'queues', shown, 'next', next))::text, NULL, NULL)::job_reply;
END
$$;
