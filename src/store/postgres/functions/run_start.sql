-- run_start.sql: starting runs, as the table of src/core/runs.md says. A start is an acquire of the key by the run's holder, with
-- a decision before it about the runs of the key that are live.
--
-- Race-free because the mutexes of the id and of the key are held (run.sql): of two starts at once the second one sees the run of
-- the first. Limits of a tenant have a mutex of their own.

-- The acquire inside a start.
CREATE OR REPLACE FUNCTION run_lock_op(o jsonb, meta text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (o - '{id,policy,queue_max,keep_ms,trigger,by,meta,progress,flags,live_max,day_max}'::text[])
           || jsonb_strip_nulls(jsonb_build_object('op', 'acquire', 'meta', meta));
END $$;

-- The results of that acquire, and the run as it is now.
CREATE OR REPLACE FUNCTION run_beside(head jsonb, r_seq bigint, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN head || (SELECT jsonb_build_object('now_ms', now, 'wall_ms', wall, 'runs', jsonb_build_array(run_json(r, now)))
                      FROM run r WHERE r.seq = r_seq);
END $$;

-- HELD, with the lease in the way, if there is one, and the run, if one is given.
CREATE OR REPLACE FUNCTION run_held(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    head jsonb := lock_held(o->>'tenant', o->>'key', NULL, NULL, now, wall);
BEGIN
    RETURN CASE WHEN r.seq IS NULL THEN head ELSE run_beside(head, r.seq, now, wall) END;
END $$;

-- May this holder want the key, which is settled, for a run? NULL, or why not.
CREATE OR REPLACE FUNCTION run_unwanted(o jsonb, now bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    own  lease;
    said jsonb;
BEGIN
    SELECT * INTO own FROM lease_of_holder(o->>'tenant', o->>'key', o->>'holder', now) l WHERE l.state < 5;
    IF own.state = 4 OR own.expires_ms <= now THEN
        RETURN jsonb_build_object('status', 3, 'say', 'closing', 'reason', own.reason); -- LOST
    ELSIF own.state IS NOT NULL THEN
        RETURN '{"status": 8, "say": "has_otherwise"}'; -- MISMATCH
    END IF;
    said := acquire_refused(o, now);
    IF (said->>'status')::int = 3 THEN -- LOST
        RETURN said;
    ELSIF EXISTS (SELECT 1 FROM waiter w
                   WHERE w.root = unit_of(o->>'tenant', o->>'holder') AND w.key = o->>'key' AND w.holder = o->>'holder') THEN
        RETURN '{"status": 8, "say": "waits_otherwise"}'; -- MISMATCH
    END IF;
    RETURN said;
END $$;

-- A run takes the key, which is free.
CREATE OR REPLACE FUNCTION run_grant(lock jsonb, r_seq bigint, now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    holds jsonb  := lock_learn(lock, now);
    fence bigint := lease_grant(lock, r_seq, now);
BEGIN
    RETURN jsonb_build_object('status', 0, 'fence', fence, 'remaining_ms', lock->'ttl_ms') || holds;
END $$;

-- The live run of a key that is told to others: the RUNNING one, else the oldest PENDING one.
CREATE OR REPLACE FUNCTION run_in_the_way(t text, k text) RETURNS run LANGUAGE plpgsql STABLE AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run x WHERE x.live = t || E'\x1f' || k ORDER BY x.state DESC, x.seq LIMIT 1;
    RETURN r;
END $$;

-- ---- a run that exists ------------------------------------------------------------------------------------------

-- Somebody wants to execute a slot: it is RUNNING from now on, if nothing is in its way.
CREATE OR REPLACE FUNCTION run_start_slot(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
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
    UPDATE run SET state = 2, holder = o->>'holder', fence = (head->>'fence')::bigint, ttl_ms = (o->>'ttl_ms')::bigint,
                   started_ms = wall, updated_ms = wall
     WHERE run.seq = r.seq;
    PERFORM wake(r.tenant, r.id, '#run');
    RETURN run_beside(head, r.seq, now, wall);
END $$;

-- This holder repeats the start of a run that it executes or waits for: an acquire repeated.
CREATE OR REPLACE FUNCTION run_start_again(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    head jsonb := acquire_do(run_lock_op(o, o->>'meta'), r.seq, now, wall);
BEGIN
    IF (head->>'status')::int = 3 THEN -- LOST
        head := head || jsonb_build_object('fence', r.fence);
    END IF;
    RETURN run_beside(head, r.seq, now, wall);
END $$;

CREATE OR REPLACE FUNCTION run_start_known(o jsonb, r run, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    slot    boolean := coalesce((o->>'flags')::int, 0) & 4 <> 0;
    is_slot boolean := r.state = 1 AND r.fence = 0 AND r.ticket = 0;
BEGIN
    IF r.state > 2 THEN
        RETURN run_head(r, 27, now, wall) || '{"say": "run_refuse"}'; -- STATE
    ELSIF is_slot AND slot THEN
        RETURN run_head(r, 0, now, wall) || '{"flags": 1}'; -- RENEWED
    ELSIF is_slot THEN
        RETURN run_start_slot(o, r, now, wall);
    ELSIF slot OR r.holder <> o->>'holder' THEN
        RETURN run_head(r, 18, now, wall); -- DUPLICATE
    END IF;
    RETURN run_start_again(o, r, now, wall);
END $$;

-- ---- a new run ----------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION run_add(o jsonb, r_seq bigint, r_state int, holder text, fence bigint, ticket bigint, wall bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run (seq, tenant, id, key, holder, fence, ticket, state, cancelled, finished, error, trigger_, by_, meta,
                     ttl_ms, keep_ms, created_ms, started_ms, updated_ms, live)
    VALUES (r_seq, o->>'tenant', o->>'id', o->>'key', holder, fence, ticket, r_state, 0, 0, '', coalesce(o->>'trigger', ''),
            coalesce(o->>'by', ''), coalesce(o->>'meta', ''), (o->>'ttl_ms')::bigint, (o->>'keep_ms')::bigint, wall,
            CASE WHEN r_state = 2 THEN wall ELSE 0 END, wall, (o->>'tenant') || E'\x1f' || (o->>'key'));
    PERFORM wake(o->>'tenant', o->>'id', '#run');
END $$;

-- The new run replaces the pending ones of the key, which end, oldest first, and asks the running one to stop; then the key is
-- given on.
CREATE OR REPLACE FUNCTION run_replace(o jsonb, r_seq bigint, now bigint, wall bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    policy int := coalesce((o->>'policy')::int, 0);
    r      run;
BEGIN
    IF policy < 4 THEN
        RETURN;
    END IF;
    FOR r IN SELECT * FROM run p
              WHERE p.live = (o->>'tenant') || E'\x1f' || (o->>'key') AND p.seq <> r_seq ORDER BY p.seq LOOP
        IF r.state = 1 THEN
            PERFORM run_end(r, 'replace', o->>'id', wall);
            PERFORM run_leave(r, now, wall);
        ELSIF policy = 5 THEN
            PERFORM run_ask_stop(r, 'replaced by run ' || (o->>'id'), wall);
        END IF;
    END LOOP;
    PERFORM key_give_on(o->>'tenant', o->>'key', now, wall);
END $$;

-- The new run takes the key or queues for it; then those that it replaces end, and its turn may have come already.
CREATE OR REPLACE FUNCTION run_place(o jsonb, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r_seq bigint := nextval('ticket_seq');
    lock  jsonb  := run_lock_op(o, o->>'meta');
    head  jsonb;
BEGIN
    IF key_is_free(o->>'tenant', o->>'key') THEN
        head := run_grant(lock, r_seq, now);
        PERFORM run_add(o, r_seq, 2, o->>'holder', (head->>'fence')::bigint, 0, wall);
        PERFORM run_replace(o, r_seq, now, wall);
    ELSE
        PERFORM run_add(o, r_seq, 1, o->>'holder', 0, waiter_add(lock, r_seq, now), wall);
        PERFORM run_replace(o, r_seq, now, wall);
        head := lock_enqueued(lock, now, wall);
    END IF;
    RETURN run_beside(head, r_seq, now, wall);
END $$;

CREATE OR REPLACE FUNCTION run_begin(o jsonb, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r_seq bigint;
BEGIN
    IF coalesce((o->>'flags')::int, 0) & 4 = 0 THEN
        RETURN run_place(o, now, wall);
    END IF;
    r_seq := nextval('ticket_seq'); -- a slot
    PERFORM run_add(o, r_seq, 1, '', 0, 0, wall);
    PERFORM run_replace(o, r_seq, now, wall);
    RETURN run_beside('{"status": 0}', r_seq, now, wall);
END $$;

-- The limit of the tenant that one more run of this class would pass: as an answer, or NULL. Race-free because the mutex of the tenant's class is held (mutexes_run), and every
-- start that counts takes it: what another has made is committed, and seen. A run that ends at the same moment may still count. Live ones are found in an
-- index of their own, as a range of the keys that begin with the class, and what is overdue is left out, as are those that the new run replaces; the day's are counted
-- along run_day, so as many are looked at as may count. (The order is that of the index: else a plan for any class might read history until it has found enough.)
CREATE OR REPLACE FUNCTION run_limited(o jsonb, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    t        text   := o->>'tenant';
    k        text   := o->>'key';
    class    text   := split_part(k, ':', 1);
    live_max bigint := (o->>'live_max')::bigint;
    day_max  bigint := (o->>'day_max')::bigint;
    replaced int    := CASE (o->>'policy')::int WHEN 4 THEN 1 WHEN 5 THEN 2 ELSE 0 END;
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
        IF n >= live_max THEN
            RETURN '{"status": 17, "say": "run_live_limit"}'; -- LIMIT
        END IF;
    END IF;
    IF day_max IS NOT NULL THEN
        SELECT count(*) INTO n
          FROM (SELECT 1 FROM run r
                 WHERE r.tenant || E'\x1f' || split_part(r.key, ':', 1) = t || E'\x1f' || class AND r.created_ms + 0 >= wall - wall % 86400000
                 ORDER BY r.created_ms + 0 DESC LIMIT day_max) AS today;
        IF n >= day_max THEN
            RETURN '{"status": 17, "say": "run_day_limit"}'; -- LIMIT
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION run_begin_limited(o jsonb, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    head jsonb;
BEGIN
    IF o ? 'live_max' OR o ? 'day_max' THEN
        head := run_limited(o, now, wall);
    END IF;
    RETURN coalesce(head, run_begin(o, now, wall));
END $$;

CREATE OR REPLACE FUNCTION run_start_new(o jsonb, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    policy int := coalesce((o->>'policy')::int, 0);
    other  run := run_in_the_way(o->>'tenant', o->>'key');
    n      bigint;
BEGIN
    IF other.seq IS NULL THEN
        IF (policy >= 3 AND coalesce((o->>'flags')::int, 0) & 4 = 0) OR key_is_free(o->>'tenant', o->>'key') THEN
            RETURN run_begin_limited(o, now, wall);
        END IF;
        RETURN run_held(o, NULL, now, wall);
    ELSIF policy = 0 THEN -- join
        UPDATE run SET n_joined = n_joined + 1 WHERE run.seq = other.seq RETURNING * INTO other;
        RETURN run_head(other, 18, now, wall); -- DUPLICATE
    ELSIF policy = 2 THEN -- skip
        RETURN run_head(other, 18, now, wall) || '{"flags": 16}'; -- DUPLICATE, SKIPPED
    ELSIF policy = 1 THEN -- reject
        RETURN run_held(o, other, now, wall);
    ELSIF policy = 3 THEN -- queue
        SELECT count(*) INTO n FROM run r WHERE r.live = other.live AND r.state = 1;
        IF n >= (o->>'queue_max')::bigint THEN
            RETURN jsonb_build_object('status', 17, 'say', 'run_limit', 'n', n); -- LIMIT
        END IF;
    END IF;
    RETURN run_begin_limited(o, now, wall);
END $$;

CREATE OR REPLACE FUNCTION v_run_start(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    r    run;
    head jsonb;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF r.key <> o->>'key' THEN
        RETURN run_head(r, 8, now, wall) || '{"say": "run_other_key"}'; -- MISMATCH
    END IF;
    PERFORM key_settle(o->>'tenant', o->>'key', now, wall);
    IF r.seq IS NOT NULL THEN
        SELECT * INTO r FROM run WHERE run.seq = r.seq; -- it may have ended just now
        RETURN run_start_known(o, r, now, wall);
    END IF;
    IF coalesce((o->>'flags')::int, 0) & 4 = 0 THEN -- a slot takes nothing
        head := run_unwanted(o, now);
        IF head IS NOT NULL THEN
            RETURN head;
        END IF;
    END IF;
    RETURN run_start_new(o, now, wall);
END $$;
