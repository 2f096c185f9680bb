-- run_show.sql: formats runs for replies; get, list, log. They change nothing: a run whose lease
-- has expired is returned as stored, with its lease, and the caller shows it in the state in which
-- it will end (il__run_show).
--
-- All of them are STABLE: several statements read from one snapshot, that of the calling statement.
-- So a run and its lease are consistent although no mutex is held. (Here and in the other files,
-- everything that is not a single expression is PL/pgSQL, because PostgreSQL does not cache the
-- plans of SQL functions.)

-- The lease or waiter of a live run; state NULL: it has none, it is a slot or has ended.
CREATE OR REPLACE FUNCTION run_hold_of(r run) RETURNS run_hold LANGUAGE plpgsql STABLE AS $$
DECLARE
    h run_hold;
BEGIN
    IF r.state >= @RUN_ENDED@ THEN
        RETURN NULL;
    ELSIF r.fence <> 0 THEN
        SELECT l.state, l.ttl_ms, l.expires_ms, 0, l.reason INTO h
          FROM lease l WHERE l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence;
    ELSIF r.ticket <> 0 THEN
        SELECT @LEASE_WAITING@, w.ttl_ms, w.drop_ms, w.deadline_ms, '' INTO h
          FROM waiter w WHERE w.tenant = r.tenant AND w.key = r.key AND w.ticket = r.ticket;
    END IF;
    RETURN h;
END $$;

-- The state in which a run will be shown: il__run_state_at().
CREATE OR REPLACE FUNCTION run_state_at(r run, h run_hold, now bigint) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF r.state >= @RUN_ENDED@ OR h.state IS NULL OR now < h.due_ms THEN
        RETURN r.state;
    ELSIF h.state = @LEASE_WAITING@ THEN -- its wait ran out, or it went silent
        RETURN CASE WHEN h.due_ms >= h.deadline_ms THEN @RUN_ON_DEADLINE@ ELSE @RUN_ON_SILENT@ END;
    ELSIF h.state = @LEASE_CLOSING@ OR r.cancelled = 1 THEN
        RETURN @RUN_CANCELLED@;
    END IF;
    RETURN @RUN_ON_EXPIRE@;
END $$;

