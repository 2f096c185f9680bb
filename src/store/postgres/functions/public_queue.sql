-- public_queue: queues for programs in any language: SELECT * FROM interlock.push('mail', '{"to":
-- 7}').
--
-- push and finish are meant for the caller's own transaction: the job exists, or has ended, if and
-- only if that commits. Workers do not block on it meanwhile: a pushed job is invisible before the
-- commit, and recovery of dead claims skips a job that is being finished. claim belongs in a
-- transaction of its own: its jobs are the worker's only after the commit. The other functions may
-- be used either way. On commit, NOTIFY wakes the library's waiting workers. Schedules tick
-- wherever a program with the library runs, not by a claim from here.
--
-- Several queues, parents or unique keys in one transaction: two transactions that name them in
-- different orders may deadlock, and PostgreSQL aborts one of them (40P01).
--
-- push also works in REPEATABLE READ and SERIALIZABLE. The others require READ COMMITTED, since
-- they must see what was committed before they got their mutexes. push decides by an old snapshot,
-- but whatever it has missed conflicts with what it writes, and PostgreSQL then raises 40001:
--   its id, its place among the children of its parent, or its queue was inserted meanwhile: ON
--     CONFLICT finds a row that is not in the snapshot;
--   its unique key was taken: the same, or the row to update was updated since;
--   the job that keeps its unique key has ended, or the one with its id was purged: push_confirm()
--     locks a row that was changed or deleted since;
--   its parent ended or was sealed: job_find() locks a row that was changed or deleted since;
--   the settings of its queue were changed: job_call() locks a row that was changed since.

