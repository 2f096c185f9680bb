-- run.sql: stage, finish and cancel of runs, as src/core/runs.md says; what the locks tell of their runs; the sweep.
--
-- Race-free because the batch holds the mutex of the run's key: whoever changes the key, its leases, its waiters or its live runs
-- holds it, so what was read is still true when it is acted upon. Ended runs never change. A start also holds the mutex of its
-- id: of two starts of one id with different keys the second one sees the run of the first.

-- A run by its id.
CREATE OR REPLACE FUNCTION run_of(t text, i text) RETURNS SETOF run LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM run r WHERE r.tenant || E'\x1f' || r.id = t || E'\x1f' || i
$$;

-- A run op that names only an id finds its key here: a run's key never changes.
CREATE OR REPLACE FUNCTION mutexes_run(o jsonb) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o->>'op' = 'run_start' THEN
        RETURN NEXT mutex(3, o->>'tenant', o->>'id');
        RETURN NEXT mutex(4, o->>'tenant', o->>'key');
        -- Limits of a tenant: of two starts that have one, of whatever keys of a class, the second one sees the run of the first. Those without take part in no count, so they need not
        -- wait here: what they add at the same moment comes after the count.
        IF coalesce(o->>'live_max', o->>'day_max') IS NOT NULL THEN
            RETURN NEXT mutex(1, o->>'tenant', split_part(o->>'key', ':', 1));
        END IF;
    ELSIF o->>'op' IN ('run_stage', 'run_finish', 'run_cancel') THEN
        RETURN QUERY SELECT mutex(4, r.tenant, r.key) FROM run_of(o->>'tenant', o->>'id') AS r;
    END IF;
END $$;

-- ---- single changes ------------------------------------------------------------------------------------------

-- End a run; its lease or waiter is the caller's to end. `what` is the event's own: the reason of a cancel or break, the cycle,
-- the error of a finish, the id of the run that replaces it. The edges and the words are those of core/run.c. The last ttl is
-- that of its lease.
CREATE OR REPLACE FUNCTION run_end(r run, event text, what text, wall bigint, finish_as int DEFAULT 0) RETURNS run
LANGUAGE plpgsql AS $$
DECLARE
    goes int := CASE event WHEN 'finish' THEN finish_as WHEN 'silent' THEN 4 WHEN 'expire' THEN 4 WHEN 'release' THEN 4
                           ELSE 5 END;
BEGIN
    IF goes = 4 AND r.cancelled = 1 THEN
        goes := 5; -- it was asked to stop
    END IF;
    r.error := CASE
        WHEN event = 'expire' AND r.cancelled = 1 THEN r.error || ' (worker may have crashed)'
        WHEN event = 'expire' THEN 'lease expired - worker may have crashed'
        WHEN event = 'silent' THEN 'did not take its turn - worker may have crashed'
        WHEN event = 'deadline' THEN 'waited longer than allowed'
        WHEN event = 'leave' THEN 'its holder stopped waiting'
        WHEN event = 'break' THEN 'broken: ' || coalesce(what, '')
        WHEN event = 'replace' THEN 'replaced by run ' || what
        WHEN event = 'release' AND r.cancelled = 0 THEN 'its lease was given back before it was finished'
        WHEN event = 'release' OR (r.cancelled = 1 AND goes = 5) THEN r.error
        ELSE coalesce(what, '') END;
    UPDATE run SET state = goes, error = r.error, ticket = 0, log_bytes = r.log_bytes,
                   fence = CASE WHEN r.state = 1 THEN 0 ELSE r.fence END,
                   finished = CASE WHEN event = 'finish' THEN 1 ELSE 0 END,
                   ttl_ms = coalesce((run_hold_of(r)).ttl_ms, r.ttl_ms),
                   ended_ms = wall, updated_ms = wall, purge_ms = wall + run.keep_ms, live = NULL
     WHERE run.seq = r.seq
    RETURNING * INTO r;
    PERFORM wake(r.tenant, r.id, '#run');
    RETURN r;
