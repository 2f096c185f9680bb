-- queue_claim: claims: what is due, in the order of its turn, as far as groups and the rate allow.
--
-- Jobs of a full group wait in a lane of their own (queue_group.sql), ended ones in a table of their own: so the next jobs are the first rows of one
-- index, whatever else there is. Several workers claim from one queue at once: a row that another one has locked is passed over,
-- so none waits for another, and none gets what another one gets. One after the other come only claims of a queue with a rate or
-- a group limit, since those count other rows.

-- ---- before a claim ------------------------------------------------------------------------------------------------------

-- Recover dead claims of a queue, up to 1,000 of them. One whose row, or whose parent, somebody else is at is left to the next claim or sweep.
CREATE OR REPLACE FUNCTION claim_recover(q queue, first bigint, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s bigint;
    j job_row;
BEGIN
    -- A heartbeat has put the end of these off; now they are found where that is.
    UPDATE job_live
       SET ord = expires_ms
     WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM job_live x
                              WHERE x.lane = 0 AND x.ord BETWEEN first AND now AND x.ord + 0 <> x.expires_ms AND x.queue + 0 = q.no
                              LIMIT 1000 FOR UPDATE SKIP LOCKED));
    FOREACH s IN ARRAY ARRAY(SELECT x.seq FROM job_live x
                              WHERE x.lane = 0 AND x.ord BETWEEN first AND now AND x.expires_ms <= now AND x.queue + 0 = q.no
                              ORDER BY x.ord, x.at, x.seq + 0 LIMIT 1000 FOR UPDATE SKIP LOCKED)
    LOOP
        j := job_load(q.no, s);
        IF j.parent IS NULL OR mutex_try(mutex(3, j.tenant, j.parent_id)) THEN
            PERFORM job_recover(q, j, now, wall);
        END IF;
    END LOOP;
END
$$;

-- Scheduled jobs whose time has come become READY, up to 1,000 of them.
CREATE OR REPLACE FUNCTION claim_promote(q queue, first job_mark, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    kind int := CASE q.group_limit WHEN -1 THEN 2 ELSE 5 END; -- of one with a group
    x    record;
BEGIN
    WITH u AS (
        UPDATE job_live
           SET lane = lane(q.no, CASE WHEN grp IS NULL THEN 2 ELSE kind END), ord = priority, at = run_at_ms,
               glane = CASE WHEN grp IS NOT NULL THEN lane(q.no, kind) END
         WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM job_live l
                                  WHERE l.lane = lane(q.no, 1) AND l.ord <= wall AND (l.ord, l.at, l.seq + 0) >= (first.ord, first.at, first.seq)
                                  ORDER BY l.ord, l.at, l.seq + 0 LIMIT 1000 FOR UPDATE SKIP LOCKED))
        RETURNING ord, at, seq)
    SELECT array_agg(u.seq) AS seqs, min(u.ord) AS ord, min(u.at) AS at, min(u.seq) AS seq INTO x FROM u;
    IF x.seqs IS NULL THEN
        RETURN;
    END IF;
    PERFORM mark_lower(q, 2, x.ord, x.at, x.seq), mark_lower(q, 5, x.ord, x.at, x.seq);
    PERFORM wake_jobs(q.tenant, ARRAY(SELECT b.id FROM job b WHERE b.seq = ANY (x.seqs)));
    PERFORM wake(q.tenant, q.name, '#queue');
END
$$;

-- ---- the rate --------------------------------------------------------------------------------------------------------------
--
-- In lease time: setting the wall clock gives no more. One claim after the other, so two do not count the same.

-- Forget what is older than the rate's period; how many of n_max may start?
CREATE OR REPLACE FUNCTION rate_left(q queue, n_max int, now bigint) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF q.rate_n = -1 THEN
        RETURN n_max;
    END IF;
    DELETE FROM job_start s WHERE s.queue = q.no AND s.at_ms <= now - q.rate_ms;
    RETURN least(n_max, greatest(0, q.rate_n - (SELECT coalesce(sum(s.n), 0) FROM job_start s WHERE s.queue = q.no)));
