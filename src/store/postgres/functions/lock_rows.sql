-- lock_rows: what there is of leases and waiters: looking at it, saying it, and the single changes; no decisions. Those are in
-- lock.sql, which also says why it is race-free.
-- Modes: 0 exclusive, 1 shared, 2 permit. States: 1 a waiter, 2 OFFERED, 3 HELD, 4 CLOSING, 5 RELEASED, 6 EXPIRED, 7 BROKEN.

-- The unit of work that a holder belongs to: the root column.
CREATE OR REPLACE FUNCTION unit_of(t text, h text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT t || E'\x1f' || split_part(h, '/', 1)
$$;

-- ---- looking -----------------------------------------------------------------------------------------------------------

-- The live leases of a key, oldest first, overdue ones too. Never looks at all rows of a hot key: either the newest is exclusive,
-- and then no other can be live; or the live ones are in an index of their own, from the newest one's floor on.
-- (STABLE and of one statement: the planner puts it into the caller's.)
CREATE OR REPLACE FUNCTION leases_of_key(t text, k text) RETURNS SETOF lease
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT n.* FROM (SELECT * FROM lease WHERE tenant = t AND key = k ORDER BY fence DESC LIMIT 1) n
     WHERE n.mode = 0 AND n.state < 5
    UNION ALL
    SELECT l.* FROM lease l
     WHERE l.live = t || E'\x1f' || k
       AND l.fence >= (SELECT CASE WHEN floor = 0 THEN fence ELSE floor END
                         FROM lease WHERE tenant = t AND key = k ORDER BY fence DESC LIMIT 1)
     ORDER BY fence
$$;

-- All of a key that ops decide by. Where the queue begins is known from the newest lease: what is left of those who waited before is
-- not looked at again. Nor is all of a long queue: who is overdue is seen among the first `reach` (NULL: all of them). Those behind them are passed over wherever they count (their places, their own return,
-- their turn), and end with a sweep, or with the next one before them.
CREATE OR REPLACE FUNCTION key_look(t text, k text, now bigint, reach int DEFAULT 64) RETURNS key_view
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
        IF n.mode <> 0 THEN -- there may be others beside it, and without it
            SELECT coalesce(max(l.fence), 0), coalesce(min(l.fence), 0), count(*) FILTER (WHERE l.mode = 1),
                   count(*) FILTER (WHERE l.mode = 2), coalesce(max(l.permits), 0), coalesce(min(l.expires_ms) <= now, false)
              INTO v.newest, v.oldest, v.ns, v.np, v.n_live, v.overdue
              FROM lease l
             WHERE l.live = t || E'\x1f' || k AND l.fence >= CASE WHEN n.floor = 0 THEN n.fence ELSE n.floor END;
        ELSIF n.state < 5 THEN
            v.newest  := n.fence;
            v.nx      := 1;
            v.overdue := n.expires_ms <= now;
        END IF;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE f.verdict = ''), v.overdue OR coalesce(min(f.drop_ms) <= now, false)
      INTO i, j, v.overdue
      FROM (SELECT w.verdict, w.drop_ms FROM waiter w WHERE w.tenant = t AND w.key = k AND w.ticket >= v.head
             ORDER BY w.ticket LIMIT reach) f;
    IF i >= reach AND j = 0 THEN
        j := (SELECT count(*) FROM waiter w WHERE w.tenant = t AND w.key = k AND w.ticket >= v.head AND w.verdict = ''
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
    SELECT x.fence, x.mode, x.state INTO f, m, s FROM lease x WHERE x.tenant = t AND x.key = k ORDER BY x.fence DESC LIMIT 1;
    IF s < 5 THEN
        RETURN f;
    ELSIF m <> 0 THEN
        RETURN coalesce((SELECT max(x.fence) FROM leases_of_key(t, k) x), 0);
    END IF;
    RETURN 0;
END
$$;

-- Live waiters of a key; `head`: of any of its leases.
CREATE OR REPLACE FUNCTION count_waiters(t text, k text, head bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM waiter w
             WHERE w.tenant = t AND w.key = k AND w.ticket >= count_waiters.head AND w.drop_ms > now AND w.verdict = '');
END
$$;

-- No live lease, and nobody waits. For runs.
CREATE OR REPLACE FUNCTION key_is_free(t text, k text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v key_view := key_look(t, k, 0);
BEGIN
    RETURN v.newest = 0 AND NOT v.queued;
END
$$;

-- How this (key, holder) has to do with the key: its live lease, else how it ended less than a minute ago.
CREATE OR REPLACE FUNCTION lease_of_holder(t text, k text, h text, now bigint) RETURNS SETOF lease
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT * FROM lease
     WHERE root IN (unit_of(t, h), unit_of(t, h) || '/')
       AND holder || E'\x1f' || key = h || E'\x1f' || k AND (state < 5 OR ended_ms > now - 60000)
     ORDER BY state >= 5, fence DESC LIMIT 1
$$;

-- May this be granted beside what is live? 0 yes, 1 no, 2 a semaphore with another N. See core/conflict.c.
CREATE OR REPLACE FUNCTION conflict(v key_view, mode int, permits int) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF v.nx > 0 OR (mode <> 1 AND v.ns > 0) OR (mode <> 2 AND v.np > 0) THEN
        RETURN 1;
    ELSIF mode <> 2 OR v.np = 0 THEN
        RETURN 0;
    ELSIF v.n_live <> permits THEN
        RETURN 2;
    END IF;
    RETURN (v.np >= permits)::int;
END
$$;

-- ---- lock order ----------------------------------------------------------------------------------------------------------

-- What the unit of work holds, in the order of keys, so that what is said about it does not depend on chance: {} or holds and
-- order_n, to be put into the head. Before a new request is granted, or after it was queued.
CREATE OR REPLACE FUNCTION lock_learn(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    holds jsonb := (SELECT jsonb_agg(jsonb_build_array(key, place) ORDER BY key, fence) FROM lease
                     WHERE root = unit_of(o ->> 'tenant', o ->> 'holder')
                       AND state < 5 AND expires_ms > now);
BEGIN
    IF holds IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN jsonb_build_object('holds', holds, 'order_n', (SELECT order_n FROM state));
END
$$;

-- The first hold because of which a declared rank forbids a new request; NULL if none does. One class has no order within it.
CREATE OR REPLACE FUNCTION rank_against(o jsonb, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    classes text[] := ARRAY(SELECT jsonb_array_elements_text(o -> 'ranks'));
    asked   int    := array_position(classes, split_part(o ->> 'key', ':', 1));
BEGIN
    RETURN (SELECT jsonb_build_array(key, place) FROM lease
             WHERE root = unit_of(o ->> 'tenant', o ->> 'holder')
               AND state < 5 AND expires_ms > now
               AND array_position(classes, split_part(key, ':', 1)) > asked
             ORDER BY key, fence LIMIT 1);
END
$$;

-- ---- answers -------------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION lease_item(l lease, now bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'key', l.key, 'holder', l.holder, 'number', l.fence, 'mode', l.mode, 'permits', l.permits, 'state', l.state,
        'ttl_ms', l.ttl_ms, 'settle_ms', l.settle_ms, 'since_ms', l.granted_ms, 'renewed_ms', l.renewed_ms,
        'due_ms', l.expires_ms, 'meta', l.meta, 'place', l.place, 'reason', l.reason,
        'n_waiters', count_waiters(l.tenant, l.key, l.head, now));
END
$$;

-- HELD, with the lease in the way: the oldest conflicting one, else the oldest. mode: what an acquire asks for; NULL for other ops.
CREATE OR REPLACE FUNCTION lock_held(t text, k text, mode int, permits int, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    l    lease;
    f    bigint;
    head jsonb;
BEGIN
    SELECT * INTO l FROM lease x WHERE x.tenant = t AND x.key = k ORDER BY x.fence DESC LIMIT 1;
    f := l.fence;
    IF l.mode <> 0 THEN
        SELECT * INTO l FROM leases_of_key(t, k) x
         ORDER BY CASE WHEN lock_held.mode IS NULL THEN false
                       ELSE lock_held.mode <> x.mode OR (x.mode = 2 AND x.permits <> lock_held.permits) END DESC,
                  x.fence
         LIMIT 1;
        f := newest_fence(t, k);
    END IF;
    IF l.state < 5 IS NOT TRUE THEN
        RETURN '{"status": 1}'; -- only waiters are
    END IF;
    head := jsonb_build_object('status', 1, 'fence', f, 'items', jsonb_build_array(lease_item(l, now)),
                               'now_ms', now, 'wall_ms', wall);
    IF l.expires_ms <= now THEN
        head := head || '{"say": "committing"}'; -- settling has left it: see lease_seize()
    END IF;
    RETURN head;
END
$$;

CREATE OR REPLACE FUNCTION lock_lost(l lease, now bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('status', 3, 'say', 'lost', 'ended_fence', l.fence, 'ended_how', l.state,
                              'ended_ago_ms', now - l.ended_ms)
$$;

-- How many are served before a waiter. Counted from the last one that was asked for in this transaction, if it is of the same queue, so that a batch of many who join a long queue, or
-- show that they still wait there, does not go through all of it each time. It is kept as the wakes are. Race-free: the mutex of the key is held to the end of the transaction, so nobody else changes its
-- queue; whatever we take out of one ourselves makes it forgotten.
CREATE OR REPLACE FUNCTION waiters_before(w waiter, head bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last text[] := string_to_array(current_setting('interlock.place', true), E'\x1f'); -- tenant, key, ticket, how many before it
    a    bigint := waiters_before.head;
    n    bigint := 0;
BEGIN
    IF last[1] = w.tenant AND last[2] = w.key THEN
        a := last[3]::bigint;
        n := last[4]::bigint;
    END IF;
    n := n + CASE WHEN a <= w.ticket THEN 1 ELSE -1 END
             * (SELECT count(*) FROM waiter x
                 WHERE x.tenant = w.tenant AND x.key = w.key AND x.ticket >= least(a, w.ticket) AND x.ticket < greatest(a, w.ticket)
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
        'status', 2, 'ticket', w.ticket, 'position', 1 + waiters_before(w, head, now),
        'remaining_ms', CASE WHEN w.deadline_ms = 9223372036854775807 THEN -1 ELSE w.deadline_ms - now END);
END
$$;

-- ---- single changes ------------------------------------------------------------------------------------------------------

-- A new lease with the next fence. floor: the oldest one that is live beside it.
CREATE OR REPLACE FUNCTION lease_add(t text, k text, h text, r text, mode int, permits int, state int, ttl bigint, settle bigint,
                                     expires bigint, floor bigint, head bigint, run bigint, meta text, place text, now bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    f bigint := nextval('fence_seq');
BEGIN
    INSERT INTO lease (tenant, key, fence, run, ttl_ms, settle_ms, granted_ms, renewed_ms, expires_ms, look_ms, floor, head,
                       permits, mode, state, holder, root, live, meta, place, reason)
    VALUES (t, k, f, run, ttl, settle, now, now, expires, least(expires, now + 30000), floor, head,
            permits, mode, state, h, r, CASE WHEN mode <> 0 THEN t || E'\x1f' || k END, meta, place, '');
    RETURN f;
END
$$;

CREATE OR REPLACE FUNCTION grant_in(v key_view, o jsonb, run bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ttl bigint := (o ->> 'ttl_ms')::bigint;
BEGIN
    RETURN lease_add(o ->> 'tenant', o ->> 'key', o ->> 'holder', unit_of(o ->> 'tenant', o ->> 'holder'),
                     coalesce((o ->> 'mode')::int, 0), coalesce((o ->> 'permits')::int, 0), 3, ttl,
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

-- When a wait is over: a year or more is for ever.
CREATE OR REPLACE FUNCTION wait_deadline(wait_ms bigint, now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN wait_ms < 0 OR wait_ms > 31622400000 THEN 9223372036854775807 ELSE now + wait_ms END
$$;

-- A new waiter, at the end of the queue: tickets are drawn under the key's mutex.
CREATE OR REPLACE FUNCTION waiter_add(o jsonb, run bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    deadline bigint := wait_deadline((o ->> 'wait_ms')::bigint, now);
    n        bigint := nextval('ticket_seq');
BEGIN
    INSERT INTO waiter (ticket, run, ttl_ms, settle_ms, queued_ms, seen_ms, deadline_ms, drop_ms, permits, mode, tenant, key,
                        holder, root, meta, place, verdict)
    VALUES (n, run, (o ->> 'ttl_ms')::bigint, coalesce((o ->> 'settle_ms')::bigint, 0), now, now, deadline,
            least(deadline, now + 15000), coalesce((o ->> 'permits')::int, 0), coalesce((o ->> 'mode')::int, 0), o ->> 'tenant',
            o ->> 'key', o ->> 'holder', unit_of(o ->> 'tenant', o ->> 'holder'), coalesce(o ->> 'meta', ''),
            coalesce(o ->> 'place', ''), '');
    RETURN n;
END
$$;

-- A waiter goes, and its run with it. The caller gives the key on.
CREATE OR REPLACE FUNCTION waiter_leave(w waiter, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF w.run <> 0 THEN
        PERFORM run_lost(w.run, 1, 6, w.drop_ms, w.deadline_ms, '', now, wall);
    END IF;
    PERFORM place_forget();
    DELETE FROM waiter x WHERE x.tenant = w.tenant AND x.key = w.key AND x.ticket = w.ticket;
END
$$;

-- A lease ends, and its run with it. It is remembered, unless it was never confirmed. The caller gives the key on.
CREATE OR REPLACE FUNCTION lease_end(l lease, how int, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF l.run <> 0 THEN
        PERFORM run_lost(l.run, l.state, how, l.expires_ms, 0, l.reason, now, wall);
    END IF;
    UPDATE lease x
       SET state = how, run = 0, live = NULL, ended_ms = CASE WHEN l.state <> 2 OR how = 5 THEN now END
     WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
END
$$;

-- May the lease be taken away from its holder? Not while somebody's transaction that has shown its fence to check_fence() is under
-- way: it holds the row FOR KEY SHARE, and its writes belong to this lease. Then it stays as it is, nobody waits, and a sweep
-- tries again. The row is locked from here on, so that a check_fence() that comes now waits for our commit and then finds it ended.
CREATE OR REPLACE FUNCTION lease_seize(l lease, sweeps boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence FOR UPDATE SKIP LOCKED;
    IF FOUND OR sweeps THEN
        RETURN FOUND;
    END IF;
    -- It may only be a sweep that is moving look_ms on; that is over soon, for sweeps wait for nobody. KEY SHARE lets this through.
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence FOR NO KEY UPDATE;
    PERFORM 1 FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence FOR UPDATE SKIP LOCKED;
    RETURN FOUND;
END
$$;

-- A holder has given its lease back, while somebody's transaction that has shown its fence may be under way. If it is, the lease stays, closing and
-- overdue, until that has ended: nobody else is given the key before. ended_ms tells it from one that was broken. True: it stays.
-- Who has locked the row is in its xmax, for all to see; mostly that is nobody.
CREATE OR REPLACE FUNCTION lease_linger(l lease, now bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF (SELECT x.xmax = '0' FROM lease x WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence) OR lease_seize(l, false) THEN
        RETURN false;
    END IF;
    UPDATE lease x
       SET state = 4, run = 0, ended_ms = now, expires_ms = now, look_ms = least(x.look_ms, now)
     WHERE x.tenant = l.tenant AND x.key = l.key AND x.fence = l.fence;
    RETURN true;
END
$$;
