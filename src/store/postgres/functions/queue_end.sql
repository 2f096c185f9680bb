-- queue_end: what workers and operators do to a job: heartbeat, finish, fail, snooze; cancel,
-- retry, seal.
--
-- A verb locks the row of its job, under the mutexes of its queue and parent, and only then looks
-- at state and token. So of a concurrent finish and recovery, the second sees what the first has
-- done to the job.

-- The job that an op names, recovered if its claim is dead. NULL seq: it does not exist.
CREATE OR REPLACE FUNCTION job_named(o jsonb, now bigint, wall bigint, OUT q queue, OUT j job_row)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    j := job_find(o ->> 'tenant', o ->> 'id');
    IF j.seq IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO q FROM queue WHERE no = j.queue;
    IF o ->> 'op' = 'heartbeat' AND now < j.expires_ms THEN
        -- it has no consequences. (Its queue's mutex is held: the token is that of a committed
        -- claim, so mutexes_job() knew the job.)
        RETURN;
    END IF;
    done := job_alone(q, j) IS NULL;
    SELECT * INTO q FROM queue WHERE no = j.queue; -- as it is now that nobody can change it
    j := job_recover(q, j, now, wall);
END
$$;

-- ---- ops of the worker that has claimed it ------------------------------------------------------

-- It is not running with this token: was this very op executed before, or is it too late?
CREATE OR REPLACE FUNCTION job_late(o jsonb, d bytea, q queue, j job_row, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    op   text    := o ->> 'op';
    ours boolean := j.token = (o ->> 'fence')::bigint AND j.state <> @JOB_RUNNING@;
    head text;
BEGIN
    IF op = 'job_finish' AND ours AND j.state = @JOB_COMPLETED@ AND NOT j.is_parent THEN
        head := CASE WHEN EXISTS (SELECT FROM job_done e
                                  WHERE e.queue = j.queue AND e.state = @JOB_COMPLETED@
                                    AND e.seq = j.seq AND e.result = coalesce(d, ''))
                     THEN '@STATUS_OK@' ELSE '@STATUS_MISMATCH@,"say":"other_result"' END;
    ELSIF ours AND (op = 'job_fail' AND j.last = @LAST_FAILED@ OR op = 'snooze'
                    AND j.last = @LAST_SNOOZED@) THEN
        head := '@STATUS_OK@';
    ELSE
        PERFORM total_add(q.no, @TOTAL_STALE@, 1);
        head := '@STATUS_STALE@,"say":"late"';
    END IF;
    RETURN NEXT job_head(head, now, wall);
    RETURN NEXT job_part(j, q.name);
END
$$;

-- Its expiry is postponed. The executing timeout of a silent worker of an optimistic queue counts
-- from the start, whatever it reports meanwhile.
CREATE OR REPLACE FUNCTION job_beats(q queue, j job_row, o jsonb, now bigint, wall bigint)
RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT (j.silent AND q.strategy = @QUEUE_OPTIMISTIC@) THEN
        j.lease_ms   := coalesce((o ->> 'lease_ms')::bigint, j.lease_ms);
        j.expires_ms := now + j.lease_ms;
    END IF;
    IF (o ->> 'progress')::int >= 0 THEN
        j.progress := (o ->> 'progress')::int;
    END IF;
    j.message    := coalesce(o ->> 'text', j.message);
    j.updated_ms := wall;
    RETURN j;
END
$$;

CREATE OR REPLACE FUNCTION job_fails(q queue, j job_row, o jsonb, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    j.last := @LAST_FAILED@;
    PERFORM total_add(q.no, @TOTAL_FAILED_ATTEMPTS@, 1);
    IF j.cancelled THEN
        RETURN job_ends(q, j, @JOB_ON_CANCEL@, wall); -- the reason of the cancel stays
    END IF;
    j.error := coalesce(o ->> 'text', '');
    IF coalesce((o ->> 'flags')::int, 0) & @FLAG_FAIL_FINAL@ <> 0 OR
       j.attempt >= j.max_attempts THEN
        RETURN job_ends(q, j, @JOB_ON_DIE@, wall);
    END IF;
    j.state      := @JOB_ON_AGAIN@;
    j.expires_ms := 0;
    j.run_at_ms  := wall + coalesce((o ->> 'delay_ms')::bigint, backoff_ms(q, j.id, j.attempt));
    j.updated_ms := wall;
    RETURN j;
END
$$;

CREATE OR REPLACE FUNCTION job_snoozes(q queue, j job_row, o jsonb, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    j.last := @LAST_SNOOZED@;
    PERFORM total_add(q.no, @TOTAL_SNOOZED@, 1);
    IF j.cancelled THEN
        RETURN job_ends(q, j, @JOB_ON_CANCEL@, wall);
    END IF;
    j.state      := @JOB_ON_AGAIN@;
    j.expires_ms := 0;
    j.attempt    := greatest(j.attempt - 1, 0);
    j.run_at_ms  := wall + coalesce((o ->> 'delay_ms')::bigint, 0);
    j.updated_ms := wall;
    RETURN j;
END
$$;

-- A live job that another transaction is about to change, which may stay open for long; NULL seq:
-- there is none. Takes only locks that are free.
CREATE OR REPLACE FUNCTION job_busy(o jsonb, OUT q queue, OUT j job_row)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s  bigint;
    qn int;
BEGIN
    SELECT b.seq, b.queue INTO s, qn
      FROM job b JOIN live_of(b.queue, b.seq) AS l ON true
     WHERE b.tenant = o ->> 'tenant' AND b.id = o ->> 'id';
    IF FOUND AND NOT EXISTS (SELECT FROM job_live l WHERE l.queue = qn AND l.seq = s
                             FOR UPDATE SKIP LOCKED) THEN
        j := job_peek(s);
        SELECT * INTO q FROM queue WHERE no = qn;
    END IF;
END
$$;

-- Heartbeat, finish, fail, snooze.
--
-- The job may be locked by another transaction. If its committed state is not running with this
-- token, it belongs to another claim, and the op is too late however that transaction ends: tokens
-- are not reused. So the reply is given without waiting. If it is running with this token, its
-- worker may be about to finish it in its own transaction. A heartbeat comes together with the
-- renewals of others, so it does not wait for that: it reports the state of the claim, and changes
-- nothing. The other ops wait.
CREATE OR REPLACE FUNCTION job_op(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
    op   text := o ->> 'op';
    head text := '@STATUS_OK@';
    q    queue;
    j    job_row;
    done boolean;
BEGIN
    named := job_busy(o);
    q := named.q;
    j := named.j;
    IF j.state = @JOB_RUNNING@ AND j.token = (o ->> 'fence')::bigint
       AND (op = 'heartbeat' OR now < j.expires_ms) THEN
        IF op = 'heartbeat' THEN
            RETURN NEXT job_head('@STATUS_OK@', now, wall);
            RETURN NEXT job_part(j, q.name);
            RETURN;
        END IF;
    ELSIF j.seq IS NOT NULL THEN
        RETURN QUERY SELECT * FROM job_late(o, d, q, j, now, wall);
        RETURN;
    END IF;
    named := job_named(o, now, wall);
    q := named.q;
    j := named.j;
    IF j.seq IS NULL THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    -- mutant stale_finish_accepted: IF j.state <> @JOB_RUNNING@ OR j.is_parent THEN
    IF j.state <> @JOB_RUNNING@ OR j.is_parent OR j.token <> (o ->> 'fence')::bigint THEN
        RETURN QUERY SELECT * FROM job_late(o, d, q, j, now, wall);
        RETURN;
    END IF;
    CASE op
    WHEN 'heartbeat' THEN
        j := job_beats(q, j, o, now, wall);
        IF j.cancelled THEN
            head := '@STATUS_OK@,"flags":@OUT_CANCEL@,"detail":' || to_json(j.error);
        END IF;
    WHEN 'job_finish' THEN
        j.last := @LAST_FINISHED@;
        j := job_ends(q, j, @JOB_ON_FINISH@, wall);
    WHEN 'job_fail' THEN
        j := job_fails(q, j, o, wall);
    WHEN 'snooze' THEN
        j := job_snoozes(q, j, o, wall);
    END CASE;
    done := job_write(q, j, @JOB_RUNNING@, false, d, wall) IS NULL;
    IF j.state >= @JOB_ENDED@ AND j.parent IS NOT NULL THEN
        done := parent_try_end(j.parent, wall) IS NULL;
    END IF;
    RETURN NEXT job_head(head, now, wall);
    RETURN NEXT job_part(j, q.name);
END
$$;

CREATE OR REPLACE FUNCTION v_heartbeat(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY SELECT * FROM job_op(o, NULL, now, wall); END $$;

CREATE OR REPLACE FUNCTION v_job_finish(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY SELECT * FROM job_op(o, d, now, wall); END $$;

CREATE OR REPLACE FUNCTION v_job_fail(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY SELECT * FROM job_op(o, NULL, now, wall); END $$;

CREATE OR REPLACE FUNCTION v_snooze(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY SELECT * FROM job_op(o, NULL, now, wall); END $$;

-- ---- many finishes at once ----------------------------------------------------------------------
--
-- One statement finishes the jobs without parent and group that are running with their tokens. They
-- need no mutex: their end has no other consequences, and deleting a live row locks it, and checks
-- state and token again if it has just been changed. The same goes for those with a group, once
-- their mutexes are held. The others come afterwards, one by one, through v_job_finish(): the order
-- does not matter, because no finish looks at the job of another one. Of an id that occurs twice,
-- only the first may be done at once.

-- (For jobs that the library has claimed itself: finish_take().)

-- Returns a row for each plain one.
CREATE OR REPLACE FUNCTION finish_plain(os jsonb[], ds bytea[], grouped boolean, now bigint,
                                        wall bigint)
RETURNS TABLE (i int, part text, waker text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        WITH r AS MATERIALIZED (
            SELECT u.i::int AS i, u.o ->> 'tenant' AS tenant, u.o ->> 'id' AS id,
                   (u.o ->> 'fence')::bigint AS token, u.d,
                   row_number() OVER (PARTITION BY u.o ->> 'tenant', u.o ->> 'id'
                                      ORDER BY u.i) AS nth
              FROM unnest(os, ds) WITH ORDINALITY AS u (o, d, i)),
        b AS MATERIALIZED (
            SELECT r.i, r.d, r.token, j.seq, j.queue, j.tenant, j.id, j.priority, j.max_attempts,
                   j.created_ms, j.unique_until_ms,
                   j.unique_key, j.grp, q.name, q.keep_ms, q.group_limit
              FROM r JOIN LATERAL (SELECT * FROM job x WHERE x.tenant = r.tenant AND x.id = r.id
                                   LIMIT 1) AS j ON true
                     JOIN queue q ON q.no = j.queue
             WHERE r.nth = 1 AND j.parent IS NULL AND NOT j.is_parent
               AND (j.grp IS NULL OR grouped)),
        g AS (
            DELETE FROM job_live l USING b
             WHERE l.queue = b.queue AND l.seq = b.seq AND l.lane + 0 = @LANE_CLAIMED@
               AND l.token = b.token AND l.expires_ms > now
            RETURNING b.*, l.run_at_ms, l.started_ms, l.attempt, l.flags, l.progress, l.worker,
                l.error, l.message),
        e AS (
            INSERT INTO job_done (@done_columns@)
            SELECT g.seq, purge_at(g.keep_ms, g.unique_until_ms, wall), g.token, g.run_at_ms,
                   g.started_ms, wall, g.queue, g.attempt,
                   @JOB_ON_FINISH@, @LAST_FINISHED@, g.flags, g.progress, g.worker, g.error,
                   g.message, coalesce(g.d, '')
              FROM g),
        x AS (
            DELETE FROM job_unique u USING g
             WHERE g.unique_key IS NOT NULL AND g.unique_until_ms <= wall AND u.queue = g.queue
               AND u.key = g.unique_key AND u.seq = g.seq),
        y AS (INSERT INTO job_left (n, queue, grp)
              SELECT nextval('ticket_seq'), g.queue, g.grp FROM g
               WHERE g.grp IS NOT NULL AND g.group_limit <> -1),
        t AS (INSERT INTO job_total (queue, what, n)
              SELECT g.queue, @TOTAL_COMPLETED@, count(*) FROM g GROUP BY g.queue)
        SELECT g.i,
               concat('{"queue":', to_json(g.name), ',"id":', to_json(g.id), ',"seq":', g.seq,
                      ',"state":@JOB_ON_FINISH@,"last":@LAST_FINISHED@,"priority":', g.priority,
                      ',"attempt":', g.attempt, ',"max_attempts":', g.max_attempts, ',"progress":',
                      g.progress, ',"token":', g.token,
                      ',"run_at_ms":', g.run_at_ms, ',"created_at_ms":', g.created_ms,
                      ',"started_at_ms":', g.started_ms,
                      ',"updated_at_ms":', wall, ',"completed_at_ms":', wall, ',"worker":',
                      to_json(g.worker),
                      ',"error":' || to_json(nullif(g.error, '')),
                      ',"message":' || to_json(nullif(g.message, '')),
                      ',"group":' || to_json(g.grp), ',"unique_key":' || to_json(g.unique_key),
                      CASE WHEN g.flags & @JOB_FLAG_CANCELLED@ <> 0 THEN ',"cancelled":1' END,
                      '}'),
               concat('[', to_json(g.tenant), ',', to_json(g.id), ',"#job"],',
                      CASE WHEN g.grp IS NOT NULL AND g.group_limit <> -1
                                AND (EXISTS (SELECT FROM job_live l
                                             WHERE l.grp = g.grp
                                               AND l.glane = lane(g.queue, @LANE_BLOCKED@))
                                     OR EXISTS (SELECT FROM job_live l
                                                WHERE l.grp = g.grp
                                                  AND l.glane = lane(g.queue, @LANE_UNDECIDED@)))
                           THEN concat('[', to_json(g.tenant), ',', to_json(g.name),
                                       ',"#queue"],') END)
          FROM g;
END
$$;

-- The rest of a batch, by number: those with a group, under their mutexes, and the others one by
-- one.
CREATE OR REPLACE FUNCTION finish_rest(os jsonb[], ds bytea[], rest int[], now bigint, wall bigint)
RETURNS SETOF job_reply_many
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    few  jsonb[] := ARRAY(SELECT os[i] FROM unnest(rest) AS i);
    done int[]   := '{}';
    x    record;
    k    int;
BEGIN
    PERFORM mutexes_take(ARRAY(SELECT m FROM mutexes_finish_rest(few) AS m));
    FOR x IN SELECT *
        FROM finish_plain(few, ARRAY(SELECT ds[i] FROM unnest(rest) AS i), true, now, wall) LOOP
        RETURN NEXT ROW(rest[x.i], concat('{"status":@STATUS_OK@,"now_ms":', now, ',"wall_ms":',
                                          wall, '}'), NULL, NULL)::job_reply_many;
        RETURN NEXT ROW(rest[x.i], x.part, NULL, NULL)::job_reply_many;
        PERFORM wakes_add(x.waker);
        done := done || rest[x.i];
    END LOOP;
    FOREACH k IN ARRAY rest LOOP
        IF NOT k = ANY (done) THEN
            RETURN QUERY SELECT k, v.* FROM v_job_finish(os[k], ds[k], now, wall) AS v;
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION job_finish_many(os jsonb[], ds bytea[], now bigint, wall bigint)
RETURNS SETOF job_reply_many
LANGUAGE plpgsql VOLATILE SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    head  text      := concat('{"status":@STATUS_OK@,"now_ms":', now, ',"wall_ms":', wall, '}');
    woken text      := '';
    done  boolean[] := array_fill(false, ARRAY[cardinality(os)]);
    n     int       := 0;
    x     record;
BEGIN
    FOR x IN SELECT * FROM finish_plain(os, ds, false, now, wall) LOOP
        RETURN NEXT ROW(x.i, head, NULL, NULL)::job_reply_many;
        RETURN NEXT ROW(x.i, x.part, NULL, NULL)::job_reply_many;
        woken     := woken || x.waker;
        done[x.i] := true;
        n         := n + 1;
    END LOOP;
    PERFORM wakes_add(woken);
    IF random() < 0.004 THEN
        PERFORM total_compact(b.queue) FROM job b
                WHERE b.tenant = os[1] ->> 'tenant' AND b.id = os[1] ->> 'id';
    END IF;
    IF n < cardinality(os) THEN
        RETURN QUERY SELECT *
                     FROM finish_rest(os, ds, ARRAY(SELECT u.i::int
                                                    FROM unnest(done) WITH ORDINALITY AS u (done, i)
                                                   WHERE NOT u.done),
                                               now, wall);
    END IF;
END
$$;

-- ---- operators ----------------------------------------------------------------------------------

-- Cancel one job that is not a parent; does nothing to one that has ended.
CREATE OR REPLACE FUNCTION job_cancels(q queue, j job_row, o jsonb, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at_once boolean := coalesce((o ->> 'flags')::int, 0) & @FLAG_CANCEL_NOW@ <> 0;
    was     int     := j.state;
    blocked boolean := j.blocked;
BEGIN
    IF j.state < @JOB_ENDED@ AND NOT (j.state = @JOB_RUNNING@ AND j.cancelled AND NOT at_once) THEN
        IF NOT j.cancelled THEN -- the first reason stays
            j.error := coalesce(nullif(o ->> 'text', ''), 'cancelled');
        END IF;
        j.cancelled := true;
        IF j.state <> @JOB_RUNNING@ OR at_once THEN
            IF j.state = @JOB_RUNNING@ THEN
                j.last := @LAST_CANCELLED@;
            END IF;
            j := job_ends(q, j, @JOB_ON_CANCEL@, wall);
        END IF;
        j.updated_ms := wall;
    END IF;
    PERFORM job_write(q, j, was, blocked, NULL, wall);
    RETURN j;
END
$$;

-- A parent is sealed, its live children are cancelled, and it ends with the last of them.
CREATE OR REPLACE FUNCTION parent_cancels(q queue, p job_row, o jsonb, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    x  record;
    cq queue;
    c  job_row;
BEGIN
    IF NOT p.cancelled THEN
        p.cancelled  := true;
        p.sealed     := true;
        p.updated_ms := wall;
        p.error      := coalesce(nullif(o ->> 'text', ''), 'cancelled');
    END IF;
    PERFORM job_write(q, p, @JOB_RUNNING@, false, NULL, wall);
    FOR x IN SELECT l.queue, l.seq FROM job_live l WHERE l.parent = p.seq ORDER BY l.seq LOOP
        c := job_load(x.queue, x.seq);
        IF c.state < @JOB_ENDED@ THEN
            SELECT * INTO cq FROM queue WHERE no = x.queue;
            PERFORM job_alone(cq, c);
            SELECT * INTO cq FROM queue WHERE no = x.queue;
            PERFORM job_cancels(cq, c, o, wall);
        END IF;
    END LOOP;
    RETURN end_parent(q, p, wall);
END
$$;

CREATE OR REPLACE FUNCTION v_job_cancel(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
    q queue;
    j job_row;
BEGIN
    named := job_named(o, now, wall);
    q := named.q;
    j := named.j;
    IF j.seq IS NULL THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    IF j.state = @JOB_RUNNING@ THEN -- its worker, or those of its children, are told
        PERFORM wake_holders();
    END IF;
    IF j.state < @JOB_ENDED@ AND j.is_parent THEN
        j := parent_cancels(q, j, o, wall);
    ELSIF j.state < @JOB_ENDED@ THEN
        j := job_cancels(q, j, o, wall);
        IF j.state >= @JOB_ENDED@ THEN
            PERFORM parent_try_end(j.parent, wall);
        END IF;
    END IF;
    RETURN NEXT job_head('@STATUS_OK@', now, wall);
    RETURN NEXT job_part(j, q.name);
END
$$;

CREATE OR REPLACE FUNCTION v_job_retry(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
    q       queue;
    j       job_row;
    keeper  job_row;
    was     int;
    blocked boolean;
BEGIN
    named := job_named(o, now, wall);
    q := named.q;
    j := named.j;
    IF j.seq IS NULL THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    was     := j.state;
    blocked := j.blocked;
    IF j.is_parent OR j.state IN (@JOB_RUNNING@, @JOB_COMPLETED@) THEN
        RETURN NEXT job_head(concat('@STATUS_STATE@,"say":"no_retry_',
                                    CASE WHEN j.is_parent THEN 'parent'
                                         WHEN j.state = @JOB_RUNNING@ THEN 'running'
                                                                ELSE 'completed' END,
                                                                    '"'), now, wall);
        RETURN NEXT job_part(j, q.name);
        RETURN;
    END IF;
    -- it becomes live again, and needs its key back
    IF j.state IN (@JOB_FAILED@, @JOB_CANCELLED@) AND j.unique_key IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(mutex_unique(j.tenant, q.name, j.unique_key));
        keeper := unique_keeper(j.queue, j.unique_key, wall);
        IF keeper.seq <> j.seq THEN
            RETURN NEXT job_head('@STATUS_DUPLICATE@', now, wall);
            RETURN NEXT job_part(keeper, q.name);
            RETURN;
        END IF;
    END IF;
    IF j.state IN (@JOB_FAILED@, @JOB_CANCELLED@) THEN
        j.attempt      := 0;
        j.cancelled    := false;
        j.completed_ms := 0;
        j.purge_at_ms  := 0;
    END IF;
    IF j.state IN (@JOB_FAILED@, @JOB_CANCELLED@) OR j.state = @JOB_SCHEDULED@
       AND j.run_at_ms > wall THEN
        j.state      := @JOB_ON_RETRY@;
        j.run_at_ms  := wall;
        j.updated_ms := wall;
    END IF;
    IF was <> @JOB_READY@ THEN
        PERFORM job_write(q, j, was, blocked, NULL, wall);
    END IF;
    RETURN NEXT job_head('@STATUS_OK@', now, wall);
    RETURN NEXT job_part(j, q.name);
END
$$;

CREATE OR REPLACE FUNCTION v_job_seal(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
    q queue;
    j job_row;
BEGIN
    named := job_named(o, now, wall);
    q := named.q;
    j := named.j;
    IF j.seq IS NULL THEN
        RETURN NEXT ROW('{"status":@STATUS_NOT_FOUND@}', NULL, NULL)::job_reply;
        RETURN;
    END IF;
    IF NOT j.is_parent THEN
        RETURN NEXT job_head('@STATUS_STATE@,"say":"not_a_parent"', now, wall);
        RETURN NEXT job_part(j, q.name);
        RETURN;
    END IF;
    IF j.state < @JOB_ENDED@ THEN
        IF NOT j.sealed THEN
            j.sealed     := true;
            j.updated_ms := wall;
        END IF;
        PERFORM job_write(q, j, @JOB_RUNNING@, false, NULL, wall);
        j := end_parent(q, j, wall);
    END IF;
    RETURN NEXT job_head('@STATUS_OK@', now, wall);
    RETURN NEXT job_part(j, q.name);
END
$$;