-- ---- what they share ----------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION job_status_name(status int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE status WHEN @STATUS_OK@ THEN 'OK'
                       WHEN @STATUS_STALE@ THEN 'FENCE_STALE'
                       WHEN @STATUS_MISMATCH@ THEN 'MISMATCH'
                       WHEN @STATUS_LIMIT@ THEN 'LIMIT_EXCEEDED'
                       WHEN @STATUS_DUPLICATE@ THEN 'DUPLICATE'
                       WHEN @STATUS_EMPTY@ THEN 'EMPTY'
                       WHEN @STATUS_NOT_FOUND@ THEN 'NOT_FOUND'
                       WHEN @STATUS_STATE@ THEN 'WRONG_STATE' END
$$;

CREATE OR REPLACE FUNCTION job_state_name(state int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state WHEN @JOB_SCHEDULED@ THEN 'SCHEDULED'
                      WHEN @JOB_READY@ THEN 'READY'
                      WHEN @JOB_RUNNING@ THEN 'RUNNING'
                      WHEN @JOB_COMPLETED@ THEN 'COMPLETED'
                      WHEN @JOB_FAILED@ THEN 'FAILED'
                      WHEN @JOB_CANCELLED@ THEN 'CANCELLED' END
$$;

-- The optional names of a request.
CREATE OR REPLACE FUNCTION check_optional(what text, name text, n int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NOT NULL THEN
        PERFORM check_name(what, name, n);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION check_bytes(what text, data bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF data IS NULL OR length(data) > @BLOB_BYTES_MAX@ THEN
        PERFORM refuse(format('the %s must not be NULL or longer than @BLOB_BYTES_MAX@ bytes',
                              what));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION check_text(what text, t text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(t) > @TEXT_BYTES_MAX@ THEN
        PERFORM refuse(format('the %s is longer than @TEXT_BYTES_MAX@ bytes', what));
    END IF;
END
$$;

-- One request: its mutexes first, then the time, then the verb; like apply(). Head and parts.
CREATE OR REPLACE FUNCTION job_call(o jsonb, d bytea) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        IF o ->> 'op' <> 'push' THEN
            RAISE EXCEPTION 'Interlock requires a READ COMMITTED transaction'
                USING ERRCODE = 'invalid_transaction_state';
        END IF;
        -- The lock only serves to raise that error. It is released at once, by the end of a
        -- subtransaction: others may pause the queue while this transaction is open.
        BEGIN
            PERFORM FROM queue WHERE tenant = o ->> 'tenant'
                    AND name = o ->> 'key' FOR SHARE SKIP LOCKED;
            RAISE EXCEPTION USING ERRCODE = 'IL999';
        EXCEPTION WHEN SQLSTATE 'IL999' THEN
        END;
    END IF;
    PERFORM mutexes_take(ARRAY(SELECT m FROM mutexes_queue(o) AS m));
    now := clock_ms();
    CASE o ->> 'op'
    WHEN 'push'       THEN RETURN QUERY SELECT * FROM v_push(o, d, now, now);
    WHEN 'claim'      THEN RETURN QUERY SELECT * FROM v_claim(o, d, now, now);
    WHEN 'job_cancel' THEN RETURN QUERY SELECT * FROM v_job_cancel(o, d, now, now);
    WHEN 'job_retry'  THEN RETURN QUERY SELECT * FROM v_job_retry(o, d, now, now);
    WHEN 'job_seal'   THEN RETURN QUERY SELECT * FROM v_job_seal(o, d, now, now);
    WHEN 'heartbeat'  THEN RETURN QUERY SELECT * FROM v_heartbeat(o, d, now, now);
    ELSE RETURN QUERY SELECT * FROM job_op(o, d, now, now); -- finish, fail, snooze
    END CASE;
END
$$;

-- The same for requests about one job: its new state, as the columns that most of the functions
-- below return.
CREATE OR REPLACE FUNCTION job_call_one(o jsonb, d bytea, OUT head jsonb, OUT shown jsonb)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r job_reply;
BEGIN
    IF o ? 'id' THEN
        PERFORM check_name('id of the job', o ->> 'id', @ID_BYTES_MAX@);
    END IF;
    PERFORM check_name('tenant', o ->> 'tenant', @TENANT_BYTES_MAX@);
    FOR r IN SELECT * FROM job_call(jsonb_strip_nulls(o), d) LOOP
        IF head IS NULL THEN
            head := r.out;
        ELSE
            shown := r.out;
        END IF;
    END LOOP;
    PERFORM wakes_notify();
END
$$;

-- ---- pushing ------------------------------------------------------------------------------------

-- Push a job. `id` names it permanently: pushing it again returns OK and changes nothing, or
-- MISMATCH with another queue or payload. At most group_limit jobs of a `group_key` run at once.
-- While a job with this `unique_key` is live, and for `unique_for` after its push, another one is a
-- DUPLICATE, and `job` is the existing one. A `parent` completes after its children: push it with
-- `children` => how many will come (0: until seal()), and the children with `parent` => its id.
CREATE OR REPLACE FUNCTION push(queue text, payload bytea, id text DEFAULT NULL,
                                priority int DEFAULT 0, delay interval DEFAULT '0',
                                run_at timestamptz DEFAULT NULL, group_key text DEFAULT NULL,
                                unique_key text DEFAULT NULL,
                                unique_for interval DEFAULT NULL, parent text DEFAULT NULL,
                                children int DEFAULT NULL,
                                max_attempts int DEFAULT NULL, tenant text DEFAULT 'default')
RETURNS TABLE (job text, status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    delay_ms bigint := check_ms('delay', delay, 0, @DELAY_MS_MAX@);
    at_ms_   bigint := CASE WHEN NOT isfinite(run_at) THEN -1
                            ELSE (extract(epoch FROM run_at) * 1000)::bigint END;
    x        record;
BEGIN
    PERFORM check_name('queue', queue, @QUEUE_BYTES_MAX@),
            check_optional('group_key', group_key, @KEY_BYTES_MAX@),
            check_optional('unique_key', unique_key, @KEY_BYTES_MAX@),
            check_optional('parent', parent, @ID_BYTES_MAX@), check_bytes('payload', payload);
    IF priority IS NULL OR priority NOT BETWEEN -@PRIORITY_MAX@ AND @PRIORITY_MAX@ THEN
        PERFORM refuse('the priority must be between -@PRIORITY_MAX@ and @PRIORITY_MAX@');
    ELSIF max_attempts NOT BETWEEN 1 AND @ATTEMPTS_MAX@ THEN
        PERFORM refuse('max_attempts must be between 1 and @ATTEMPTS_MAX@');
    ELSIF delay_ms > 0 AND run_at IS NOT NULL THEN
        PERFORM refuse('delay and run_at cannot be combined');
    ELSIF unique_for IS NOT NULL AND unique_key IS NULL THEN
        PERFORM refuse('unique_for needs unique_key');
    ELSIF children < 0 OR children IS NOT NULL
          AND (parent IS NOT NULL OR group_key IS NOT NULL OR delay_ms > 0
               OR run_at IS NOT NULL) THEN
        PERFORM refuse('a parent cannot have a parent, group or delay, '
                       'and children must not be negative');
    ELSIF at_ms_ NOT BETWEEN 1 AND @TIME_MS_MAX@ THEN
        PERFORM refuse('run_at must be between 1970 and 9999');
    END IF;
    SELECT * INTO x FROM job_call_one(
        jsonb_build_object(
            'op', 'push', 'tenant', tenant, 'key', queue,
            'id', coalesce(id, gen_random_uuid()::text), 'priority', priority,
            'delay_ms', nullif(delay_ms, 0), 'run_at_ms', at_ms_, 'group', group_key,
            'unique_key', unique_key,
            'unique_for_ms', CASE WHEN unique_for IS NOT NULL
                              THEN check_ms('unique_for', unique_for, 1, @DELAY_MS_MAX@) END,
            'parent', parent, 'n_children', nullif(children, 0),
            'flags', CASE WHEN children IS NOT NULL THEN @FLAG_PUSH_PARENT@ END,
            'max_attempts', max_attempts), payload);
    job    := x.shown ->> 'id';
    status := job_status_name((x.head ->> 'status')::int);
    state  := job_state_name((x.shown ->> 'state')::int);
    due_at := at_ms((x.shown ->> 'run_at_ms')::bigint);
    detail := x.head ->> 'say';
    RETURN NEXT;
END
$$;

-- The same with a text, which is stored as UTF-8, or with JSON.
CREATE OR REPLACE FUNCTION push(queue text, payload text DEFAULT '', id text DEFAULT NULL,
                                priority int DEFAULT 0, delay interval DEFAULT '0',
                                run_at timestamptz DEFAULT NULL, group_key text DEFAULT NULL,
                                unique_key text DEFAULT NULL,
                                unique_for interval DEFAULT NULL, parent text DEFAULT NULL,
                                children int DEFAULT NULL,
                                max_attempts int DEFAULT NULL, tenant text DEFAULT 'default')
RETURNS TABLE (job text, status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY SELECT *
                 FROM push(queue, convert_to(payload, 'UTF8'), id, priority, delay, run_at,
                           group_key, unique_key, unique_for,
                                    parent, children, max_attempts, tenant);
END
$$;

CREATE OR REPLACE FUNCTION push(queue text, payload jsonb, id text DEFAULT NULL,
                                priority int DEFAULT 0, delay interval DEFAULT '0',
                                run_at timestamptz DEFAULT NULL, group_key text DEFAULT NULL,
                                unique_key text DEFAULT NULL,
                                unique_for interval DEFAULT NULL, parent text DEFAULT NULL,
                                children int DEFAULT NULL,
                                max_attempts int DEFAULT NULL, tenant text DEFAULT 'default')
RETURNS TABLE (job text, status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY SELECT *
                 FROM push(queue, convert_to(payload::text, 'UTF8'), id, priority, delay, run_at,
                           group_key, unique_key,
                                    unique_for, parent, children, max_attempts, tenant);
END
$$;

-- ---- working ------------------------------------------------------------------------------------

-- Claim up to n jobs, ordered by priority, run_at, push; no rows: there are none now. Each belongs
-- to this worker until `expires_at`, unless extended with heartbeat(); a `silent` worker sends
-- none, and has as much time as the queue's timeouts allow. A claim whose reply was lost can be
-- repeated with the same claim_id within a minute, and returns the same jobs.
CREATE OR REPLACE FUNCTION claim(queue text, worker text, n int DEFAULT 1,
                                 lease interval DEFAULT NULL, silent boolean DEFAULT false,
                                 claim_id text DEFAULT NULL, tenant text DEFAULT 'default')
RETURNS TABLE (job text, token bigint, payload bytea, attempt int, max_attempts int, priority int,
               group_key text, parent text,
               error text, created_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    o jsonb := jsonb_build_object('op', 'claim', 'tenant', tenant, 'key', queue, 'holder', worker,
                                  'limit', n, 'ticked', 1, 'open', 1,
                                  'id', coalesce(claim_id, gen_random_uuid()::text),
                                  'flags', silent::int * @FLAG_CLAIM_SILENT@);
    r job_reply;
    j jsonb;
    w jsonb;
BEGIN
    PERFORM check_name('tenant', tenant, @TENANT_BYTES_MAX@),
            check_name('queue', queue, @QUEUE_BYTES_MAX@),
            check_name('worker', worker, @HOLDER_BYTES_MAX@),
            check_optional('claim_id', claim_id, @ID_BYTES_MAX@);
    IF n IS NULL OR n NOT BETWEEN 1 AND @CLAIM_JOBS_MAX@ THEN
        PERFORM refuse('n must be between 1 and @CLAIM_JOBS_MAX@');
    END IF;
    IF lease IS NOT NULL THEN
        o := o || jsonb_build_object('lease_ms',
                                     check_ms('lease', lease, @TTL_MS_MIN@, @TTL_MS_MAX@));
    END IF;
    FOR r IN SELECT * FROM job_call(o, NULL) LOOP
        j            := r.out;
        CONTINUE WHEN j ? 'status'; -- the head
        job          := j ->> 'id';
        token        := (j ->> 'token')::bigint;
        payload      := r.data;
        attempt      := (j ->> 'attempt')::int;
        max_attempts := (j ->> 'max_attempts')::int;
        priority     := (j ->> 'priority')::int;
        group_key    := j ->> 'group';
        parent       := j ->> 'parent';
        error        := j ->> 'error';
        created_at   := at_ms((j ->> 'created_at_ms')::bigint);
        expires_at   := at_ms((j ->> 'expires_ms')::bigint);
        RETURN NEXT;
    END LOOP;
    -- Those who watch one of these jobs notice within a few seconds; other workers are notified at
    -- once of jobs that have become due.
    FOR w IN SELECT * FROM jsonb_array_elements(coalesce(wakes_take(), '[]')) LOOP
        IF w ->> 2 IS DISTINCT FROM '#job' THEN
            PERFORM wakes_add(w::text || ',');
        END IF;
    END LOOP;
    PERFORM wakes_notify();
END
$$;

-- A sign of life. Not `alive`: the job belongs to another worker, or has ended: stop. `cancelled`:
-- it should be stopped, `reason` says why; then fail() it.
CREATE OR REPLACE FUNCTION heartbeat(job text, token bigint, lease interval DEFAULT NULL,
                                     progress int DEFAULT NULL, message text DEFAULT NULL,
                                     tenant text DEFAULT 'default')
RETURNS TABLE (alive boolean, status text, cancelled boolean, reason text, expires_at timestamptz)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    x record;
BEGIN
    PERFORM check_text('message', message);
    IF progress NOT BETWEEN 0 AND 100 THEN
        PERFORM refuse('the progress must be between 0 and 100');
    END IF;
    SELECT * INTO x FROM job_call_one(jsonb_build_object(
        'op', 'heartbeat', 'tenant', tenant, 'id', job, 'fence', coalesce(token, 0),
        'progress', coalesce(progress, -1), 'text', message,
        'lease_ms', CASE WHEN lease IS NOT NULL
                         THEN check_ms('lease', lease, @TTL_MS_MIN@, @TTL_MS_MAX@) END),
        NULL);
    status := job_status_name((x.head ->> 'status')::int);
    alive  := status = 'OK';
    IF alive THEN
        cancelled  := coalesce((x.head ->> 'flags')::int, 0) & @OUT_CANCEL@ <> 0;
        reason     := x.head ->> 'detail';
        expires_at := at_ms((x.shown ->> 'expires_ms')::bigint);
    END IF;
    RETURN NEXT;
END
$$;

-- The job is done: true, or an error with SQLSTATE IL001 if it no longer belongs to this worker, so
-- that a transaction that does this beside its writes does not commit. Repeated with the same
-- result it returns true again. Race-free: the job's row is deleted here, and taking the job away
-- requires locking that row first.
CREATE OR REPLACE FUNCTION finish(job text, token bigint, result bytea,
                                  tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    x record;
BEGIN
    PERFORM check_bytes('result', result);
    SELECT * INTO x
      FROM job_call_one(jsonb_build_object('op', 'job_finish', 'tenant', tenant, 'id', job,
                                           'fence', coalesce(token, 0)), result);
    IF (x.head ->> 'status')::int <> @STATUS_OK@ THEN
        RAISE EXCEPTION 'cannot finish job % with token %', quote_nullable(job), token
            USING ERRCODE = 'IL001',
                  DETAIL = CASE (x.head ->> 'status')::int
                           WHEN @STATUS_NOT_FOUND@ THEN 'The job does not exist.'
                           WHEN @STATUS_MISMATCH@
                                THEN 'It was already finished with a different result.'
                           ELSE format('It is %s.', job_state_name((x.shown ->> 'state')::int)) END,
                  HINT = 'Roll back; the claim has ended.';
    END IF;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION finish(job text, token bigint, result text DEFAULT '',
                                  tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN finish(job, token, convert_to(result, 'UTF8'), tenant);
END
$$;

CREATE OR REPLACE FUNCTION finish(job text, token bigint, result jsonb,
                                  tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN finish(job, token, convert_to(result::text, 'UTF8'), tenant);
END
$$;

-- The new state of a job, for the functions below.
CREATE OR REPLACE FUNCTION job_became(o jsonb)
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    x record;
BEGIN
    SELECT * INTO x FROM job_call_one(o, NULL);
    status := job_status_name((x.head ->> 'status')::int);
    state  := job_state_name((x.shown ->> 'state')::int);
    due_at := CASE WHEN state IN ('SCHEDULED', 'READY')
                   THEN at_ms((x.shown ->> 'run_at_ms')::bigint) END;
    detail := x.head ->> 'say';
    RETURN NEXT;
END
$$;

-- The attempt failed: another one follows after `retry_in` (NULL: a backoff that doubles each
-- time), unless none is left, or `final`.
CREATE OR REPLACE FUNCTION fail(job text, token bigint, error text DEFAULT '',
                                retry_in interval DEFAULT NULL, final boolean DEFAULT false,
                                tenant text DEFAULT 'default')
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM check_text('error', error);
    RETURN QUERY SELECT * FROM job_became(jsonb_build_object(
        'op', 'job_fail', 'tenant', tenant, 'id', job, 'fence', coalesce(token, 0), 'text', error,
        'flags', final::int * @FLAG_FAIL_FINAL@,
        'delay_ms', CASE WHEN retry_in IS NOT NULL
                         THEN nullif(check_ms('retry_in', retry_in, 0, @DELAY_MS_MAX@), 0) END));
END
$$;

-- Put the job back until later; the attempt does not count.
CREATE OR REPLACE FUNCTION snooze(job text, token bigint, delay interval,
                                  tenant text DEFAULT 'default')
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY SELECT * FROM job_became(jsonb_build_object(
        'op', 'snooze', 'tenant', tenant, 'id', job, 'fence', coalesce(token, 0),
        'delay_ms', nullif(check_ms('delay', delay, 0, @DELAY_MS_MAX@), 0)));
END
$$;

-- ---- operating ----------------------------------------------------------------------------------

-- Cancel a job. A running one is asked to stop at its next heartbeat; at_once => true takes it away
-- from its worker. A parent is cancelled with its children.
CREATE OR REPLACE FUNCTION cancel(job text, reason text DEFAULT NULL, at_once boolean DEFAULT false,
                                  tenant text DEFAULT 'default')
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM check_optional('reason', reason, @PLACE_BYTES_MAX@);
    RETURN QUERY SELECT * FROM job_became(jsonb_build_object(
        'op', 'job_cancel', 'tenant', tenant, 'id', job, 'text', reason,
        'flags', at_once::int * @FLAG_CANCEL_NOW@));
END
$$;

-- Run a FAILED or CANCELLED job again, or a SCHEDULED one now.
CREATE OR REPLACE FUNCTION retry(job text, tenant text DEFAULT 'default')
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY SELECT *
                 FROM job_became(jsonb_build_object('op', 'job_retry', 'tenant', tenant,
                                                    'id', job));
END
$$;

-- No more children of a parent will come: it ends with the last of them.
CREATE OR REPLACE FUNCTION seal(job text, tenant text DEFAULT 'default')
RETURNS TABLE (status text, state text, due_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY SELECT *
                 FROM job_became(jsonb_build_object('op', 'job_seal', 'tenant', tenant, 'id', job));
END
$$;
