-- run_show.sql: how a run looks; get, list, log. They change nothing: a run whose lease has expired is delivered as it is stored,
-- with its lease, and the caller shows it as it will end (il__run_show).
--
-- All of them are STABLE: what they read in several statements is of one snapshot, that of the statement that called them. So a
-- run and its lease belong together though no mutex is held. (What is not one expression is PL/pgSQL, here and in the other
-- files: the plans of a function in SQL are not kept.)

-- The lease or waiter of a live run; a state of NULL: it has none, it is a slot or has ended.
CREATE OR REPLACE FUNCTION run_hold_of(r run) RETURNS run_hold LANGUAGE plpgsql STABLE AS $$
DECLARE
    h run_hold;
BEGIN
    IF r.state > 2 THEN
        RETURN NULL;
    ELSIF r.fence <> 0 THEN
        SELECT l.state, l.ttl_ms, l.expires_ms, 0, l.reason INTO h
          FROM lease l WHERE l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence;
    ELSIF r.ticket <> 0 THEN
        SELECT 1, w.ttl_ms, w.drop_ms, w.deadline_ms, '' INTO h
          FROM waiter w WHERE w.tenant = r.tenant AND w.key = r.key AND w.ticket = r.ticket;
    END IF;
    RETURN h;
END $$;

-- The state in which a run will be shown: il__run_state_at().
CREATE OR REPLACE FUNCTION run_state_at(r run, h run_hold, now bigint) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF r.state > 2 OR h.state IS NULL OR now < h.due_ms THEN
        RETURN r.state;
    ELSIF h.state = 1 THEN -- its wait ran out, or it went silent
        RETURN CASE WHEN h.due_ms >= h.deadline_ms THEN 5 ELSE 4 END;
    ELSIF h.state = 4 OR r.cancelled = 1 THEN
        RETURN 5;
    END IF;
    RETURN 4;
END $$;

