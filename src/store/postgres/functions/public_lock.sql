-- public_lock: locks for programs in any language: SELECT * FROM interlock.acquire('event:101',
-- 'me', interval '30 s').
--
-- Each function takes the mutex of its key and keeps it until the end of the transaction, so
-- acquire, renew, release and break_lease are meant to run in a transaction of their own.
-- check_fence is meant for the caller's transaction: it ties a lease to the writes in that
-- transaction. Names work as in the library: a holder names one attempt and must not be reused for
-- the next. The statuses are those of docs/STATUSES.md.

-- ---- what they share ----------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION status_name(status int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE status WHEN @STATUS_OK@ THEN 'OK'
                       WHEN @STATUS_HELD@ THEN 'LOCK_HELD'
                       WHEN @STATUS_QUEUED@ THEN 'QUEUED'
                       WHEN @STATUS_LOST@ THEN 'LEASE_LOST'
                       WHEN @STATUS_NOT_HELD@ THEN 'NOT_HELD'
                       WHEN @STATUS_STALE@ THEN 'FENCE_STALE'
                       WHEN @STATUS_DEADLOCK@ THEN 'DEADLOCK'
                       WHEN @STATUS_ORDER@ THEN 'LOCK_ORDER_VIOLATION'
                       WHEN @STATUS_MISMATCH@ THEN 'MISMATCH' END
$$;

CREATE OR REPLACE FUNCTION mode_name(mode int) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE mode WHEN @MODE_EXCLUSIVE@ THEN 'exclusive'
                     WHEN @MODE_SHARED@ THEN 'shared'
                     WHEN @MODE_PERMIT@ THEN 'permit' END
$$;

CREATE OR REPLACE FUNCTION at_ms(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT to_timestamp(ms / 1000.0)
$$;

CREATE OR REPLACE FUNCTION interval_ms(i interval) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(epoch FROM i) * 1000)::bigint
$$;

-- An invalid argument.
CREATE OR REPLACE FUNCTION refuse(what text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', what USING ERRCODE = 'invalid_parameter_value';
END
$$;

-- A name: not empty, at most n bytes, without control characters.
CREATE OR REPLACE FUNCTION check_name(what text, name text, n int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NULL OR name = '' THEN
        PERFORM refuse(format('no %s given', what));
    ELSIF octet_length(name) > n THEN
        PERFORM refuse(format('the %s is longer than %s bytes', what, n));
    ELSIF name ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        PERFORM refuse(format('the %s contains a control character', what));
    END IF;
END
$$;

-- A time between two bounds, in milliseconds.
CREATE OR REPLACE FUNCTION check_ms(what text, i interval, least_ms bigint, most_ms bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := interval_ms(i);
BEGIN
    IF ms IS NULL OR ms < least_ms OR ms > most_ms THEN
        PERFORM refuse(format('the %s must be between %s and %s', what,
                              make_interval(secs => least_ms / 1000.0),
                              make_interval(secs => most_ms / 1000.0)));
    END IF;
    RETURN ms;
END
$$;

-- Send the wake-ups, if any. Here it happens inside the caller's transaction, because no one can do
-- it after the commit. The payload is limited, so there may be several.
CREATE OR REPLACE FUNCTION wakes_notify() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w       jsonb;
    name    text;
    payload text := '';
BEGIN
    FOR w IN SELECT * FROM jsonb_array_elements(coalesce(wakes_take(), '[]')) LOOP
        name := concat(w ->> 0, E'\x1f', w ->> 1, E'\x1f', w ->> 2);
        IF octet_length(payload) + octet_length(name) > 7000 THEN
            PERFORM pg_notify('interlock_' || current_schema(), payload);
            payload := '';
        END IF;
        payload := concat_ws(E'\x1e', nullif(payload, ''), name);
    END LOOP;
    IF payload <> '' THEN
        PERFORM pg_notify('interlock_' || current_schema(), payload);
    END IF;
END
$$;

-- One op on a key: the mutex first, then the time, then the verb; like apply().
CREATE OR REPLACE FUNCTION lock_call(o jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now  bigint;
    head jsonb;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Interlock requires a READ COMMITTED transaction'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock(mutex(@MUTEX_KEY@, o ->> 'tenant', o ->> 'key'));
    now := clock_ms();
    CASE o ->> 'op'
    WHEN 'acquire' THEN head := v_acquire(o, NULL, now, now);
    WHEN 'renew'   THEN head := v_renew(o, NULL, now, now);
    WHEN 'release' THEN head := v_release(o, NULL, now, now);
    WHEN 'break'   THEN head := v_break(o, NULL, now, now);
    END CASE;
    PERFORM wakes_notify();
    RETURN head || jsonb_build_object('now_ms', now);
END
$$;

-- ---- the functions ------------------------------------------------------------------------------

-- Take a key. Granted: `fence` and `expires_at`. LOCK_HELD: by whom, until when. With a `wait`,
-- QUEUED: then repeat the same call at least every 15 seconds, or the place in the queue is lost;
-- and whenever the channel interlock_SCHEMA names this key and holder: its turn has come, and must
-- be taken within 2 seconds. wait => NULL waits forever. Repeating the call of a holder that has
-- the key renews the lease, so a call whose reply was lost can be repeated.
CREATE OR REPLACE FUNCTION acquire(key text, holder text, ttl interval DEFAULT '30 s',
                                   wait interval DEFAULT '0',
                                   mode text DEFAULT 'exclusive', permits int DEFAULT 0,
                                   meta text DEFAULT '',
                                   place text DEFAULT '', settle interval DEFAULT '0',
                                   tenant text DEFAULT 'default')
RETURNS TABLE (granted boolean, status text, fence bigint, expires_at timestamptz, ticket bigint,
               "position" int,
               held_by text, held_until timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    m    int := CASE mode WHEN 'exclusive' THEN @MODE_EXCLUSIVE@
                          WHEN 'shared' THEN @MODE_SHARED@
                          WHEN 'permit' THEN @MODE_PERMIT@ END;
    wait_ms bigint := -1;
    head jsonb;
BEGIN
    PERFORM check_name('tenant', tenant, @TENANT_BYTES_MAX@),
            check_name('key', key, @KEY_BYTES_MAX@),
            check_name('holder', holder, @HOLDER_BYTES_MAX@);
    IF m IS NULL THEN
        PERFORM refuse('the mode must be exclusive, shared or permit');
    ELSIF permits IS NULL OR (m = @MODE_PERMIT@) <> (permits > 0)
          OR permits NOT BETWEEN 0 AND @PERMITS_MAX@ THEN
        PERFORM refuse('permits must be between 1 and @PERMITS_MAX@ with mode permit, '
                       'and 0 otherwise');
    ELSIF meta IS NULL OR octet_length(meta) > @META_BYTES_MAX@ THEN
        PERFORM refuse('the meta must not be NULL or longer than @META_BYTES_MAX@ bytes');
    ELSIF place IS NULL OR octet_length(place) > @PLACE_BYTES_MAX@ THEN
        PERFORM refuse('the place must not be NULL or longer than @PLACE_BYTES_MAX@ bytes');
    END IF;
    IF wait IS NOT NULL THEN
        wait_ms := check_ms('wait', wait, 0, @WAIT_MS_MAX@);
    END IF;
    head := lock_call(jsonb_build_object(
        'op', 'acquire', 'tenant', tenant, 'key', key, 'holder', holder,
        'ttl_ms', check_ms('ttl', ttl, @TTL_MS_MIN@, @TTL_MS_MAX@),
        'wait_ms', wait_ms, 'settle_ms', check_ms('settle', settle, 0, @TTL_MS_MAX@),
        'mode', m, 'permits', permits, 'meta', meta, 'place', place));
    granted := (head ->> 'status')::int = @STATUS_OK@;
    status  := status_name((head ->> 'status')::int);
    detail  := coalesce(head ->> 'detail', head ->> 'say');
    IF granted THEN
        fence      := (head ->> 'fence')::bigint;
        expires_at := at_ms((head ->> 'now_ms')::bigint + (head ->> 'remaining_ms')::bigint);
    ELSE
        ticket     := (head ->> 'ticket')::bigint;
        "position" := (head ->> 'position')::int;
        held_by    := head -> 'items' -> 0 ->> 'holder';
        held_until := at_ms((head -> 'items' -> 0 ->> 'due_ms')::bigint);
    END IF;
    RETURN NEXT;
END
$$;

-- A sign of life: the lease lasts for another ttl (NULL: as before). Refused if the lease is no
-- longer current: then stop.
CREATE OR REPLACE FUNCTION renew(key text, holder text, fence bigint, ttl interval DEFAULT NULL,
                                 tenant text DEFAULT 'default')
RETURNS TABLE (renewed boolean, status text, expires_at timestamptz, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    o    jsonb := jsonb_build_object('op', 'renew', 'tenant', tenant, 'key', key, 'holder', holder,
                                     'fence', fence);
    head jsonb;
BEGIN
    PERFORM check_name('tenant', tenant, @TENANT_BYTES_MAX@),
            check_name('key', key, @KEY_BYTES_MAX@),
            check_name('holder', holder, @HOLDER_BYTES_MAX@);
    IF ttl IS NOT NULL THEN
        o := o || jsonb_build_object('ttl_ms', check_ms('ttl', ttl, @TTL_MS_MIN@, @TTL_MS_MAX@));
    END IF;
    head    := lock_call(o);
    renewed := (head ->> 'status')::int = @STATUS_OK@;
    status  := status_name((head ->> 'status')::int);
    detail  := coalesce(head ->> 'detail', head ->> 'say');
    IF renewed THEN
        expires_at := at_ms((head ->> 'now_ms')::bigint + (head ->> 'remaining_ms')::bigint);
    END IF;
    RETURN NEXT;
END
$$;

-- Release a key. Repeating it within a minute returns OK again.
CREATE OR REPLACE FUNCTION release(key text, holder text, fence bigint,
                                   tenant text DEFAULT 'default')
RETURNS TABLE (released boolean, status text, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    head jsonb;
BEGIN
    PERFORM check_name('tenant', tenant, @TENANT_BYTES_MAX@),
            check_name('key', key, @KEY_BYTES_MAX@),
            check_name('holder', holder, @HOLDER_BYTES_MAX@);
    head     := lock_call(jsonb_build_object('op', 'release', 'tenant', tenant, 'key', key,
                                             'holder', holder, 'fence', fence));
    released := (head ->> 'status')::int = @STATUS_OK@;
    status   := status_name((head ->> 'status')::int);
    detail   := coalesce(head ->> 'detail', head ->> 'say');
    RETURN NEXT;
END
$$;

-- Take a lease away from its holder, who is notified. The key stays closed until the holder has
-- released it or its time is over; at_once => true opens it now.
CREATE OR REPLACE FUNCTION break_lease(key text, fence bigint, reason text,
                                       at_once boolean DEFAULT false,
                                       tenant text DEFAULT 'default')
RETURNS TABLE (broken boolean, status text, held_by text, detail text)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    head jsonb;
BEGIN
    PERFORM check_name('tenant', tenant, @TENANT_BYTES_MAX@),
            check_name('key', key, @KEY_BYTES_MAX@),
            check_name('reason', reason, @PLACE_BYTES_MAX@);
    head    := lock_call(jsonb_build_object('op', 'break', 'tenant', tenant, 'key', key,
                                            'fence', fence, 'reason', reason,
                                            'flags', at_once::int * @FLAG_BREAK_NOW@));
    broken  := (head ->> 'status')::int = @STATUS_OK@;
    status  := status_name((head ->> 'status')::int);
    held_by := head -> 'items' -> 0 ->> 'holder';
    detail  := coalesce(head ->> 'detail', head ->> 'say');
    RETURN NEXT;
END
$$;

-- In the caller's own transaction, before its writes: true, or an error with SQLSTATE IL001 if this
-- fence does not belong to a lease that is held now. Race-free: the lease's row is locked FOR KEY
-- SHARE until the end of the transaction, and taking an expired lease over requires locking that
-- row; a release meanwhile leaves the key closed (lease_linger()). So whatever this transaction
-- writes is committed before the key's next fence is granted. With an older snapshot: see
-- fence_was_current().
CREATE OR REPLACE FUNCTION check_fence(key text, fence bigint, tenant text DEFAULT 'default')
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    IF fence_is_current(tenant, key, fence) IS NOT TRUE THEN
        RAISE EXCEPTION 'stale fence % for key %', fence, quote_nullable(key)
            USING ERRCODE = 'IL001',
                  DETAIL = coalesce('The current fence is '
                                    || nullif(newest_fence(tenant, key), 0) || '.',
                                    'The key is not held.'),
                  HINT = 'Roll back and acquire the key again.';
    END IF;
    PERFORM show_fence(tenant, key, fence); -- for guarded tables
    RETURN true;
END
$$;

-- The holders of a key. No rows: none.
CREATE OR REPLACE FUNCTION holders(key text, tenant text DEFAULT 'default')
RETURNS TABLE (holder text, fence bigint, mode text, permits int, state text,
               acquired_at timestamptz, renewed_at timestamptz,
               expires_at timestamptz, reason text, meta text, place text)
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now bigint := clock_ms();
BEGIN
    RETURN QUERY
        SELECT l.holder, l.fence, mode_name(l.mode), l.permits,
               CASE WHEN l.expires_ms <= now THEN 'closing'
                    WHEN l.state = @LEASE_OFFERED@ THEN 'offered'
                    WHEN l.state = @LEASE_HELD@ THEN 'held' ELSE 'closing' END,
               at_ms(l.granted_ms), at_ms(l.renewed_ms),
               at_ms(l.expires_ms + CASE WHEN l.expires_ms <= now THEN l.settle_ms ELSE 0 END),
               l.reason, l.meta, l.place
          FROM leases_of_key(holders.tenant, holders.key) l
         WHERE lease_is_seen(l.state, l.expires_ms, l.settle_ms, now)
         ORDER BY l.fence;
END
$$;

-- The waiters of a key, in order.
CREATE OR REPLACE FUNCTION waiters(key text, tenant text DEFAULT 'default')
RETURNS TABLE ("position" int, holder text, ticket bigint, mode text, permits int,
               queued_at timestamptz,
               deadline_at timestamptz, meta text, place text)
LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now bigint := clock_ms();
BEGIN
    RETURN QUERY
        SELECT (row_number() OVER (ORDER BY w.ticket))::int, w.holder, w.ticket,
               mode_name(w.mode), w.permits, at_ms(w.queued_ms),
               at_ms(nullif(w.deadline_ms, @NEVER@)), w.meta, w.place
          FROM waiter w
         WHERE w.tenant = waiters.tenant AND w.key = waiters.key AND w.verdict = ''
           AND w.drop_ms > now
         ORDER BY w.ticket;
END
$$;

-- Recovery and clean-up, at most `most` of each kind; true: there is more to do. Every process that
-- has the library open does this by itself; a store that is used only from SQL needs it every few
-- seconds, for example from pg_cron. Only the library searches for deadlocks and runs schedules.
CREATE OR REPLACE FUNCTION sweep(most int DEFAULT 1000, OUT more boolean)
LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    verb text;
BEGIN
    IF most IS NULL OR most < 1 OR most > 1000000 THEN
        PERFORM refuse('most must be between 1 and 1,000,000');
    END IF;
    PERFORM batch_begin('{}'); -- each part takes the mutexes that it needs
    more := false;
    FOREACH verb IN ARRAY ARRAY['x_sweep_locks', 'x_sweep_runs', 'x_sweep_once', 'x_sweep_jobs',
                                'x_sweep_done', 'x_sweep_cache', 'x_sweep_history'] LOOP
        more := more
                OR coalesce((apply_head(jsonb_build_object('op', verb, 'limit', most), NULL,
                                        clock_ms(), clock_ms()) ->> 'flags')::int, 0)
                   & @OUT_MORE@ <> 0;
    END LOOP;
    PERFORM wakes_notify();
END
$$;
