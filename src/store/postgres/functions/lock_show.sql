-- lock_show: get, list and check_fence. They change nothing, not even what is overdue: that is only left out. They take no mutex:
-- each looks once, with one snapshot.

-- Is a lease still to be seen? One that has expired while its key settles is (il__lease_view() in C shows it as CLOSING).
CREATE OR REPLACE FUNCTION lease_is_seen(state smallint, expires bigint, settle bigint, now bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT expires > now OR (state = 3 AND expires + settle > now)
$$;

CREATE OR REPLACE FUNCTION waiter_item(w waiter, n_waiters bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'key', w.key, 'holder', w.holder, 'number', w.ticket, 'mode', w.mode, 'permits', w.permits, 'state', 1,
        'ttl_ms', w.ttl_ms, 'settle_ms', w.settle_ms, 'since_ms', w.queued_ms, 'renewed_ms', w.seen_ms,
        'due_ms', nullif(w.deadline_ms, 9223372036854775807), 'meta', w.meta, 'place', w.place, 'n_waiters', n_waiters))
$$;

CREATE OR REPLACE FUNCTION v_get(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    items  jsonb;
    newest bigint;
BEGIN
    SELECT jsonb_agg(lease_item(s, v_get.now) ORDER BY s.fence) FILTER (WHERE s.nth <= 1000), max(s.fence)
      INTO items, newest
      FROM (SELECT l AS s, l.fence, row_number() OVER (ORDER BY l.fence) AS nth
              FROM leases_of_key(o ->> 'tenant', o ->> 'key') l
             WHERE lease_is_seen(l.state, l.expires_ms, l.settle_ms, v_get.now)) s;
    IF newest IS NULL THEN
        RETURN '{"status": 4}';
    END IF;
    RETURN jsonb_build_object('status', 0, 'fence', newest, 'items', items, 'now_ms', now, 'wall_ms', wall);
END
$$;

CREATE OR REPLACE FUNCTION v_check_fence(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    newest  bigint;
    current boolean;
BEGIN
    SELECT max(l.fence), bool_or(l.fence = (o ->> 'fence')::bigint AND l.state = 3 AND l.expires_ms > v_check_fence.now)
      INTO newest, current
      FROM leases_of_key(o ->> 'tenant', o ->> 'key') l
     WHERE lease_is_seen(l.state, l.expires_ms, l.settle_ms, v_check_fence.now);
    RETURN jsonb_build_object('status', CASE WHEN current THEN 0 ELSE 5 END, 'fence', coalesce(newest, 0));
END
$$;

-- ---- listing -------------------------------------------------------------------------------------------------------------

-- Behind every key that begins with this: no key has more than 512 bytes, so none has that many of the greatest character.
CREATE OR REPLACE FUNCTION prefix_end(prefix text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || repeat(U&'\+10FFFF', 129)
$$;

-- A page of live leases by key, then fence: [item, …], one more than asked for, if there is one.
CREATE OR REPLACE FUNCTION list_leases(t text, prefix text, after_key text, after bigint, n int, now bigint) RETURNS jsonb[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT lease_item(l, list_leases.now) FROM lease l
         WHERE l.tenant = t AND l.key >= greatest(prefix, after_key) AND l.key < prefix_end(prefix)
           AND (l.key, l.fence) > (after_key, after)
           AND l.state < 5 AND lease_is_seen(l.state, l.expires_ms, l.settle_ms, list_leases.now)
         ORDER BY l.key, l.fence LIMIT n)
$$;

-- The same of waiters, by key, then ticket.
CREATE OR REPLACE FUNCTION list_waiters(t text, prefix text, after_key text, after bigint, n int, now bigint) RETURNS jsonb[]
LANGUAGE sql STABLE AS $$
    WITH page AS MATERIALIZED (
        SELECT w FROM waiter w
         WHERE w.tenant = t AND w.key >= greatest(prefix, after_key) AND w.key < prefix_end(prefix)
           AND (w.key, w.ticket) > (after_key, after)
           AND w.verdict = '' AND w.drop_ms > list_waiters.now
         ORDER BY w.key, w.ticket LIMIT n),
    queue AS MATERIALIZED ( -- counted once, however many of it are on the page
        SELECT k.key, count_waiters(t, k.key, 0, list_waiters.now) AS n FROM (SELECT DISTINCT (p.w).key FROM page p) k)
    SELECT ARRAY(SELECT waiter_item(p.w, q.n) FROM page p JOIN queue q ON q.key = (p.w).key ORDER BY (p.w).key, (p.w).ticket)
$$;

CREATE OR REPLACE FUNCTION v_list(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n         int    := coalesce((o ->> 'limit')::int, 100);
    prefix    text   := coalesce(o ->> 'prefix', '');
    after_key text   := coalesce(o ->> 'after_key', '');
    after     bigint := coalesce((o ->> 'after_number')::bigint, 0);
    items     jsonb[];
    head      jsonb  := jsonb_build_object('status', 0, 'now_ms', now, 'wall_ms', wall);
BEGIN
    IF coalesce((o ->> 'flags')::int, 0) & 2 <> 0 THEN
        items := list_waiters(o ->> 'tenant', prefix, after_key, after, n + 1, now);
    ELSE
        items := list_leases(o ->> 'tenant', prefix, after_key, after, n + 1, now);
    END IF;
    IF cardinality(items) > n THEN
        head := head || jsonb_build_object('next', jsonb_build_array(items[n] -> 'key', items[n] -> 'number'));
    END IF;
    RETURN head || jsonb_build_object('items', to_jsonb(items[1:n]));
END
$$;