-- Has a live run neither a lease nor a waiter that has expired? (By two lookups: with a join the
-- planner might scan all leases.)
CREATE OR REPLACE FUNCTION run_there(r run, now bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (r.fence = 0 OR coalesce((SELECT l.expires_ms > now FROM lease l
                                      WHERE l.tenant = r.tenant AND l.key = r.key
                                        AND l.fence = r.fence), true))
       AND (r.ticket = 0 OR coalesce((SELECT w.drop_ms > now FROM waiter w
                                       WHERE w.tenant = r.tenant AND w.key = r.key
                                         AND w.ticket = r.ticket), true));
END $$;

-- Its place among the pending runs of its key that have not ended. The cost depends on the number
-- of live runs: the index holds nothing else.
CREATE OR REPLACE FUNCTION run_position(r run, now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT count(*)
      FROM run p
     WHERE p.live = r.live AND p.state = @RUN_PENDING@ AND p.seq <= r.seq AND run_there(p, now));
END $$;

-- A run as the wire has it.
CREATE OR REPLACE FUNCTION run_json(r run, now bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h   run_hold := run_hold_of(r);
    out jsonb;
BEGIN
    out := jsonb_build_object(
        'id', r.id, 'key', r.key, 'holder', r.holder, 'trigger', r.trigger_, 'by', r.by_,
        'meta', r.meta,
        'stage', r.stage, 'error', r.error, 'state', r.state, 'cancelled', r.cancelled,
        'n_joined', r.n_joined,
        'progress', r.progress, 'fence', r.fence, 'seq', r.seq, 'log_bytes', r.log_bytes,
        'ttl_ms', r.ttl_ms,
        'created_at_ms', r.created_ms, 'started_at_ms', r.started_ms, 'ended_at_ms', r.ended_ms,
        'updated_at_ms', r.updated_ms);
    IF h.state IS NOT NULL THEN
        out := out || jsonb_build_object('hold_state', h.state, 'hold_ttl_ms', h.ttl_ms,
                                         'hold_due_ms', h.due_ms,
                                         'hold_deadline_ms', h.deadline_ms,
                                         'hold_reason', h.reason);
    END IF;
    IF r.state = @RUN_PENDING@ THEN
        out := out || jsonb_build_object('position', run_position(r, now));
    END IF;
    RETURN out;
END $$;

-- A reply that shows a run. Its fence is that of the run, once it has started.
CREATE OR REPLACE FUNCTION run_head(r run, status int, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('status', status,
                              'fence', CASE WHEN r.state = @RUN_PENDING@ THEN 0 ELSE r.fence END,
                              'now_ms', now, 'wall_ms', wall,
                              'runs', jsonb_build_array(run_json(r, now)));
END $$;

CREATE OR REPLACE FUNCTION v_run_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND THEN
        RETURN '{"status": @STATUS_NOT_FOUND@}';
    END IF;
    RETURN run_head(r, @STATUS_OK@, now, wall);
END $$;

-- ---- the log ------------------------------------------------------------------------------------

-- Start of the kept part: the last 1 MiB (IL_LOG_BYTES_MAX) counts, even if older pieces still
-- exist.
CREATE OR REPLACE FUNCTION run_log_kept(n_bytes bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(n_bytes - @LOG_BYTES_MAX@, 0);
$$;

-- The bytes of a log from `first` up to, but excluding, `past`. No piece is longer than 64 KiB, so
-- none that begins earlier reaches there.
CREATE OR REPLACE FUNCTION run_log_read(seq bigint, first bigint, past bigint) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT coalesce(string_agg(
               substr(l.data, (greatest(first - l.at, 0) + 1)::int,
                      (least(l.at + octet_length(l.data), past) - greatest(l.at, first))::int),
               ''::bytea ORDER BY l.at), ''::bytea)
      FROM run_log l
     WHERE l.run = seq AND l.at > first - @LOG_PIECE_BYTES@ AND l.at < past
       AND l.at + octet_length(l.data) > first);
END $$;

-- At most 64 KiB (IL__LOG_READ_BYTES) from the offset on, but not from before the kept part. Beyond
-- the end there are no bytes. The offset may be any 64 bits: a negative one stands for 2^63 or
-- more.
CREATE OR REPLACE FUNCTION v_run_log(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    r     run;
    first bigint := coalesce((o->>'offset')::bigint, 0);
    data  bytea  := '';
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status": @STATUS_NOT_FOUND@}'::jsonb, NULL::bytea, NULL::bytea)::reply;
        RETURN;
    END IF;
    IF first >= 0 THEN
        first := greatest(first, run_log_kept(r.log_bytes));
    END IF;
    IF first BETWEEN 0 AND r.log_bytes - 1 THEN
        data := run_log_read(r.seq, first, least(r.log_bytes, first + @LOG_READ_BYTES@));
    END IF;
    RETURN NEXT ROW(run_head(r, @STATUS_OK@, now, wall)
                    || jsonb_build_object('offset', first), data, NULL::bytea)::reply;
END $$;

-- ---- listing ------------------------------------------------------------------------------------

-- The runs that a listing reads, newest first, at most n of them, and n_ended of each final state:
-- for each state, along one index. Live ones are included if PENDING, RUNNING, FAILED or CANCELLED
-- ones match (@may_be_live@): they may be shown as they will end.
CREATE OR REPLACE FUNCTION run_scan(t text, k text, below bigint, states int, n int, n_ended int)
RETURNS SETOF run
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF k IS NOT NULL THEN
        RETURN QUERY
            SELECT x.* FROM generate_series(@RUN_PENDING@, @RUN_INTERRUPTED@) AS s,
                   LATERAL (SELECT * FROM run r
                             WHERE r.tenant || E'\x1f' || r.key || E'\x1f' || r.state::text
                                   = concat(t, E'\x1f', k, E'\x1f', s)
                               AND r.seq + 0 < below
                             ORDER BY r.seq + 0 DESC
                             LIMIT CASE WHEN s < @RUN_ENDED@ THEN n ELSE n_ended END) AS x
             WHERE states >> s & 1 = 1 OR s < @RUN_ENDED@ AND states & (@may_be_live@) <> 0
             ORDER BY x.seq DESC LIMIT n;
    ELSE
        RETURN QUERY
            SELECT x.* FROM generate_series(@RUN_PENDING@, @RUN_INTERRUPTED@) AS s,
                   LATERAL (SELECT * FROM run r
                             WHERE r.tenant || E'\x1f' || r.state::text = concat(t, E'\x1f', s)
                               AND r.seq + 0 < below
                             ORDER BY r.seq + 0 DESC
                             LIMIT CASE WHEN s < @RUN_ENDED@ THEN n ELSE n_ended END) AS x
             WHERE states >> s & 1 = 1 OR s < @RUN_ENDED@ AND states & (@may_be_live@) <> 0
             ORDER BY x.seq DESC LIMIT n;
    END IF;
END $$;

-- Runs that do not match are skipped, at most 1,000 (IL__LOOK_MAX) of them: then the page ends, and
-- the next one continues.
CREATE OR REPLACE FUNCTION v_run_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    most     int := (o->>'limit')::int;
    states   int := coalesce(nullif((o->>'states')::int, 0), @RUN_BITS@);
    below    bigint := coalesce((o->>'after_number')::bigint, 9223372036854775807);
    prefix   text := coalesce(o->>'prefix', '');
    shown    jsonb[] := '{}';
    head     jsonb := jsonb_build_object('status', @STATUS_OK@, 'now_ms', now, 'wall_ms', wall);
    next     jsonb;
    n_looked int := 0;
    r        run;
    last     run;
BEGIN
    FOR r IN SELECT * FROM run_scan(o->>'tenant', o->>'key', below, states, most + 1 + @LOOK_MAX@,
                                   CASE WHEN o ? 'key' OR prefix = '' THEN most + 1
                                        ELSE most + 1 + @LOOK_MAX@ END) LOOP
        n_looked := n_looked + 1;
        IF n_looked = most + 1 + @LOOK_MAX@ THEN
            next := jsonb_build_array('-', r.seq); -- IL__NO_ID
        END IF;
        CONTINUE WHEN NOT (o ? 'key') AND NOT starts_with(r.key, prefix)
                      OR states >> run_state_at(r, run_hold_of(r), now) & 1 = 0;
        IF cardinality(shown) = most THEN
            next := jsonb_build_array(last.id, last.seq);
            EXIT;
        END IF;
        shown := shown || run_json(r, now);
        last := r;
    END LOOP;
    IF next IS NOT NULL THEN
        head := head || jsonb_build_object('next', next);
    END IF;
    RETURN head || jsonb_build_object('runs', to_jsonb(shown));
END $$;