-- Has a live run neither a lease nor a waiter that has run out? (By two looks: a join leaves it to the planner to look at all leases.)
CREATE OR REPLACE FUNCTION run_there(r run, now bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (r.fence = 0 OR coalesce((SELECT l.expires_ms > now FROM lease l
                                      WHERE l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence), true))
       AND (r.ticket = 0 OR coalesce((SELECT w.drop_ms > now FROM waiter w
                                       WHERE w.tenant = r.tenant AND w.key = r.key AND w.ticket = r.ticket), true));
END $$;

-- Its place among the pending runs of its key, those that are still there. Costs what is live: the index holds nothing else.
CREATE OR REPLACE FUNCTION run_position(r run, now bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT count(*)
      FROM run p
     WHERE p.live = r.live AND p.state = 1 AND p.seq <= r.seq AND run_there(p, now));
END $$;

-- A run as the wire has it.
CREATE OR REPLACE FUNCTION run_json(r run, now bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h   run_hold := run_hold_of(r);
    out jsonb;
BEGIN
    out := jsonb_build_object(
        'id', r.id, 'key', r.key, 'holder', r.holder, 'trigger', r.trigger_, 'by', r.by_, 'meta', r.meta,
        'stage', r.stage, 'error', r.error, 'state', r.state, 'cancelled', r.cancelled, 'n_joined', r.n_joined,
        'progress', r.progress, 'fence', r.fence, 'seq', r.seq, 'log_bytes', r.log_bytes, 'ttl_ms', r.ttl_ms,
        'created_at_ms', r.created_ms, 'started_at_ms', r.started_ms, 'ended_at_ms', r.ended_ms,
        'updated_at_ms', r.updated_ms);
    IF h.state IS NOT NULL THEN
        out := out || jsonb_build_object('hold_state', h.state, 'hold_ttl_ms', h.ttl_ms, 'hold_due_ms', h.due_ms,
                                         'hold_deadline_ms', h.deadline_ms, 'hold_reason', h.reason);
    END IF;
    IF r.state = 1 THEN
        out := out || jsonb_build_object('position', run_position(r, now));
    END IF;
    RETURN out;
END $$;

-- A reply that shows a run. Its fence is that of the run, once that was started.
CREATE OR REPLACE FUNCTION run_head(r run, status int, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('status', status, 'fence', CASE WHEN r.state = 1 THEN 0 ELSE r.fence END,
                              'now_ms', now, 'wall_ms', wall, 'runs', jsonb_build_array(run_json(r, now)));
END $$;

CREATE OR REPLACE FUNCTION v_run_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    r run;
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND THEN
        RETURN '{"status": 26}'; -- NOT_FOUND
    END IF;
    RETURN run_head(r, 0, now, wall);
END $$;

-- ---- the log -------------------------------------------------------------------------------------------------

-- Where what is kept begins: the last 1 MiB (IL_LOG_BYTES_MAX) counts, whatever pieces are still there.
CREATE OR REPLACE FUNCTION run_log_kept(n_bytes bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(n_bytes - 1048576, 0);
$$;

-- The bytes of a log from `first` to before `past`. No piece is longer than 64 KiB, so none that begins earlier reaches there.
CREATE OR REPLACE FUNCTION run_log_read(seq bigint, first bigint, past bigint) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT coalesce(string_agg(substr(l.data, (greatest(first - l.at, 0) + 1)::int,
                                      (least(l.at + octet_length(l.data), past) - greatest(l.at, first))::int),
                               ''::bytea ORDER BY l.at), ''::bytea)
      FROM run_log l
     WHERE l.run = seq AND l.at > first - 65536 AND l.at < past AND l.at + octet_length(l.data) > first);
END $$;

-- At most 64 KiB (IL__LOG_READ_BYTES) from the offset on, but not from before what is kept. Nothing there yet is no byte. The
-- offset may be any 64 bits: below 0 it is one of 2^63 or more.
CREATE OR REPLACE FUNCTION v_run_log(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF reply LANGUAGE plpgsql STABLE AS $$
DECLARE
    r     run;
    first bigint := coalesce((o->>'offset')::bigint, 0);
    data  bytea  := '';
BEGIN
    SELECT * INTO r FROM run_of(o->>'tenant', o->>'id');
    IF NOT FOUND THEN
        RETURN NEXT ROW('{"status": 26}'::jsonb, NULL::bytea, NULL::bytea)::reply; -- NOT_FOUND
        RETURN;
    END IF;
    IF first >= 0 THEN
        first := greatest(first, run_log_kept(r.log_bytes));
    END IF;
    IF first BETWEEN 0 AND r.log_bytes - 1 THEN
        data := run_log_read(r.seq, first, least(r.log_bytes, first + 65536));
    END IF;
    RETURN NEXT ROW(run_head(r, 0, now, wall) || jsonb_build_object('offset', first), data, NULL::bytea)::reply;
END $$;

-- ---- listing ---------------------------------------------------------------------------------------------------

-- The runs that a listing looks at, newest first. Live ones are all there, for they may be shown as they will end. Each way goes
-- along one index: history is not looked at for the live ones, nor other keys for those of one.
CREATE OR REPLACE FUNCTION run_scan(t text, k text, prefix text, below bigint, states int) RETURNS refcursor
LANGUAGE plpgsql STABLE AS $$
DECLARE
    c refcursor;
BEGIN
    IF states & ~6 = 0 THEN
        -- (0x20 is behind 0x1f: the keys of this tenant that do not come before the prefix.)
        OPEN c FOR SELECT * FROM run r
                    WHERE r.live >= t || E'\x1f' || coalesce(k, prefix) AND r.live < t || E'\x20' AND r.seq < below
                      AND CASE WHEN k IS NULL THEN starts_with(r.key, prefix) ELSE r.key = k END
                    ORDER BY r.seq DESC;
    ELSIF k IS NOT NULL THEN
        OPEN c FOR SELECT * FROM run r
                    WHERE r.tenant || E'\x1f' || r.key = t || E'\x1f' || k AND r.seq + 0 < below AND (r.state <= 2 OR states >> r.state & 1 = 1)
                    ORDER BY r.seq + 0 DESC;
    ELSE
        OPEN c FOR SELECT * FROM run r
                    WHERE r.tenant = t AND r.seq < below AND starts_with(r.key, prefix)
                      AND (r.state <= 2 OR states >> r.state & 1 = 1)
                    ORDER BY r.seq DESC;
    END IF;
    RETURN c;
END $$;

CREATE OR REPLACE FUNCTION v_run_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    most   int := (o->>'limit')::int;
    states int := coalesce(nullif((o->>'states')::int, 0), 254); -- all of them
    below  bigint := coalesce((o->>'after_number')::bigint, 9223372036854775807);
    c      refcursor := run_scan(o->>'tenant', o->>'key', coalesce(o->>'prefix', ''), below, states);
    shown  jsonb[] := '{}';
    head   jsonb := jsonb_build_object('status', 0, 'now_ms', now, 'wall_ms', wall);
    r      run;
    last   run;
BEGIN
    LOOP
        FETCH c INTO r;
        EXIT WHEN NOT FOUND;
        CONTINUE WHEN states >> run_state_at(r, run_hold_of(r), now) & 1 = 0;
        IF cardinality(shown) = most THEN
            head := head || jsonb_build_object('next', jsonb_build_array(last.id, last.seq));
            EXIT;
        END IF;
        shown := shown || run_json(r, now);
        last := r;
    END LOOP;
    CLOSE c;
    RETURN head || jsonb_build_object('runs', to_jsonb(shown));
END $$;