END
$$;

CREATE OR REPLACE FUNCTION rate_add(q queue, k int, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF k > 0 THEN
        INSERT INTO job_start AS s (queue, at_ms, n) VALUES (q.no, now, k)
            ON CONFLICT (queue, at_ms) DO UPDATE SET n = s.n + excluded.n;
    END IF;
END
$$;

-- The rate allows none: when will it allow one more? When as many have left the period as are too many now.
CREATE OR REPLACE FUNCTION rate_wait(q queue, now bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(0, coalesce((
        SELECT min(x.at_ms)
          FROM (SELECT s.at_ms, sum(s.n) OVER (ORDER BY s.at_ms) AS n, sum(s.n) OVER () AS n_all
                  FROM job_start s WHERE s.queue = q.no) AS x
         WHERE x.n > x.n_all - q.rate_n) + q.rate_ms - now, 0));
END
$$;

-- ---- a claim ---------------------------------------------------------------------------------------------------------------

-- Take jobs by the optimistic strategy: candidates are read without a lock, 10 a pass, and each is marked by compare-and-set: who changes no row
-- was too late, and goes on to the next. (By the pessimistic one: work_rows().)
CREATE OR REPLACE FUNCTION claim_take_each(q queue, o jsonb, n_max int, lease bigint, now bigint, wall bigint) RETURNS job_claim
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m      job_mark := mark_get(q, 2);
    silent int      := CASE WHEN coalesce((o ->> 'flags')::int, 0) & 8 <> 0 THEN 2 ELSE 0 END;
    x      job_live;
    l      job_live;
    n      int := 0;
    k      int; -- candidates of this pass
    r      job_claim;
BEGIN
    LOOP
        k := 0;
        FOR x IN
            SELECT * FROM job_live i
             WHERE i.lane = lane(q.no, 2) AND (i.ord, i.at, i.seq + 0) >= (m.ord, m.at, m.seq)
             ORDER BY i.ord, i.at, i.seq + 0 LIMIT least(10, n_max - n)
        LOOP
            k := k + 1;
            UPDATE job_live i
               SET lane = 0, ord = now + lease, at = 0, glane = CASE WHEN i.grp IS NOT NULL THEN lane(q.no, 0) END, last = 0,
                   attempt = i.attempt + 1, token = nextval('fence_seq'), flags = (i.flags & 5) | silent, lease_ms = lease,
                   expires_ms = now + lease, progress = -1, message = '', started_ms = wall, updated_ms = wall, worker = o ->> 'holder'
             WHERE i.queue = q.no AND i.seq = x.seq AND i.lane + 0 = x.lane
            RETURNING * INTO l;
            IF FOUND THEN
                n             := n + 1;
                r.seqs[n]     := l.seq;
                r.tokens[n]   := l.token;
                r.attempts[n] := l.attempt;
                r.run_ats[n]  := l.run_at_ms;
                r.errors[n]   := l.error;
            END IF;
            -- The next pass goes on behind it: it is not READY any more, whoever has it.
            m.ord := x.ord; m.at := x.at; m.seq := x.seq + 1;
        END LOOP;
        EXIT WHEN k = 0 OR n >= n_max;
    END LOOP;
    RETURN r;
END
$$;

-- A claim that is repeated gives those of its jobs that are still running with the tokens it gave. They are found by worker and
-- tokens: others may have drawn tokens in between.
CREATE OR REPLACE FUNCTION claim_again(q queue, o jsonb, w job_worker, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    flags int := 1 + CASE q.strategy WHEN 2 THEN 1024 ELSE 0 END;
    seqs  bigint[] := ARRAY(SELECT l.seq FROM job_live l
                             WHERE l.lane = 0 AND l.queue + 0 = q.no AND l.expires_ms > now
                               AND l.worker = w.worker AND l.token BETWEEN w.first_token AND w.last_token
                             ORDER BY l.token);
BEGIN
    IF cardinality(seqs) = 0 THEN
        RETURN NEXT ROW(concat('{"status":19,"flags":', flags, ',"remaining_ms":-1}'), NULL, NULL)::job_reply;
        RETURN;
    END IF;
    RETURN NEXT ROW(concat('{"status":0,"flags":', flags, ',"now_ms":', now, ',"wall_ms":', wall, '}'), NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT job_json(job_peek(u.s), q.name), b.payload, NULL::bytea
          FROM unnest(seqs) WITH ORDINALITY AS u (s, i)
          JOIN LATERAL (SELECT x.payload FROM job x WHERE x.seq = u.s LIMIT 1) AS b ON true
         ORDER BY u.i;
END
$$;

-- Nothing was given: when may there be something by itself? -1: nothing is known.
CREATE OR REPLACE FUNCTION claim_wait(q queue, rated boolean, now bigint, wall bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    m     job_mark := mark_get(q, 1);
    at_ms bigint   := least((SELECT min(c.next_ms) FROM cron c
                              WHERE c.tenant = q.tenant AND c.queue = q.name AND c.next_ms < 9007199254740992),
                            (SELECT min(l.ord) FROM job_live l
                              WHERE l.lane = lane(q.no, 1) AND (l.ord, l.at, l.seq + 0) >= (m.ord, m.at, m.seq)));
BEGIN
    RETURN coalesce(least(CASE WHEN at_ms > wall THEN at_ms - wall WHEN at_ms <= wall THEN 0 END, CASE WHEN rated THEN rate_wait(q, now) END), -1);
END
$$;

-- Note a worker's claim; the row of its last one (n_was) goes. Under the worker's mutex: its claims come one after the other.
CREATE OR REPLACE FUNCTION claim_note(q queue, o jsonb, n_was bigint, first bigint, last bigint, now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF n_was IS NOT NULL THEN
        DELETE FROM job_worker w WHERE w.queue = q.no AND w.worker = o ->> 'holder' AND w.n = n_was;
    END IF;
    INSERT INTO job_worker (n, seen_ms, first_token, last_token, queue, worker, claim)
    VALUES (nextval('ticket_seq'), now, first, last, q.no, o ->> 'holder', o ->> 'id');
END
$$;

-- The schedules of a queue that are due: the caller is asked to tick them first.
CREATE OR REPLACE FUNCTION claim_ask(q queue, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM asked();
    RETURN NEXT ROW(concat('{"ask":"tick","status":0,"wall_ms":', wall, '}'), NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT cron_json(c), NULL::bytea, NULL::bytea
          FROM cron c
         WHERE c.tenant = q.tenant AND c.queue = q.name AND c.next_ms <= wall
         ORDER BY c.next_ms, c.name LIMIT 1000;
END
$$;

-- The beginning of a claim that is no part of a batch for apply(), as batch_begin(mutexes_queue(o)), on the shortest way.
CREATE OR REPLACE FUNCTION claim_begin(o jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    whole bigint;
    ours  bigint;
    more  boolean;
    done  boolean;
BEGIN
    SELECT mutex(2, u.t, u.k), mutex_worker(u.t, u.k, o ->> 'holder'),
           current_setting('transaction_isolation') <> 'read committed'
           OR EXISTS (SELECT FROM queue z WHERE z.tenant = u.t AND z.name = u.k AND (z.group_limit <> -1 OR z.rate_n <> -1))
      INTO whole, ours, more
      FROM (VALUES (o ->> 'tenant', o ->> 'key')) AS u (t, k);
    IF more THEN
        done := batch_begin(ARRAY[whole | 1, ours, mutex_claims(o ->> 'tenant', o ->> 'key')]) IS NULL;
    ELSIF whole < ours THEN -- in the global order
        done := pg_advisory_xact_lock_shared(whole) IS NULL;
        done := pg_advisory_xact_lock(ours) IS NULL;
    ELSE
        done := pg_advisory_xact_lock(ours) IS NULL;
        done := pg_advisory_xact_lock_shared(whole) IS NULL;
    END IF;
END
$$;

-- Everything that comes before jobs are taken. w: the worker's last claim. `says` is NULL when jobs may be taken; else why not: a head, 'ask' (see
-- claim_ask()), or 'again' (claim_again() of w).
CREATE OR REPLACE FUNCTION claim_open(o jsonb, now bigint, wall bigint, OUT q queue, OUT w job_worker, OUT flags int, OUT says text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    x    record;
    m0   job_mark;
    m1   job_mark;
    done boolean;
BEGIN
    FOR i IN 1 .. 2 LOOP
        -- One statement for all that has to be known; what depends on marks comes below.
        SELECT k AS q, NOT o ? 'ticked' AND EXISTS (SELECT FROM cron c WHERE c.tenant = k.tenant AND c.queue = k.name AND c.next_ms <= wall) AS ticks,
               (SELECT v FROM job_worker v WHERE v.queue = k.no AND v.worker = o ->> 'holder' ORDER BY v.n DESC LIMIT 1) AS w,
               NOT k.marked AND EXISTS (SELECT FROM job_live l WHERE l.lane = 0 AND l.ord <= now AND l.queue + 0 = k.no) AS dead,
               NOT k.marked AND EXISTS (SELECT FROM job_live l WHERE l.lane = lane(k.no, 1) AND l.ord <= wall) AS due
          INTO x
          FROM queue k WHERE k.tenant = o ->> 'tenant' AND k.name = o ->> 'key';
        IF NOT FOUND THEN
            says := '{"status":26}';
            RETURN;
        END IF;
        q := x.q;
        EXIT WHEN q.group_limit = -1 AND q.rate_n = -1;
        -- It is held already, unless the queue has got its limit since; so look again.
        done := pg_advisory_xact_lock(mutex_claims(q.tenant, q.name)) IS NULL;
    END LOOP;
    w     := x.w;
    flags := CASE q.strategy WHEN 2 THEN 1024 ELSE 0 END;
    IF w.first_token IS NOT NULL AND w.claim = o ->> 'id' AND now - w.seen_ms < 60000 THEN
        says := 'again';
        RETURN;
    END IF;
    IF x.ticks THEN
        says := 'ask';
        RETURN;
    END IF;
    IF q.marked OR x.dead OR x.due THEN
        m0 := mark_get(q, 0);
        m1 := mark_get(q, 1);
    END IF;
    IF q.marked THEN
        SELECT EXISTS (SELECT FROM job_live l WHERE l.lane = 0 AND l.ord BETWEEN m0.ord AND now AND l.queue + 0 = q.no) AS dead,
               EXISTS (SELECT FROM job_live l WHERE l.lane = lane(q.no, 1) AND l.ord <= wall
                                                AND (l.ord, l.at, l.seq + 0) >= (m1.ord, m1.at, m1.seq)) AS due
          INTO x;
    END IF;
    IF x.dead THEN
        done := claim_recover(q, m0.ord, now, wall) IS NULL;
    END IF;
    IF x.due THEN
        done := claim_promote(q, m1, wall) IS NULL;
    END IF;
    IF q.paused THEN
        done := claim_note(q, o, w.n, NULL, NULL, now) IS NULL;
        says := concat('{"status":19,"flags":', flags + 32, ',"remaining_ms":-1}');
    ELSIF q.group_limit <> -1 THEN
        done := group_settle(q) IS NULL;
    END IF;
END
$$;

-- What follows when k jobs were taken (the worker's claim, in place of n_was, and the totals are noted already, unless k is 0): the head of the answer.
CREATE OR REPLACE FUNCTION claim_close(q queue, o jsonb, n_was bigint, flags int, k int, left_ int, lease bigint, began timestamptz, now bigint,
                                       wall bigint)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_max int     := (o ->> 'limit')::int;
    more  boolean := false;
    done  boolean;
BEGIN
    IF q.rate_n <> -1 THEN
        done := rate_add(q, k, now) IS NULL;
    END IF;
    IF k = 0 THEN
        done := claim_note(q, o, n_was, NULL, NULL, now) IS NULL;
    ELSE
        done := mark_lower(q, 0, now + lease, 0, 0) IS NULL;
    END IF;
    -- Without a limit, what is READY and was not given is another worker's.
    IF k < n_max AND (q.group_limit <> -1 OR q.rate_n <> -1) THEN
        more := EXISTS (SELECT FROM job_live l WHERE l.lane IN (lane(q.no, 2), lane(q.no, 4), lane(q.no, 5)));
    END IF;
    IF more THEN
        flags := flags + 64;
    END IF;
    IF clock_timestamp() - began > '2 ms'::interval + k * '30 us'::interval THEN
        -- The last one that it took; the planner is not to think of sorting.
        done := mark_make(q, (SELECT l.seq FROM job_live l WHERE l.lane = 0 AND l.ord = now + lease AND l.queue + 0 = q.no
                               ORDER BY l.ord DESC, l.at DESC, l.seq + 0 DESC LIMIT 1), now, wall) IS NULL;
    END IF;
    IF k = 0 THEN
        RETURN concat('{"status":19,"flags":', flags, ',"remaining_ms":', claim_wait(q, left_ = 0 AND more, now, wall), '}');
    END IF;
    RETURN concat('{"status":0,"flags":', flags, ',"now_ms":', now, ',"wall_ms":', wall, ',"expires_ms":', now + lease, ',"queue_no":', q.no, '}');
END
$$;

-- A claim as a verb of a batch. (As a statement of its own: work_rows().)
CREATE OR REPLACE FUNCTION v_claim(o jsonb, d bytea, now bigint, wall bigint) RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    parts job_reply[] := '{}';
    ids   text[]      := '{}';
    name  text        := to_json(o ->> 'key');
    times text;       -- the same for all
    x     record;
BEGIN
    FOR x IN SELECT * FROM work_rows(o, NULL, NULL, NULL, NULL, NULL, NULL, NULL, now, wall, false) LOOP
        IF x.out IS NOT NULL AND cardinality(ids) = 0 THEN
            RETURN NEXT ROW(x.out, x.data, NULL)::job_reply;
        ELSIF x.out IS NOT NULL THEN
            times := concat(',"state":3,"progress":-1,"started_at_ms":', wall, ',"updated_at_ms":', wall, ',"expires_ms":',
                            (x.out::json ->> 'expires_ms')::bigint, ',"worker":', to_json(o ->> 'holder'), '}');
            RETURN NEXT ROW(x.out, NULL, NULL)::job_reply;
        ELSE
            ids   := ids || x.id;
            parts := parts || ROW(concat('{"queue":', name, ',"id":', to_json(x.id), ',"seq":', x.seq, ',"priority":', coalesce(x.priority, 0),
                                         ',"attempt":', coalesce(x.attempt, 1), ',"max_attempts":', x.max_attempts, ',"token":', x.token,
                                         ',"run_at_ms":', coalesce(x.run_at_ms, x.created_ms), ',"created_at_ms":', x.created_ms,
                                         ',"error":' || to_json(x.error), ',"parent":' || to_json(x.parent_id),
                                         ',"group":' || to_json(x.grp), ',"unique_key":' || to_json(x.unique_key)), x.data, NULL)::job_reply;
        END IF;
    END LOOP;
    IF cardinality(ids) > 0 THEN
        PERFORM wake_jobs(o ->> 'tenant', ids);
        RETURN QUERY SELECT p.out || times, p.data, p.data2 FROM unnest(parts) AS p;
    END IF;
END
$$;
