-- strangers: objects in a schema that were not created by a role we trust, which means ourselves
-- and superusers. Unless $2 is set, and if we are not a superuser, we also trust the owner of the
-- schema and the roles that the owner lets create in it: a role that was granted access to a store
-- uses what another role has installed. The statement checks everything that would be run or read
-- with our rights (triggers by their functions), and also who could add to it later. All names are
-- qualified with pg_catalog, and operators get exactly the types that it defines, so nothing in
-- another schema of the search_path is a better match.
-- params:  1 schema  2 strict
-- returns: what it is, its name, whose it is
WITH s AS (
    SELECT n.oid, n.nspowner, a.grantee
      FROM pg_catalog.pg_namespace n
      LEFT JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a ON a.privilege_type = 'CREATE'
     WHERE n.nspname = $1::pg_catalog.name),
me AS (SELECT r.oid, r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user),
trusted AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolsuper
    UNION ALL
    SELECT me.oid FROM me
    UNION ALL
    SELECT x.role FROM s, me, LATERAL (VALUES (s.nspowner), (s.grantee)) x (role)
     WHERE NOT $2 AND NOT me.rolsuper AND x.role <> 0::pg_catalog.oid),
o (kind, name, owner) AS (
    SELECT 'schema', $1::pg_catalog.text, s.nspowner FROM s
    UNION ALL
    SELECT 'right', 'CREATE', s.grantee FROM s WHERE s.grantee IS NOT NULL
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index'
                          ELSE 'table' END, c.relname::pg_catalog.text, c.relowner
      FROM pg_catalog.pg_class c WHERE c.relnamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'function', p.proname::pg_catalog.text, p.proowner
      FROM pg_catalog.pg_proc p WHERE p.pronamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'type', t.typname::pg_catalog.text, t.typowner
      FROM pg_catalog.pg_type t WHERE t.typnamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'operator', x.oprname::pg_catalog.text, x.oprowner
      FROM pg_catalog.pg_operator x WHERE x.oprnamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'operator class', x.opcname::pg_catalog.text, x.opcowner
      FROM pg_catalog.pg_opclass x WHERE x.opcnamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'collation', x.collname::pg_catalog.text, x.collowner
      FROM pg_catalog.pg_collation x WHERE x.collnamespace IN (SELECT s.oid FROM s)
    UNION ALL
    SELECT 'trigger', t.tgname::pg_catalog.text, p.proowner
      FROM pg_catalog.pg_trigger t
      JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
      JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
     WHERE NOT t.tgisinternal AND c.relnamespace IN (SELECT s.oid FROM s))
SELECT o.kind, o.name, coalesce(r.rolname::pg_catalog.text, 'PUBLIC')
  FROM o LEFT JOIN pg_catalog.pg_roles r ON r.oid = o.owner
 WHERE NOT EXISTS (SELECT FROM trusted t WHERE t.oid = o.owner)
 LIMIT 1
