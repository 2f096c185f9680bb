-- lock_rows: rows of leases and waiters: reads them, formats them, and makes single changes; no
-- decisions. Those are in lock.sql, which also explains why it is race-free. A `mode` is one of
-- MODE_*, a state one of LEASE_* (LEASE_WAITING is a waiter's).

-- The unit of work that a holder belongs to: the root column.
CREATE OR REPLACE FUNCTION unit_of(t text, h text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT t || E'\x1f' || split_part(h, '/', 1)
$$;

-- ---- looking ------------------------------------------------------------------------------------

-- The live leases of a key, oldest first, including overdue ones. Never reads all rows of a hot
-- key: either the newest is exclusive, and then no other can be live; or the live ones are in a
-- separate index, from the newest one's floor on. (STABLE and a single statement, so the planner
-- inlines it.)
CREATE OR REPLACE FUNCTION leases_of_key(t text, k text) RETURNS SETOF lease
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT n.* FROM (SELECT * FROM lease WHERE tenant = t AND key = k ORDER BY fence DESC LIMIT 1) n
     WHERE n.mode = @MODE_EXCLUSIVE@ AND n.state < @LEASE_ENDED@
    UNION ALL
    SELECT l.* FROM lease l
     WHERE l.live = t || E'\x1f' || k
       AND l.fence >= (SELECT CASE WHEN floor = 0 THEN fence ELSE floor END
                         FROM lease WHERE tenant = t AND key = k ORDER BY fence DESC LIMIT 1)
     ORDER BY fence
$$;

-- Everything about a key that ops base their decisions on. The newest lease tells where the queue
-- begins, so the remains of earlier waiters are not read again. Nor is all of a long queue: overdue
-- waiters are detected among the first `reach` (NULL: all). Those after them are skipped wherever
-- they matter (their places, their own return, their turn), and end with a sweep, or with the next
-- one before them.
CREATE OR REPLACE FUNCTION key_look(t text, k text, now bigint, reach int DEFAULT 64)
RETURNS key_view
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v key_view := (0, 0, 0, 0, 0, 0, 0, false, false, false);
    n lease;
    i bigint;
    j bigint;
BEGIN
    SELECT * INTO n FROM lease x WHERE x.tenant = t AND x.key = k ORDER BY x.fence DESC LIMIT 1;
    IF FOUND THEN
        v.head := n.head;
        IF n.mode <> @MODE_EXCLUSIVE@ THEN -- there may be others beside it, and without it
            SELECT coalesce(max(l.fence), 0), coalesce(min(l.fence), 0),
                   count(*) FILTER (WHERE l.mode = @MODE_SHARED@),
                   count(*) FILTER (WHERE l.mode = @MODE_PERMIT@), coalesce(max(l.permits), 0),
                   coalesce(min(l.expires_ms) <= now, false)
              INTO v.newest, v.oldest, v.ns, v.np, v.n_live, v.overdue
              FROM lease l
             WHERE l.live = t || E'\x1f' || k AND l.fence >= CASE WHEN n.floor = 0 THEN n.fence
                 ELSE n.floor END;
        ELSIF n.state < @LEASE_ENDED@ THEN
            v.newest  := n.fence;
            v.nx      := 1;
            -- mutant expiry_reversed: v.overdue := n.expires_ms >= now;
            v.overdue := n.expires_ms <= now;
        END IF;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE f.verdict = ''), v.overdue
           OR coalesce(min(f.drop_ms) <= now, false)
      INTO i, j, v.overdue
      FROM (SELECT w.verdict, w.drop_ms FROM waiter w
            WHERE w.tenant = t AND w.key = k AND w.ticket >= v.head
             ORDER BY w.ticket LIMIT reach) f;
    IF i >= reach AND j = 0 THEN
        j := (SELECT count(*) FROM waiter w
              WHERE w.tenant = t AND w.key = k AND w.ticket >= v.head AND w.verdict = ''
                 AND w.drop_ms > now); -- who is dead does not count, and nobody has looked at him
    END IF;
    v.waits  := i > 0;
    v.queued := j > 0;
    RETURN v;
END
$$;

CREATE OR REPLACE FUNCTION newest_fence(t text, k text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    f bigint;
    m int;
    s int;
BEGIN
    SELECT x.fence, x.mode, x.state INTO f, m, s FROM lease x WHERE x.tenant = t AND x.key = k
           ORDER BY x.fence DESC LIMIT 1;
    IF s < @LEASE_ENDED@ THEN
        RETURN f;
    ELSIF m <> @MODE_EXCLUSIVE@ THEN
        RETURN coalesce((SELECT max(x.fence) FROM leases_of_key(t, k) x), 0);
    END IF;
    RETURN 0;
END
$$;

-- Live waiters of a key; `head`: of any of its leases.
CREATE OR REPLACE FUNCTION count_waiters(t text, k text, head bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*)
              FROM (SELECT FROM waiter w
                     WHERE w.tenant = t AND w.key = k AND w.ticket >= count_waiters.head
                       AND w.drop_ms > now AND w.verdict = ''
                     LIMIT @COUNT_MAX@) AS x);
