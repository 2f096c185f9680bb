-- usage.sql: how much a tenant stores, one page of rows at a time; src/core/usage.h describes the
-- paging. Each kind is read along the index that begins with the tenant. PostgreSQL knows the
-- length of a bytea without reading it.

-- A page of one kind, after a name (for runs: a seq): rows, their bytes, the last one's name.
CREATE OR REPLACE FUNCTION usage_page(t text, kind int, after text, after_seq bigint, n_max int,
                                      OUT n bigint, OUT bytes bigint, OUT last text,
                                      OUT last_seq bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    last_seq := 0;
    CASE kind
    WHEN @USAGE_CACHE@ THEN
        SELECT count(*), coalesce(sum(q.b), 0), max(q.key) INTO n, bytes, last
          FROM (SELECT key, octet_length(key) + octet_length(value) AS b
                  FROM cache_value WHERE tenant = t AND key > after ORDER BY key LIMIT n_max) AS q;
    WHEN @USAGE_ONCE@ THEN
        SELECT count(*), coalesce(sum(q.b), 0), max(q.key) INTO n, bytes, last
          FROM (SELECT key, octet_length(key) + octet_length(meta) +
                       coalesce((SELECT octet_length(response) FROM once_answer AS a
                                  WHERE a.token = once.token), 0) AS b
                  FROM once WHERE tenant = t AND key > after ORDER BY key LIMIT n_max) AS q;
    WHEN @USAGE_JOBS@ THEN
        SELECT count(*), coalesce(sum(q.b), 0), max(q.id) INTO n, bytes, last
          FROM (SELECT id, octet_length(id) + octet_length(payload) +
                       coalesce((SELECT octet_length(result) FROM job_done AS e
                                  WHERE e.queue = job.queue AND e.state = @JOB_COMPLETED@
                                    AND e.seq = job.seq), 0) AS b
                  FROM job WHERE tenant = t AND id > after ORDER BY id LIMIT n_max) AS q;
    WHEN @USAGE_CRONS@ THEN
        SELECT count(*), coalesce(sum(q.b), 0), max(q.name) INTO n, bytes, last
          FROM (SELECT name, octet_length(name) + octet_length(schedule) +
                       octet_length(payload) AS b
                  FROM cron WHERE tenant = t AND name > after ORDER BY name LIMIT n_max) AS q;
    ELSE
        SELECT count(*), coalesce(sum(q.b), 0), '-', max(q.seq) INTO n, bytes, last, last_seq
          FROM (SELECT seq, octet_length(id) + octet_length(meta) + octet_length(error) +
                       least(log_bytes, @LOG_BYTES_MAX@) AS b
                  FROM run WHERE tenant = t AND seq > after_seq ORDER BY seq LIMIT n_max) AS q;
    END CASE;
END
$$;

CREATE OR REPLACE FUNCTION v_usage(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n_left    int    := (o->>'limit')::int;
    after     text   := coalesce(o->>'after_key', '');
    after_seq bigint := coalesce((o->>'after_number')::bigint, 0);
    n_rows    bigint := 0;
    n_bytes   bigint := 0;
    p         record;
BEGIN
    FOR kind IN coalesce((o->>'kind')::int, @USAGE_CACHE@) .. @USAGE_CRONS@ LOOP
        p       := usage_page(o->>'tenant', kind, after, after_seq, n_left);
        n_rows  := n_rows + p.n;
        n_bytes := n_bytes + p.bytes;
        n_left  := n_left - p.n;
        IF n_left = 0 THEN
            RETURN jsonb_build_object('status', @STATUS_OK@, 'kind', kind,
                'usage', jsonb_build_object('n_rows', n_rows, 'n_bytes', n_bytes),
                'next', jsonb_build_array(p.last, p.last_seq));
        END IF;
        after     := '';
        after_seq := 0;
    END LOOP;
    RETURN jsonb_build_object('status', @STATUS_OK@,
                              'usage', jsonb_build_object('n_rows', n_rows, 'n_bytes', n_bytes));
END
$$;
