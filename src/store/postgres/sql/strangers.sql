-- strangers: objects in a schema that were not created by a role we trust, which means ourselves
-- and superusers. Unless $2 is set, and if we are not a superuser, we also trust the owner of the
-- schema and the roles that the owner lets create in it: a role that was granted access to a store
-- uses what another role has installed. The statement checks everything that would be run or read
-- with our rights (triggers by their functions), and also who could add to it later.
--
-- It runs with the search_path of the session, in which others may have created functions and
-- operators. So all names are qualified with pg_catalog, and both sides of every comparison are of
-- one type: of all operators in the path PostgreSQL takes one for exactly these types, from the
-- first schema that has one, and that is pg_catalog. It has none for an oid and a regclass.
--
-- What is in the schema is found through pg_depend, in which every such object refers to it, by an
-- index; the catalogues have no index by schema, and reading them costs more than all else that a
-- command does when it connects. Only a superuser can change pg_depend. Indexes, and the types of
-- rows and arrays, always belong to the owner of their table or type.
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
d AS MATERIALIZED (
    SELECT d.classid, d.objid
      FROM pg_catalog.pg_depend d
     WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
       AND d.refobjid = (SELECT s.oid FROM s LIMIT 1)),
o (class, object, owner) AS MATERIALIZED (
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid, s.oid, s.nspowner FROM s
    UNION ALL
    SELECT NULL, NULL, s.grantee FROM s WHERE s.grantee IS NOT NULL
    UNION ALL
    SELECT d.classid, d.objid,
           CASE d.classid
           WHEN 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.oid = d.objid)
           WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT p.proowner FROM pg_catalog.pg_proc p WHERE p.oid = d.objid)
           WHEN 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT t.typowner FROM pg_catalog.pg_type t WHERE t.oid = d.objid)
           WHEN 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT x.oprowner FROM pg_catalog.pg_operator x WHERE x.oid = d.objid)
           WHEN 'pg_catalog.pg_opclass'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT x.opcowner FROM pg_catalog.pg_opclass x WHERE x.oid = d.objid)
           WHEN 'pg_catalog.pg_collation'::pg_catalog.regclass::pg_catalog.oid
           THEN (SELECT x.collowner FROM pg_catalog.pg_collation x WHERE x.oid = d.objid)
           END
      FROM d
    UNION ALL
    SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass::pg_catalog.oid, t.oid,
           (SELECT p.proowner FROM pg_catalog.pg_proc p WHERE p.oid = t.tgfoid)
      FROM d, LATERAL (SELECT t.oid, t.tgfoid FROM pg_catalog.pg_trigger t
                        WHERE t.tgrelid = d.objid AND NOT t.tgisinternal
                       OFFSET 0) t
     WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid)
SELECT coalesce(i.type, 'privilege'), coalesce(i.identity, 'CREATE'),
       coalesce(r.rolname::pg_catalog.text, 'PUBLIC')
  FROM o
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = o.owner,
       LATERAL pg_catalog.pg_identify_object(o.class, o.object, 0) i
 WHERE o.owner IS NOT NULL AND NOT EXISTS (SELECT FROM trusted t WHERE t.oid = o.owner)
 LIMIT 1
