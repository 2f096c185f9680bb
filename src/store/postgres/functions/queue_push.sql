-- queue_push: push. The decision table is in src/core/queue.md.
--
-- The usual push, into an existing queue and without parent or unique key, needs no lookup: the
-- insert itself detects an existing id, and then does nothing. Race-free: of two concurrent pushes
-- of one id, the second waits in the unique index for the commit of the first, and then finds its
-- job.

-- A push in a transaction that is not READ COMMITTED is about to answer with the job `j`, which its
-- snapshot shows: it fails with 40001 if that job has been deleted since or, if it answers as the
-- keeper of a unique key, no longer keeps it.
--
-- Locking a row that was changed or deleted since the snapshot raises that error. The rows locked
-- are those whose change would make the answer wrong: job is deleted by a purge; job_unique is
-- deleted by the end of a job whose period is over and by a purge, and updated by the next job that
-- takes the key. Only an end within the period leaves job_unique as it is; if the period is over by
-- now, job_live, which every end deletes, is locked as well. (Not always: every claim and heartbeat
-- changes it.)
--
-- Race-free: if the rows could be locked, or are locked by a transaction that is still open, the
-- versions of the snapshot are the newest committed ones, so the answer is right at this moment,
-- and the push counts as made at this moment. Later commits of others come after it. So the locks
-- are released at once, by the end of a subtransaction: claims skip a locked row, and ending or
-- purging the job must not wait for this transaction. SKIP LOCKED: nor the reverse.
CREATE OR REPLACE FUNCTION push_confirm(j job_row, keeper boolean, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') = 'read committed' THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM FROM job b WHERE b.seq = j.seq FOR SHARE SKIP LOCKED;
        IF keeper THEN
            PERFORM FROM job_unique u
              WHERE u.queue = j.queue AND u.key = j.unique_key FOR SHARE SKIP LOCKED;
        END IF;
        IF keeper AND j.unique_until_ms > 0 AND j.unique_until_ms <= wall THEN
            PERFORM FROM job_live l WHERE l.queue = j.queue AND l.seq = j.seq FOR SHARE SKIP LOCKED;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'IL999';
    EXCEPTION WHEN SQLSTATE 'IL999' THEN
    END;
END
$$;

-- Insert a job; NULL seq if its id exists. `parent` is NULL or the seq of a live parent, which
-- already has n_pushed children.
CREATE OR REPLACE FUNCTION push_new(q queue, o jsonb, d bytea, parent bigint, n_pushed int,
                                    wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j    job_row;
    done boolean;
BEGIN
    j.is_parent       := coalesce((o ->> 'flags')::int, 0) & @FLAG_PUSH_PARENT@ <> 0;
    j.queue           := q.no;
    j.tenant          := q.tenant;
    j.id              := o ->> 'id';
    j.priority        := coalesce((o ->> 'priority')::int, 0);
    j.max_attempts    := coalesce((o ->> 'max_attempts')::int, q.max_attempts);
    j.n_children      := coalesce((o ->> 'n_children')::bigint, 0);
    j.created_ms      := wall;
    j.unique_until_ms := coalesce(wall + (o ->> 'unique_for_ms')::bigint, 0);
    j.parent          := parent;
    j.parent_id       := o ->> 'parent';
    j.grp             := o ->> 'group';
    j.unique_key      := o ->> 'unique_key';
    INSERT INTO job (seq, created_ms, unique_until_ms, parent, queue, priority, max_attempts,
                     n_children, ordinal, is_parent, tenant, id,
                     parent_id, grp, unique_key, payload)
    VALUES (nextval('ticket_seq'), j.created_ms, j.unique_until_ms, j.parent, j.queue, j.priority,
            j.max_attempts, j.n_children,
            n_pushed + 1, j.is_parent, j.tenant, j.id, j.parent_id, j.grp, j.unique_key,
            coalesce(d, ''))
        -- of the id; in a transaction with an old snapshot, of the place among the children
        ON CONFLICT DO NOTHING
    RETURNING seq INTO j.seq;
    IF j.seq IS NULL THEN
        RETURN j;
    END IF;
    j.run_at_ms    := coalesce((o ->> 'run_at_ms')::bigint,
                               wall + coalesce((o ->> 'delay_ms')::bigint, 0));
    j.state        := CASE WHEN j.is_parent THEN @JOB_ON_PARENT@
                           WHEN j.run_at_ms > wall THEN @JOB_ON_DELAY@ ELSE @JOB_ON_PUSH@ END;
    j.last         := @LAST_NONE@;
    j.attempt      := 0;
    j.token        := 0;
    j.cancelled    := false;
    j.silent       := false;
    j.sealed       := false;
    j.progress     := -1;
    j.lease_ms     := 0;
    j.expires_ms   := 0;
    j.started_ms   := CASE WHEN j.is_parent THEN wall ELSE 0 END;
    j.updated_ms   := wall;
    j.completed_ms := 0;
    j.worker       := '';
    j.error        := '';
    j.message      := '';
    done := total_add(q.no, @TOTAL_PUSHED@, 1) IS NULL;
    done := job_write(q, j, @JOB_NONE@, false, NULL, wall) IS NULL;
    RETURN j;
END
$$;

-- The id exists. That job may be locked by an open transaction (for example a claim), so it is only
-- read; if its claim is dead and it is not locked, it is recovered.
CREATE OR REPLACE FUNCTION push_again(o jsonb, d bytea, j job_row, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q queue;
BEGIN
    PERFORM push_confirm(j, false, wall);
    SELECT * INTO q FROM queue WHERE no = j.queue;
    -- it may be of another queue, or have a parent
    IF j.state = @JOB_RUNNING@ AND NOT j.is_parent AND now >= j.expires_ms
       AND EXISTS (SELECT FROM job_live l WHERE l.queue = j.queue AND l.seq = j.seq
                   FOR UPDATE SKIP LOCKED) AND job_alone_try(q, j) THEN
        SELECT * INTO q FROM queue WHERE no = j.queue;
        j := job_recover(q, job_load(j.queue, j.seq), now, wall);
    END IF;
    IF q.name = o ->> 'key'
       AND EXISTS (SELECT FROM job b WHERE b.seq = j.seq AND b.payload = coalesce(d, '')) THEN
        RETURN NEXT job_head('@STATUS_OK@,"flags":@OUT_RENEWED@', now, wall);
        RETURN NEXT job_part(j, q.name);
    ELSE
        RETURN NEXT job_head('@STATUS_MISMATCH@,"say":"other_job"', now, wall);
        RETURN NEXT job_part(j, q.name);
    END IF;
END
$$;

-- Can the parent of a push get one more child? NULL, or the head that says why not.
CREATE OR REPLACE FUNCTION push_adopt(p job_row, n_pushed int) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN p.seq IS NULL THEN '{"status":@STATUS_NOT_FOUND@,"say":"no_parent"}'
                WHEN NOT p.is_parent THEN '{"status":@STATUS_STATE@,"say":"not_a_parent"}'
                WHEN p.state >= @JOB_ENDED@ THEN '{"status":@STATUS_STATE@,"say":"parent_ended"}'
                WHEN p.sealed THEN '{"status":@STATUS_STATE@,"say":"parent_sealed"}'
                WHEN p.n_children > 0 AND n_pushed >= p.n_children
                THEN '{"status":@STATUS_LIMIT@,"say":"parent_full"}' END;
END
$$;

-- The job that keeps a unique key, if any: the one that took it last, while it is live or its
-- period is running. Under the key's mutex.
CREATE OR REPLACE FUNCTION unique_keeper(qn int, k text, wall bigint) RETURNS job_row
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s bigint;
    j job_row;
BEGIN
    SELECT u.seq INTO s FROM job_unique u WHERE u.queue = qn AND u.key = k;
    IF FOUND THEN
        j := job_peek(s);
        -- mutant unique_not_checked: IF wall < j.unique_until_ms THEN
        IF j.state < @JOB_ENDED@ OR wall < j.unique_until_ms THEN
            RETURN j;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- All checks, in order, before anything is inserted.
CREATE OR REPLACE FUNCTION push_checked(q queue, o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t        text := o ->> 'tenant';
    n_pushed int;
    head     text;
    p        job_row;
    j        job_row := job_peek((SELECT b.seq FROM job b
                                   WHERE b.tenant = t AND b.id = o ->> 'id'));
BEGIN
    IF j.seq IS NOT NULL THEN
        RETURN QUERY SELECT * FROM push_again(o, d, j, now, wall);
        RETURN;
    END IF;
    IF o ? 'parent' THEN
        p        := job_find(t, o ->> 'parent');
        n_pushed := children_pushed(p.seq);
        head     := push_adopt(p, n_pushed);
        IF head IS NOT NULL THEN
            RETURN NEXT ROW(head, NULL, NULL)::job_reply;
            RETURN;
        END IF;
    END IF;
    IF o ? 'unique_key' AND q.no IS NOT NULL THEN
        j := unique_keeper(q.no, o ->> 'unique_key', wall);
        IF j.seq IS NOT NULL THEN
            PERFORM push_confirm(j, true, wall);
            PERFORM total_add(q.no, @TOTAL_DUPLICATES@, 1);
            RETURN NEXT job_head('@STATUS_DUPLICATE@', now, wall);
            RETURN NEXT job_part(j, q.name);
            RETURN;
        END IF;
    END IF;
    IF q.no IS NULL THEN
        q := queue_get(t, o ->> 'key');
    END IF;
    j := push_new(q, o, d, p.seq, n_pushed, wall);
    IF j.seq IS NOT NULL THEN
        RETURN NEXT job_head('@STATUS_OK@', now, wall);
        RETURN NEXT job_part(j, q.name);
    ELSE -- somebody was faster
        RETURN QUERY SELECT * FROM push_checked(q, o, d, now, wall);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_push(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    q queue;
    j job_row;
BEGIN
    SELECT * INTO q FROM queue WHERE tenant = o ->> 'tenant' AND name = o ->> 'key';
    IF FOUND AND NOT o ?| ARRAY['unique_key', 'parent'] THEN
        j := push_new(q, o, d, NULL, NULL, wall);
        IF j.seq IS NOT NULL THEN
            RETURN NEXT job_head('@STATUS_OK@', now, wall);
            RETURN NEXT job_part(j, q.name);
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM push_checked(q, o, d, now, wall);
END
$$;

-- ---- many at once -------------------------------------------------------------------------------

-- Push plain jobs (an existing queue; no unique key or parent) in one statement. Returns a row for
-- each new one: the others exist, and are left to v_push(). Tokens and places do not depend on it,
-- so that may be done afterwards.
CREATE OR REPLACE FUNCTION push_plain(os jsonb[], ds bytea[], wall bigint)
RETURNS TABLE (i int, part text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        WITH r AS MATERIALIZED ( -- numbered in the order of the requests
            SELECT x.*, nextval('ticket_seq') AS seq,
                   CASE WHEN x.run_at_ms > wall THEN @JOB_ON_DELAY@ ELSE @JOB_ON_PUSH@ END AS state,
                   lane(x.no, CASE WHEN x.run_at_ms > wall THEN @LANE_SCHEDULED@
                                   WHEN x.grp IS NOT NULL AND x.group_limit <> -1
                                   THEN @LANE_UNDECIDED@
                                   ELSE @LANE_READY@ END) AS lane
              FROM (SELECT u.i::int AS i, q.no, q.tenant, q.name, q.group_limit, u.d,
                    u.o ->> 'id' AS id, u.o ->> 'group' AS grp,
                           coalesce((u.o ->> 'priority')::int, 0) AS priority,
                           coalesce((u.o ->> 'max_attempts')::int, q.max_attempts) AS max_attempts,
                           coalesce((u.o ->> 'run_at_ms')::bigint,
                                    wall + coalesce((u.o ->> 'delay_ms')::bigint, 0)) AS run_at_ms
                      FROM unnest(os, ds) WITH ORDINALITY AS u (o, d, i)
                      JOIN queue q ON q.tenant = u.o ->> 'tenant' AND q.name = u.o ->> 'key'
                     ORDER BY u.i) AS x),
        b AS (
            INSERT INTO job (seq, created_ms, unique_until_ms, queue, priority, max_attempts,
                             n_children, is_parent, tenant, id, grp, payload)
            SELECT r.seq, wall, 0, r.no, r.priority, r.max_attempts, 0, false, r.tenant, r.id,
                   r.grp, coalesce(r.d, '') FROM r
                ON CONFLICT (tenant, id) DO NOTHING
            RETURNING job.seq),
        -- written this way it is a hash lookup
        n AS MATERIALIZED (SELECT r.* FROM r WHERE (r.seq IN (SELECT b.seq FROM b)) IS TRUE),
        l AS (
            INSERT INTO job_live (seq, lane, ord, at, glane, run_at_ms, expires_ms, lease_ms, token,
                                  started_ms, updated_ms, queue, priority,
                                  attempt, bytes, last, flags, progress, grp, worker, error,
                                  message)
            SELECT n.seq, n.lane, CASE n.state WHEN @JOB_SCHEDULED@ THEN n.run_at_ms
                                       ELSE n.priority END,
                   CASE n.state WHEN @JOB_SCHEDULED@ THEN 0 ELSE n.run_at_ms END,
                   CASE WHEN n.grp IS NOT NULL THEN n.lane END,
                   n.run_at_ms, 0, 0, 0, 0, wall, n.no, n.priority, 0, coalesce(length(n.d), 0),
                   @LAST_NONE@, 0, -1, n.grp, '', '', ''
              FROM n),
        t AS (INSERT INTO job_total (queue, what, n)
              SELECT n.no, @TOTAL_PUSHED@, count(*) FROM n GROUP BY n.no
              UNION ALL
              SELECT n.no, @DEPTH_SCHEDULED@, count(*) FROM n WHERE n.state = @JOB_SCHEDULED@
               GROUP BY n.no)
        SELECT n.i, concat('{"queue":', to_json(n.name), ',"id":', to_json(n.id), ',"seq":', n.seq,
                           ',"state":', n.state, ',"priority":',
                           n.priority, ',"max_attempts":', n.max_attempts,
                           ',"progress":-1,"run_at_ms":', n.run_at_ms,
                           ',"created_at_ms":', wall, ',"updated_at_ms":', wall,
                           ',"group":' || to_json(n.grp), '}')
          FROM n ORDER BY n.i;
END
$$;

-- The first request from `k` on that push_plain() cannot do; 0 = none.
CREATE OR REPLACE FUNCTION push_not_plain(os jsonb[], k int) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((
        SELECT u.i
          FROM unnest(os) WITH ORDINALITY AS u (o, i)
          LEFT JOIN queue q ON q.tenant = u.o ->> 'tenant' AND q.name = u.o ->> 'key'
         WHERE u.i >= k
           AND (u.o ?| ARRAY['unique_key', 'parent']
                OR coalesce((u.o ->> 'flags')::int, 0) & @FLAG_PUSH_PARENT@ <> 0
                             OR q.no IS NULL)
         ORDER BY u.i LIMIT 1), 0);
END
$$;

-- Wake those who wait for jobs of these queues.
CREATE OR REPLACE FUNCTION push_told(os jsonb[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    x record;
BEGIN
    FOR x IN
        SELECT q.no, q.tenant, q.name
          FROM (SELECT DISTINCT u.o ->> 'tenant' AS t, u.o ->> 'key' AS k
                FROM unnest(os) AS u (o)) AS y
          JOIN queue q ON q.tenant = y.t AND q.name = y.k
    LOOP
        PERFORM wake(x.tenant, x.name, '#queue');
        IF random() < 0.004 THEN
            PERFORM total_compact(x.no);
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION push_many(os jsonb[], ds bytea[], now bigint, wall bigint)
RETURNS SETOF job_reply_many
LANGUAGE plpgsql VOLATILE SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
    n     int  := cardinality(os);
    head  text := concat('{"status":@STATUS_OK@,"now_ms":', now, ',"wall_ms":', wall, '}');
    k     int  := 1; -- the next one
    other int;       -- the next one that is not plain
    parts text[];
    x     record;
BEGIN
    WHILE k <= n LOOP
        other := push_not_plain(os, k);
        IF other = 0 THEN
            other := n + 1;
        END IF;
        IF other > k THEN
            parts := NULL;
            FOR x IN SELECT * FROM push_plain(os[k:other - 1], ds[k:other - 1], wall) LOOP
                parts[x.i] := x.part;
            END LOOP;
            PERFORM push_told(os[k:other - 1]);
            FOR m IN k .. other - 1 LOOP
                IF parts[m - k + 1] IS NOT NULL THEN
                    RETURN NEXT ROW(m, head, NULL, NULL)::job_reply_many;
                    RETURN NEXT ROW(m, parts[m - k + 1], NULL, NULL)::job_reply_many;
                ELSE
                    RETURN QUERY SELECT m, v.* FROM v_push(os[m], ds[m], now, wall) AS v;
                END IF;
            END LOOP;
        END IF;
        IF other <= n THEN
            RETURN QUERY SELECT other, v.* FROM v_push(os[other], ds[other], now, wall) AS v;
        END IF;
        k := other + 1;
    END LOOP;
END
$$;
