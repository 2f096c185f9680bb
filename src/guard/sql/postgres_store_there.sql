-- postgres_store_there: is there a store in the schema $1 of this database, and may this user call its check_fence()? By the catalogue: a name that may not be used is an error elsewhere.
SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'UPDATE')
  FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = 'lease' AND c.relkind = 'r'
  JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = 'check_fence'
 WHERE n.nspname = $1
 LIMIT 1;