END
$$;

-- No live leases and no waiters. For runs.
CREATE OR REPLACE FUNCTION key_is_free(t text, k text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v key_view := key_look(t, k, 0);
BEGIN
    RETURN v.newest = 0 AND NOT v.queued;
END
$$;

-- The relation of this (key, holder) to the key: its live lease, otherwise how it ended less than a
-- minute ago.
CREATE OR REPLACE FUNCTION lease_of_holder(t text, k text, h text, now bigint) RETURNS SETOF lease
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM lease
     WHERE root IN (unit_of(t, h), unit_of(t, h) || '/')
       AND holder || E'\x1f' || key = h || E'\x1f' || k
       AND (state < @LEASE_ENDED@ OR ended_ms > now - @ENDED_KEEP_MS@)
     ORDER BY state >= @LEASE_ENDED@, fence DESC LIMIT 1
$$;

-- Can this be granted beside the live leases? The verdict of core/conflict.c.
CREATE OR REPLACE FUNCTION conflict(v key_view, mode int, permits int) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    against int := @conflicts_of_mode@;
BEGIN
    IF ((v.nx > 0)::int << @MODE_EXCLUSIVE@) & against <> 0
       OR ((v.ns > 0)::int << @MODE_SHARED@) & against <> 0
       OR ((v.np > 0)::int << @MODE_PERMIT@) & against <> 0 THEN
        RETURN @CONFLICT@;
    ELSIF mode <> @MODE_PERMIT@ OR v.np = 0 THEN
        RETURN @COMPATIBLE@;
    ELSIF v.n_live <> permits THEN
        RETURN @OTHER_N@;
    END IF;
    RETURN CASE WHEN v.np >= permits THEN @CONFLICT@ ELSE @COMPATIBLE@ END;
END
$$;

-- ---- lock order ---------------------------------------------------------------------------------

-- What the unit of work holds, at most ORDER_HOLDS_MAX leases, ordered by key, so that reports do
-- not depend on chance: {} or holds and order_n, to be added to the head. Before a new request is
-- granted, or after it was queued.
CREATE OR REPLACE FUNCTION lock_learn(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    holds jsonb := (SELECT jsonb_agg(jsonb_build_array(h.key, h.place) ORDER BY h.key, h.fence)
                      FROM (SELECT l.key, l.place, l.fence FROM lease l
                             WHERE l.root = unit_of(o ->> 'tenant', o ->> 'holder')
                               AND l.state < @LEASE_ENDED@ AND l.expires_ms > now
                             LIMIT @ORDER_HOLDS_MAX@) AS h);
BEGIN
    IF holds IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN jsonb_build_object('holds', holds, 'order_n', (SELECT order_n FROM state));
END
$$;

-- The first hold because of which a declared rank forbids a new request; NULL if there is none.
-- There is no order within a class.
CREATE OR REPLACE FUNCTION rank_against(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    classes text[] := ARRAY(SELECT jsonb_array_elements_text(o -> 'ranks'));
    asked   int    := array_position(classes, split_part(o ->> 'key', ':', 1));
BEGIN
    RETURN (SELECT jsonb_build_array(key, place) FROM lease
             WHERE root = unit_of(o ->> 'tenant', o ->> 'holder')
               AND state < @LEASE_ENDED@ AND expires_ms > now
               AND array_position(classes, split_part(key, ':', 1)) > asked
             ORDER BY key, fence LIMIT 1);
END
$$;

-- ---- answers ------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION lease_item_beside(l lease, n_waiters bigint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'key', l.key, 'holder', l.holder, 'number', l.fence, 'mode', l.mode, 'permits', l.permits,
        'state', l.state,
        'ttl_ms', l.ttl_ms, 'settle_ms', l.settle_ms, 'since_ms', l.granted_ms,
        'renewed_ms', l.renewed_ms,
        'due_ms', l.expires_ms, 'meta', l.meta, 'place', l.place, 'reason', l.reason,
        'n_waiters', n_waiters);
END
$$;

CREATE OR REPLACE FUNCTION lease_item(l lease, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN lease_item_beside(l, count_waiters(l.tenant, l.key, l.head, now));
END
$$;

-- HELD, with the conflicting lease: the oldest conflicting one, otherwise the oldest. mode: what an
-- acquire requests; NULL for other ops.
CREATE OR REPLACE FUNCTION lock_held(t text, k text, mode int, permits int, now bigint, wall bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    against int := @conflicts_of_mode@;
    l       lease;
    f       bigint;
    head    jsonb;
BEGIN
    SELECT * INTO l FROM lease x WHERE x.tenant = t AND x.key = k ORDER BY x.fence DESC LIMIT 1;
    f := l.fence;
    IF l.mode <> @MODE_EXCLUSIVE@ THEN
        SELECT * INTO l FROM leases_of_key(t, k) x
         ORDER BY CASE WHEN lock_held.mode IS NULL THEN false
                       ELSE against & (1 << x.mode) <> 0
                            OR (x.mode = @MODE_PERMIT@ AND x.permits <> lock_held.permits) END DESC,
                  x.fence
         LIMIT 1;
        f := newest_fence(t, k);
    END IF;
    IF l.state < @LEASE_ENDED@ IS NOT TRUE THEN
        RETURN '{"status": @STATUS_HELD@}'; -- only waiters are
    END IF;
    head := jsonb_build_object('status', @STATUS_HELD@, 'fence', f,
                               'items', jsonb_build_array(lease_item(l, now)),
                               'now_ms', now, 'wall_ms', wall);
    IF l.expires_ms <= now THEN
        head := head || '{"say": "committing"}'; -- key_expire() has left it: see lease_seize()
    END IF;
    RETURN head;
END
$$;

CREATE OR REPLACE FUNCTION lock_lost(l lease, now bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('status', @STATUS_LOST@, 'say', 'lost', 'ended_fence', l.fence,
                              'ended_how', l.state,
                              'ended_ago_ms', now - l.ended_ms)
$$;

-- How many waiters are served before this one. Counted from the last one counted in this
-- transaction, if it is in the same queue, so that a batch of many who join or poll a long queue
-- does not scan all of it each time. It is kept in a setting, like the wake-ups. Race-free: the
-- mutex of the key is held until the end of the transaction, so no one else changes its queue;
-- removing a waiter ourselves clears it.
CREATE OR REPLACE FUNCTION waiters_before(w waiter, head bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    -- tenant, key, ticket, how many before it
    last text[] := string_to_array(current_setting('interlock.place', true), E'\x1f');
    a    bigint := waiters_before.head;
    n    bigint := 0;
BEGIN
    IF last[1] = w.tenant AND last[2] = w.key THEN
        a := last[3]::bigint;
        n := last[4]::bigint;
    END IF;
    n := n + CASE WHEN a <= w.ticket THEN 1 ELSE -1 END
             * (SELECT count(*) FROM waiter x
                 WHERE x.tenant = w.tenant AND x.key = w.key AND x.ticket >= least(a, w.ticket)
                   AND x.ticket < greatest(a, w.ticket)
                   AND x.verdict = '' AND x.drop_ms > now);
    PERFORM set_config('interlock.place', concat_ws(E'\x1f', w.tenant, w.key, w.ticket, n), true);
    RETURN n;
END
$$;

CREATE OR REPLACE FUNCTION place_forget() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('interlock.place', true) <> '' THEN
        PERFORM set_config('interlock.place', '', true);
    END IF;
END
$$;

-- `head`: where its queue begins.
CREATE OR REPLACE FUNCTION lock_queued(w waiter, head bigint, now bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN jsonb_build_object(
        'status', @STATUS_QUEUED@, 'ticket', w.ticket, 'position', 1 + waiters_before(w, head, now),
        'remaining_ms', CASE WHEN w.deadline_ms = @NEVER@ THEN -1
                             ELSE w.deadline_ms - now END);
END
$$;

-- ---- single changes -----------------------------------------------------------------------------

-- Create a lease with the next fence. floor: the oldest lease that is live beside it.
CREATE OR REPLACE FUNCTION lease_add(t text, k text, h text, r text, mode int, permits int,
                                     state int, ttl bigint, settle bigint,
                                     expires bigint, floor bigint, head bigint, run bigint,
                                     meta text, place text, now bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    f bigint := fence_draw();
BEGIN
    INSERT INTO lease (tenant, key, fence, run, ttl_ms, settle_ms, granted_ms, renewed_ms,
                       expires_ms, look_ms, floor, head,
                       permits, mode, state, holder, root, live, meta, place, reason)
    VALUES (t, k, f, run, ttl, settle, now, now, expires,
            least(expires, now + @LEASE_LOOK_MS@), floor, head, permits, mode, state, h, r,
            CASE WHEN mode <> @MODE_EXCLUSIVE@ THEN t || E'\x1f' || k END, meta, place, '');
    RETURN f;
END
$$;

CREATE OR REPLACE FUNCTION grant_in(v key_view, o jsonb, run bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ttl bigint := (o ->> 'ttl_ms')::bigint;
BEGIN
    RETURN lease_add(o ->> 'tenant', o ->> 'key', o ->> 'holder',
                     unit_of(o ->> 'tenant', o ->> 'holder'),
                     coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@),
                     coalesce((o ->> 'permits')::int, 0), @LEASE_ON_GRANT@, ttl,
                     coalesce((o ->> 'settle_ms')::bigint, 0), now + ttl, v.oldest, v.head, run,
                     coalesce(o ->> 'meta', ''), coalesce(o ->> 'place', ''), now);
END
$$;

CREATE OR REPLACE FUNCTION lease_grant(o jsonb, run bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN grant_in(key_look(o ->> 'tenant', o ->> 'key', now), o, run, now);
END
$$;

-- When a wait is over: a year or more means forever.
CREATE OR REPLACE FUNCTION wait_deadline(wait_ms bigint, now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN wait_ms < 0 OR wait_ms > @WAIT_MS_MAX@ THEN @NEVER@
                ELSE now + wait_ms END
$$;

-- Add a waiter to the end of the queue: tickets are drawn under the key's mutex.
CREATE OR REPLACE FUNCTION waiter_add(o jsonb, run bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    deadline bigint := wait_deadline((o ->> 'wait_ms')::bigint, now);
    n        bigint := nextval('ticket_seq');
BEGIN
    INSERT INTO waiter (ticket, run, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms,
                        permits, mode, tenant, key,
                        holder, root, meta, place, verdict)
    VALUES (n, run, (o ->> 'ttl_ms')::bigint, coalesce((o ->> 'settle_ms')::bigint, 0), now, now,
            deadline,
            least(deadline, now + @WAITER_DROP_MS@), coalesce((o ->> 'permits')::int, 0),
            coalesce((o ->> 'mode')::int, @MODE_EXCLUSIVE@), o ->> 'tenant',
            o ->> 'key', o ->> 'holder', unit_of(o ->> 'tenant', o ->> 'holder'),
            coalesce(o ->> 'meta', ''),
            coalesce(o ->> 'place', ''), '');
    RETURN n;
END
$$;

-- Remove a waiter, and end its run. The caller hands the key to the next waiter.
CREATE OR REPLACE FUNCTION waiter_leave(w waiter, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF w.run <> 0 THEN
        PERFORM run_lost(w.run, @LEASE_WAITING@, @LEASE_ON_LEAVE@, w.drop_ms, w.deadline_ms, '',
                         now, wall);
    END IF;
    PERFORM place_forget();
    DELETE FROM waiter x WHERE x.tenant = w.tenant AND x.key = w.key AND x.ticket = w.ticket;
END
$$;

-- End a lease, and its run. It is remembered, unless it was never confirmed. The caller hands the
-- key to the next waiter.
CREATE OR REPLACE FUNCTION lease_end(l lease, how int, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF l.run <> 0 THEN
        PERFORM run_lost(l.run, l.state, how, l.expires_ms, 0, l.reason, now, wall);
    END IF;
    UPDATE lease x
       SET state = how, run = 0, live = NULL,
           ended_ms = CASE WHEN l.state <> @LEASE_OFFERED@ OR how = @LEASE_RELEASED@ THEN now END
     WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
END
$$;

-- Can the lease be taken away from its holder? Not while a transaction that has shown its fence to
-- check_fence() is open: it holds the row FOR KEY SHARE, and its writes belong to this lease. Then
-- the lease stays as it is, we do not wait, and a sweep tries again. The row is locked from here
-- on, so that a new check_fence() waits for our commit and then finds it ended.
CREATE OR REPLACE FUNCTION lease_seize(l lease, sweeps boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence
            FOR UPDATE SKIP LOCKED;
    IF FOUND OR sweeps THEN
        RETURN FOUND;
    END IF;
    -- It may only be a sweep that is updating look_ms; that ends soon, because sweeps never wait.
    -- KEY SHARE lets this through.
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence
            FOR NO KEY UPDATE;
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence
            FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END
$$;

-- A holder has released its lease, while a transaction that has shown its fence may be open. If so,
-- the lease stays, closing and overdue, until that has ended: the key is not granted to anyone
-- before. ended_ms distinguishes it from a broken one. True: it stays. The row's xmax shows who has
-- locked it; usually no one has.
CREATE OR REPLACE FUNCTION lease_linger(l lease, now bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF (SELECT x.xmax = '0' FROM lease x
        WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence)
          OR lease_seize(l, false) THEN
        RETURN false;
    END IF;
    UPDATE lease x
       SET state = @LEASE_CLOSING@, run = 0, ended_ms = now, expires_ms = now,
           look_ms = least(x.look_ms, now)
     WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
    RETURN true;
END
$$;
