-- doctor_postgres.sql: the catalogue of a PostgreSQL database, for `interlock doctor --connection`.
-- All of it runs in one read-only transaction. The columns are those of doctor_sqlite.sql.
--
-- It needs the session's search_path, in which others may have created operators: pg_catalog has
-- every operator used here for exactly the types of its operands (src/store/postgres/sql/
-- strangers.sql explains why).

-- name: postgres_find
-- params:  1 the table as il__guard_quote() has it: "public"."t"
-- returns: schema, name, kind
SELECT n.nspname, c.relname, CASE c.relkind WHEN 'p' THEN 'partitioned' WHEN 'r' THEN 'table'
                                            ELSE 'other' END
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = $1::pg_catalog.regclass::pg_catalog.oid;

-- name: postgres_list
-- The user's tables in the first schema of the search_path; partitions are left out.
-- returns: schema, name, kind
SELECT n.nspname, c.relname, CASE c.relkind WHEN 'p' THEN 'partitioned' ELSE 'table' END
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p')
   AND NOT c.relispartition AND c.relname::text NOT LIKE 'interlock\_%'
 ORDER BY c.relname;

-- name: postgres_columns
-- params:  1 schema  2 table
-- returns: name, is it an integer?, place in the primary key or 0
SELECT a.attname, (a.atttypid IN (20, 21, 23))::int,
       coalesce((SELECT k.place FROM pg_catalog.pg_index i
                  CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY
                             AS k(attnum, place)
                  WHERE i.indrelid = c.oid AND i.indisprimary AND k.attnum = a.attnum
                    AND k.place <= i.indnkeyatts), 0)
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum;

-- name: postgres_indexes
-- A row for each column of an index; the column is NULL where it is an expression.
-- params:  1 schema  2 table
-- returns: index, is it unique?, is it valid?, condition of a partial one, column, NULL
SELECT x.relname, i.indisunique::int, i.indisvalid::int,
       pg_catalog.pg_get_expr(i.indpred, i.indrelid), a.attname, NULL
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
  JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
  LEFT JOIN pg_catalog.pg_attribute a
         ON a.attrelid = c.oid AND a.attnum = k.attnum AND k.attnum > 0
 WHERE n.nspname = $1 AND c.relname = $2 AND k.place <= i.indnkeyatts
 ORDER BY x.relname, k.place;

-- name: postgres_foreign_keys
-- A row for each referencing column.
-- params:  1 schema  2 table
-- returns: foreign key, 0, 1, NULL, column, the table that it refers to
SELECT o.conname, 0, 1, NULL, a.attname, p.relname
  FROM pg_catalog.pg_constraint o
  JOIN pg_catalog.pg_class c ON c.oid = o.conrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_class p ON p.oid = o.confrelid
 CROSS JOIN LATERAL pg_catalog.unnest(o.conkey) WITH ORDINALITY AS k(attnum, place)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
 WHERE n.nspname = $1 AND c.relname = $2 AND o.contype = 'f' AND NOT p.relispartition
 ORDER BY o.conname, k.place;

-- name: postgres_taken
-- Does a table or index of this name exist?
-- params:  1 schema  2 name
-- returns: 1 or 0
SELECT (count(*) > 0)::int
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2;

-- name: postgres_constraints
-- The table's CHECK constraints that are in force, one word per constraint.
-- params:  1 schema  2 table
-- returns: 'CHECK CHECK ...'
SELECT pg_catalog.repeat('CHECK ', count(*)::int)
  FROM pg_catalog.pg_constraint o
  JOIN pg_catalog.pg_class c ON c.oid = o.conrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND o.contype = 'c' AND o.convalidated;
