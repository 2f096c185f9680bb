-- lock_show: get, list and check_fence. They change nothing: overdue holds are skipped, not
-- expired. They take no mutex: each is one look, with one snapshot.

-- Is a lease still visible? One that has expired while its key settles is (il__lease_view() in C
-- shows it as CLOSING).
CREATE OR REPLACE FUNCTION lease_is_seen(state smallint, expires bigint, settle bigint, now bigint)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT expires > now OR (state = @LEASE_HELD@ AND expires + settle > now)
$$;

CREATE OR REPLACE FUNCTION waiter_item(w waiter, n_waiters bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'key', w.key, 'holder', w.holder, 'number', w.ticket, 'mode', w.mode, 'permits', w.permits,
        'state', @LEASE_WAITING@,
        'ttl_ms', w.ttl_ms, 'settle_ms', w.settle_ms, 'since_ms', w.queued_ms,
        'renewed_ms', w.seen_ms,
        'due_ms', nullif(w.deadline_ms, @NEVER@), 'meta', w.meta, 'place', w.place,
        'n_waiters', n_waiters))
$$;

CREATE OR REPLACE FUNCTION v_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    items  jsonb;
    newest bigint;
BEGIN
    SELECT jsonb_agg(lease_item(s, v_get.now) ORDER BY s.fence) FILTER (WHERE s.nth <= @COUNT_MAX@),
           max(s.fence)
      INTO items, newest
      FROM (SELECT l AS s, l.fence, row_number() OVER (ORDER BY l.fence) AS nth
              FROM leases_of_key(o ->> 'tenant', o ->> 'key') l
             WHERE lease_is_seen(l.state, l.expires_ms, l.settle_ms, v_get.now)) s;
    IF newest IS NULL THEN
        RETURN '{"status": @STATUS_NOT_HELD@}';
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', newest, 'items', items, 'now_ms', now,
                              'wall_ms', wall);
END
$$;

CREATE OR REPLACE FUNCTION v_check_fence(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    newest  bigint;
    current boolean;
BEGIN
    SELECT max(l.fence),
           bool_or(l.fence = (o ->> 'fence')::bigint AND l.state = @LEASE_HELD@
                   AND l.expires_ms > v_check_fence.now)
      INTO newest, current
      FROM leases_of_key(o ->> 'tenant', o ->> 'key') l
     WHERE lease_is_seen(l.state, l.expires_ms, l.settle_ms, v_check_fence.now);
    RETURN jsonb_build_object('status', CASE WHEN current THEN @STATUS_OK@ ELSE @STATUS_STALE@ END,
                              'fence', coalesce(newest, 0));
END
$$;

-- ---- listing ------------------------------------------------------------------------------------

-- An upper bound of the keys that begin with this: no key has more than 512 bytes, so none has that
-- many of the greatest character.
CREATE OR REPLACE FUNCTION prefix_end(prefix text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || repeat(U&'\+10FFFF', 129)
$$;

-- A page: its items, and where the next one begins, NULL if it was the last. Ended and dead rows
-- are skipped, at most 1,000 (IL__LOOK_MAX) of them: then the page ends, and the next one
-- continues. A queue is counted once, however many of its waiters are on the page.

-- Live leases by key, then fence.
CREATE OR REPLACE FUNCTION list_leases(t text, prefix text, after_key text, after bigint, n int,
                                       now bigint, OUT items jsonb[], OUT next jsonb)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    l         lease;
    last      lease;
    n_waiters bigint;
    n_looked  int := 0;
BEGIN
    items := '{}';
    FOR l IN SELECT * FROM lease x
              WHERE x.tenant = t AND x.key >= greatest(prefix, after_key)
                AND x.key < prefix_end(prefix) AND (x.key, x.fence) > (after_key, after)
              ORDER BY x.key, x.fence LIMIT n + 1 + @LOOK_MAX@
    LOOP
        n_looked := n_looked + 1;
        IF l.state < @LEASE_ENDED@ AND lease_is_seen(l.state, l.expires_ms, l.settle_ms, now) THEN
            IF cardinality(items) = n THEN
                next := jsonb_build_array(last.key, last.fence);
                RETURN;
            END IF;
            IF l.key IS DISTINCT FROM last.key THEN
                n_waiters := count_waiters(t, l.key, 0, now);
            END IF;
            items := items || lease_item_beside(l, n_waiters);
            last  := l;
        END IF;
    END LOOP;
    IF n_looked = n + 1 + @LOOK_MAX@ THEN
        next := jsonb_build_array(l.key, l.fence);
    END IF;
END
$$;

-- Live waiters by key, then ticket.
CREATE OR REPLACE FUNCTION list_waiters(t text, prefix text, after_key text, after bigint, n int,
                                        now bigint, OUT items jsonb[], OUT next jsonb)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    w         waiter;
    last      waiter;
    n_waiters bigint;
    n_looked  int := 0;
BEGIN
    items := '{}';
    FOR w IN SELECT * FROM waiter x
              WHERE x.tenant = t AND x.key >= greatest(prefix, after_key)
                AND x.key < prefix_end(prefix) AND (x.key, x.ticket) > (after_key, after)
              ORDER BY x.key, x.ticket LIMIT n + 1 + @LOOK_MAX@
    LOOP
        n_looked := n_looked + 1;
        IF w.verdict = '' AND w.drop_ms > now THEN
            IF cardinality(items) = n THEN
                next := jsonb_build_array(last.key, last.ticket);
                RETURN;
            END IF;
            IF w.key IS DISTINCT FROM last.key THEN
                n_waiters := count_waiters(t, w.key, 0, now);
            END IF;
            items := items || waiter_item(w, n_waiters);
            last  := w;
        END IF;
    END LOOP;
    IF n_looked = n + 1 + @LOOK_MAX@ THEN
        next := jsonb_build_array(w.key, w.ticket);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n         int    := coalesce((o ->> 'limit')::int, 100);
    prefix    text   := coalesce(o ->> 'prefix', '');
    after_key text   := coalesce(o ->> 'after_key', '');
    after     bigint := coalesce((o ->> 'after_number')::bigint, 0);
    page      record;
    head      jsonb  := jsonb_build_object('status', @STATUS_OK@, 'now_ms', now, 'wall_ms', wall);
BEGIN
    IF coalesce((o ->> 'flags')::int, 0) & @FLAG_LIST_WAITERS@ <> 0 THEN
        page := list_waiters(o ->> 'tenant', prefix, after_key, after, n, now);
    ELSE
        page := list_leases(o ->> 'tenant', prefix, after_key, after, n, now);
    END IF;
    IF page.next IS NOT NULL THEN
        head := head || jsonb_build_object('next', page.next);
    END IF;
    RETURN head || jsonb_build_object('items', to_jsonb(page.items));
END
$$;
