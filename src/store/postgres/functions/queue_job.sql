-- queue_job: rows of jobs: reading them, what becomes of one, and writing that.
--
-- What becomes of a job is decided as src/core/job.c says. job_write() is the only one that moves a single job between job_live and
-- job_done and between lanes, so what follows from a change stands in one place: its group, its unique key, who is woken. (Pushes, claims and
-- finishes of many plain jobs, where nothing of that follows, are statements of their own.)
--
-- (In functions that are called often, "done := f(…) IS NULL" stands for PERFORM f(…): an expression costs a tenth of a statement.)
--
-- States: 1 SCHEDULED, 2 READY, 3 RUNNING, 4 COMPLETED, 5 FAILED, 6 CANCELLED. `last`: 1 finished, 2 failed, 3 snoozed, 4 expired, 5 cancelled.

-- ---- reading ---------------------------------------------------------------------------------------------------------

-- A job's row among those that are live, or among those that have ended. Plans are kept when tables have grown, and for a small table the planner
-- likes to look at all of it; a join, or one index for three states, would leave it the choice. A LIMIT, and one value for each column, do not.
CREATE OR REPLACE FUNCTION live_of(qn int, s bigint) RETURNS SETOF job_live
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM job_live l WHERE l.queue = qn AND l.seq = s LIMIT 1
$$;

CREATE OR REPLACE FUNCTION done_of(qn int, s bigint) RETURNS SETOF job_done
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = 4 AND e.seq = s
    UNION ALL
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = 5 AND e.seq = s
    UNION ALL
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = 6 AND e.seq = s
    LIMIT 1
$$;

