-- postgres_store.sql: the guard's queries to a store in the user's own database. @schema is filled
-- in once the store was found.

-- name: postgres_store_there
-- Is there a store in the schema, and may this user call its check_fence()? Uses the catalogue: any
-- other access to a forbidden name would be an error.
-- params:  1 schema
-- returns: bool (no row: there is none)
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE')
       AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
       AND pg_catalog.has_table_privilege(c.oid, 'UPDATE')
  FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = 'lease' AND c.relkind = 'r'
  JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = 'check_fence'
 WHERE n.nspname = $1
 LIMIT 1;

-- name: postgres_store_knows
-- Did the store in this schema issue this fence? Fences start at a store's creation time in
-- microseconds: no other store has issued the same fence for the same key.
-- params:  1 tenant  2 key  3 fence
-- returns: 1 (no row: it did not)
SELECT 1 FROM @schema.lease WHERE tenant = $1 AND key = $2 AND fence = $3::bigint;

-- name: postgres_store_show
-- For guarded tables (`interlock guard`), whose triggers check the fence themselves. Locks nothing:
-- a holder that has lost the lease must not block the next one by leaving a transaction open.
-- params:  1 tenant  2 key  3 fence
SELECT @schema.show_fence($1, $2, $3::bigint);

-- name: postgres_store_check
-- Does the fence belong to a held lease? An error (IL001) if not. Race-free: locks the lease's row
-- FOR KEY SHARE until the commit, which follows at once, and taking over the key needs that row.
-- params:  1 tenant  2 key  3 fence
SELECT @schema.check_fence($2, $3::bigint, $1);
