-- queue_job: rows of jobs: reads them, decides their next state, and writes it.
--
-- The decisions follow src/core/job.c. Only job_write() moves a single job between job_live and
-- job_done and between lanes, so the consequences of a change are handled in one place: its group,
-- its unique key, whom to wake, how many jobs are in each state. (Pushes, claims and finishes of
-- many plain jobs, which have none of these consequences, are separate statements.)
--
-- (In functions that are called often, "done := f(…) IS NULL" stands for PERFORM f(…): an
-- expression costs a tenth of a statement.)
--
-- The states are those of il_job_state; `last` is an enum il__job_last.

-- ---- reading ------------------------------------------------------------------------------------

-- The row of a live job, or of an ended one. Plans are kept when tables have grown, and for a small
-- table the planner prefers a full scan; a join, or one index for three states, would leave it that
-- choice. A LIMIT, and one value for each column, do not.
CREATE OR REPLACE FUNCTION live_of(qn int, s bigint) RETURNS SETOF job_live
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM job_live l WHERE l.queue = qn AND l.seq = s LIMIT 1
$$;

CREATE OR REPLACE FUNCTION done_of(qn int, s bigint) RETURNS SETOF job_done
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = @JOB_COMPLETED@ AND e.seq = s
    UNION ALL
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = @JOB_FAILED@ AND e.seq = s
    UNION ALL
    SELECT * FROM job_done e WHERE e.queue = qn AND e.state = @JOB_CANCELLED@ AND e.seq = s
    LIMIT 1
$$;

