-- doctor.sql: the facts that interlock doctor reports. It changes nothing.

CREATE OR REPLACE FUNCTION v_x_settings(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('status', @STATUS_OK@,
        'server_version', current_setting('server_version'),
        'server_version_num', current_setting('server_version_num')::int,
        'fsync', current_setting('fsync'), 'full_page_writes', current_setting('full_page_writes'),
        'synchronous_commit', current_setting('synchronous_commit'),
        'synchronous_standby_names', current_setting('synchronous_standby_names'),
        'autovacuum', current_setting('autovacuum'), 'in_recovery', pg_is_in_recovery(),
        'n_standbys', (SELECT count(*) FROM pg_stat_replication),
        'n_async', (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async'),
        'default_transaction_isolation', current_setting('default_transaction_isolation'),
        'default_transaction_read_only', current_setting('default_transaction_read_only'),
        'role', current_user,
        -- The tables that verbs write and this role may not.
        'n_relations', (SELECT count(*) FROM pg_class c
                        WHERE c.relnamespace = current_schema()::regnamespace
                          AND c.relkind IN ('r', 'S')),
        'n_denied', (SELECT count(*) FROM pg_class c
                     WHERE c.relnamespace = current_schema()::regnamespace
                       AND CASE c.relkind
                           WHEN 'S' THEN NOT (has_sequence_privilege(c.oid, 'USAGE')
                                              AND (c.relname <> 'fence_seq'
                                                   OR has_sequence_privilege(c.oid, 'UPDATE')))
                           WHEN 'r' THEN NOT (has_table_privilege(c.oid, 'SELECT')
                                              AND has_table_privilege(c.oid, 'INSERT')
                                              AND has_table_privilege(c.oid, 'UPDATE')
                                              AND has_table_privilege(c.oid, 'DELETE'))
                           ELSE false END),
        'wall_ms', (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        'version', (SELECT version FROM state), 'schema', current_schema(),
        -- The oldest open snapshot: what was deleted since cannot be cleaned up.
        'snapshot_s', (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)),
                                       0)::bigint
                         FROM pg_stat_activity
                        WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()),
        'n_dead', (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
                   WHERE schemaname = current_schema()),
        'n_live', (SELECT coalesce(sum(n_live_tup), 0)::bigint FROM pg_stat_user_tables
                   WHERE schemaname = current_schema()),
        'bytes', (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'),
        'n_guards', (SELECT count(*) FROM guard),
        'n_refused', (SELECT coalesce(sum(guard_refused(relation)), 0)::bigint FROM guard))
$$;

-- The indexes of a table: their columns in order, whether they are unique and valid, and the
-- condition of a partial one.
CREATE OR REPLACE FUNCTION v_x_table(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_ record;
BEGIN
    SELECT * INTO found_ FROM guard_find(o ->> 'table');
    IF found_.n = 0 THEN
        RETURN jsonb_build_object('status', @STATUS_NOT_FOUND@,
                                  'detail', format('no such table: %s', o ->> 'table'));
    ELSIF found_.n > 1 THEN
        RETURN jsonb_build_object('status', @STATUS_INVAL@,
                                  'detail', format('table name %s is ambiguous; use SCHEMA.TABLE',
                                                   o ->> 'table'));
    END IF;
    RETURN jsonb_build_object('status', @STATUS_OK@, 'table', found_.relation::regclass::text,
        'columns', (SELECT jsonb_agg(attname ORDER BY attnum) FROM pg_attribute
                    WHERE attrelid = found_.relation AND attnum > 0 AND NOT attisdropped),
        'indexes', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                        'name', i.indexrelid::regclass::text, 'unique', i.indisunique,
                        'valid', i.indisvalid, 'where', pg_get_expr(i.indpred, i.indrelid),
                        'columns', (SELECT jsonb_agg(coalesce(a.attname, '') ORDER BY k.ord)
                                      FROM unnest(i.indkey::smallint[])
                                           WITH ORDINALITY AS k (attnum, ord)
                                      LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid
                                           AND a.attnum = k.attnum AND k.attnum > 0))), '[]')
                      FROM pg_index i WHERE i.indrelid = found_.relation));
END $$;
