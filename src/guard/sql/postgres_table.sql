-- postgres_table: a table or view by its name; $1 the schema, NULL = as the search_path finds it.
SELECT n.nspname, c.relname
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1::text END
 LIMIT 1;
