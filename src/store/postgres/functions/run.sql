-- run.sql: stage, finish and cancel of runs; what locks report about their runs; the sweep. The
-- rules are in src/core/runs.md.
--
-- Race-free because the batch holds the mutex of the run's key. Every change to the key, its
-- leases, its waiters or its live runs needs that mutex, so what was read is still true when we act
-- on it. Ended runs never change. A start also holds the mutex of its id: of two starts of one id
-- with different keys, the second sees the run of the first.

-- A run by its id.
CREATE OR REPLACE FUNCTION run_of(t text, i text) RETURNS SETOF run LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM run r WHERE r.tenant || E'\x1f' || r.id = t || E'\x1f' || i
$$;

-- A run op that names only an id finds its key here: a run's key never changes.
CREATE OR REPLACE FUNCTION mutexes_run(o jsonb) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o->>'op' = 'run_start' THEN
        RETURN NEXT mutex(@MUTEX_ID@, o->>'tenant', o->>'id');
        RETURN NEXT mutex(@MUTEX_KEY@, o->>'tenant', o->>'key');
        -- Limits of a tenant: of two starts with a limit, on any keys of a class, the second sees
        -- the run of the first. Those without a limit are not counted, so they need not wait here:
        -- what they add at the same moment comes after the count.
        IF coalesce(o->>'live_max', o->>'day_max', o->>'minute_max',
                    o->>'hour_max') IS NOT NULL THEN
            RETURN NEXT mutex(@MUTEX_RUNS@, o->>'tenant', split_part(o->>'key', ':', 1));
        END IF;
    ELSIF o->>'op' IN ('run_stage', 'run_finish', 'run_cancel') THEN
        RETURN QUERY SELECT mutex(@MUTEX_KEY@, r.tenant, r.key)
                       FROM run_of(o->>'tenant', o->>'id') AS r;
    END IF;
END $$;

-- ---- single changes -----------------------------------------------------------------------------

-- End a run; the caller ends its lease or waiter. `what` depends on the event: the reason of a
-- cancel or break, the cycle, the error of a finish, the id of the run that replaces it. Edges and
-- messages are those of core/run.c. The last ttl is that of its lease.
CREATE OR REPLACE FUNCTION run_end(r run, event text, what text, wall bigint,
                                   finish_as int DEFAULT @RUN_NONE@) RETURNS run
LANGUAGE plpgsql AS $$
DECLARE
    goes int := CASE event WHEN 'finish'   THEN finish_as
                           WHEN 'cancel'   THEN @RUN_ON_CANCEL@
                           WHEN 'replace'  THEN @RUN_ON_REPLACE@
                           WHEN 'deadline' THEN @RUN_ON_DEADLINE@
                           WHEN 'leave'    THEN @RUN_ON_LEAVE@
                           WHEN 'cycle'    THEN @RUN_ON_CYCLE@
                           WHEN 'break'    THEN @RUN_ON_BREAK@
                           WHEN 'silent'   THEN @RUN_ON_SILENT@
                           WHEN 'release'  THEN @RUN_ON_RELEASE@
                       -- mutant orphaned_run_completed: WHEN 'expire'   THEN @RUN_ON_COMPLETE@ END;
                           WHEN 'expire'   THEN @RUN_ON_EXPIRE@ END;
BEGIN
    IF goes = @RUN_FAILED@ AND r.cancelled = 1 THEN
        goes := @RUN_CANCELLED@; -- it was asked to stop
    END IF;
    r.error := CASE
        WHEN event = 'expire' AND r.cancelled = 1 THEN r.error || ' (worker may have crashed)'
        WHEN event = 'expire' THEN 'lease expired - worker may have crashed'
        WHEN event = 'silent' THEN 'did not take its turn - worker may have crashed'
        WHEN event = 'deadline' THEN 'timed out while waiting'
        WHEN event = 'leave' THEN 'its holder stopped waiting'
        WHEN event = 'break' THEN 'broken: ' || coalesce(what, '')
        WHEN event = 'replace' THEN 'replaced by run ' || what
        WHEN event = 'release'
             AND r.cancelled = 0 THEN 'its lease was released before it was finished'
        WHEN event = 'release' OR (r.cancelled = 1 AND goes = @RUN_CANCELLED@) THEN r.error
        ELSE coalesce(what, '') END;
    UPDATE run SET state = goes, error = r.error, ticket = 0, log_bytes = r.log_bytes,
                   fence = CASE WHEN r.state = @RUN_PENDING@ THEN 0 ELSE r.fence END,
                   finished = CASE WHEN event = 'finish' THEN 1 ELSE 0 END,
                   ttl_ms = coalesce((run_hold_of(r)).ttl_ms, r.ttl_ms),
                   ended_ms = wall, updated_ms = wall, purge_ms = wall + run.keep_ms, live = NULL
     WHERE run.seq = r.seq
    RETURNING * INTO r;
    PERFORM wake(r.tenant, r.id, '#run');
    RETURN r;
