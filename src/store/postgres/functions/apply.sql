-- apply: the single entry point of the library. It runs a batch of requests, in order, as one
-- statement and so one transaction.
--
-- Why a batch is race-free: it first takes the mutexes of everything its requests touch, and only
-- then reads. In READ COMMITTED each statement in here has its own snapshot, taken after the
-- mutexes were granted. So a verb sees what the previous holder of its mutex committed, and what it
-- sees stays true until our own commit. (The snapshot of a whole transaction would be older than
-- the mutexes, so other isolation levels are refused.)

-- What must be locked before a request is executed; nothing for those that only read. Each family
-- has a function that returns it; where it is only the key, it is returned here, which saves a
-- query.
CREATE OR REPLACE FUNCTION mutexes_of(o jsonb) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    CASE o ->> 'op'
    WHEN 'acquire', 'renew', 'release', 'break', 'refused', 'x_take' THEN
        RETURN ARRAY[mutex(@MUTEX_KEY@, o ->> 'tenant', o ->> 'key')];
    WHEN 'push', 'claim', 'heartbeat', 'job_finish', 'job_fail', 'snooze', 'job_cancel',
         'job_retry', 'job_seal', 'job_purge',
         'queue_set', 'queue_pause', 'cron_set', 'cron_remove', 'x_tick', 'x_sweep_jobs',
         'x_sweep_done' THEN
        RETURN ARRAY(SELECT m FROM mutexes_queue(o) AS m);
    WHEN 'run_start', 'run_stage', 'run_finish', 'run_cancel', 'x_sweep_runs' THEN
        RETURN ARRAY(SELECT m FROM mutexes_run(o) AS m);
    WHEN 'once_begin', 'once_finish', 'once_abandon' THEN
        RETURN ARRAY[mutex(@MUTEX_ONCE@, o ->> 'tenant', o ->> 'key')];
    WHEN 'cache_lookup', 'cache_fill', 'cache_abandon', 'cache_drop' THEN
        RETURN ARRAY[mutex(@MUTEX_CACHE@, o ->> 'tenant', o ->> 'key')];
    WHEN 'x_verdict', 'x_learn', 'x_sweep_locks' THEN
        RETURN ARRAY(SELECT m FROM mutexes_lock(o) AS m);
    WHEN 'x_sweep_once' THEN
        RETURN ARRAY(SELECT m FROM mutexes_once(o) AS m);
    WHEN 'x_sweep_cache' THEN
        RETURN ARRAY(SELECT m FROM mutexes_cache(o) AS m);
    ELSE
        RETURN '{}';
    END CASE;
END
$$;

