-- cache: cached values and their builds. The rules are in src/core/cache.md.
--
-- Why this is race-free: lookup, fill, abandon and drop of a key hold its mutex until their commit.
-- What they read is still true when they write, with one exception: a sweep, which takes no mutex,
-- may have deleted an expired value or a dead build, judged by its own, later clock. So nothing
-- here relies on a row still existing after it was read. get takes no mutex and writes nothing, and
-- neither does any hit of a caller that tries get first. It reads value and build in one statement,
-- so from one snapshot, and a fill replaces a value in one row: readers see the old or the new
-- value, never a mix.
--
-- Rows are found by tenant and key. "+ 0" keeps the planner from using the indexes of the sweeps: a
-- plan made while a table was empty might choose one of them, and scan all of it once the table has
-- grown.

CREATE OR REPLACE FUNCTION mutexes_cache(o jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF o->>'op' IN ('cache_lookup', 'cache_fill', 'cache_abandon', 'cache_drop') THEN
        RETURN NEXT mutex(@MUTEX_CACHE@, o->>'tenant', o->>'key');
    END IF;
END
$$;

-- ---- lookup and get -----------------------------------------------------------------------------

-- Is it time for an early refresh? In integers, like il__cache_is_early().
CREATE OR REPLACE FUNCTION cache_is_early(o jsonb, left_ms bigint, build_ms bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN o ? 'early'
           AND left_ms <= (least(build_ms, @DELAY_MS_MAX@) * (o->>'early')::bigint) >> 16;
END
$$;

-- Store the op's build, new or renewed. Two callers cannot both lead: the second gets the mutex
-- only after the commit of the first, and then reads this row.
CREATE OR REPLACE FUNCTION cache_build_put(o jsonb, tok bigint, at_ms bigint, at_wall bigint,
                                           now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO cache_build (tenant, key, holder, token, expires_ms, began_ms, began_at)
    VALUES (o->>'tenant', o->>'key', o->>'holder', tok, now + (o->>'lease_ms')::bigint, at_ms,
            at_wall)
        ON CONFLICT (tenant, key) DO UPDATE
       SET holder = excluded.holder, token = excluded.token, expires_ms = excluded.expires_ms,
           began_ms = excluded.began_ms, began_at = excluded.began_at;
END
$$;

-- Both ops. Only a lookup may lead, and thus write.
CREATE OR REPLACE FUNCTION cache_look(o jsonb, now bigint, wall bigint) RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e      record; -- the value, unless it is gone, and the build, unless it is dead
    leads  boolean := o->>'op' = 'cache_lookup';
    waited boolean; -- for this value, or one before it
    fresh  boolean;
    shown  boolean;
    early  boolean;
    status int;
    flags  int := 0;
    tok    bigint;
    rest   bigint;
BEGIN
    SELECT v.filled, v.began_at, v.fresh_until, v.stale_until, v.build_ms, v.code, v.negative,
           v.value,
           b.holder, b.token, b.expires_ms, b.began_ms, b.began_at AS build_began_at INTO e
      FROM (VALUES (1)) AS one
      LEFT JOIN cache_value v ON v.tenant = o->>'tenant' AND v.key = o->>'key'
          AND v.purge_at + 0 > wall
      LEFT JOIN cache_build b ON b.tenant = o->>'tenant' AND b.key = o->>'key'
          AND b.expires_ms + 0 > now;
    waited := coalesce(e.filled >= (o->>'fence')::bigint, false);
    fresh  := coalesce(wall < e.fresh_until, false);
    shown  := coalesce(wall < e.stale_until, false);
    early  := fresh AND e.token IS NULL AND cache_is_early(o, e.fresh_until - wall, e.build_ms);
    IF leads AND e.holder = o->>'holder' THEN -- LEAD: its own build goes on
        status := @STATUS_LEAD@; tok := e.token; rest := (o->>'lease_ms')::bigint;
        flags  := @OUT_RENEWED@ + CASE WHEN fresh THEN @OUT_EARLY@ ELSE 0 END;
        PERFORM cache_build_put(o, tok, e.began_ms, e.build_began_at, now);
    ELSIF waited OR (fresh AND NOT (early AND leads)) THEN -- HIT
        status := @STATUS_HIT@; tok := e.filled; rest := greatest(e.fresh_until - wall, 0);
        shown  := true;
        flags  := CASE WHEN early AND NOT waited THEN @OUT_EARLY@ ELSE 0 END;
    ELSIF shown AND NOT fresh AND (e.token IS NOT NULL OR NOT leads) THEN -- STALE_HIT
        status := @STATUS_STALE_HIT@; tok := coalesce(e.token, 0); rest := e.stale_until - wall;
    ELSIF e.token IS NOT NULL THEN -- WAIT; there is nothing to show
        status := @STATUS_WAIT@; tok := e.token; rest := e.expires_ms - now;
    ELSIF leads THEN -- LEAD
        status := @STATUS_LEAD@; tok := fence_draw(); rest := (o->>'lease_ms')::bigint;
        flags  := CASE WHEN fresh THEN @OUT_EARLY@ ELSE 0 END;
        PERFORM cache_build_put(o, tok, now, wall, now);
    ELSE -- NOT_FOUND
        status := @STATUS_NOT_FOUND@; tok := 0; rest := 0;
    END IF;
    IF shown THEN
        RETURN NEXT (jsonb_build_object('status', status,
                                        'flags', CASE WHEN e.negative THEN flags + @OUT_NEGATIVE@
                                                      ELSE flags END,
                                        'fence', tok, 'remaining_ms', rest, 'code', e.code,
                                        'age_ms', greatest(wall - e.began_at, 0)),
                                        e.value, NULL)::reply;
    ELSE
        RETURN NEXT (jsonb_build_object('status', status, 'flags', flags, 'fence', tok,
                                        'remaining_ms', rest), NULL, NULL)::reply;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION v_cache_lookup(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT * FROM cache_look(o, now, wall);
END
$$;

CREATE OR REPLACE FUNCTION v_cache_get(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT * FROM cache_look(o, now, wall);
END
$$;

-- ---- fill, abandon, drop ------------------------------------------------------------------------

-- Store the value that the build b made. It replaces the old one in one row.
CREATE OR REPLACE FUNCTION cache_value_put(o jsonb, d bytea, b cache_build, now bigint, wall bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    -- mutant fresh_from_the_end: fresh bigint := wall + (o->>'ttl_ms')::bigint;
    fresh bigint := b.began_at + (o->>'ttl_ms')::bigint;
    stale bigint := fresh + coalesce((o->>'grace_ms')::bigint, 0);
BEGIN
    INSERT INTO cache_value (tenant, key, filled, began_at, fresh_until, stale_until, purge_at,
                             build_ms, code, negative, value)
    VALUES (b.tenant, b.key, b.token, b.began_at, fresh, stale,
            greatest(stale, wall + @CACHE_KEEP_MS@), greatest(now - b.began_ms, 1),
            coalesce((o->>'code')::int, 0),
            coalesce((o->>'flags')::int, 0) & @FLAG_CACHE_NEGATIVE@ <> 0, d)
        ON CONFLICT (tenant, key) DO UPDATE
       SET filled = excluded.filled, began_at = excluded.began_at,
           fresh_until = excluded.fresh_until,
           stale_until = excluded.stale_until, purge_at = excluded.purge_at,
           build_ms = excluded.build_ms,
           code = excluded.code, negative = excluded.negative, value = excluded.value;
    RETURN greatest(fresh - wall, 0);
END
$$;

CREATE OR REPLACE FUNCTION v_cache_fill(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b    cache_build;
    e    record;
    tok  bigint := (o->>'fence')::bigint;
    head jsonb;
BEGIN
    SELECT * INTO b FROM cache_build
     WHERE tenant = o->>'tenant' AND key = o->>'key' AND expires_ms + 0 > now;
    IF b.token = tok AND b.holder = o->>'holder' THEN
        head := jsonb_build_object('status', @STATUS_OK@, 'fence', tok,
                                   'remaining_ms', cache_value_put(o, d, b, now, wall));
        DELETE FROM cache_build WHERE tenant = b.tenant AND key = b.key;
        PERFORM wake(b.tenant, b.key, '#cache');
        RETURN NEXT (head, NULL, NULL)::reply;
        RETURN;
    END IF;
    -- Bytes are compared only if the value has this token: a repeated fill.
    SELECT v.filled, v.fresh_until,
           CASE WHEN v.filled = tok
                THEN v.code = coalesce((o->>'code')::int, 0) AND v.value = d
                     AND v.negative = (coalesce((o->>'flags')::int, 0) & @FLAG_CACHE_NEGATIVE@ <> 0)
                END AS same INTO e
      FROM cache_value v
     WHERE v.tenant = o->>'tenant' AND v.key = o->>'key' AND v.purge_at + 0 > wall;
    IF e.same IS NULL THEN
        head := jsonb_build_object('status', @STATUS_STALE@,
                                   'fence', coalesce(b.token, e.filled, 0), 'say', 'not_the_build');
    ELSE
        head := jsonb_build_object('status', @STATUS_OK@, 'fence', tok,
                                   'remaining_ms', greatest(e.fresh_until - wall, 0));
        IF NOT e.same THEN
            head := head || '{"status": @STATUS_MISMATCH@, "say": "other_value"}';
        END IF;
    END IF;
    RETURN NEXT (head, NULL, NULL)::reply;
END
$$;

CREATE OR REPLACE FUNCTION v_cache_abandon(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    tok  bigint;
    head jsonb := '{"status": @STATUS_OK@}';
BEGIN
    DELETE FROM cache_build
     WHERE tenant = o->>'tenant' AND key = o->>'key' AND token + 0 = (o->>'fence')::bigint
       AND holder = o->>'holder';
    IF FOUND THEN
        PERFORM wake(o->>'tenant', o->>'key', '#cache');
    ELSE
        SELECT token INTO tok FROM cache_build
         WHERE tenant = o->>'tenant' AND key = o->>'key' AND expires_ms + 0 > now;
        IF FOUND THEN
            head := jsonb_build_object('status', @STATUS_STALE@, 'fence', tok,
                                       'say', 'not_the_build');
        END IF;
    END IF;
    RETURN NEXT (head, NULL, NULL)::reply;
END
$$;

CREATE OR REPLACE FUNCTION v_cache_drop(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    -- Without DROP_STALE all of it is deleted, otherwise only what has expired;
    DELETE FROM cache_value
     WHERE tenant = o->>'tenant' AND key = o->>'key'
       AND (coalesce((o->>'flags')::int, 0) & @FLAG_DROP_STALE@ = 0 OR purge_at <= wall);
    -- what is left and fresh becomes stale now. (The right side of each = has the old values.)
    IF NOT FOUND THEN
        UPDATE cache_value SET fresh_until = wall, stale_until = wall + (stale_until - fresh_until),
                               purge_at = wall + greatest(stale_until - fresh_until,
                                                          @CACHE_KEEP_MS@)
         WHERE tenant = o->>'tenant' AND key = o->>'key' AND fresh_until > wall;
    END IF;
    -- The build is void: its fill will find no build with its token.
    -- mutant fill_after_drop_accepted: DELETE FROM cache_build WHERE false;
    DELETE FROM cache_build WHERE tenant = o->>'tenant' AND key = o->>'key';
    IF FOUND THEN
        PERFORM wake(o->>'tenant', o->>'key', '#cache'), wake_holders();
    END IF;
    RETURN NEXT ('{"status": @STATUS_OK@}', NULL, NULL)::reply;
END
$$;

-- ---- counting -----------------------------------------------------------------------------------

-- Reads only the keys that begin with the prefix. The upper bound: a key has at most 512 bytes, and
-- no character sorts after the last one of Unicode.
CREATE OR REPLACE FUNCTION v_cache_stats(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF reply
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    t     text := o->>'tenant';
    first text := coalesce(o->>'prefix', '');
    last  text := prefix_end(first);
    after text := coalesce(o->>'after_key', '');
    n_max int  := (o->>'limit')::int;
    next  jsonb;
    keys  text[];
    v     record;
    n     bigint;
BEGIN
    -- A page of keys that have a value or a build, and one more.
    keys := ARRAY((SELECT key FROM cache_value
                   WHERE tenant = t AND key >= first AND key < last AND key > after ORDER BY key
                   LIMIT n_max + 1)
                  UNION
                  (SELECT key FROM cache_build
                   WHERE tenant = t AND key >= first AND key < last AND key > after ORDER BY key
                   LIMIT n_max + 1)
                  ORDER BY key LIMIT n_max + 1);
    IF cardinality(keys) > n_max THEN
        last := keys[n_max];
        next := jsonb_build_array(last, 0);
    END IF;
    SELECT count(*) AS n, coalesce(sum(octet_length(value)), 0) AS bytes,
           count(*) FILTER (WHERE fresh_until > wall) AS fresh,
           count(*) FILTER (WHERE negative) AS negative INTO v
      FROM cache_value
     WHERE tenant = t AND key >= first AND key > after AND key <= last
       AND (fresh_until > wall OR stale_until > wall);
    SELECT count(*) INTO n FROM cache_build
     WHERE tenant = t AND key >= first AND key > after AND key <= last AND expires_ms + 0 > now;
    RETURN NEXT (jsonb_strip_nulls(jsonb_build_object('status', @STATUS_OK@, 'next', next,
                                                      'cache', jsonb_build_object(
                     'n_entries', v.n, 'n_bytes', v.bytes, 'n_fresh', v.fresh,
                     'n_stale', v.n - v.fresh,
                     'n_negative', v.negative, 'n_building', n))), NULL, NULL)::reply;
END
$$;

-- ---- retention ----------------------------------------------------------------------------------

-- Expired values and dead builds, which are no longer visible. Only values count as purged. Each
-- row is locked before it is deleted, and checked again if it was changed meanwhile: what was
-- filled or built again stays. Rows that are being changed are skipped: a sweep never waits.
CREATE OR REPLACE FUNCTION v_x_sweep_cache(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_max int := (o->>'limit')::int;
    n     int;
BEGIN
    DELETE FROM cache_value
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM cache_value WHERE purge_at <= wall
                              ORDER BY purge_at, filled LIMIT n_max FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS n = ROW_COUNT;
    DELETE FROM cache_build
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM cache_build WHERE expires_ms <= now
                              ORDER BY expires_ms, token LIMIT n_max FOR UPDATE SKIP LOCKED));
    RETURN jsonb_build_object('status', @STATUS_OK@, 'sweep', jsonb_build_object('n_purged', n),
                              'flags', CASE WHEN overdue_cache(now, wall) THEN @OUT_MORE@
                                            ELSE 0 END);
END
$$;

-- Has a value expired, or a build died? Two lookups at the start of an index.
CREATE OR REPLACE FUNCTION overdue_cache(now bigint, wall bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT purge_at FROM cache_value ORDER BY purge_at LIMIT 1) <= wall, false)
        OR coalesce((SELECT expires_ms FROM cache_build ORDER BY expires_ms LIMIT 1) <= now, false);
END
$$;
