-- look.sql: what the catalogue says about the tables of an app; run on a handle of the app.

-- ---- keys: what would let tenants meet. One row for each, a text -------------------------------

-- part: apps_tables_sqlite
-- The tables of the app: not those of SQLite and of the guard kit.
sqlite_schema t WHERE t.type = 'table'
    AND t.name NOT GLOB 'sqlite_*' AND t.name NOT GLOB 'interlock_*'

-- name: look_keys_sqlite
SELECT t.name || ' needs a column tenant that is NOT NULL' FROM @apps_tables_sqlite@
   AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) c
                   WHERE c.name = 'tenant' AND c."notnull" = 1)
UNION ALL
SELECT t.name || ': the primary key does not begin with the tenant' FROM @apps_tables_sqlite@
   AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.pk = 1 AND c.name = 'tenant')
UNION ALL
SELECT t.name || ': the unique index ' || i.name || ' does not begin with the tenant'
  FROM pragma_index_list(t.name) i, @apps_tables_sqlite@ AND i."unique" = 1 AND i.origin <> 'pk'
   AND NOT EXISTS (SELECT 1 FROM pragma_index_info(i.name) c
                   WHERE c.seqno = 0 AND c.name = 'tenant')
UNION ALL
SELECT t.name || ': a foreign key to ' || f."table" || ' does not begin with the tenant'
  FROM pragma_foreign_key_list(t.name) f, @apps_tables_sqlite@ AND f.seq = 0
   AND (f."from" <> 'tenant' OR coalesce(f."to", 'tenant') <> 'tenant');

-- part: apps_tables_postgres
pg_class t WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p')
    AND t.relname NOT LIKE 'interlock\_%'

-- part: is_tenant
-- of t.oid
(SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'tenant')

-- name: look_keys_postgres
SELECT t.relname || ' needs a column tenant that is NOT NULL' FROM @apps_tables_postgres@
   AND NOT EXISTS (SELECT FROM pg_attribute a
                   WHERE a.attrelid = t.oid AND a.attname = 'tenant' AND a.attnotnull)
UNION ALL
SELECT t.relname || ': the primary key does not begin with the tenant' FROM @apps_tables_postgres@
   AND NOT EXISTS (SELECT FROM pg_index i
                   WHERE i.indrelid = t.oid AND i.indisprimary AND i.indkey[0] = @is_tenant@)
UNION ALL
SELECT t.relname || ': the unique index ' || i.indexrelid::regclass ||
       ' does not begin with the tenant'
  FROM pg_index i, @apps_tables_postgres@
   AND i.indrelid = t.oid AND i.indisunique AND NOT i.indisprimary
   AND i.indkey[0] IS DISTINCT FROM @is_tenant@
UNION ALL
SELECT t.relname || ': a foreign key to ' || k.confrelid::regclass ||
       ' does not begin with the tenant'
  FROM pg_constraint k, @apps_tables_postgres@ AND k.conrelid = t.oid AND k.contype = 'f'
   AND (k.conkey[1] IS DISTINCT FROM @is_tenant@
        OR k.confkey[1] <> (SELECT a.attnum FROM pg_attribute a
                             WHERE a.attrelid = k.confrelid AND a.attname = 'tenant'));

-- ---- shape: everything that a schema has. Rows of one text, sorted ------------------------------

-- name: look_shape_sqlite
SELECT type || ' ' || name || ' ' || coalesce(sql, '') AS line FROM sqlite_schema ORDER BY line;

-- name: look_shape_postgres
SELECT replace(line, current_schema() || '.', '') AS line FROM (
    SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable,
                     column_default, collation_name) AS line
      FROM information_schema.columns WHERE table_schema = current_schema()
    UNION ALL
    SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
    UNION ALL
    SELECT k.conrelid::regclass || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
      FROM pg_constraint k WHERE k.connamespace = current_schema()::regnamespace) AS lines
 ORDER BY line;

-- name: set_version
-- Somebody's version of the tables.
-- params:  1 version  2 min_version
UPDATE interlock_tables SET version = $1, min_version = $2;