-- A job by its number, to be changed: its row is locked, and what was read stays true until the
-- commit. NULL seq: it does not exist.
CREATE OR REPLACE FUNCTION job_load(qn int, s bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    st int;
    j  job_row;
BEGIN
    FOR i IN 1 .. 100 LOOP
        SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent,
               b.n_children, b.created_ms,
               b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
               @state_of_lane@, l.lane & 7 >= @LANE_BLOCKED@, l.last, l.attempt, l.token,
               l.flags & @JOB_FLAG_CANCELLED@ <> 0, l.flags & @JOB_FLAG_SILENT@ <> 0,
               l.flags & @JOB_FLAG_SEALED@ <> 0, l.progress, l.run_at_ms, l.lease_ms, l.expires_ms,
               l.started_ms, l.updated_ms, 0, 0, l.worker, l.error, l.message
          INTO j
          FROM job b JOIN job_live l ON l.queue = b.queue AND l.seq = b.seq
         WHERE l.queue = qn AND l.seq = s
           FOR UPDATE OF l;
        EXIT WHEN FOUND;
        st := (SELECT e.state FROM done_of(qn, s) AS e);
        SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent,
               b.n_children, b.created_ms,
               b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
               e.state, false, e.last, e.attempt, e.token,
               e.flags & @JOB_FLAG_CANCELLED@ <> 0, e.flags & @JOB_FLAG_SILENT@ <> 0,
               e.flags & @JOB_FLAG_SEALED@ <> 0, e.progress, e.run_at_ms, 0, 0, e.started_ms,
               e.completed_ms, e.completed_ms, e.purge_at_ms, e.worker, e.error, e.message
          INTO j
          FROM job b JOIN job_done e ON e.queue = b.queue AND e.seq = b.seq
         WHERE e.queue = qn AND e.state = st AND e.seq = s
           FOR UPDATE OF e;
        EXIT WHEN FOUND OR NOT EXISTS (SELECT FROM job WHERE seq = s);
        -- It changed tables between the two lookups.
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

-- The current job, to be shown: one snapshot, in which it is live or has ended. Locks nothing.
CREATE OR REPLACE FUNCTION job_peek(s bigint) RETURNS job_row
LANGUAGE plpgsql STABLE AS $$
DECLARE
    j job_row;
BEGIN
    SELECT b.seq, b.queue, b.tenant, b.id, b.priority, b.max_attempts, b.is_parent, b.n_children,
           b.created_ms,
           b.unique_until_ms, b.parent, b.parent_id, b.grp, b.unique_key,
           coalesce(e.state, @state_of_lane@), coalesce(l.lane & 7 >= @LANE_BLOCKED@, false),
           coalesce(l.last, e.last), coalesce(l.attempt, e.attempt), coalesce(l.token, e.token),
           coalesce(l.flags, e.flags) & @JOB_FLAG_CANCELLED@ <> 0,
           coalesce(l.flags, e.flags) & @JOB_FLAG_SILENT@ <> 0,
           coalesce(l.flags, e.flags) & @JOB_FLAG_SEALED@ <> 0,
           coalesce(l.progress, e.progress), coalesce(l.run_at_ms, e.run_at_ms),
           coalesce(l.lease_ms, 0), coalesce(l.expires_ms, 0),
           coalesce(l.started_ms, e.started_ms), coalesce(l.updated_ms, e.completed_ms),
           coalesce(e.completed_ms, 0),
           coalesce(e.purge_at_ms, 0), coalesce(l.worker, e.worker), coalesce(l.error, e.error),
           coalesce(l.message, e.message)
      INTO j
      FROM job b
      LEFT JOIN live_of(b.queue, b.seq) AS l ON true
      LEFT JOIN done_of(b.queue, b.seq) AS e ON true
     WHERE b.seq = s;
    RETURN j;
END
$$;

-- Is this job live? NULL if none is named. The children of a live parent, ended or not, are not
-- purged: call it under the parent's mutex.
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
    RETURN (SELECT concat('"n_children":', count(*), ',"n_children_completed":',
                          count(*) FILTER (WHERE e.state = @JOB_COMPLETED@),
                          ',"n_children_failed":',
                          count(*) FILTER (WHERE e.state IN (@JOB_FAILED@, @JOB_CANCELLED@)))
              FROM job c LEFT JOIN done_of(c.queue, c.seq) AS e ON true
             WHERE c.parent = s);
END
$$;

-- ---- showing ------------------------------------------------------------------------------------

-- A job as a part of a reply. Empty fields are left out: NULL || text is NULL, and concat() skips
-- NULL.
CREATE OR REPLACE FUNCTION job_json(j job_row, k text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN concat(
        '{"queue":', to_json(k), ',"id":', to_json(j.id), ',"seq":', j.seq, ',"state":', j.state,
        ',"last":', j.last,
        ',"priority":', j.priority, ',"attempt":', j.attempt, ',"max_attempts":', j.max_attempts,
        ',"progress":', j.progress,
        ',"token":', j.token, ',"expires_ms":', j.expires_ms, ',"run_at_ms":', j.run_at_ms,
        ',"created_at_ms":', j.created_ms,
        ',"started_at_ms":', j.started_ms, ',"updated_at_ms":', j.updated_ms, ',"completed_at_ms":',
        j.completed_ms,
        ',"worker":' || to_json(nullif(j.worker, '')), ',"error":' || to_json(nullif(j.error, '')),
        ',"message":' || to_json(nullif(j.message, '')), ',"parent":' || to_json(j.parent_id),
        ',"group":' || to_json(j.grp),
        ',"unique_key":' || to_json(j.unique_key), CASE WHEN j.cancelled THEN ',"cancelled":1' END,
        CASE WHEN j.is_parent THEN concat(',"is_parent":1,', children_json(j.seq)) END, '}');
END
$$;

-- The head of a reply about a job: its status and other fields.
CREATE OR REPLACE FUNCTION job_head(says text, now bigint, wall bigint) RETURNS job_reply
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ROW(concat('{"status":', says, ',"now_ms":', now, ',"wall_ms":', wall, '}'),
               NULL, NULL)::job_reply;
END
$$;

-- The current job, which follows the head.
CREATE OR REPLACE FUNCTION job_part(j job_row, k text) RETURNS job_reply
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ROW(job_json(j, k), NULL, NULL)::job_reply;
END
$$;

-- ---- writing ------------------------------------------------------------------------------------

-- The lane of its queue that a live job enters.
CREATE OR REPLACE FUNCTION job_kind(j job_row) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE j.state WHEN @JOB_SCHEDULED@ THEN @LANE_SCHEDULED@
                        WHEN @JOB_READY@ THEN CASE WHEN j.blocked THEN @LANE_UNDECIDED@
                                                   ELSE @LANE_READY@ END
                        ELSE CASE WHEN j.is_parent THEN @LANE_PARENT@ ELSE @LANE_CLAIMED@ END END;
END
$$;

-- Add a live job: a new one, or one that was retried.
CREATE OR REPLACE FUNCTION job_live_add(j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    k int := job_kind(j); -- not claimed
BEGIN
    INSERT INTO job_live (seq, lane, ord, at, glane, run_at_ms, expires_ms, lease_ms, token,
                          started_ms, updated_ms, parent, queue,
                          priority, attempt, bytes, last, flags, progress, grp, worker, error,
                          message)
    VALUES (j.seq, lane(j.queue, k), CASE k WHEN @LANE_SCHEDULED@ THEN j.run_at_ms
                                          WHEN @LANE_PARENT@ THEN 0 ELSE j.priority END,
            CASE WHEN k IN (@LANE_READY@, @LANE_UNDECIDED@) THEN j.run_at_ms ELSE 0 END,
            CASE WHEN j.grp IS NOT NULL THEN lane(j.queue, k) END,
            j.run_at_ms, 0, j.lease_ms, j.token, j.started_ms, j.updated_ms, j.parent, j.queue,
            j.priority, j.attempt, (SELECT length(b.payload) FROM job b WHERE b.seq = j.seq),
            j.last,
            @job_flags@, j.progress, j.grp, j.worker, j.error, j.message);
    IF j.unique_key IS NOT NULL THEN -- under the key's mutex: nobody else takes it now
        INSERT INTO job_unique (queue, key, seq) VALUES (j.queue, j.unique_key, j.seq)
            ON CONFLICT (queue, key) DO UPDATE SET seq = excluded.seq;
    END IF;
END
$$;

-- Update a job that is still live. If it is claimed, it was so before; if it is READY, it was not.
CREATE OR REPLACE FUNCTION job_live_save(j job_row) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    k int := job_kind(j);
BEGIN
    UPDATE job_live
       SET lane = CASE k WHEN @LANE_CLAIMED@ THEN @LANE_CLAIMED@ ELSE lane(j.queue, k) END,
           ord = CASE k WHEN @LANE_CLAIMED@ THEN least(ord, j.expires_ms)
                      WHEN @LANE_SCHEDULED@ THEN j.run_at_ms
                      WHEN @LANE_PARENT@ THEN 0 ELSE j.priority END,
           at = CASE WHEN k IN (@LANE_READY@, @LANE_UNDECIDED@) THEN j.run_at_ms ELSE 0 END,
           glane = CASE WHEN j.grp IS NOT NULL THEN lane(j.queue, k) END,
           run_at_ms = j.run_at_ms, expires_ms = j.expires_ms, lease_ms = j.lease_ms,
           token = j.token, started_ms = j.started_ms,
           updated_ms = j.updated_ms, attempt = j.attempt, last = j.last,
           flags = @job_flags@,
           progress = j.progress, worker = j.worker, error = j.error, message = j.message
     WHERE queue = j.queue AND seq = j.seq;
END
$$;

-- A live job has ended.
CREATE OR REPLACE FUNCTION job_done_add(j job_row, result bytea, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM job_live WHERE queue = j.queue AND seq = j.seq;
    INSERT INTO job_done (@done_columns@)
    VALUES (j.seq, j.purge_at_ms, j.token, j.run_at_ms, j.started_ms, j.completed_ms, j.queue,
            j.attempt, j.state, j.last,
            @job_flags@, j.progress, j.worker, j.error, j.message, coalesce(result, ''));
    -- unless another one has taken it since
    IF j.unique_key IS NOT NULL AND j.unique_until_ms <= wall THEN
        DELETE FROM job_unique u WHERE u.queue = j.queue AND u.key = j.unique_key AND u.seq = j.seq;
    END IF;
END
$$;

-- Write the new state of a job that was in state `was` before (JOB_NONE: it is new), and the
-- consequences for its group, its unique key and its waiters. `result` is that of a job that is
-- COMPLETED now. The parent is not updated: see parent_try_end().
CREATE OR REPLACE FUNCTION job_write(q queue, j job_row, was int, was_blocked boolean, result bytea,
                                     wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    j.blocked := j.grp IS NOT NULL AND q.group_limit <> -1; -- of one that is READY now
    IF was = @JOB_NONE@ THEN
        done := job_live_add(j) IS NULL;
    ELSIF was >= @JOB_ENDED@ THEN
        DELETE FROM job_done e WHERE e.queue = j.queue AND e.state = was AND e.seq = j.seq;
        done := job_live_add(j) IS NULL;
    ELSIF j.state >= @JOB_ENDED@ THEN
        done := job_done_add(j, result, wall) IS NULL;
    ELSE
        done := job_live_save(j) IS NULL;
    END IF;
    -- what the totals do not say
    IF was <> j.state
       AND (@JOB_SCHEDULED@ IN (was, j.state)
            OR @JOB_RUNNING@ IN (was, j.state) AND j.state NOT IN (@JOB_COMPLETED@, @JOB_FAILED@)
            OR was >= @JOB_ENDED@) THEN
        done := depth_add(q.no, (j.state = @JOB_SCHEDULED@)::int - (was = @JOB_SCHEDULED@)::int,
                          CASE WHEN j.state IN (@JOB_COMPLETED@, @JOB_FAILED@) THEN 0
                               ELSE (j.state = @JOB_RUNNING@)::int - (was = @JOB_RUNNING@)::int END,
                          (was >= @JOB_ENDED@)::int, -(was = @JOB_FAILED@)::int) IS NULL;
    END IF;
    IF j.grp IS NOT NULL AND (was = @JOB_RUNNING@ OR was = @JOB_READY@ AND NOT was_blocked)
       AND j.state <> @JOB_RUNNING@ THEN
        done := group_leave(q, j.grp) IS NULL;
    END IF;
    IF was <> @JOB_NONE@ THEN -- nobody waits for a new one yet
        done := wake(q.tenant, j.id, '#job') IS NULL;
    END IF;
    IF j.state IN (@JOB_SCHEDULED@, @JOB_READY@) THEN
        done := wake(q.tenant, q.name, '#queue') IS NULL;
    END IF;
END
$$;

-- ---- what becomes of a job ----------------------------------------------------------------------

-- When an ended job may be purged: according to its queue, and not while it keeps its unique key.
CREATE OR REPLACE FUNCTION purge_at(keep bigint, unique_until bigint, wall bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE keep WHEN -1 THEN @NEVER@ ELSE greatest(wall + keep, unique_until) END
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
    j.purge_at_ms  := CASE WHEN j.parent IS NOT NULL AND job_lives(j.parent)
                           THEN @NEVER@
                           ELSE purge_at(CASE s WHEN @JOB_FAILED@ THEN q.keep_failed_ms
                                              ELSE q.keep_ms END, j.unique_until_ms, wall) END;
    done := total_add(q.no, CASE s WHEN @JOB_COMPLETED@ THEN @TOTAL_COMPLETED@
                                   WHEN @JOB_FAILED@ THEN @TOTAL_FAILED@
                                   ELSE @TOTAL_CANCELLED@ END, 1) IS NULL;
    RETURN j;
END
$$;

-- Recover a job whose claim is dead; does nothing to others.
CREATE OR REPLACE FUNCTION job_recover(q queue, j job_row, now bigint, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF j.state <> @JOB_RUNNING@ OR j.is_parent OR now < j.expires_ms THEN
        RETURN j;
    END IF;
    j.last := @LAST_EXPIRED@;
    PERFORM total_add(q.no, @TOTAL_RECOVERED@, 1);
    IF j.cancelled THEN
        j := job_ends(q, j, @JOB_ON_CANCEL@, wall);
    ELSE
        IF j.attempt < j.max_attempts THEN
            j.state      := @JOB_ON_EXPIRE@;
            j.expires_ms := 0;
            j.updated_ms := wall;
        ELSE
            j := job_ends(q, j, @JOB_ON_DIE@, wall);
        END IF;
        j.error := CASE q.strategy WHEN @QUEUE_OPTIMISTIC@ THEN 'Execution timeout'
                        ELSE 'Processing timeout' END || ' - worker may have crashed';
    END IF;
    PERFORM job_write(q, j, @JOB_RUNNING@, false, NULL, wall);
    IF j.state >= @JOB_ENDED@ THEN
        PERFORM parent_try_end(j.parent, wall);
    END IF;
    RETURN j;
END
$$;

-- Backoff before the attempt after `attempt`: doubled each time, with jitter from a hash of id and
-- attempt that is the same on all engines.
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

-- ---- parents ------------------------------------------------------------------------------------
--
-- All under the mutex of the parent's id, which every change of one of its children holds: if the
-- last two children end at the same time, one comes after the other, and the second sees the end of
-- the first.

-- How many children a live parent has: they are numbered, and not purged while it lives. (With
-- max() the planner may choose to read the last one or all of them, and it assumes that there are
-- few.)
CREATE OR REPLACE FUNCTION children_pushed(s bigint) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT c.ordinal FROM job c WHERE c.parent = s ORDER BY c.ordinal DESC
                     LIMIT 1), 0);
END
$$;

-- Does a parent end now? Two lookups check whether it can, so that n children do not cost n * n / 2
-- rows; the results are counted from the children's rows in one statement. The search for a live
-- child starts at the last one: most end in the order of their creation, and the rows of those that
-- have ended in this transaction would still have to be skipped.
CREATE OR REPLACE FUNCTION end_parent(q queue, p job_row, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_all    bigint;
    n_failed bigint;
    x        record;
BEGIN
    IF p.state >= @JOB_ENDED@
       OR (SELECT c.seq FROM job_live c WHERE c.parent = p.seq ORDER BY c.seq + 0 DESC
           -- mutant parent_completed_early: OFFSET 1 LIMIT 1) IS NOT NULL
           LIMIT 1) IS NOT NULL
       OR NOT (p.sealed OR p.n_children > 0 AND children_pushed(p.seq) >= p.n_children) THEN
        RETURN p;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE e.state IN (@JOB_FAILED@, @JOB_CANCELLED@))
      INTO n_all, n_failed
      FROM job c JOIN done_of(c.queue, c.seq) AS e ON true
     WHERE c.parent = p.seq;
    IF p.cancelled THEN
        p := job_ends(q, p, @JOB_ON_CANCEL@, wall);
    ELSIF n_failed > 0 THEN
        p.error := format('%s of %s children failed', n_failed, n_all);
        p := job_ends(q, p, @JOB_ON_DIE@, wall);
    ELSE
        p := job_ends(q, p, @JOB_ON_FINISH@, wall);
    END IF;
    PERFORM job_write(q, p, @JOB_RUNNING@, false, NULL, wall);
    -- Its children may now be purged, each according to its own queue.
    FOR x IN SELECT c.queue, c.seq, c.unique_until_ms, e.state, cq.keep_ms, cq.keep_failed_ms
               FROM job c JOIN done_of(c.queue, c.seq) AS e ON true JOIN queue cq ON cq.no = c.queue
              WHERE c.parent = p.seq LOOP
        UPDATE job_done e
           SET purge_at_ms = purge_at(CASE x.state WHEN @JOB_FAILED@ THEN x.keep_failed_ms
                                           ELSE x.keep_ms END, x.unique_until_ms, wall)
         WHERE e.queue = x.queue AND e.state = x.state AND e.seq = x.seq;
    END LOOP;
    RETURN p;
END
$$;

-- A child has ended: does its parent (a seq, NULL = none) end, too?
CREATE OR REPLACE FUNCTION parent_try_end(s bigint, wall bigint) RETURNS void
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
            PERFORM end_parent(q, p, wall);
        END IF;
    END IF;
END
$$;
