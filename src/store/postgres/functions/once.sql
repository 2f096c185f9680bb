-- once: idempotency keys. The rules are in src/core/once.md.
--
-- Why this is race-free: begin, finish and abandon of a key hold its mutex until their commit. What
-- they read is still true when they write, with one exception: a sweep, which takes no mutex, may
-- have deleted an expired entry, judged by its own, later clock. So nothing here relies on a row
-- still existing after it was read. get takes no mutex: it reads a key and its answer in one
-- statement, so from one snapshot.

CREATE OR REPLACE FUNCTION mutexes_once(o jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o->>'op' IN ('once_begin', 'once_finish', 'once_abandon') THEN
        RETURN NEXT mutex(@MUTEX_ONCE@, o->>'tenant', o->>'key');
    END IF;
END
$$;

-- ---- begin and get ------------------------------------------------------------------------------

-- Store a claim of the op's attempt, new or renewed, replacing any existing entry. Two callers
-- cannot both claim: the second gets the mutex only after the commit of the first, and then reads
-- this row.
CREATE OR REPLACE FUNCTION once_put(o jsonb, tok bigint, made bigint, says text, said text,
                                    now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    expires bigint := now + (o->>'lease_ms')::bigint;
    keep    bigint := (o->>'keep_ms')::bigint;
BEGIN
    INSERT INTO once (tenant, key, attempt, token, fingerprint, state, expires_ms, keep_ms,
                      purge_ms, created_at,
                      code, meta, before)
    VALUES (o->>'tenant', o->>'key', o->>'holder', tok, decode(o->>'fingerprint', 'hex'),
            @ONCE_RUNNING@, expires, keep,
            expires + keep, made, 0, says, said)
        ON CONFLICT (tenant, key) DO UPDATE
       SET attempt = excluded.attempt, token = excluded.token, fingerprint = excluded.fingerprint,
           state = @ONCE_RUNNING@,
           expires_ms = excluded.expires_ms, keep_ms = excluded.keep_ms,
           purge_ms = excluded.purge_ms,
           created_at = excluded.created_at, code = 0, meta = excluded.meta,
           before = excluded.before;
END
$$;

CREATE OR REPLACE FUNCTION v_once_begin(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e      record;
    head   jsonb;
    answer bytea;
    tok    bigint;
    says   text := o->>'meta';
BEGIN
    SELECT x.*, (SELECT a.response FROM once_answer a WHERE a.token = x.token) AS response,
           CASE x.state WHEN @ONCE_DONE@ THEN wall ELSE now END < x.purge_ms AS is_there INTO e
      FROM once x
     WHERE x.tenant = o->>'tenant' AND x.key = o->>'key';
    IF e.is_there IS NOT TRUE THEN
        tok := fence_draw();
        PERFORM once_put(o, tok, wall, coalesce(says, ''), NULL, now);
        IF e.state = @ONCE_DONE@ THEN
            DELETE FROM once_answer WHERE token = e.token; -- nobody can see it any more
        END IF;
        RETURN NEXT (jsonb_build_object('status', @STATUS_OK@, 'fence', tok,
                                        'remaining_ms', o->'lease_ms', 'meta', ''),
                                        NULL, NULL)::reply;
        RETURN;
    END IF;
    head := jsonb_build_object('fence', e.token, 'meta', e.meta,
                               'age_ms', greatest(wall - e.created_at, 0));
    IF e.fingerprint <> decode(o->>'fingerprint', 'hex') THEN
        head := head || '{"status": @STATUS_MISMATCH@, "say": "other_request"}';
    ELSIF e.state = @ONCE_DONE@ THEN
        head   := head || jsonb_build_object('status', @STATUS_REPLAY@, 'code', e.code,
                                             'remaining_ms', e.purge_ms - wall);
        answer := e.response;
    -- mutant live_claim_taken_over: ELSIF now >= e.expires_ms OR e.attempt <> o->>'holder' THEN
    ELSIF now >= e.expires_ms THEN
        tok := fence_draw();
        PERFORM once_put(o, tok, e.created_at, coalesce(says, e.meta), e.meta, now);
        head := head || jsonb_build_object('status', @STATUS_OK@, 'flags', @OUT_TAKEOVER@,
                                           'fence', tok, 'remaining_ms', o->'lease_ms');
    ELSIF e.attempt <> o->>'holder' THEN
        head := head || jsonb_build_object('status', @STATUS_BUSY@,
                                           'remaining_ms', e.expires_ms - now);
    ELSE
        PERFORM once_put(o, e.token, e.created_at, e.meta, e.before, now);
        head := head || jsonb_build_object('status', @STATUS_OK@,
                                           'flags', @OUT_RENEWED@ + CASE
                                               WHEN e.before IS NULL THEN 0 ELSE @OUT_TAKEOVER@ END,
                                           'meta', coalesce(e.before, ''),
                                           'remaining_ms', o->'lease_ms');
    END IF;
    RETURN NEXT (head, answer, NULL)::reply;
END
$$;

CREATE OR REPLACE FUNCTION v_once_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e    record;
    head jsonb;
BEGIN
    SELECT x.*, (SELECT a.response FROM once_answer a WHERE a.token = x.token) AS response INTO e
      FROM once x
     WHERE x.tenant = o->>'tenant' AND x.key = o->>'key'
       AND CASE x.state WHEN @ONCE_DONE@ THEN wall ELSE now END < x.purge_ms;
    IF NOT FOUND THEN
        RETURN NEXT ('{"status": @STATUS_NOT_FOUND@}', NULL, NULL)::reply;
        RETURN;
    END IF;
    head := jsonb_build_object('fence', e.token, 'meta', e.meta,
                               'age_ms', greatest(wall - e.created_at, 0));
    IF e.state = @ONCE_DONE@ THEN
        head := head || jsonb_build_object('status', @STATUS_REPLAY@, 'code', e.code,
                                           'remaining_ms', e.purge_ms - wall);
    ELSE
        head := head || jsonb_build_object('status', @STATUS_BUSY@,
                                           'remaining_ms', greatest(e.expires_ms - now, 0));
    END IF;
    RETURN NEXT (head, e.response, NULL)::reply;
END
$$;

-- ---- finish and abandon -------------------------------------------------------------------------

-- The entry of the op's key, unless it has expired; all NULL if there is none. (By its key alone:
-- with state or token in the WHERE, a plan made while the table was empty might scan the index of
-- the sweeps.)
CREATE OR REPLACE FUNCTION once_of(o jsonb, now bigint, wall bigint) RETURNS once
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e once;
BEGIN
    SELECT * INTO e FROM once WHERE tenant = o->>'tenant' AND key = o->>'key';
    IF (CASE e.state WHEN @ONCE_DONE@ THEN wall ELSE now END) < e.purge_ms THEN
        RETURN e;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION v_once_finish(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e    once   := once_of(o, now, wall);
    tok  bigint := (o->>'fence')::bigint;
    cod  int    := coalesce((o->>'code')::int, 0);
    head jsonb  := jsonb_strip_nulls(jsonb_build_object('status', @STATUS_STALE@, 'fence', e.token,
                                                        'say', 'not_the_claim'));
BEGIN
    IF e.state = @ONCE_RUNNING@ AND e.token = tok AND e.attempt = o->>'holder'
       AND now < e.expires_ms THEN
        UPDATE once SET state = @ONCE_DONE@, purge_ms = wall + keep_ms, code = cod
            WHERE tenant = o->>'tenant' AND key = o->>'key';
        IF FOUND THEN -- else a sweep was faster: its time is over
            INSERT INTO once_answer (token, response) VALUES (tok, d);
            PERFORM wake(o->>'tenant', o->>'key', '#once');
            head := jsonb_build_object('status', @STATUS_OK@, 'fence', tok,
                                       'remaining_ms', e.keep_ms);
        END IF;
    ELSIF e.state = @ONCE_DONE@ AND e.token = tok THEN
        head := jsonb_build_object('status', @STATUS_OK@, 'fence', tok,
                                   'remaining_ms', e.purge_ms - wall);
        IF e.code <> cod
           OR NOT EXISTS (SELECT FROM once_answer WHERE token = tok AND response = d) THEN
            head := jsonb_build_object('status', @STATUS_MISMATCH@, 'fence', tok,
                                       'say', 'other_answer');
        END IF;
    END IF;
    RETURN NEXT (head, NULL, NULL)::reply;
END
$$;

CREATE OR REPLACE FUNCTION v_once_abandon(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e    once  := once_of(o, now, wall);
    head jsonb := '{"status": @STATUS_OK@}';
BEGIN
    IF e.state = @ONCE_RUNNING@ AND e.token = (o->>'fence')::bigint
       AND e.attempt = o->>'holder' THEN
        DELETE FROM once WHERE tenant = o->>'tenant' AND key = o->>'key';
        PERFORM wake(o->>'tenant', o->>'key', '#once');
    ELSIF e.token IS NOT NULL THEN
        head := jsonb_build_object('status', @STATUS_STALE@, 'fence', e.token,
                                   'say', 'not_the_claim');
    END IF;
    RETURN NEXT (head, NULL, NULL)::reply;
END
$$;

-- ---- retention ----------------------------------------------------------------------------------

-- Delete up to n entries that expired by `until`, and their answers; returns how many. Each row is
-- locked before it is deleted, and checked again if it was changed meanwhile: what was claimed
-- again stays. Rows that are being changed are skipped: a sweep never waits.
CREATE OR REPLACE FUNCTION once_purge(of_state int, until bigint, n int) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    toks bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM once
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM once WHERE state = of_state AND purge_ms <= until
                                  ORDER BY purge_ms, token LIMIT n FOR UPDATE SKIP LOCKED))
     RETURNING token
    )
    SELECT array_agg(token) INTO toks FROM gone;
    IF of_state = @ONCE_DONE@ AND toks IS NOT NULL THEN
        DELETE FROM once_answer WHERE token = ANY (toks);
    END IF;
    RETURN coalesce(cardinality(toks), 0);
END
$$;

CREATE OR REPLACE FUNCTION v_x_sweep_once(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int := (o->>'limit')::int;
BEGIN
    n := once_purge(@ONCE_RUNNING@, now, n) + once_purge(@ONCE_DONE@, wall, n);
    RETURN jsonb_build_object('status', @STATUS_OK@, 'sweep', jsonb_build_object('n_purged', n),
                              'flags', CASE WHEN overdue_once(now, wall) THEN @OUT_MORE@
                                            ELSE 0 END);
END
$$;

-- Has anything expired? Two lookups in the index; as "the first is due" rather than "one that is
-- due exists", so that no plan scans the table until it finds one.
CREATE OR REPLACE FUNCTION overdue_once(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT purge_ms FROM once WHERE state = @ONCE_RUNNING@ ORDER BY purge_ms
                     LIMIT 1) <= now, false)
        OR coalesce((SELECT purge_ms FROM once WHERE state = @ONCE_DONE@ ORDER BY purge_ms
                     LIMIT 1) <= wall, false);
END
$$;