END $$;

-- Ask a running run to stop. The first reason stays. The holder learns it when it renews, which the
-- wake-up makes it do now.
CREATE OR REPLACE FUNCTION run_ask_stop(r run, reason text, wall bigint) RETURNS run
LANGUAGE plpgsql AS $$
BEGIN
    IF r.cancelled = 1 THEN
        RETURN r;
    END IF;
    UPDATE run SET cancelled = 1, error = reason, updated_ms = wall WHERE run.seq = r.seq
        RETURNING * INTO r;
    PERFORM wake_holders(), wake(r.tenant, r.id, '#run');
    RETURN r;
END $$;

-- End the waiter or offer of a pending run that has ended in this op; `r` is its old state. An
-- unconfirmed offer is not remembered. The caller hands the key to the next waiter.
CREATE OR REPLACE FUNCTION run_leave(r run, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    w waiter;
    l lease;
BEGIN
    IF r.fence <> 0 THEN
        SELECT * INTO l FROM lease
         WHERE lease.tenant = r.tenant AND lease.key = r.key AND lease.fence = r.fence;
        l.run := 0;
        PERFORM wake(r.tenant, r.key, r.holder), lease_end(l, @LEASE_ON_BREAK_NOW@, now, wall);
    ELSIF r.ticket <> 0 THEN
        SELECT * INTO w FROM waiter
         WHERE waiter.tenant = r.tenant AND waiter.key = r.key AND waiter.ticket = r.ticket;
        w.run := 0;
        PERFORM wake(r.tenant, r.key, r.holder), waiter_leave(w, now, wall);
    END IF;
END $$;

-- ---- the log ------------------------------------------------------------------------------------

-- Append to a log that has n_bytes so far; returns the new size. A short last piece is extended, so
-- that many small writes do not become many rows, and stays short enough to be kept in its row.
-- Long data is split, so that reading a part does not read all of it.
CREATE OR REPLACE FUNCTION run_log_append(r_seq bigint, n_bytes bigint, d bytea) RETURNS bigint
LANGUAGE plpgsql AS $$
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
        SELECT r_seq, n_bytes + i, substr(d, i + 1, @LOG_PIECE_BYTES@)
          FROM generate_series(0, n - 1, @LOG_PIECE_BYTES@) AS i;
    END IF;
    IF n > 0 AND kept > 0 THEN
        DELETE FROM run_log WHERE run = r_seq AND at < kept AND at + octet_length(data) <= kept;
    END IF;
    RETURN n_bytes + n;
END $$;

-- The new part of the log of a stage or finish; NULL: there would be a gap. See il__run_log_part().
CREATE OR REPLACE FUNCTION run_log_part(o jsonb, d bytea, n_bytes bigint) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    first bigint := coalesce((o->>'offset')::bigint, 0); -- below 0 it is one of 2^63 or more
BEGIN
    IF coalesce((o->>'flags')::int, 0) & @FLAG_LOG_AT@ = 0 THEN
        RETURN d;
    ELSIF first NOT BETWEEN 0 AND n_bytes THEN
        RETURN NULL;
    END IF;
    RETURN substr(d, 1 + least(n_bytes - first, octet_length(d))::int);
END $$;

-- ---- stage, finish, cancel ----------------------------------------------------------------------

-- The run that an op names, after ending what was overdue on its key; all NULL if there is none. If
-- it exists, but its key's mutex is neither held nor free, it was created after the batch began,
-- and counts as missing.
CREATE OR REPLACE FUNCTION run_current(o jsonb, now bigint, wall bigint) RETURNS run
LANGUAGE plpgsql AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND OR NOT mutex_try(mutex(@MUTEX_KEY@, r.tenant, r.key)) THEN
        RETURN NULL;
    END IF;
    PERFORM key_expire(r.tenant, r.key, now, wall);
    SELECT * INTO r FROM run WHERE run.seq = r.seq; -- it may have ended just now
    RETURN r;
END $$;

-- Why a stage or finish is refused, or NULL: it comes from the run's own holder, and its log
-- continues where it ended.
CREATE OR REPLACE FUNCTION run_refused(o jsonb, r run, part bytea, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF r.seq IS NULL THEN
        RETURN '{"status": @STATUS_NOT_FOUND@}';
    -- mutant run_fence_ignored: ELSIF r.state <> @RUN_RUNNING@
    ELSIF r.state <> @RUN_RUNNING@ OR r.fence <> (o->>'fence')::bigint OR r.holder <> o->>'holder'
          -- ended, although its lease cannot be taken away yet: see lease_seize()
          OR (run_hold_of(r)).due_ms <= now THEN
        RETURN run_head(r, @STATUS_STALE@, now, wall)
               || jsonb_build_object('say', 'run_not_current', 'finished', r.finished);
    ELSIF part IS NULL THEN
        RETURN run_head(r, @STATUS_STATE@, now, wall) || '{"say": "run_gap"}';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION v_run_stage(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r    run   := run_current(o, now, wall);
    part bytea := run_log_part(o, d, r.log_bytes);
    head jsonb := run_refused(o, r, part, now, wall);
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    END IF;
    UPDATE run SET stage = coalesce(o->>'stage', run.stage),
                   progress = CASE WHEN (o->>'progress')::int >= 0 THEN (o->>'progress')::int
                                   ELSE run.progress END,
                   log_bytes = run_log_append(r.seq, r.log_bytes, part), updated_ms = wall
     WHERE run.seq = r.seq
    RETURNING * INTO r;
    PERFORM wake(r.tenant, r.id, '#run');
    head := run_head(r, @STATUS_OK@, now, wall);
    RETURN CASE WHEN r.cancelled = 1 THEN head
                || jsonb_build_object('flags', @OUT_CANCEL@, 'detail', r.error) ELSE head END;
END $$;

CREATE OR REPLACE FUNCTION v_run_finish(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r    run   := run_current(o, now, wall);
    part bytea := run_log_part(o, d, r.log_bytes);
    head jsonb := run_refused(o, r, part, now, wall);
    l    lease;
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    END IF;
    r.log_bytes := run_log_append(r.seq, r.log_bytes, part);
    r := run_end(r, 'finish', o->>'error', wall, (o->>'state')::int);
    SELECT * INTO l FROM lease
     WHERE lease.tenant = r.tenant AND lease.key = r.key AND lease.fence = r.fence;
    l.run := 0; -- it has ended already
    IF NOT lease_linger(l, now) THEN
        PERFORM lease_end(l, @LEASE_ON_RELEASE@, now, wall);
    END IF;
    PERFORM key_offer_next(r.tenant, r.key, now, wall);
    RETURN run_head(r, @STATUS_OK@, now, wall);
END $$;

CREATE OR REPLACE FUNCTION v_run_cancel(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r   run := run_current(o, now, wall);
    was run := r;
BEGIN
    IF r.seq IS NULL THEN
        RETURN '{"status": @STATUS_NOT_FOUND@}';
    ELSIF r.state = @RUN_RUNNING@ THEN
        r := run_ask_stop(r, o->>'error', wall);
    ELSIF r.state = @RUN_PENDING@ THEN
        r := run_end(r, 'cancel', o->>'error', wall);
        PERFORM run_leave(was, now, wall);
        PERFORM key_offer_next(r.tenant, r.key, now, wall);
    END IF;
    RETURN run_head(r, @STATUS_OK@, now, wall);
END $$;

-- ---- what the locks tell ------------------------------------------------------------------------

-- The lease or waiter of a run ends, and so does the run. was: its state; how: LEASE_RELEASED
-- and so on. For a waiter the first event counts, not the latest by the time someone looks.
CREATE OR REPLACE FUNCTION run_lost(run_seq bigint, was int, how int, due_ms bigint,
                                    deadline_ms bigint, reason text,
                                    now bigint, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r     run;
    event text;
BEGIN
    SELECT * INTO r FROM run WHERE run.seq = run_seq AND run.state < @RUN_ENDED@;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF was = @LEASE_WAITING@ THEN
        event := CASE WHEN now < due_ms THEN 'leave' WHEN due_ms >= deadline_ms THEN 'deadline'
                      ELSE 'silent' END;
    ELSE
        event := CASE WHEN how = @LEASE_RELEASED@ THEN 'release'
                      WHEN how = @LEASE_BROKEN@ THEN 'break'
                      WHEN was = @LEASE_OFFERED@ THEN 'silent' ELSE 'expire' END;
    END IF;
    PERFORM run_end(r, event, reason, wall);
END $$;

-- Its waiter has become an offered lease.
CREATE OR REPLACE FUNCTION run_offered(run_seq bigint, offer bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE run SET fence = offer, ticket = 0 WHERE seq = run_seq AND state = @RUN_PENDING@;
END $$;

-- Its offer was confirmed: it is RUNNING.
CREATE OR REPLACE FUNCTION run_confirmed(run_seq bigint, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    r run;
BEGIN
    UPDATE run SET state = @RUN_ON_START@, ticket = 0, started_ms = wall, updated_ms = wall
        WHERE seq = run_seq AND state = @RUN_PENDING@
    RETURNING * INTO r;
    IF FOUND THEN
        PERFORM wake(r.tenant, r.id, '#run');
    END IF;
END $$;

-- Why it should stop, if a stop was requested.
CREATE OR REPLACE FUNCTION run_stop(run_seq bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT error FROM run WHERE seq = run_seq AND state < @RUN_ENDED@ AND cancelled = 1);
END $$;

-- Its lease will be broken: it should stop.
CREATE OR REPLACE FUNCTION run_broken(run_seq bigint, reason text, wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM run_ask_stop(r, 'broken: ' || coalesce(reason, ''), wall) FROM run r
            WHERE r.seq = run_seq AND r.state < @RUN_ENDED@;
END $$;

-- Its waiter, which the caller removes, was cancelled to break a cycle of holders.
CREATE OR REPLACE FUNCTION run_cancelled_cycle(run_seq bigint, verdict text, now bigint,
                                               wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM run_end(r, 'cycle', verdict, wall) FROM run r
            WHERE r.seq = run_seq AND r.state < @RUN_ENDED@;
END $$;

-- ---- the sweep ----------------------------------------------------------------------------------

-- Delete slots of rates that have not counted for a whole window. They do not count as purged. It
-- needs no mutex of the classes: a row that a start has locked gets a new slot, and is skipped; a
-- start that needs a place whose row is being deleted waits for that, and inserts it. No start
-- misses a row, not even one whose time was read up to a window before the sweep's.
CREATE OR REPLACE FUNCTION rates_forget(now bigint, most int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    span bigint;
BEGIN
    FOREACH span IN ARRAY ARRAY[@RATE_MINUTE_MS@, @RATE_HOUR_MS@] LOOP
        DELETE FROM rate
         WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM rate r
                                  WHERE r.span_ms + 0 = span AND r.slot + 0 <= rate_old(span, now)
                       -- mutant rates_kept: ORDER BY r.slot + 0 LIMIT 0 FOR UPDATE SKIP LOCKED));
                                  ORDER BY r.slot + 0 LIMIT most FOR UPDATE SKIP LOCKED));
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION overdue_rates(now bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM unnest(ARRAY[@RATE_MINUTE_MS@, @RATE_HOUR_MS@]) AS w (span)
                    WHERE (SELECT r.slot + 0 FROM rate r WHERE r.span_ms + 0 = w.span
                            ORDER BY r.span_ms + 0, r.slot + 0 LIMIT 1) <= rate_old(w.span, now));
END $$;

-- Purge runs past their retention, the first to expire first. No mutex is needed: an ended run
-- never changes. Runs that another sweep is about to purge are skipped.
CREATE OR REPLACE FUNCTION v_x_sweep_runs(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    seqs bigint[];
BEGIN
    PERFORM rates_forget(now, (o->>'limit')::int);
    -- By their locations, which are locked: the planner cannot choose another path to the rows.
    WITH gone AS (
        DELETE FROM run
         WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM run r WHERE r.purge_ms <= wall
                                  ORDER BY r.purge_ms, r.seq LIMIT (o->>'limit')::int
                                           FOR UPDATE SKIP LOCKED))
        RETURNING seq
    )
    SELECT array_agg(seq) INTO seqs FROM gone;
    DELETE FROM run_log WHERE run = ANY (seqs);
    RETURN jsonb_build_object('status', @STATUS_OK@,
        'sweep', jsonb_build_object('n_purged', coalesce(cardinality(seqs), 0)),
        'flags', CASE WHEN overdue_runs(now, wall) THEN @OUT_MORE@ ELSE 0 END);
END $$;

CREATE OR REPLACE FUNCTION overdue_runs(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- The start of the index. (For an EXISTS the planner assumes that a scan of the table will soon
    -- find one.)
    RETURN coalesce((SELECT r.purge_ms FROM run r WHERE r.purge_ms IS NOT NULL
                     ORDER BY r.purge_ms, r.seq LIMIT 1) <= wall,
                    false);
END $$;
