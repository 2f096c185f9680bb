-- history: the recorded expiries, breaks and refusals of keys. The rules are in src/core/history.h;
-- history_push() is a port of il__history_add().
--
-- Why it is race-free: a transaction that records an event holds the key's mutex, as for its
-- leases, so the row that it read is the one that it replaces. Only deletes of old rows run without
-- the mutex: our write waits for one that is under way, and then inserts the row again.
--
-- An event is an array: seq, kind, count, fence, since_ms, first_ms, last_ms, holder, meta, other,
-- reason. Times are those of the wall clock.

-- The events of a key, oldest first, with one more. e: the event without its seq.
CREATE OR REPLACE FUNCTION history_push(events jsonb, e jsonb, wall bigint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    seq   bigint  := coalesce((events -> -1 ->> 0)::bigint, 0) + 1;
    kind  int     := (e ->> 0)::int;
    n     bigint  := (e ->> 1)::bigint;
    first bigint  := (e ->> 4)::bigint;
    meta  text    := left(e ->> 7, @EVENT_TEXT_CHARS@);
    kept  jsonb[] := '{}';
    x     jsonb;
BEGIN
    FOR x IN SELECT a.value FROM jsonb_array_elements(events) WITH ORDINALITY a
              ORDER BY a.ordinality LOOP
        -- mutant refusals_not_merged: IF false THEN
        IF kind = @EVENT_REFUSED@ AND (x ->> 1)::int = kind AND x ->> 8 = meta THEN
            n     := least(n + (x ->> 2)::bigint, @REFUSED_MAX@);
            first := least(first, (x ->> 5)::bigint);
        ELSIF wall - (x ->> 6)::bigint < @EVENT_KEEP_MS@ THEN
            kept := kept || x;
        END IF;
    END LOOP;
    kept := kept || jsonb_build_array(
        seq, kind, n, e -> 2, e -> 3, first, e -> 5, e -> 6, meta,
        left(e ->> 8, @EVENT_TEXT_CHARS@), e -> 9);
    RETURN to_jsonb(kept[greatest(cardinality(kept) - @EVENTS_MAX@ + 1, 1):]);
END
$$;

CREATE OR REPLACE FUNCTION event_expired(l lease, now bigint, wall bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_array(@EVENT_EXPIRED@, 1, l.fence, wall - (now - l.granted_ms),
                             wall - (now - l.expires_ms), wall - (now - l.expires_ms), l.holder,
                             l.meta, '', '')
$$;

-- A tenant has a key more: if those are too many, the oldest go. Counting them is the dearest part,
-- so that is done once per tenant and transaction. Transactions that run at the same time do not
-- see each other's keys; the next one removes what is too much.
CREATE OR REPLACE FUNCTION history_limit(t text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last text[] := string_to_array(current_setting('interlock.history', true), E'\x1f');
    n    bigint;
    gone bigint := 0;
BEGIN
    IF last[1] = t THEN
        n := last[2]::bigint + 1;
    ELSE
        n := (SELECT count(*) FROM (SELECT FROM history WHERE tenant || '' = t
                                     LIMIT @EVENT_KEYS_MAX@ + 1000) x);
    END IF;
    IF n > @EVENT_KEYS_MAX@ THEN
        DELETE FROM history
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM history WHERE tenant || '' = t
                                  ORDER BY last_ms LIMIT n - @EVENT_KEYS_MAX@
                                    FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS gone = ROW_COUNT;
    END IF;
    PERFORM set_config('interlock.history', concat_ws(E'\x1f', t, n - gone), true);
END
$$;

CREATE OR REPLACE FUNCTION history_record(t text, k text, e jsonb, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    old jsonb := (SELECT h.events FROM history h WHERE h.tenant = t AND h.key = k);
BEGIN
    INSERT INTO history (tenant, key, last_ms, events)
    VALUES (t, k, (e ->> 5)::bigint, history_push(coalesce(old, '[]'), e, wall))
        ON CONFLICT (tenant, key) DO UPDATE
       SET last_ms = greatest(history.last_ms, excluded.last_ms), events = excluded.events;
    IF old IS NULL THEN
        PERFORM history_limit(t);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_refused(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held bigint := coalesce((o ->> 'held_ms')::bigint, 0);
BEGIN
    PERFORM history_record(
        o ->> 'tenant', o ->> 'key',
        jsonb_build_array(
            @EVENT_REFUSED@, o -> 'count', coalesce((o ->> 'fence')::bigint, 0),
            CASE WHEN held > 0 THEN wall - held ELSE 0 END,
            wall - coalesce((o ->> 'span_ms')::bigint, 0), wall, coalesce(o ->> 'holder', ''),
            o ->> 'meta', coalesce(o ->> 'other', ''), coalesce(o ->> 'reason', '')),
        wall);
    RETURN '{"status": @STATUS_OK@}';
END
$$;

-- All events of the key: the library makes the page. Leases that have expired, but that nobody has
-- ended yet, are listed as if they had been.
CREATE OR REPLACE FUNCTION v_history(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t      text  := o ->> 'tenant';
    k      text  := o ->> 'key';
    events jsonb := coalesce((SELECT h.events FROM history h WHERE h.tenant = t AND h.key = k),
                             '[]');
    l      lease;
BEGIN
    FOR l IN SELECT * FROM leases_of_key(t, k) x
              WHERE x.state = @LEASE_HELD@ AND x.expires_ms <= now ORDER BY x.fence LOOP
        events := history_push(events, event_expired(l, now, wall), wall);
    END LOOP;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'wall_ms', wall, 'events', events);
END
$$;

-- ---- retention ----------------------------------------------------------------------------------

-- As "the first is due" rather than "one that is due exists": see overdue_once().
CREATE OR REPLACE FUNCTION overdue_history(wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT last_ms + 0 FROM history ORDER BY last_ms + 0 LIMIT 1)
                    <= wall - @EVENT_KEEP_MS@, false);
END
$$;

-- Keys without an event for a week. Rows that are being changed are skipped: a sweep never waits.
CREATE OR REPLACE FUNCTION v_x_sweep_history(o jsonb, d bytea, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    DELETE FROM history
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM history
                              WHERE last_ms + 0 <= wall - @EVENT_KEEP_MS@
                              ORDER BY last_ms + 0 LIMIT (o ->> 'limit')::int
                                FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'sweep', jsonb_build_object('n_purged', n),
                              'flags', CASE WHEN overdue_history(wall) THEN @OUT_MORE@ ELSE 0 END);
END
$$;
