-- cron: schedules: their entries, and the jobs that their ticks push. The library computes when a
-- schedule ticks: it asks for the due entries and says which ticks to push (x_tick). The id of its
-- job ensures that a tick is pushed only once, however many processes see it. An entry advances
-- only from the tick that the caller saw, so of two callers that tick it concurrently the second
-- does nothing.

CREATE OR REPLACE FUNCTION cron_json(c cron) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_build_object('tenant', c.tenant, 'name', c.name, 'queue', c.queue,
                              'schedule', c.schedule, 'missed', c.missed,
                              'priority', c.priority, 'max_attempts', c.max_attempts,
                              'n_ticks', c.n_ticks, 'next_at_ms', c.next_ms,
                              'last_at_ms', c.last_ms);
END
$$;

-- Under the entry's mutex.
CREATE OR REPLACE FUNCTION v_cron_set(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t    text := o ->> 'tenant';
    c    cron;
    same boolean;
    q    queue;
BEGIN
    SELECT * INTO c FROM cron i WHERE i.tenant = t AND i.name = o ->> 'name';
    same := FOUND AND c.schedule = o ->> 'schedule';
    IF NOT same AND NOT o ? 'next_ms' THEN -- when it ticks first is for the library to say
        PERFORM asked();
        RETURN NEXT ROW(concat('{"ask":"next","status":@STATUS_OK@,"wall_ms":', wall, '}'),
                        NULL, NULL)::job_reply;
        RETURN;
    END IF;
    q := queue_get(t, o ->> 'key');
    INSERT INTO cron AS i (tenant, name, queue, schedule, missed, priority, max_attempts, n_ticks,
                           next_ms, last_ms, payload)
    VALUES (t, o ->> 'name', q.name, o ->> 'schedule',
            coalesce((o ->> 'missed')::int, @MISSED_SKIP@), coalesce((o ->> 'priority')::int, 0),
            coalesce((o ->> 'max_attempts')::int, 0), 0,
            CASE WHEN same THEN c.next_ms ELSE (o ->> 'next_ms')::bigint END, 0, coalesce(d, ''))
        ON CONFLICT (tenant, name) DO UPDATE
       SET queue = excluded.queue, schedule = excluded.schedule, missed = excluded.missed,
           priority = excluded.priority,
           max_attempts = excluded.max_attempts, next_ms = excluded.next_ms,
           payload = excluded.payload
    RETURNING * INTO c;
    -- Wake workers that wait for the queue: they wait until its next tick, which may have changed.
    PERFORM wake(t, q.name, '#queue');
    RETURN NEXT ROW('{"status":@STATUS_OK@}', NULL, NULL)::job_reply;
    RETURN NEXT ROW(cron_json(c), c.payload, NULL)::job_reply;
END
$$;

CREATE OR REPLACE FUNCTION v_cron_remove(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM cron c WHERE c.tenant = o ->> 'tenant' AND c.name = o ->> 'name';
    RETURN NEXT ROW(CASE WHEN FOUND THEN '{"status":@STATUS_OK@}'
                         ELSE '{"status":@STATUS_NOT_FOUND@}' END, NULL, NULL)::job_reply;
END
$$;

-- A page of a tenant's schedules, by name, of one queue or of all.
CREATE OR REPLACE FUNCTION v_cron_list(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    prefix text := coalesce(o ->> 'prefix', '');
    after  text := coalesce(o ->> 'after_key', '');
    n_max  int  := (o ->> 'limit')::int;
    page   cron[]; -- and one more
BEGIN
    IF o ? 'key' THEN
        page := ARRAY(SELECT c FROM cron c
                       WHERE c.tenant || E'\x1f' || c.queue
                             = concat(o ->> 'tenant', E'\x1f', o ->> 'key')
                         AND c.name || '' >= prefix AND c.name || '' < prefix_end(prefix)
                         AND c.name || '' > after
                       ORDER BY c.name || '' LIMIT n_max + 1);
    ELSE
        page := ARRAY(SELECT c FROM cron c
                       WHERE c.tenant = o ->> 'tenant' AND c.name >= prefix
                         AND c.name < prefix_end(prefix) AND c.name > after
                       ORDER BY c.name LIMIT n_max + 1);
    END IF;
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@',
                           CASE WHEN cardinality(page) > n_max THEN concat(',"next":[',
                               to_json(page[n_max].name), ',0]') END, '}'),
                    NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT cron_json(u.c), (u.c).payload, NULL::bytea
          FROM (SELECT page[i] AS c, i
                FROM generate_series(1, least(n_max, cardinality(page))) AS i) AS u ORDER BY u.i;
END
$$;

-- Due schedules of all tenants.
CREATE OR REPLACE FUNCTION v_x_due(o jsonb, d bytea, now bigint, wall bigint)
RETURNS SETOF job_reply
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n_max int := (o ->> 'limit')::int;
    n     int := (SELECT count(*) FROM (SELECT FROM cron c WHERE c.next_ms <= wall
                                        LIMIT n_max + 1) AS x);
BEGIN
    RETURN NEXT ROW(concat('{"status":@STATUS_OK@,"wall_ms":', wall, ',"flags":',
                           CASE WHEN n > n_max THEN @OUT_MORE@ ELSE 0 END, '}'),
                    NULL, NULL)::job_reply;
    RETURN QUERY
        SELECT cron_json(c), NULL::bytea, NULL::bytea
          FROM cron c WHERE c.next_ms <= wall ORDER BY c.next_ms, c.tenant, c.name LIMIT n_max;
END
$$;

-- A schedule has ticked. Under the entry's mutex.
CREATE OR REPLACE FUNCTION v_x_tick(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c    cron;
    q    queue;
    j    job_row;
    tick jsonb;
    n    int := 0;
BEGIN
    SELECT * INTO c FROM cron i
     WHERE i.tenant = o ->> 'tenant' AND i.name = o ->> 'name' AND i.schedule = o ->> 'schedule'
       AND i.next_ms = (o ->> 'was_ms')::bigint
       FOR UPDATE;
    IF NOT FOUND THEN -- somebody else has ticked it, or it was changed
        RETURN '{"status": @STATUS_OK@, "pushed": 0}';
    END IF;
    IF o #> '{ticks,0}' IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(mutex(@MUTEX_QUEUE@, c.tenant, c.queue));
        q := queue_get(c.tenant, c.queue);
        FOR tick IN SELECT e FROM jsonb_array_elements(o -> 'ticks') AS e LOOP
            j := push_new(q, jsonb_strip_nulls(jsonb_build_object(
                              'id', tick ->> 1, 'run_at_ms', (tick ->> 0)::bigint,
                              'priority', c.priority, 'max_attempts', nullif(c.max_attempts, 0))),
                          c.payload, NULL, NULL, wall);
            IF j.seq IS NOT NULL THEN
                n         := n + 1;
                c.last_ms := (tick ->> 0)::bigint;
            END IF;
        END LOOP;
    END IF;
    UPDATE cron i
       -- mutant tick_pushed_twice: SET n_ticks = i.n_ticks + n, next_ms = i.next_ms - 60000
       SET n_ticks = i.n_ticks + n, next_ms = (o ->> 'next_ms')::bigint, last_ms = c.last_ms
     WHERE i.tenant = c.tenant AND i.name = c.name;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'pushed', n);
END
$$;