-- A job by its number, to be changed: its row is locked, and what was read stays true until the commit. NULL seq: there is none.
CREATE OR REPLACE FUNCTION job_load(qn int, s bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    st int;
    j  job_row;
BEGIN
    FOR i IN 1 .. 100 LOOP
        SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent, b.n_children, b.created_ms,
               b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
               CASE l.lane & 7 WHEN 0 THEN 3 WHEN 1 THEN 1 WHEN 3 THEN 3 ELSE 2 END, l.lane & 7 >= 4, l.last, l.attempt, l.token,
               l.flags & 1 <> 0, l.flags & 2 <> 0, l.flags & 4 <> 0, l.progress, l.run_at_ms, l.lease_ms, l.expires_ms,
               l.started_ms, l.updated_ms, 0, 0, l.worker, l.error, l.message
          INTO j
          FROM job b JOIN job_live l ON l.queue = b.queue AND l.seq = b.seq
         WHERE l.queue = qn AND l.seq = s
           FOR UPDATE OF l;
        EXIT WHEN FOUND;
        st := (SELECT e.state FROM done_of(qn, s) AS e);
        SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent, b.n_children, b.created_ms,
               b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
               e.state, false, e.last, e.attempt, e.token,
               e.flags & 1 <> 0, e.flags & 2 <> 0, e.flags & 4 <> 0, e.progress, e.run_at_ms, 0, 0,
               e.started_ms, e.completed_ms, e.completed_ms, e.purge_at_ms, e.worker, e.error, e.message
          INTO j
          FROM job b JOIN job_done e ON e.queue = b.queue AND e.seq = b.seq
         WHERE e.queue = qn AND e.state = st AND e.seq = s
           FOR UPDATE OF e;
        EXIT WHEN FOUND OR NOT EXISTS (SELECT FROM job WHERE seq = s);
        -- It changed sides between the two looks.
    END LOOP;
    RETURN j;
END
$$;

-- The same by its id.
CREATE OR REPLACE FUNCTION job_find(t text, i text) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    qn int;
    s  bigint;
    j  job_row;
BEGIN
    LOOP -- ends: only a purge and a push between the two looks let it go round
        SELECT b.queue, b.seq INTO qn, s FROM job b WHERE b.tenant = t AND b.id = i;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        j := job_load(qn, s);
        IF j.seq IS NOT NULL THEN
            RETURN j;
        END IF;
    END LOOP;
END
$$;

-- A job as it is now, to be shown: one snapshot, in which it is live or has ended. Locks nothing.
CREATE OR REPLACE FUNCTION job_peek(s bigint) RETURNS job_row
LANGUAGE plpgsql STABLE AS $$
DECLARE
    j job_row;
BEGIN
    SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent, b.n_children, b.created_ms,
           b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
           coalesce(e.state, CASE l.lane & 7 WHEN 0 THEN 3 WHEN 1 THEN 1 WHEN 3 THEN 3 ELSE 2 END), coalesce(l.lane & 7 >= 4, false),
           coalesce(l.last, e.last), coalesce(l.attempt, e.attempt), coalesce(l.token, e.token),
           coalesce(l.flags, e.flags) & 1 <> 0, coalesce(l.flags, e.flags) & 2 <> 0, coalesce(l.flags, e.flags) & 4 <> 0,
           coalesce(l.progress, e.progress), coalesce(l.run_at_ms, e.run_at_ms), coalesce(l.lease_ms, 0), coalesce(l.expires_ms, 0),
           coalesce(l.started_ms, e.started_ms), coalesce(l.updated_ms, e.completed_ms), coalesce(e.completed_ms, 0),
           coalesce(e.purge_at_ms, 0), coalesce(l.worker, e.worker), coalesce(l.error, e.error), coalesce(l.message, e.message)
      INTO j
      FROM job b
      LEFT JOIN live_of(b.queue, b.seq) AS l ON true
      LEFT JOIN done_of(b.queue, b.seq) AS e ON true
     WHERE b.seq = s;
    RETURN j;
END
$$;

-- Is this job live? NULL, if none is named. The children of a live parent, ended or not, are not purged: asked under the parent's mutex.
CREATE OR REPLACE FUNCTION job_lives(s bigint) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN EXISTS (SELECT FROM job b JOIN live_of(b.queue, b.seq) AS l ON true WHERE b.seq = s);
END
$$;

-- The children of a parent, counted from their rows.
CREATE OR REPLACE FUNCTION children_json(s bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT concat('"n_children":', count(*), ',"n_children_completed":', count(*) FILTER (WHERE e.state = 4),
                          ',"n_children_failed":', count(*) FILTER (WHERE e.state IN (5, 6)))
              FROM job c LEFT JOIN done_of(c.queue, c.seq) AS e ON true
             WHERE c.parent = s);
END
$$;

-- ---- showing ---------------------------------------------------------------------------------------------------------

-- A job as a part of an answer. What is empty is left out: NULL || text is NULL, and concat() passes over that.
CREATE OR REPLACE FUNCTION job_json(j job_row, k text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN concat(
        '{"queue":', to_json(k), ',"id":', to_json(j.id), ',"seq":', j.seq, ',"state":', j.state, ',"last":', j.last,
        ',"priority":', j.priority, ',"attempt":', j.attempt, ',"max_attempts":', j.max_attempts, ',"progress":', j.progress,
        ',"token":', j.token, ',"expires_ms":', j.expires_ms, ',"run_at_ms":', j.run_at_ms, ',"created_at_ms":', j.created_ms,
        ',"started_at_ms":', j.started_ms, ',"updated_at_ms":', j.updated_ms, ',"completed_at_ms":', j.completed_ms,
        ',"worker":' || to_json(nullif(j.worker, '')), ',"error":' || to_json(nullif(j.error, '')),
        ',"message":' || to_json(nullif(j.message, '')), ',"parent":' || to_json(j.parent_id), ',"group":' || to_json(j.grp),
        ',"unique_key":' || to_json(j.unique_key), CASE WHEN j.cancelled THEN ',"cancelled":1' END,
        CASE WHEN j.is_parent THEN concat(',"is_parent":1,', children_json(j.seq)) END, '}');
END
$$;

-- The head of an answer about a job: its status and what else it says.
CREATE OR REPLACE FUNCTION job_head(says text, now bigint, wall bigint) RETURNS job_reply
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ROW(concat('{"status":', says, ',"now_ms":', now, ',"wall_ms":', wall, '}'), NULL, NULL)::job_reply;
END
$$;

-- The job as it is now, which follows the head.
CREATE OR REPLACE FUNCTION job_part(j job_row, k text) RETURNS job_reply
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ROW(job_json(j, k), NULL, NULL)::job_reply;
END
$$;

-- ---- writing ---------------------------------------------------------------------------------------------------------

-- Which lane of its queue a live job enters.
CREATE OR REPLACE FUNCTION job_kind(j job_row) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE j.state WHEN 1 THEN 1 WHEN 2 THEN CASE WHEN j.blocked THEN 5 ELSE 2 END ELSE CASE WHEN j.is_parent THEN 3 ELSE 0 END END;
END
$$;

-- A job that is live from now on: a new one, or one that was retried.
CREATE OR REPLACE FUNCTION job_live_add(j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    k int := job_kind(j); -- not claimed
BEGIN
    INSERT INTO job_live (seq, lane, ord, at, glane, run_at_ms, expires_ms, lease_ms, token, started_ms, updated_ms, parent, queue,
                          priority, attempt, last, flags, progress, grp, worker, error, message)
    VALUES (j.seq, lane(j.queue, k), CASE k WHEN 1 THEN j.run_at_ms WHEN 3 THEN 0 ELSE j.priority END,
            CASE WHEN k IN (2, 5) THEN j.run_at_ms ELSE 0 END, CASE WHEN j.grp IS NOT NULL THEN lane(j.queue, k) END,
            j.run_at_ms, 0, j.lease_ms, j.token, j.started_ms, j.updated_ms, j.parent, j.queue,
            j.priority, j.attempt, j.last, j.cancelled::int + 2 * j.silent::int + 4 * j.sealed::int, j.progress, j.grp,
            j.worker, j.error, j.message);
    IF j.unique_key IS NOT NULL THEN -- under the key's mutex: nobody else takes it now
        INSERT INTO job_unique (queue, key, seq) VALUES (j.queue, j.unique_key, j.seq)
            ON CONFLICT (queue, key) DO UPDATE SET seq = excluded.seq;
    END IF;
END
$$;

-- What has changed of a job that is still live. One that is claimed was so before; one that is READY was not.
CREATE OR REPLACE FUNCTION job_live_save(j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    k int := job_kind(j);
BEGIN
    UPDATE job_live
       SET lane = CASE k WHEN 0 THEN 0 ELSE lane(j.queue, k) END,
           ord = CASE k WHEN 0 THEN least(ord, j.expires_ms) WHEN 1 THEN j.run_at_ms WHEN 3 THEN 0 ELSE j.priority END,
           at = CASE WHEN k IN (2, 5) THEN j.run_at_ms ELSE 0 END, glane = CASE WHEN j.grp IS NOT NULL THEN lane(j.queue, k) END,
           run_at_ms = j.run_at_ms, expires_ms = j.expires_ms, lease_ms = j.lease_ms, token = j.token, started_ms = j.started_ms,
           updated_ms = j.updated_ms, attempt = j.attempt, last = j.last,
           flags = j.cancelled::int + 2 * j.silent::int + 4 * j.sealed::int, progress = j.progress, worker = j.worker, error = j.error,
           message = j.message
     WHERE queue = j.queue AND seq = j.seq;
END
$$;

-- A live job has ended.
CREATE OR REPLACE FUNCTION job_done_add(j job_row, result bytea, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM job_live WHERE queue = j.queue AND seq = j.seq;
    INSERT INTO job_done (seq, purge_at_ms, token, run_at_ms, started_ms, completed_ms, queue, attempt, state, last, flags,
                          progress, worker, error, message, result)
    VALUES (j.seq, j.purge_at_ms, j.token, j.run_at_ms, j.started_ms, j.completed_ms, j.queue, j.attempt, j.state, j.last,
            j.cancelled::int + 2 * j.silent::int + 4 * j.sealed::int, j.progress, j.worker, j.error, j.message,
            coalesce(result, ''));
    IF j.unique_key IS NOT NULL AND j.unique_until_ms <= wall THEN -- unless another one has taken it since
        DELETE FROM job_unique u WHERE u.queue = j.queue AND u.key = j.unique_key AND u.seq = j.seq;
    END IF;
END
$$;

-- Write what has become of a job, which was in state `was` (0: it is new) before, and what follows from it for its group, its unique key
-- and those who wait. `result` is of one that is COMPLETED now. The parent is not looked at: see parent_look().
CREATE OR REPLACE FUNCTION job_write(q queue, j job_row, was int, was_blocked boolean, result bytea, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    j.blocked := j.grp IS NOT NULL AND q.group_limit <> -1; -- of one that is READY now
    IF was = 0 THEN
        done := job_live_add(j) IS NULL;
    ELSIF was >= 4 THEN
        DELETE FROM job_done e WHERE e.queue = j.queue AND e.state = was AND e.seq = j.seq;
        done := job_live_add(j) IS NULL;
    ELSIF j.state >= 4 THEN
        done := job_done_add(j, result, wall) IS NULL;
    ELSE
        done := job_live_save(j) IS NULL;
    END IF;
    IF j.grp IS NOT NULL AND (was = 3 OR was = 2 AND NOT was_blocked) AND j.state <> 3 THEN
        done := group_leave(q, j.grp) IS NULL;
    END IF;
    IF q.marked AND j.state = 1 THEN
        done := mark_lower(q, 1, j.run_at_ms, 0, j.seq) IS NULL;
    ELSIF q.marked AND j.state = 2 THEN
        done := mark_lower(q, CASE WHEN j.blocked THEN 5 ELSE 2 END, j.priority, j.run_at_ms, j.seq) IS NULL;
    END IF;
    IF was <> 0 THEN -- nobody waits for a new one yet
        done := wake(q.tenant, j.id, '#job') IS NULL;
    END IF;
    IF j.state IN (1, 2) THEN
        done := wake(q.tenant, q.name, '#queue') IS NULL;
    END IF;
END
$$;

-- ---- what becomes of a job ---------------------------------------------------------------------------------------------

-- When an ended job may be purged: as its queue says, and not while it keeps its unique key.
CREATE OR REPLACE FUNCTION purge_at(keep bigint, unique_until bigint, wall bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE keep WHEN -1 THEN 9223372036854775807 ELSE greatest(wall + keep, unique_until) END
$$;

-- It has ended in this state.
CREATE OR REPLACE FUNCTION job_ends(q queue, j job_row, s int, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    j.state        := s;
    j.expires_ms   := 0;
    j.completed_ms := wall;
    j.updated_ms   := wall;
    j.purge_at_ms  := CASE WHEN j.parent IS NOT NULL AND job_lives(j.parent) THEN 9223372036854775807
                           ELSE purge_at(CASE s WHEN 5 THEN q.keep_dead_ms ELSE q.keep_ms END, j.unique_until_ms, wall) END;
    done := total_add(q.no, CASE s WHEN 4 THEN 3 WHEN 5 THEN 5 ELSE 7 END, 1) IS NULL;
    RETURN j;
END
$$;

-- Recover a job whose claim is dead; nothing happens to others.
CREATE OR REPLACE FUNCTION job_recover(q queue, j job_row, now bigint, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF j.state <> 3 OR j.is_parent OR now < j.expires_ms THEN
        RETURN j;
    END IF;
    j.last := 4;
    PERFORM total_add(q.no, 8, 1);
    IF j.cancelled THEN
        j := job_ends(q, j, 6, wall);
    ELSE
        IF j.attempt < j.max_attempts THEN
            j.state      := 2;
            j.expires_ms := 0;
            j.updated_ms := wall;
        ELSE
            j := job_ends(q, j, 5, wall);
        END IF;
        j.error := CASE q.strategy WHEN 2 THEN 'Execution timeout' ELSE 'Processing timeout' END || ' - worker may have crashed';
    END IF;
    PERFORM job_write(q, j, 3, false, NULL, wall);
    IF j.state >= 4 THEN
        PERFORM parent_look(j.parent, wall);
    END IF;
    RETURN j;
END
$$;

-- Backoff before the attempt after `attempt`: doubled each time, spread by a hash of id and attempt that is the same on all engines.
CREATE OR REPLACE FUNCTION backoff_ms(q queue, i text, attempt int) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    base bigint := q.backoff_ms;
    h    bigint := attempt % 16777213;
    id   bytea  := convert_to(i, 'UTF8');
BEGIN
    FOR k IN 0 .. length(id) - 1 LOOP
        h := (h * 257 + get_byte(id, k)) % 16777213;
    END LOOP;
    FOR k IN 2 .. attempt LOOP
        EXIT WHEN base >= q.backoff_max_ms;
        base := base * 2;
    END LOOP;
    RETURN greatest(least(base, q.backoff_max_ms) * (750 + h % 501) / 1000, 1);
END
$$;

-- ---- parents -----------------------------------------------------------------------------------------------------------
--
-- All under the mutex of the parent's id, which everybody holds who changes a child of it: two last children that end at the same time
-- come one after the other, and the second one sees the end of the first.

-- How many children a live parent has got: they are numbered, and not purged while it lives. (With max() it is the planner's choice to
-- look at the last one or at all of them, and it thinks that there are few.)
CREATE OR REPLACE FUNCTION children_came(s bigint) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT c.ordinal FROM job c WHERE c.parent = s ORDER BY c.ordinal DESC LIMIT 1), 0);
END
$$;

-- Does a parent end now? Whether it can is found out by two looks, so that n children do not cost n * n / 2 rows; what came of them is
-- counted from their rows in one statement. A live child is looked for from the last one on: most end in the order in which they came, and the
-- rows of those that have ended in this transaction would still have to be passed.
CREATE OR REPLACE FUNCTION parent_settle(q queue, p job_row, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_all    bigint;
    n_failed bigint;
    x        record;
BEGIN
    IF p.state >= 4 OR (SELECT c.seq FROM job_live c WHERE c.parent = p.seq ORDER BY c.seq + 0 DESC LIMIT 1) IS NOT NULL
       OR NOT (p.sealed OR p.n_children > 0 AND children_came(p.seq) >= p.n_children) THEN
        RETURN p;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE e.state IN (5, 6)) INTO n_all, n_failed
      FROM job c JOIN done_of(c.queue, c.seq) AS e ON true
     WHERE c.parent = p.seq;
    IF p.cancelled THEN
        p := job_ends(q, p, 6, wall);
    ELSIF n_failed > 0 THEN
        p.error := format('%s of %s children failed', n_failed, n_all);
        p := job_ends(q, p, 5, wall);
    ELSE
        p := job_ends(q, p, 4, wall);
    END IF;
    PERFORM job_write(q, p, 3, false, NULL, wall);
    -- From now on its children may be purged, each as its own queue says.
    FOR x IN SELECT c.queue, c.seq, c.unique_until_ms, e.state, cq.keep_ms, cq.keep_dead_ms
               FROM job c JOIN done_of(c.queue, c.seq) AS e ON true JOIN queue cq ON cq.no = c.queue
              WHERE c.parent = p.seq LOOP
        UPDATE job_done e
           SET purge_at_ms = purge_at(CASE x.state WHEN 5 THEN x.keep_dead_ms ELSE x.keep_ms END, x.unique_until_ms, wall)
         WHERE e.queue = x.queue AND e.state = x.state AND e.seq = x.seq;
    END LOOP;
    RETURN p;
END
$$;

-- A child has ended: does its parent (a seq, NULL = none), too?
CREATE OR REPLACE FUNCTION parent_look(s bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q queue;
    p job_row;
BEGIN
    IF s IS NULL THEN
        RETURN;
    END IF;
    SELECT x.* INTO q FROM queue x WHERE x.no = (SELECT b.queue FROM job b WHERE b.seq = s);
    IF FOUND THEN
        p := job_load(q.no, s);
        IF p.is_parent THEN -- it may have been purged
            PERFORM parent_settle(q, p, wall);
        END IF;
    END IF;
END
$$;
