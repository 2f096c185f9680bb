-- lock: acquire, renew, release and break, and the lock functions that runs use. The decision
-- tables are in src/core/README.md.
--
-- Why it is race-free: whoever changes a key holds the key's mutex until the end of its
-- transaction, and each statement in here starts after that, with its own snapshot. So what was
-- read about the key is still true when we act on it. Only sweeps touch rows without the mutex:
-- ended rows, and look_ms, which no decision depends on. The single steps, and the numbers of modes
-- and states, are in lock_rows.sql.

CREATE OR REPLACE FUNCTION mutexes_lock(o jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF o ? 'key' THEN
        RETURN NEXT mutex(@MUTEX_KEY@, o ->> 'tenant', o ->> 'key');
    ELSIF o ? 'ticket' THEN -- x_verdict: the key of a ticket never changes
        RETURN QUERY SELECT mutex(@MUTEX_KEY@, w.tenant, w.key) FROM waiter w
                     WHERE w.ticket = (o ->> 'ticket')::bigint;
    END IF;
END
$$;

-- ---- expiring a key, offering it to the next ----------------------------------------------------

-- While the head of the queue is compatible with the live leases, it becomes an offered lease and
-- is woken. Returns how many.
CREATE OR REPLACE FUNCTION offer_next(v key_view, t text, k text, now bigint, wall bigint)
RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    first bigint; -- the oldest one that stays: cancelled, and not told yet
    w     waiter;
    f     bigint;
    n     int := 0;
BEGIN
    IF NOT v.queued THEN
        RETURN 0;
    END IF;
    FOR w IN SELECT * FROM waiter x WHERE x.tenant = t AND x.key = k AND x.ticket >= v.head
        -- mutant last_in_first_out: ORDER BY x.ticket DESC LOOP
        ORDER BY x.ticket LOOP
        IF w.verdict <> '' THEN
            first := coalesce(first, w.ticket);
            CONTINUE;
        ELSIF w.drop_ms <= now THEN -- it was too far behind to be seen: see key_look()
            PERFORM waiter_leave(w, now, wall);
            CONTINUE;
        END IF;
        -- First in, first out: nobody overtakes.
        -- mutant grant_without_recheck:
        EXIT WHEN conflict(v, w.mode, w.permits) <> @COMPATIBLE@;
        PERFORM place_forget();
        DELETE FROM waiter x WHERE x.tenant = t AND x.key = k AND x.ticket = w.ticket;
        f := lease_add(t, k, w.holder, w.root, w.mode, w.permits, @LEASE_ON_OFFER@, w.ttl_ms,
                       w.settle_ms, now + least(w.ttl_ms, @OFFER_MS@),
                       v.oldest, coalesce(first, w.ticket + 1), w.run, w.meta, w.place, now);
        IF w.run <> 0 THEN
            PERFORM run_offered(w.run, f);
        END IF;
        PERFORM wake(t, k, w.holder);
        v.nx     := v.nx + (w.mode = @MODE_EXCLUSIVE@)::int;
        v.ns     := v.ns + (w.mode = @MODE_SHARED@)::int;
        v.np     := v.np + (w.mode = @MODE_PERMIT@)::int;
        v.n_live := w.permits;
        IF v.oldest = 0 AND w.mode <> @MODE_EXCLUSIVE@ THEN
            v.oldest := f;
        END IF;
        n := n + 1;
    END LOOP;
    RETURN n;
END
$$;

CREATE OR REPLACE FUNCTION key_offer_next(t text, k text, now bigint, wall bigint) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN offer_next(key_look(t, k, now), t, k, now, wall);
END
$$;

-- An overdue lease ends, or its key settles first. False: it cannot be taken away now.
CREATE OR REPLACE FUNCTION lease_expire(l lease, sweeps boolean, now bigint, wall bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    opens bigint := l.expires_ms + l.settle_ms;
BEGIN
    IF NOT lease_seize(l, sweeps) THEN
        RETURN false;
    END IF;
    IF l.state = @LEASE_HELD@ THEN
        -- mutant expiry_not_recorded:
        PERFORM history_record(l.tenant, l.key, event_expired(l, now, wall), wall);
    END IF;
    IF l.state = @LEASE_HELD@ AND l.settle_ms > 0 THEN
        IF l.run <> 0 THEN
            -- the key settles without its run
            PERFORM run_lost(l.run, @LEASE_HELD@, @LEASE_HELD_ON_EXPIRE@, l.expires_ms, 0, l.reason,
                             now, wall);
            l.run := 0;
        END IF;
        l.state := @LEASE_ON_SETTLE@;
        IF opens > now THEN
            UPDATE lease x SET state = @LEASE_ON_SETTLE@, run = 0, expires_ms = opens,
                look_ms = opens
             WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
            RETURN true;
        END IF;
    END IF;
    PERFORM lease_end(l, CASE WHEN l.state <> @LEASE_CLOSING@ THEN @LEASE_HELD_ON_EXPIRE@
                              WHEN l.ended_ms IS NULL THEN @LEASE_CLOSING_ON_EXPIRE@
                              ELSE @LEASE_ON_RELEASE@ END, now, wall);
    RETURN true;
END
$$;

-- End what is overdue on the key, and hand it to the next waiters if that changed something:
-- [n_expired, n_dropped, n_offered, n_runs].
CREATE OR REPLACE FUNCTION expire_overdue(v key_view, t text, k text, sweeps boolean, now bigint,
                                  wall bigint) RETURNS int[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_expired int := 0;
    n_dropped int := 0;
    n_runs    int := 0;
    l         lease;
    w         waiter;
BEGIN
    FOR l IN SELECT * FROM leases_of_key(t, k) x
              -- mutant expiry_reversed: WHERE x.expires_ms >= now ORDER BY x.fence LOOP
              WHERE x.expires_ms <= now ORDER BY x.fence LOOP
        IF lease_expire(l, sweeps, now, wall) THEN
            n_expired := n_expired + 1;
            n_runs    := n_runs + (l.run <> 0)::int;
        END IF;
    END LOOP;
    FOR w IN
        SELECT * FROM waiter x
         WHERE x.tenant = t AND x.key = k AND x.ticket >= v.head AND x.drop_ms <= now
         ORDER BY x.ticket
    LOOP
        PERFORM waiter_leave(w, now, wall);
        n_dropped := n_dropped + 1;
        n_runs    := n_runs + (w.run <> 0)::int;
    END LOOP;
    IF n_expired + n_dropped = 0 THEN
        RETURN '{0,0,0,0}';
    END IF;
    RETURN ARRAY[n_expired, n_dropped, key_offer_next(t, k, now, wall), n_runs];
END
$$;

-- All of it: for runs, and for sweeps.
CREATE OR REPLACE FUNCTION key_expire(t text, k text, now bigint, wall bigint,
                                      sweeps boolean DEFAULT false) RETURNS int[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v key_view := key_look(t, k, now, NULL);
BEGIN
    IF v.overdue THEN
        RETURN expire_overdue(v, t, k, sweeps, now, wall);
    END IF;
    RETURN '{0,0,0,0}';
END
$$;

-- The key after its overdue rows were ended; what is still overdue cannot be taken away now.
CREATE OR REPLACE FUNCTION key_current(t text, k text, now bigint, wall bigint) RETURNS key_view
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v key_view := key_look(t, k, now);
BEGIN
    IF v.overdue THEN
        PERFORM expire_overdue(v, t, k, false, now, wall);
        v := key_look(t, k, now);
    END IF;
    RETURN v;
END
$$;

-- ---- acquire ------------------------------------------------------------------------------------

-- The holder already has a live lease on the key: it confirms an offer, renews, or requests
-- something else.
CREATE OR REPLACE FUNCTION acquire_own(l lease, o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ttl  bigint := (o ->> 'ttl_ms')::bigint;
    head jsonb;
    stop text;
BEGIN
    IF l.expires_ms <= now THEN -- over, though it cannot be taken away yet: see lease_seize()
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'closing', 'reason', l.reason);
    END IF;
    IF l.mode <> coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@)
       OR l.permits <> coalesce((o ->> 'permits')::int, 0) THEN
        RETURN '{"status": @STATUS_MISMATCH@, "say": "other_mode"}';
    END IF;
    IF l.state = @LEASE_CLOSING@ THEN
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'closing', 'reason', l.reason);
    END IF;
    UPDATE lease x
       SET state = @LEASE_ON_CONFIRM@, ttl_ms = ttl, renewed_ms = now, expires_ms = now + ttl,
           look_ms = least(x.look_ms, now + ttl)
     WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
    head := jsonb_build_object('status', @STATUS_OK@, 'fence', l.fence, 'remaining_ms', ttl,
                               'flags', CASE l.state WHEN @LEASE_HELD@ THEN @OUT_RENEWED@
                                             ELSE 0 END);
    IF l.run <> 0 THEN
        IF l.state = @LEASE_OFFERED@ THEN
            PERFORM run_confirmed(l.run, now, wall);
        END IF;
        stop := run_stop(l.run);
        IF stop IS NOT NULL THEN
            head := head || jsonb_build_object('say', 'run_stop', 'detail', stop);
        END IF;
    END IF;
    RETURN head;
END
$$;

-- The holder already waits for the key.
CREATE OR REPLACE FUNCTION acquire_again(w waiter, v key_view, o jsonb, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    wait bigint := coalesce((o ->> 'wait_ms')::bigint, 0);
    head jsonb;
BEGIN
    IF w.verdict <> '' THEN
        head := jsonb_build_object('status', @STATUS_DEADLOCK@, 'detail', w.verdict);
    ELSIF w.mode <> coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@)
          OR w.permits <> coalesce((o ->> 'permits')::int, 0) THEN
        RETURN '{"status": @STATUS_MISMATCH@, "say": "waits_in_other_mode"}';
    ELSIF wait = 0 THEN
        head := lock_held(w.tenant, w.key, w.mode, w.permits, now, wall);
    ELSE
        w.deadline_ms := wait_deadline(wait, now);
        UPDATE waiter x
           SET seen_ms = now, deadline_ms = w.deadline_ms,
               drop_ms = least(w.deadline_ms, now + @WAITER_DROP_MS@)
         WHERE x.tenant = w.tenant AND x.key = w.key AND x.ticket = w.ticket;
        RETURN lock_queued(w, v.head, now);
    END IF;
    PERFORM waiter_leave(w, now, wall); -- which may let those behind it pass
    PERFORM key_offer_next(w.tenant, w.key, now, wall);
    RETURN head;
END
$$;

-- The reply to a waiter that was just added. If the unit of work also holds or waits for something
-- else, it may close a cycle. Its turn may have come already, if others left.
CREATE OR REPLACE FUNCTION lock_enqueued(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w     waiter;
    l     lease;
    holds jsonb := lock_learn(o, now);
BEGIN
    SELECT * INTO w FROM waiter x
     WHERE x.root = unit_of(o ->> 'tenant', o ->> 'holder')
       AND x.holder || E'\x1f' || x.key = concat(o ->> 'holder', E'\x1f', o ->> 'key');
    IF NOT FOUND THEN
        SELECT * INTO l FROM lease_of_holder(o ->> 'tenant', o ->> 'key', o ->> 'holder', now);
        RETURN acquire_own(l, o, now, wall) || holds;
    END IF;
    IF EXISTS (SELECT 1 FROM lease x WHERE x.root = w.root AND x.state < @LEASE_ENDED@)
       OR EXISTS (SELECT 1 FROM waiter x WHERE x.root = w.root AND x.ticket <> w.ticket)
    THEN
        PERFORM asked();
        -- mutant deadlock_not_searched:
        holds := holds || '{"ask": "search"}';
    END IF;
    RETURN lock_queued(w, coalesce((SELECT head FROM lease x
                                    WHERE x.tenant = w.tenant AND x.key = w.key
                                     ORDER BY x.fence DESC LIMIT 1), 0), now) || holds;
END
$$;

-- Is a new request refused regardless of what is in its way? Returns the head that says so, or
-- NULL.
CREATE OR REPLACE FUNCTION acquire_refused(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    l       lease;
    against jsonb;
BEGIN
    SELECT * INTO l FROM lease_of_holder(o ->> 'tenant', o ->> 'key', o ->> 'holder', now) x
     WHERE x.state >= @LEASE_ENDED@;
    IF FOUND THEN
        RETURN lock_lost(l, now);
    END IF;
    IF o ? 'ranks' THEN
        against := rank_against(o, now);
        IF against IS NOT NULL THEN
            RETURN jsonb_build_object('status', @STATUS_ORDER@, 'against', against);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- A request of a holder that neither has the key nor waits for it. Overdue rows of the key
-- have been ended.
CREATE OR REPLACE FUNCTION acquire_new(v key_view, o jsonb, run bigint, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m       int := coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@);
    p       int := coalesce((o ->> 'permits')::int, 0);
    verdict int := conflict(v, m, p);
    holds   jsonb;
BEGIN
    IF o ? 'ranks' THEN
        holds := rank_against(o, now);
        IF holds IS NOT NULL THEN
            RETURN jsonb_build_object('status', @STATUS_ORDER@, 'against', holds);
        END IF;
    END IF;
    IF verdict = @OTHER_N@ THEN
        RETURN '{"status": @STATUS_MISMATCH@, "say": "other_permits"}';
    ELSIF verdict = @COMPATIBLE@ AND NOT v.queued THEN
        holds := lock_learn(o, now);
        RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', grant_in(v, o, run, now),
                                  'remaining_ms', (o ->> 'ttl_ms')::bigint)
               || holds;
    ELSIF coalesce((o ->> 'wait_ms')::bigint, 0) = 0 THEN
        RETURN lock_held(o ->> 'tenant', o ->> 'key', m, p, now, wall);
    END IF;
    PERFORM waiter_add(o, run, now);
    RETURN lock_enqueued(o, now, wall);
END
$$;

-- The whole table of acquire. New leases and waiters belong to `run`, 0 = none.
CREATE OR REPLACE FUNCTION acquire_do(o jsonb, run bigint, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t text := o ->> 'tenant';
    k text := o ->> 'key';
    h text := o ->> 'holder';
    v key_view := key_current(t, k, now, wall);
    l lease;
    w waiter;
BEGIN
    SELECT * INTO l FROM lease_of_holder(t, k, h, now);
    IF FOUND THEN
        IF l.state < @LEASE_ENDED@ THEN
            RETURN acquire_own(l, o, now, wall);
        END IF;
        RETURN lock_lost(l, now); -- a late copy must not create a ghost
    END IF;
    IF v.waits THEN
        SELECT * INTO w FROM waiter x
         WHERE x.root = unit_of(t, h) AND x.holder || E'\x1f' || x.key = h || E'\x1f' || k;
        IF FOUND AND w.drop_ms > now THEN
            RETURN acquire_again(w, v, o, now, wall);
        ELSIF FOUND THEN -- it was too far behind to be seen: see key_look()
            PERFORM waiter_leave(w, now, wall);
        END IF;
    END IF;
    RETURN acquire_new(v, o, run, now, wall);
END
$$;

-- Ended leases of a unit of work that takes many keys one after the other would slow it down for a
-- minute each. So now and then they are moved aside, where only a lookup of the (key, holder) finds
-- them; each is moved once. The one that ended last stays, as a sign that there may be others. Only
-- a sweep, which deletes it, changes an ended row: rows that it has locked are skipped.
CREATE OR REPLACE FUNCTION unit_tidy(r text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM lease WHERE root = r AND state >= @LEASE_ENDED@ OFFSET 15) THEN
        UPDATE lease SET root = r || '/'
         WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM lease x
                                  WHERE x.root = r AND x.state >= @LEASE_ENDED@
                                    AND x.ended_ms < (SELECT max(y.ended_ms) FROM lease y
                                                      WHERE y.root = r AND y.state >= @LEASE_ENDED@)
                                    FOR NO KEY UPDATE SKIP LOCKED));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_acquire(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t    text   := o ->> 'tenant';
    k    text   := o ->> 'key';
    h    text   := o ->> 'holder';
    r    text   := unit_of(t, h);
    m    int    := coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@);
    ttl  bigint := (o ->> 'ttl_ms')::bigint;
    f    bigint;
    s    int;    -- of the newest lease: state, mode, head
    sm   int;
    hd   bigint;
    busy boolean;
    n    bigint; -- leases of the unit of work
BEGIN
    -- The usual case, in three statements: the key has no holders or waiters, the unit of work
    -- holds nothing, and this (key, holder) has not just ended. Race-free: changing any of this for
    -- the key needs its mutex, which we hold; and what the unit of work takes elsewhere at the same
    -- moment counts as coming after us.
    SELECT x.state, x.mode, x.head INTO s, sm, hd FROM lease x
     WHERE x.tenant = t AND x.key = k ORDER BY x.fence DESC LIMIT 1;
    IF s < @LEASE_ENDED@ OR sm <> @MODE_EXCLUSIVE@ THEN
        RETURN acquire_do(o, 0, now, wall);
    END IF;
    hd := coalesce(hd, 0);
    SELECT EXISTS (SELECT 1 FROM waiter w WHERE w.tenant = t AND w.key = k AND w.ticket >= hd)
           OR coalesce(bool_or(x.state < @LEASE_ENDED@
                               OR (x.key = k AND x.holder = h
                                   AND x.ended_ms > now - @ENDED_KEEP_MS@)),
                                  false), count(*)
      INTO busy, n FROM lease x WHERE x.root = r;
    IF n > 0 AND NOT busy THEN -- then some may have been put aside
        busy := EXISTS (SELECT 1 FROM lease_of_holder(t, k, h, now));
    END IF;
    IF busy THEN
        RETURN acquire_do(o, 0, now, wall);
    END IF;
    f := fence_draw();
    INSERT INTO lease (tenant, key, fence, run, ttl_ms, settle_ms, granted_ms, renewed_ms,
                       expires_ms, look_ms, floor, head,
                       permits, mode, state, holder, root, live, meta, place, reason)
    VALUES (t, k, f, 0, ttl, coalesce((o ->> 'settle_ms')::bigint, 0), now, now, now + ttl,
            now + least(ttl, @LEASE_LOOK_MS@), 0, hd,
            coalesce((o ->> 'permits')::int, 0), m, @LEASE_ON_GRANT@, h, r,
            CASE WHEN m <> @MODE_EXCLUSIVE@ THEN t || E'\x1f' || k END,
            coalesce(o ->> 'meta', ''), coalesce(o ->> 'place', ''), '');
    IF n > 15 AND f % 16 = 0 THEN
        PERFORM unit_tidy(r);
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', f, 'remaining_ms', ttl);
END
$$;

-- ---- renew, release, break ----------------------------------------------------------------------

-- renew and release of a lease that is not (or no longer) held by this holder with this fence.
CREATE OR REPLACE FUNCTION lock_not_current(v key_view, o jsonb, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    t    text := o ->> 'tenant';
    k    text := o ->> 'key';
    head jsonb := jsonb_build_object('fence', v.newest);
    l    lease;
BEGIN
    SELECT * INTO l FROM lease_of_holder(t, k, o ->> 'holder', now);
    IF l.state < @LEASE_ENDED@ THEN
        RETURN head || '{"status": @STATUS_STALE@, "say": "other_fence"}';
    ELSIF l.state = @LEASE_RELEASED@ AND l.fence = (o ->> 'fence')::bigint
          AND o ->> 'op' = 'release' THEN
        RETURN head || '{"status": @STATUS_OK@}'; -- it was this one: the answer is repeated
    ELSIF l.state >= @LEASE_ENDED@ THEN
        RETURN head || lock_lost(l, now);
    ELSIF v.newest <> 0 THEN
        RETURN lock_held(t, k, NULL, NULL, now, wall);
    END IF;
    RETURN '{"status": @STATUS_NOT_HELD@}';
END
$$;

CREATE OR REPLACE FUNCTION renew_do(o jsonb, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t    text   := o ->> 'tenant';
    k    text   := o ->> 'key';
    ttl  bigint := (o ->> 'ttl_ms')::bigint;
    v    key_view := key_current(t, k, now, wall);
    l    lease;
    head jsonb;
    stop text;
BEGIN
    SELECT * INTO l FROM lease x
     WHERE x.tenant = t AND x.key = k AND x.fence = (o ->> 'fence')::bigint
       AND x.holder = o ->> 'holder' AND x.state < @LEASE_ENDED@;
    IF NOT FOUND THEN
        RETURN lock_not_current(v, o, now, wall);
    ELSIF l.state = @LEASE_OFFERED@ THEN
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'unconfirmed', 'fence', v.newest);
    ELSIF l.state = @LEASE_CLOSING@ OR l.expires_ms <= now THEN
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'closing', 'reason', l.reason,
                                  'fence', v.newest);
    END IF;
    ttl := coalesce(ttl, l.ttl_ms);
    UPDATE lease x
       SET ttl_ms = ttl, renewed_ms = now, expires_ms = now + ttl,
           look_ms = least(x.look_ms, now + ttl)
     WHERE x.tenant = t AND x.key = k AND x.fence = l.fence;
    head := jsonb_build_object('status', @STATUS_OK@, 'fence', l.fence, 'remaining_ms', ttl);
    IF l.run <> 0 THEN
        stop := run_stop(l.run);
        IF stop IS NOT NULL THEN
            head := head || jsonb_build_object('say', 'run_stop', 'detail', stop);
        END IF;
    END IF;
    RETURN head;
END
$$;

CREATE OR REPLACE FUNCTION v_renew(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t   text   := o ->> 'tenant';
    k   text   := o ->> 'key';
    f   bigint := (o ->> 'fence')::bigint;
    h   text   := o ->> 'holder';
    ttl bigint := (o ->> 'ttl_ms')::bigint;
BEGIN
    -- The usual case: the lease is current, alone, of no run, and no waiter is overdue, so there is
    -- nothing to end. (With NOT EXISTS it would become a join, which may scan the whole queue
    -- from its start; a LIMIT prevents that.)
    UPDATE lease l
       SET ttl_ms = coalesce(ttl, l.ttl_ms), renewed_ms = now,
           expires_ms = now + coalesce(ttl, l.ttl_ms),
           look_ms = least(l.look_ms, now + coalesce(ttl, l.ttl_ms))
     WHERE l.tenant = t AND l.key = k AND l.fence = f AND l.holder = h AND l.state = @LEASE_HELD@
       AND l.expires_ms > now AND l.mode = @MODE_EXCLUSIVE@
       AND l.run = 0
       AND (SELECT 1 FROM (SELECT w.drop_ms FROM waiter w
                           WHERE w.tenant = t AND w.key = k AND w.ticket >= l.head ORDER BY w.ticket
                           LIMIT 64) f
             WHERE f.drop_ms <= now LIMIT 1) IS NULL
    RETURNING l.ttl_ms INTO ttl;
    IF FOUND THEN
        RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', f, 'remaining_ms', ttl);
    END IF;
    RETURN renew_do(o, now, wall);
END
$$;

-- Leases that were just released, and whose fence may have been shown.
CREATE OR REPLACE FUNCTION release_shown(t text, k text, f bigint, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l lease;
BEGIN
    SELECT * INTO l FROM lease x WHERE x.tenant = t AND x.key = k AND x.fence = f;
    PERFORM lease_linger(l, now);
END
$$;

CREATE OR REPLACE FUNCTION v_release(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t text   := o ->> 'tenant';
    k text   := o ->> 'key';
    f bigint := (o ->> 'fence')::bigint;
    h text   := o ->> 'holder';
    v key_view;
    l lease;
    unseen boolean;
BEGIN
    -- The usual case: the lease is current, alone, of no run, and there are no waiters. The new
    -- row's xmax shows who holds the old one FOR KEY SHARE.
    UPDATE lease x
       SET state = @LEASE_ON_RELEASE@, ended_ms = now
     -- mutant release_without_compare: WHERE x.tenant = t AND x.key = k AND x.state = @LEASE_HELD@
     WHERE x.tenant = t AND x.key = k AND x.fence = f AND x.holder = h AND x.state = @LEASE_HELD@
       AND x.expires_ms > now AND x.mode = @MODE_EXCLUSIVE@
       AND x.run = 0
       AND (SELECT 1 FROM waiter w WHERE w.tenant = t AND w.key = k AND w.ticket >= x.head
            LIMIT 1) IS NULL
    RETURNING x.xmax = '0' INTO unseen;
    IF FOUND THEN
        IF NOT unseen THEN
            PERFORM release_shown(t, k, f, now);
        END IF;
        RETURN '{"status": @STATUS_OK@}';
    END IF;
    v := key_current(t, k, now, wall);
    SELECT * INTO l FROM lease x
     WHERE x.tenant = t AND x.key = k AND x.fence = f AND x.holder = h AND x.state < @LEASE_ENDED@;
    IF NOT FOUND THEN
        RETURN lock_not_current(v, o, now, wall);
    -- released before: see lease_linger()
    ELSIF l.state = @LEASE_CLOSING@ AND l.ended_ms IS NOT NULL THEN
        RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', v.newest);
    ELSIF l.expires_ms <= now THEN -- over, though it cannot be taken away yet: see lease_seize()
        RETURN jsonb_build_object('status', @STATUS_LOST@, 'say', 'closing', 'reason', l.reason,
                                  'fence', v.newest);
    END IF;
    IF NOT lease_linger(l, now) THEN
        PERFORM lease_end(l, @LEASE_ON_RELEASE@, now, wall);
    ELSIF l.run <> 0 THEN
        PERFORM run_lost(l.run, l.state, @LEASE_ON_RELEASE@, l.expires_ms, 0, l.reason, now, wall);
    END IF;
    PERFORM key_offer_next(t, k, now, wall);
    RETURN jsonb_build_object('status', @STATUS_OK@, 'fence', newest_fence(t, k));
END
$$;

CREATE OR REPLACE FUNCTION v_break(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t    text    := o ->> 'tenant';
    k    text    := o ->> 'key';
    ends boolean := coalesce((o ->> 'flags')::int, 0) & @FLAG_BREAK_NOW@ <> 0; -- now
    v    key_view := key_current(t, k, now, wall);
    l    lease;
    head jsonb;
BEGIN
    SELECT * INTO l FROM lease x
     WHERE x.tenant = t AND x.key = k AND x.fence = (o ->> 'fence')::bigint
       AND x.state < @LEASE_ENDED@;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('status', CASE WHEN v.newest <> 0 THEN @STATUS_STALE@
                                                 ELSE @STATUS_NOT_HELD@ END, 'fence', v.newest);
    END IF;
    head := jsonb_build_object('status', @STATUS_OK@,
                               'items', jsonb_build_array(lease_item(l, now)), 'now_ms', now,
                               'wall_ms', wall);
    ends := ends OR l.state = @LEASE_OFFERED@;
    IF ends AND NOT lease_seize(l, false) THEN
        RETURN head || jsonb_build_object('status', @STATUS_HELD@, 'say', 'committing',
                                          'fence', v.newest);
    END IF;
    PERFORM wake_holders(); -- its holder is told
    l.reason := o ->> 'reason';
    IF l.state = @LEASE_HELD@ THEN
        PERFORM history_record(
            t, k, jsonb_build_array(@EVENT_BROKEN@, 1, l.fence, wall - (now - l.granted_ms), wall,
                                    wall, l.holder, l.meta, coalesce(o ->> 'meta', ''), l.reason),
            wall);
    END IF;
    IF ends THEN
        PERFORM lease_end(l, @LEASE_ON_BREAK_NOW@, now, wall);
        PERFORM key_offer_next(t, k, now, wall);
    ELSE
        UPDATE lease x SET state = @LEASE_HELD_ON_BREAK@, reason = l.reason
            WHERE x.tenant = t AND x.key = k AND x.fence = l.fence;
        IF l.run <> 0 THEN
            PERFORM run_broken(l.run, l.reason, wall);
        END IF;
    END IF;
    RETURN head || jsonb_build_object('fence', newest_fence(t, k));
END
$$;