END $$;

-- Ask a running one to stop. The first reason stays. Its holder is told when it renews, which the word makes it do now.
CREATE OR REPLACE FUNCTION run_ask_stop(r run, reason text, wall bigint) RETURNS run LANGUAGE plpgsql AS $$
BEGIN
    IF r.cancelled = 1 THEN
        RETURN r;
    END IF;
    UPDATE run SET cancelled = 1, error = reason, updated_ms = wall WHERE run.seq = r.seq RETURNING * INTO r;
    PERFORM wake_holders(), wake(r.tenant, r.id, '#run');
    RETURN r;
END $$;

-- End the waiter or offer of a pending run, which has ended in this op; `r` is as it was. An offer was not confirmed, so its end
-- is not remembered. The caller gives the key on.
CREATE OR REPLACE FUNCTION run_leave(r run, now bigint, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    w waiter;
    l lease;
BEGIN
    IF r.fence <> 0 THEN
        SELECT * INTO l FROM lease WHERE lease.tenant = r.tenant AND lease.key = r.key AND lease.fence = r.fence;
        l.run := 0;
        PERFORM wake(r.tenant, r.key, r.holder), lease_end(l, 7, now, wall); -- BROKEN
    ELSIF r.ticket <> 0 THEN
        SELECT * INTO w FROM waiter WHERE waiter.tenant = r.tenant AND waiter.key = r.key AND waiter.ticket = r.ticket;
        w.run := 0;
        PERFORM wake(r.tenant, r.key, r.holder), waiter_leave(w, now, wall);
    END IF;
END $$;

-- ---- the log ---------------------------------------------------------------------------------------------------

-- Append to a log of which n_bytes were written; how many it has now. A short last piece is extended, so that many small writes
-- do not become many rows, and stays so short that it is kept in its row. What is long is cut, so that reading a part does not
-- read it all.
CREATE OR REPLACE FUNCTION run_log_append(r_seq bigint, n_bytes bigint, d bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n    int     := octet_length(d);
    kept bigint  := run_log_kept(n_bytes + n);
    done boolean := n = 0;
BEGIN
    IF NOT done AND n_bytes > 0 AND n < 1900 THEN
        UPDATE run_log SET data = data || d
         WHERE run = r_seq AND at = (SELECT max(l.at) FROM run_log l WHERE l.run = r_seq)
           AND octet_length(data) + n <= 1900;
        done := FOUND;
    END IF;
    IF NOT done THEN
        INSERT INTO run_log (run, at, data)
        SELECT r_seq, n_bytes + i, substr(d, i + 1, 65536) FROM generate_series(0, n - 1, 65536) AS i;
    END IF;
    IF n > 0 AND kept > 0 THEN
        DELETE FROM run_log WHERE run = r_seq AND at < kept AND at + octet_length(data) <= kept;
    END IF;
    RETURN n_bytes + n;
END $$;

-- What of the log of a stage or finish is new; NULL: there would be a gap. il__run_log_part().
CREATE OR REPLACE FUNCTION run_log_part(o jsonb, d bytea, n_bytes bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    first bigint := coalesce((o->>'offset')::bigint, 0); -- below 0 it is one of 2^63 or more
BEGIN
    IF coalesce((o->>'flags')::int, 0) & 1024 = 0 THEN -- LOG_AT
        RETURN d;
    ELSIF first NOT BETWEEN 0 AND n_bytes THEN
        RETURN NULL;
    END IF;
    RETURN substr(d, 1 + least(n_bytes - first, octet_length(d))::int);
END $$;

-- ---- stage, finish, cancel --------------------------------------------------------------------------------------

-- The run that an op names, its key settled; all NULL when there is none. One that is there, but whose key's mutex is neither
-- held nor free, came after the batch had begun: then it was not there.
CREATE OR REPLACE FUNCTION run_settled(o jsonb, now bigint, wall bigint) RETURNS run LANGUAGE plpgsql AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND OR NOT mutex_try(mutex(4, r.tenant, r.key)) THEN
        RETURN NULL;
    END IF;
    PERFORM key_settle(r.tenant, r.key, now, wall);
    SELECT * INTO r FROM run WHERE run.seq = r.seq; -- it may have ended just now
    RETURN r;
END $$;

-- Why a stage or finish is refused, or NULL: it is the run's own, and its log goes on where it ended.
CREATE OR REPLACE FUNCTION run_refused(o jsonb, r run, part bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF r.seq IS NULL THEN
        RETURN '{"status": 26}'; -- NOT_FOUND
    ELSIF r.state <> 2 OR r.fence <> (o->>'fence')::bigint OR r.holder <> o->>'holder'
          OR (run_hold_of(r)).due_ms <= now THEN -- over, though its lease cannot be taken away yet: see lease_seize()
        RETURN run_head(r, 5, now, wall) || jsonb_build_object('say', 'run_not_current', 'finished', r.finished); -- STALE
    ELSIF part IS NULL THEN
        RETURN run_head(r, 27, now, wall) || '{"say": "run_gap"}'; -- STATE
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION v_run_stage(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r    run   := run_settled(o, now, wall);
    part bytea := run_log_part(o, d, r.log_bytes);
    head jsonb := run_refused(o, r, part, now, wall);
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    END IF;
    UPDATE run SET stage = coalesce(o->>'stage', run.stage),
                   progress = CASE WHEN (o->>'progress')::int >= 0 THEN (o->>'progress')::int ELSE run.progress END,
                   log_bytes = run_log_append(r.seq, r.log_bytes, part), updated_ms = wall
     WHERE run.seq = r.seq
    RETURNING * INTO r;
    PERFORM wake(r.tenant, r.id, '#run');
    head := run_head(r, 0, now, wall);
    RETURN CASE WHEN r.cancelled = 1 THEN head || jsonb_build_object('flags', 8, 'detail', r.error) ELSE head END; -- CANCEL
END $$;

CREATE OR REPLACE FUNCTION v_run_finish(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r    run   := run_settled(o, now, wall);
    part bytea := run_log_part(o, d, r.log_bytes);
    head jsonb := run_refused(o, r, part, now, wall);
    l    lease;
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    END IF;
    r.log_bytes := run_log_append(r.seq, r.log_bytes, part);
    r := run_end(r, 'finish', o->>'error', wall, (o->>'state')::int);
    SELECT * INTO l FROM lease WHERE lease.tenant = r.tenant AND lease.key = r.key AND lease.fence = r.fence;
    l.run := 0; -- it has ended already
    IF NOT lease_linger(l, now) THEN
        PERFORM lease_end(l, 5, now, wall); -- RELEASED
    END IF;
    PERFORM key_give_on(r.tenant, r.key, now, wall);
    RETURN run_head(r, 0, now, wall);
END $$;

CREATE OR REPLACE FUNCTION v_run_cancel(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r   run := run_settled(o, now, wall);
    was run := r;
BEGIN
    IF r.seq IS NULL THEN
        RETURN '{"status": 26}'; -- NOT_FOUND
    ELSIF r.state = 2 THEN
        r := run_ask_stop(r, o->>'error', wall);
    ELSIF r.state = 1 THEN
        r := run_end(r, 'cancel', o->>'error', wall);
        PERFORM run_leave(was, now, wall);
        PERFORM key_give_on(r.tenant, r.key, now, wall);
    END IF;
    RETURN run_head(r, 0, now, wall);
END $$;

-- ---- what the locks tell -----------------------------------------------------------------------------------------

-- The lease or waiter of a run ends, and the run with it. was: its state (1 = a waiter); how: RELEASED 5, EXPIRED 6, BROKEN 7. Of
-- a waiter it counts what came first, not what has come by the time somebody looks.
CREATE OR REPLACE FUNCTION run_lost(run_seq bigint, was int, how int, due_ms bigint, deadline_ms bigint, reason text,
                                    now bigint, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r     run;
    event text;
BEGIN
    SELECT * INTO r FROM run WHERE run.seq = run_seq AND run.state <= 2;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF was = 1 THEN
        event := CASE WHEN now < due_ms THEN 'leave' WHEN due_ms >= deadline_ms THEN 'deadline' ELSE 'silent' END;
    ELSE
        event := CASE how WHEN 5 THEN 'release' WHEN 7 THEN 'break' ELSE CASE was WHEN 2 THEN 'silent' ELSE 'expire' END END;
    END IF;
    PERFORM run_end(r, event, reason, wall);
END $$;

-- Its waiter has become an offered lease.
CREATE OR REPLACE FUNCTION run_offered(run_seq bigint, offer bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE run SET fence = offer, ticket = 0 WHERE seq = run_seq AND state = 1;
END $$;

-- Its offer was confirmed: it is RUNNING.
CREATE OR REPLACE FUNCTION run_confirmed(run_seq bigint, now bigint, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r run;
BEGIN
    UPDATE run SET state = 2, ticket = 0, started_ms = wall, updated_ms = wall WHERE seq = run_seq AND state = 1
    RETURNING * INTO r;
    IF FOUND THEN
        PERFORM wake(r.tenant, r.id, '#run');
    END IF;
END $$;

-- Why it should stop, if a stop was asked for.
CREATE OR REPLACE FUNCTION run_stop(run_seq bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT error FROM run WHERE seq = run_seq AND state <= 2 AND cancelled = 1);
END $$;

-- Its lease is to be broken: it should stop.
CREATE OR REPLACE FUNCTION run_broken(run_seq bigint, reason text, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM run_ask_stop(r, 'broken: ' || coalesce(reason, ''), wall) FROM run r WHERE r.seq = run_seq AND r.state <= 2;
END $$;

-- Its waiter, which the caller removes, was cancelled to open a cycle of holders.
CREATE OR REPLACE FUNCTION run_cancelled_cycle(run_seq bigint, verdict text, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM run_end(r, 'cycle', verdict, wall) FROM run r WHERE r.seq = run_seq AND r.state <= 2;
END $$;

-- ---- the sweep ---------------------------------------------------------------------------------------------------

-- Purge what was kept long enough, the first whose time was over first. No mutex is needed: an ended run never changes. What
-- another sweep is about to purge is passed over.
CREATE OR REPLACE FUNCTION v_x_sweep_runs(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    seqs bigint[];
BEGIN
    -- By their places, which are locked: there is no other way to the rows that a planner could take.
    WITH gone AS (
        DELETE FROM run
         WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM run r WHERE r.purge_ms <= wall
                                  ORDER BY r.purge_ms, r.seq LIMIT (o->>'limit')::int FOR UPDATE SKIP LOCKED))
        RETURNING seq
    )
    SELECT array_agg(seq) INTO seqs FROM gone;
    DELETE FROM run_log WHERE run = ANY (seqs);
    RETURN jsonb_build_object('status', 0, 'sweep', jsonb_build_object('n_purged', coalesce(cardinality(seqs), 0)),
                              'flags', CASE WHEN overdue_runs(now, wall) THEN 4 ELSE 0 END); -- MORE
END $$;

CREATE OR REPLACE FUNCTION overdue_runs(now bigint, wall bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- The start of the index. (Of an EXISTS the planner thinks that one will soon be found in the table.)
    RETURN coalesce((SELECT r.purge_ms FROM run r WHERE r.purge_ms IS NOT NULL ORDER BY r.purge_ms, r.seq LIMIT 1) <= wall,
                    false);
END $$;
