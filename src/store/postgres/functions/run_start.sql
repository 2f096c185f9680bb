-- run_start.sql: starts runs. The decision table is in src/core/runs.md. A start is an acquire of
-- the key by the run's holder, preceded by a decision about the live runs of that key.
--
-- Race-free because the mutexes of the id and of the key are held (run.sql): of two concurrent
-- starts, the second sees the run of the first. The limits of a tenant have a separate mutex.

-- The acquire inside a start.
CREATE OR REPLACE FUNCTION run_lock_op(o jsonb, meta text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (o - '{id,policy,queue_max,keep_ms,trigger,by,meta,progress,flags,'
                'live_max,day_max,minute_max,hour_max}'::text[])
           || jsonb_strip_nulls(jsonb_build_object('op', 'acquire', 'meta', meta));
END $$;

-- The results of that acquire, and the current run.
CREATE OR REPLACE FUNCTION run_beside(head jsonb, r_seq bigint, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN head || (SELECT jsonb_build_object('now_ms', now, 'wall_ms', wall,
                                              'runs', jsonb_build_array(run_json(r, now)))
                      FROM run r WHERE r.seq = r_seq);
END $$;

-- HELD, with the conflicting lease, if any, and the run, if given.
CREATE OR REPLACE FUNCTION run_held(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    head jsonb := lock_held(o->>'tenant', o->>'key', NULL, NULL, now, wall);
BEGIN
    RETURN CASE WHEN r.seq IS NULL THEN head ELSE run_beside(head, r.seq, now, wall) END;
END $$;

-- May this holder request the key, where nothing is overdue, for a run? NULL, or why not.
CREATE OR REPLACE FUNCTION run_unwanted(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    own  lease;
    said jsonb;
BEGIN
    SELECT * INTO own FROM lease_of_holder(o->>'tenant', o->>'key', o->>'holder', now) l
     WHERE l.state < @LEASE_ENDED@;
    IF own.state = @LEASE_CLOSING@ OR own.expires_ms <= now THEN
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'closing', 'reason', own.reason);
    ELSIF own.state IS NOT NULL THEN
        RETURN '{"status": @STATUS_MISMATCH@, "say": "has_otherwise"}';
    END IF;
    said := acquire_refused(o, now);
    IF (said->>'status')::int = @STATUS_LOST@ THEN
        RETURN said;
    ELSIF EXISTS (SELECT 1 FROM waiter w
                   WHERE w.root = unit_of(o->>'tenant', o->>'holder') AND w.key = o->>'key'
                     AND w.holder = o->>'holder') THEN
        RETURN '{"status": @STATUS_MISMATCH@, "say": "waits_otherwise"}';
    END IF;
    RETURN said;
END $$;

-- A run takes the key, which is free.
CREATE OR REPLACE FUNCTION run_grant(lock jsonb, r_seq bigint, now bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    holds jsonb  := lock_learn(lock, now);
    fence bigint := lease_grant(lock, r_seq, now);
BEGIN
    RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', fence, 'remaining_ms', lock->'ttl_ms')
           || holds;
END $$;

-- The live run of a key that others are told about: the RUNNING one, otherwise the oldest PENDING
-- one.
CREATE OR REPLACE FUNCTION run_in_the_way(t text, k text) RETURNS run LANGUAGE plpgsql STABLE AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run x WHERE x.live = t || E'\x1f' || k ORDER BY x.state DESC, x.seq
           LIMIT 1;
    RETURN r;
END $$;

-- ---- a run that exists --------------------------------------------------------------------------

-- A caller wants to execute a slot: it becomes RUNNING, if nothing is in its way.
CREATE OR REPLACE FUNCTION run_start_slot(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    head  jsonb   := run_unwanted(o, now);
    free  boolean := key_is_free(r.tenant, r.key);
    other run     := run_in_the_way(r.tenant, r.key);
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    ELSIF NOT free OR other.seq <> r.seq THEN
        head := run_held(o, CASE WHEN other.seq <> r.seq THEN other END, now, wall);
        RETURN CASE WHEN free THEN head || '{"say": "older_pending"}' ELSE head END;
    END IF;
    head := run_grant(run_lock_op(o, r.meta), r.seq, now);
    UPDATE run SET state = @RUN_ON_START@, holder = o->>'holder', fence = (head->>'fence')::bigint,
        ttl_ms = (o->>'ttl_ms')::bigint,
                   started_ms = wall, updated_ms = wall
     WHERE run.seq = r.seq;
    PERFORM wake(r.tenant, r.id, '#run');
    RETURN run_beside(head, r.seq, now, wall);
END $$;

-- The holder repeats the start of a run that it executes or waits for: a repeated acquire.
CREATE OR REPLACE FUNCTION run_start_again(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    head jsonb := acquire_do(run_lock_op(o, o->>'meta'), r.seq, now, wall);
BEGIN
    IF (head->>'status')::int = @STATUS_LOST@ THEN
        head := head || jsonb_build_object('fence', r.fence);
    END IF;
    RETURN run_beside(head, r.seq, now, wall);
END $$;

CREATE OR REPLACE FUNCTION run_start_known(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    slot    boolean := coalesce((o->>'flags')::int, 0) & @FLAG_RUN_SLOT@ <> 0;
    is_slot boolean := r.state = @RUN_PENDING@ AND r.fence = 0 AND r.ticket = 0;
BEGIN
    IF r.state >= @RUN_ENDED@ THEN
        RETURN run_head(r, @STATUS_STATE@, now, wall) || '{"say": "run_refuse"}';
    ELSIF is_slot AND slot THEN
        RETURN run_head(r, @STATUS_OK@, now, wall) || '{"flags": @OUT_RENEWED@}';
    ELSIF is_slot THEN
        RETURN run_start_slot(o, r, now, wall);
    ELSIF slot OR r.holder <> o->>'holder' THEN
        RETURN run_head(r, @STATUS_DUPLICATE@, now, wall);
    END IF;
    RETURN run_start_again(o, r, now, wall);
END $$;

-- ---- a new run ----------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION run_add(o jsonb, r_seq bigint, r_state int, holder text, fence bigint,
                                   ticket bigint, wall bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run (seq, tenant, id, key, holder, fence, ticket, state, cancelled, finished, error,
                     trigger_, by_, meta,
                     ttl_ms, keep_ms, created_ms, started_ms, updated_ms, live)
    VALUES (r_seq, o->>'tenant', o->>'id', o->>'key', holder, fence, ticket, r_state, 0, 0, '',
            coalesce(o->>'trigger', ''),
            coalesce(o->>'by', ''), coalesce(o->>'meta', ''), (o->>'ttl_ms')::bigint,
            (o->>'keep_ms')::bigint, wall,
            CASE WHEN r_state = @RUN_RUNNING@ THEN wall ELSE 0 END, wall,
            (o->>'tenant') || E'\x1f' || (o->>'key'));
    PERFORM wake(o->>'tenant', o->>'id', '#run');
END $$;

-- The new run replaces the pending ones of the key, which end, oldest first, and asks the running
-- one to stop; then the key goes to the next waiter.
CREATE OR REPLACE FUNCTION run_replace(o jsonb, r_seq bigint, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    policy int := coalesce((o->>'policy')::int, @POLICY_JOIN@);
    r      run;
BEGIN
    IF policy < @POLICY_REPLACE_PENDING@ THEN
        RETURN;
    END IF;
    FOR r IN SELECT * FROM run p
              WHERE p.live = (o->>'tenant') || E'\x1f' || (o->>'key') AND p.seq <> r_seq
              ORDER BY p.seq LOOP
        IF r.state = @RUN_PENDING@ THEN
            PERFORM run_end(r, 'replace', o->>'id', wall);
            PERFORM run_leave(r, now, wall);
        ELSIF policy = @POLICY_CANCEL_RUNNING@ THEN
            PERFORM run_ask_stop(r, 'replaced by run ' || (o->>'id'), wall);
        END IF;
    END LOOP;
    PERFORM key_offer_next(o->>'tenant', o->>'key', now, wall);
END $$;

-- The new run takes the key or queues for it; then the runs that it replaces end, and its turn may
-- have come already.
CREATE OR REPLACE FUNCTION run_place(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r_seq bigint := nextval('ticket_seq');
    lock  jsonb  := run_lock_op(o, o->>'meta');
    head  jsonb;
BEGIN
    IF key_is_free(o->>'tenant', o->>'key') THEN
        head := run_grant(lock, r_seq, now);
        PERFORM run_add(o, r_seq, @RUN_ON_START@, o->>'holder', (head->>'fence')::bigint, 0, wall);
        PERFORM run_replace(o, r_seq, now, wall);
    ELSE
        PERFORM run_add(o, r_seq, @RUN_ON_QUEUE@, o->>'holder', 0, waiter_add(lock, r_seq, now),
                        wall);
        PERFORM run_replace(o, r_seq, now, wall);
        head := lock_enqueued(lock, now, wall);
    END IF;
    RETURN run_beside(head, r_seq, now, wall);
END $$;

CREATE OR REPLACE FUNCTION run_begin(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r_seq bigint;
BEGIN
    IF coalesce((o->>'flags')::int, 0) & @FLAG_RUN_SLOT@ = 0 THEN
        RETURN run_place(o, now, wall);
    END IF;
    r_seq := nextval('ticket_seq'); -- a slot
    PERFORM run_add(o, r_seq, @RUN_ON_QUEUE@, '', 0, 0, wall);
    PERFORM run_replace(o, r_seq, now, wall);
    RETURN run_beside('{"status": @STATUS_OK@}', r_seq, now, wall);
END $$;

-- The tenant's limit that one more run of this class would exceed: as a reply, or NULL. Race-free
-- because the mutex of the tenant's class is held (mutexes_run), and every start that counts takes
-- it: the runs of other starts are committed, and seen. A run that ends at the same moment may
-- still count. Live runs are found in a separate index, as a range of the keys that begin with the
-- class, without overdue ones and those that the new run replaces; the day's are counted along
-- run_day, so no more are read than may count. (The order is that of the index: otherwise a plan
-- for any class might read history until it has found enough.)
CREATE OR REPLACE FUNCTION run_limited(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t        text   := o->>'tenant';
    k        text   := o->>'key';
    class    text   := split_part(k, ':', 1);
    live_max bigint := (o->>'live_max')::bigint;
    day_max  bigint := (o->>'day_max')::bigint;
    replaced int    := CASE (o->>'policy')::int
                       WHEN @POLICY_REPLACE_PENDING@ THEN @RUN_PENDING@
                       WHEN @POLICY_CANCEL_RUNNING@ THEN @RUN_RUNNING@
                       ELSE @RUN_NONE@ END;
    n        bigint;
BEGIN
    IF live_max IS NOT NULL THEN
        SELECT count(*) INTO n
          FROM (SELECT 1
                  FROM run r
                 WHERE r.live >= t || E'\x1f' || class AND r.live < t || E'\x1f' || class || ';'
                   AND (r.key = class OR r.key >= class || ':')
                   AND NOT (r.key = k AND r.state <= replaced) AND run_there(r, now)
                 ORDER BY r.live, r.seq LIMIT live_max) AS live;
        -- mutant run_limit_ignored: IF live_max = 0 AND n > 0 THEN
        IF n >= live_max THEN
            RETURN '{"status": @STATUS_LIMIT@, "say": "run_live_limit"}';
        END IF;
    END IF;
    IF day_max IS NOT NULL THEN
        SELECT count(*) INTO n
          FROM (SELECT 1 FROM run r
                 WHERE r.tenant || E'\x1f' || split_part(r.key, ':', 1) = t || E'\x1f' || class
                   AND r.created_ms + 0 >= wall - wall % 86400000
                 ORDER BY r.created_ms + 0 DESC LIMIT day_max) AS today;
        IF n >= day_max THEN
            RETURN '{"status": @STATUS_LIMIT@, "say": "run_day_limit"}';
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION run_begin_limited(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    head jsonb;
BEGIN
    IF o ? 'live_max' OR o ? 'day_max' THEN
        head := run_limited(o, now, wall);
    END IF;
    RETURN coalesce(head, run_begin(o, now, wall));
END $$;

CREATE OR REPLACE FUNCTION run_start_new(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    policy int := coalesce((o->>'policy')::int, @POLICY_JOIN@);
    other  run := run_in_the_way(o->>'tenant', o->>'key');
    n      bigint;
BEGIN
    IF other.seq IS NULL THEN
        IF (policy >= @POLICY_QUEUE@ AND coalesce((o->>'flags')::int, 0) & @FLAG_RUN_SLOT@ = 0)
           OR key_is_free(o->>'tenant', o->>'key') THEN
            RETURN run_begin_limited(o, now, wall);
        END IF;
        RETURN run_held(o, NULL, now, wall);
    ELSIF policy = @POLICY_JOIN@ THEN
        UPDATE run SET n_joined = n_joined + 1 WHERE run.seq = other.seq RETURNING * INTO other;
        RETURN run_head(other, @STATUS_DUPLICATE@, now, wall);
    ELSIF policy = @POLICY_SKIP@ THEN
        RETURN run_head(other, @STATUS_DUPLICATE@, now, wall) || '{"flags": @OUT_SKIPPED@}';
    ELSIF policy = @POLICY_REJECT@ THEN
        RETURN run_held(o, other, now, wall);
    ELSIF policy = @POLICY_QUEUE@ THEN
        SELECT count(*) INTO n FROM run r WHERE r.live = other.live AND r.state = @RUN_PENDING@;
        IF n >= (o->>'queue_max')::bigint THEN
            RETURN jsonb_build_object('status', @STATUS_LIMIT@, 'say', 'run_limit', 'n', n);
        END IF;
    END IF;
    RETURN run_begin_limited(o, now, wall);
END $$;

-- The windows of rates, as defined in core/run.h: the length of a slot follows from its window.
CREATE OR REPLACE FUNCTION run_rates(o jsonb, now bigint)
RETURNS TABLE (max bigint, span_ms bigint, slot_ms bigint, slot bigint, say text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT (o->>w.name)::bigint, w.span_ms, w.span_ms / (@RATE_SLOTS@ - 1) + 1,
           now / (w.span_ms / (@RATE_SLOTS@ - 1) + 1), w.say
      FROM (VALUES ('minute_max', @RATE_MINUTE_MS@::bigint, 'run_minute_limit'),
            ('hour_max', @RATE_HOUR_MS@, 'run_hour_limit')) AS w (name, span_ms, say)
     WHERE o ? w.name
$$;

-- Sweeps delete slots up to this one, as defined in core/run.h.
CREATE OR REPLACE FUNCTION rate_old(span_ms bigint, now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT now / (span_ms / (@RATE_SLOTS@ - 1) + 1) - 2 * @RATE_SLOTS@
$$;

-- The rate that this start would exceed: as a reply, or NULL. Race-free like run_limited(): every
-- start with a rate holds the mutex of the tenant's class.
CREATE OR REPLACE FUNCTION run_too_often(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    w      record;
    n      bigint;
    oldest bigint;
BEGIN
    FOR w IN SELECT * FROM run_rates(o, now) LOOP
        SELECT coalesce(sum(r.n), 0), min(r.slot) INTO n, oldest
          FROM rate r
         WHERE r.tenant = o->>'tenant' AND r.class = split_part(o->>'key', ':', 1)
           AND r.span_ms = w.span_ms
           -- mutant rate_window_short: AND r.slot > w.slot - 30;
           AND r.slot > w.slot - @RATE_SLOTS@;
        IF n >= w.max THEN
            RETURN jsonb_build_object('status', @STATUS_LIMIT@, 'say', w.say,
                                      'remaining_ms',
                                      greatest((oldest + @RATE_SLOTS@) * w.slot_ms - now, 1));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- A start at a rate: it is counted unless another limit refuses it.
CREATE OR REPLACE FUNCTION run_start_at_rate(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    head jsonb := run_too_often(o, now);
BEGIN
    IF head IS NOT NULL THEN
        RETURN head;
    END IF;
    head := run_start_new(o, now, wall);
    IF (head->>'status')::int <> @STATUS_LIMIT@ THEN
        INSERT INTO rate AS r (tenant, class, span_ms, place, slot, n)
             SELECT o->>'tenant', split_part(o->>'key', ':', 1), w.span_ms, w.slot % @RATE_SLOTS@,
                    w.slot, 1
               FROM run_rates(o, now) AS w
        ON CONFLICT (tenant, class, span_ms, place)
        DO UPDATE SET n = CASE WHEN r.slot = excluded.slot THEN r.n + 1 ELSE 1 END,
            slot = excluded.slot;
    END IF;
    RETURN head;
END $$;

CREATE OR REPLACE FUNCTION v_run_start(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r    run;
    head jsonb;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF r.key <> o->>'key' THEN
        RETURN run_head(r, @STATUS_MISMATCH@, now, wall) || '{"say": "run_other_key"}';
    END IF;
    PERFORM key_expire(o->>'tenant', o->>'key', now, wall);
    IF r.seq IS NOT NULL THEN
        SELECT * INTO r FROM run WHERE run.seq = r.seq; -- it may have ended just now
        RETURN run_start_known(o, r, now, wall);
    END IF;
    IF coalesce((o->>'flags')::int, 0) & @FLAG_RUN_SLOT@ = 0 THEN -- a slot takes nothing
        head := run_unwanted(o, now);
        IF head IS NOT NULL THEN
            RETURN head;
        END IF;
    END IF;
    IF o ? 'minute_max' OR o ? 'hour_max' THEN
        RETURN run_start_at_rate(o, now, wall);
    END IF;
    RETURN run_start_new(o, now, wall);
END $$;