-- Is it, for certain, a verb that answers with rows? Only the verbs for which speed matters: on
-- first use in a transaction, every WHEN that is evaluated costs a microsecond.
CREATE OR REPLACE FUNCTION apply_has_rows(op text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT op IN ('claim', 'push', 'job_finish', 'heartbeat', 'cache_get', 'cache_lookup',
                  'cache_fill', 'once_begin')
$$;

-- Run one request of a verb that answers with a head alone; NULL: it is none of these.
CREATE OR REPLACE FUNCTION apply_head(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    -- The frequent ones first: a CASE is evaluated from the top.
    CASE o ->> 'op'
    WHEN 'acquire'       THEN RETURN v_acquire(o, d, now, wall);
    WHEN 'release'       THEN RETURN v_release(o, d, now, wall);
    WHEN 'renew'         THEN RETURN v_renew(o, d, now, wall);
    WHEN 'check_fence'   THEN RETURN v_check_fence(o, d, now, wall);
    WHEN 'get'           THEN RETURN v_get(o, d, now, wall);
    WHEN 'list'          THEN RETURN v_list(o, d, now, wall);
    WHEN 'break'         THEN RETURN v_break(o, d, now, wall);
    WHEN 'run_start'     THEN RETURN v_run_start(o, d, now, wall);
    WHEN 'run_stage'     THEN RETURN v_run_stage(o, d, now, wall);
    WHEN 'run_finish'    THEN RETURN v_run_finish(o, d, now, wall);
    WHEN 'run_cancel'    THEN RETURN v_run_cancel(o, d, now, wall);
    WHEN 'run_get'       THEN RETURN v_run_get(o, d, now, wall);
    WHEN 'run_list'      THEN RETURN v_run_list(o, d, now, wall);
    WHEN 'usage'         THEN RETURN v_usage(o, d, now, wall);
    WHEN 'order_list'    THEN RETURN v_order_list(o, d, now, wall);
    WHEN 'refused'       THEN RETURN v_refused(o, d, now, wall);
    WHEN 'history'       THEN RETURN v_history(o, d, now, wall);
    WHEN 'x_overdue'     THEN RETURN v_x_overdue(o, d, now, wall);
    WHEN 'x_waits'       THEN RETURN v_x_waits(o, d, now, wall);
    WHEN 'x_queue'       THEN RETURN v_x_queue(o, d, now, wall);
    WHEN 'x_verdict'     THEN RETURN v_x_verdict(o, d, now, wall);
    WHEN 'x_take'        THEN RETURN v_x_take(o, d, now, wall);
    WHEN 'x_entangled'   THEN RETURN v_x_entangled(o, d, now, wall);
    WHEN 'x_edges'       THEN RETURN v_x_edges(o, d, now, wall);
    WHEN 'x_learn'       THEN RETURN v_x_learn(o, d, now, wall);
    WHEN 'x_tick'        THEN RETURN v_x_tick(o, d, now, wall);
    WHEN 'x_sweep_locks' THEN RETURN v_x_sweep_locks(o, d, now, wall);
    WHEN 'x_sweep_runs'  THEN RETURN v_x_sweep_runs(o, d, now, wall);
    WHEN 'x_sweep_once'  THEN RETURN v_x_sweep_once(o, d, now, wall);
    WHEN 'x_sweep_jobs'  THEN RETURN v_x_sweep_jobs(o, d, now, wall);
    WHEN 'x_sweep_done'  THEN RETURN v_x_sweep_done(o, d, now, wall);
    WHEN 'x_sweep_cache' THEN RETURN v_x_sweep_cache(o, d, now, wall);
    WHEN 'x_sweep_history' THEN RETURN v_x_sweep_history(o, d, now, wall);
    WHEN 'x_settings'    THEN RETURN v_x_settings(o, d, now, wall);
    WHEN 'x_table'       THEN RETURN v_x_table(o, d, now, wall);
    WHEN 'x_guard'       THEN RETURN v_x_guard(o, d, now, wall);
    WHEN 'x_guards'      THEN RETURN v_x_guards(o, d, now, wall);
    ELSE RETURN NULL;
    END CASE;
END
$$;

-- The last request of a run of the same kind that begins with request k.
CREATE OR REPLACE FUNCTION apply_last(os jsonb[], k int) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    op text := os[k] ->> 'op';
BEGIN
    WHILE os[k + 1] ->> 'op' = op LOOP -- NULL behind the last one
        k := k + 1;
    END LOOP;
    RETURN k;
END
$$;

-- The mutexes of a batch. Many requests of one kind are looked up together.
CREATE OR REPLACE FUNCTION mutexes_all(os jsonb[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ms bigint[] := '{}';
    n  int      := cardinality(os);
    k  int      := 1;
    l  int;
    op text;
BEGIN
    WHILE k <= n LOOP
        op := os[k] ->> 'op';
        l  := k;
        IF op = 'push' OR op = 'job_finish' THEN
            l := apply_last(os, k);
        END IF;
        IF l = k THEN
            ms := ms || mutexes_of(os[k]);
        ELSIF op = 'push' THEN
            ms := ms || ARRAY(SELECT m FROM mutexes_push_many(os[k:l]) AS m);
        ELSE
            ms := ms || ARRAY(SELECT m FROM mutexes_finish_many(os[k:l]) AS m);
        END IF;
        k := l + 1;
    END LOOP;
    RETURN ms;
END
$$;

-- Run the requests, once their mutexes are held and the time is known. i: the request a row belongs
-- to, from 0: its head, then its parts. After 50 ms (IL__COMMIT_MS) the remaining requests are
-- left: the caller sends them again, in another transaction, so that others have their turn in
-- between. (The verbs that answer with rows are called here and not in a separate function like the
-- others: passing a set on costs as much as a short verb.)
CREATE OR REPLACE FUNCTION apply_locked(os jsonb[], ds bytea[], now bigint, wall bigint)
RETURNS TABLE (i int, "out" text, data bytea, data2 bytea)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n     int := cardinality(os);
    k     int := 0;
    l     int;
    o     jsonb;
    d     bytea;
    op    text;
    head  jsonb;
    asked boolean     := false;
    until timestamptz := clock_timestamp() + interval '50 ms';
BEGIN
    WHILE k < n AND NOT asked AND (k = 0 OR clock_timestamp() < until) LOOP
        k     := k + 1;
        o     := os[k];
        d     := ds[k];
        op    := o ->> 'op';
        i     := k - 1;
        IF NOT apply_has_rows(op) THEN
            head := apply_head(o, d, now, wall);
            IF head IS NOT NULL THEN
                "out" := head;
                RETURN NEXT;
                asked := head ? 'ask';
                CONTINUE;
            END IF;
        END IF;
        CASE op
        WHEN 'claim' THEN
            FOR "out", data, data2 IN SELECT * FROM v_claim(o, d, now, wall) LOOP
                RETURN NEXT;
                asked := asked OR starts_with("out", '{"ask"');
            END LOOP;
            data  := NULL;
            data2 := NULL;
        WHEN 'cron_set' THEN
            FOR "out", data, data2 IN SELECT * FROM v_cron_set(o, d, now, wall) LOOP
                RETURN NEXT;
                asked := asked OR starts_with("out", '{"ask"');
            END LOOP;
            data  := NULL;
            data2 := NULL;
        WHEN 'job_finish', 'push' THEN
            l := apply_last(os, k);
            IF l > k AND op = 'push' THEN
                RETURN QUERY SELECT k - 2 + q.i, q.out::text, q.data, q.data2
                             FROM push_many(os[k:l], ds[k:l], now, wall) AS q;
                k := l;
            ELSIF l > k THEN
                RETURN QUERY SELECT k - 2 + q.i, q.out::text, q.data, q.data2
                             FROM job_finish_many(os[k:l], ds[k:l], now, wall) AS q;
                k := l;
            ELSIF op = 'push' THEN
                RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                             FROM v_push(o, d, now, wall) AS q;
            ELSE
                RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                             FROM v_job_finish(o, d, now, wall) AS q;
            END IF;
        WHEN 'heartbeat' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_heartbeat(o, d, now, wall) AS q;
        WHEN 'cache_get' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_get(o, d, now, wall) AS q;
        WHEN 'cache_lookup' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_lookup(o, d, now, wall) AS q;
        WHEN 'cache_fill' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_fill(o, d, now, wall) AS q;
        WHEN 'once_begin' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_once_begin(o, d, now, wall) AS q;
        WHEN 'once_finish' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_once_finish(o, d, now, wall) AS q;
        WHEN 'once_abandon' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_once_abandon(o, d, now, wall) AS q;
        WHEN 'once_get' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_once_get(o, d, now, wall) AS q;
        WHEN 'cache_abandon' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_abandon(o, d, now, wall) AS q;
        WHEN 'cache_drop' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_drop(o, d, now, wall) AS q;
        WHEN 'cache_stats' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cache_stats(o, d, now, wall) AS q;
        WHEN 'job_fail' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_fail(o, d, now, wall) AS q;
        WHEN 'snooze' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_snooze(o, d, now, wall) AS q;
        WHEN 'job_cancel' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_cancel(o, d, now, wall) AS q;
        WHEN 'job_retry' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_retry(o, d, now, wall) AS q;
        WHEN 'job_seal' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_seal(o, d, now, wall) AS q;
        WHEN 'job_get' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_get(o, d, now, wall) AS q;
        WHEN 'job_list' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_list(o, d, now, wall) AS q;
        WHEN 'job_purge' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_job_purge(o, d, now, wall) AS q;
        WHEN 'queue_set' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_queue_set(o, d, now, wall) AS q;
        WHEN 'queue_pause' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_queue_pause(o, d, now, wall) AS q;
        WHEN 'queue_list' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_queue_list(o, d, now, wall) AS q;
        WHEN 'cron_remove' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cron_remove(o, d, now, wall) AS q;
        WHEN 'cron_list' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_cron_list(o, d, now, wall) AS q;
        WHEN 'run_log' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_run_log(o, d, now, wall) AS q;
        WHEN 'x_due' THEN
            RETURN QUERY SELECT k - 1, q.out::text, q.data, q.data2
                         FROM v_x_due(o, d, now, wall) AS q;
        ELSE
            RAISE EXCEPTION 'unknown verb "%"', op USING ERRCODE = 'feature_not_supported';
        END CASE;
    END LOOP;
END
$$;

-- ops: a JSON array of requests; datas: their blobs, as many, NULL where there is none; test_now,
-- test_wall: the time, for a store that was created with the test clock, otherwise NULL. After the
-- rows of the requests, one with i = -1 follows if anyone is to be woken: out is the array of
-- wake-ups. (out is text, not jsonb: verbs with many rows build text much faster.)
CREATE OR REPLACE FUNCTION apply(ops jsonb, datas bytea[], test_now bigint, test_wall bigint)
RETURNS TABLE (i int, "out" text, data bytea, data2 bytea)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT
SET enable_seqscan = off -- a plan made while a table was empty is kept when it has grown
-- with the cost that seqscan has now, the planner would think that JIT compilation pays off
SET jit = off
-- avoids planning the first five uses on a connection one by one
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off -- it reads all of a queue before it gives the first row
AS $$
DECLARE
    n      int := jsonb_array_length(ops);
    -- mutant tenant_ignored: o      jsonb := ops -> 0 || '{"tenant": "default"}';
    o      jsonb := ops -> 0;
    op     text := o ->> 'op';
    os     jsonb[];
    -- mutant wall_clock_as_lease_time: now    bigint := test_wall;
    now    bigint := test_now;
    wall   bigint := test_wall;
    locked boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Interlock needs transactions that are READ COMMITTED'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF n = 1 AND op IN ('acquire', 'release', 'renew') THEN
        -- A single one of these is the common case: the same as below on the shortest path, which
        -- saves a tenth of the time.
        locked := pg_advisory_xact_lock(mutex(@MUTEX_KEY@, o ->> 'tenant', o ->> 'key')) IS NULL;
        IF now IS NULL THEN
            now  := clock_ms();
            wall := now;
        END IF;
        IF op = 'acquire' THEN
            "out" := v_acquire(o, NULL, now, wall);
        ELSIF op = 'release' THEN
            "out" := v_release(o, NULL, now, wall);
        ELSE
            "out" := v_renew(o, NULL, now, wall);
        END IF;
        i := 0;
        RETURN NEXT;
    ELSE
        -- mutant tenant_ignored: os := ARRAY(SELECT e.value || '{"tenant": "default"}'
        os := ARRAY(SELECT e.value
                      FROM jsonb_array_elements(ops) WITH ORDINALITY AS e ORDER BY e.ordinality);
        locked := mutexes_take(mutexes_all(os)) IS NULL;
        -- Only now, because the time must not be older than what was done before us.
        IF now IS NULL THEN
            now  := clock_ms();
            wall := now;
        END IF;
        RETURN QUERY SELECT * FROM apply_locked(os, datas, now, wall);
    END IF;
    "out" := wakes_take();
    IF "out" IS NOT NULL THEN
        i := -1;
        RETURN NEXT;
    END IF;
END
$$;

-- Would a sweep find something to do?
CREATE OR REPLACE FUNCTION v_x_overdue(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', @STATUS_OK@,
        'overdue', (overdue_locks(now, wall) OR overdue_runs(now, wall) OR overdue_once(now, wall)
                    OR overdue_queue(now, wall) OR overdue_cache(now, wall)
                    OR overdue_rates(now) OR overdue_history(wall))::int);
END
$$;
