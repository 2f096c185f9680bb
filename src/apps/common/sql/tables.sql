-- tables.sql: the version of an app's tables. The table interlock_tables is in the app's own file
-- or schema and has one row.
--
-- An upgrade is one transaction, in which no other upgrade runs: in SQLite it has the write lock
-- of the file from its begin, in PostgreSQL it begins with tables_lock.

-- ---- both engines -------------------------------------------------------------------------------

-- name: tables_make
CREATE TABLE interlock_tables (
    one         integer PRIMARY KEY CHECK (one = 1),
    version     integer NOT NULL,
    min_version integer NOT NULL
);

-- name: tables_version
-- returns: version, min_version
SELECT version, min_version FROM interlock_tables;

-- name: tables_record
-- params:  1 version  2 min_version
INSERT INTO interlock_tables (one, version, min_version) VALUES (1, $1, $2)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, min_version = excluded.min_version;

-- ---- SQLite -------------------------------------------------------------------------------------

-- name: tables_there_sqlite
-- Has this file tables of an app?
-- returns: 1 or 0
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'interlock_tables');

-- ---- PostgreSQL ---------------------------------------------------------------------------------

-- name: tables_lock
-- One upgrade of a schema at a time: a second one waits here, and then finds the work done.
-- params:  1 schema
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || $1::text, 0));

-- name: tables_there_postgres
-- Has this schema tables of an app? From the catalogue: to_regclass() may return what this session
-- cached before it waited for its lock.
-- params:  1 schema
-- returns: 1 or 0
SELECT EXISTS (SELECT FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = 'interlock_tables');

-- name: tables_schema_there
-- params:  1 schema
-- returns: 1 or 0
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1);

-- name: tables_store_there
-- Is a store in this schema? Whoever creates one takes the lock of tables_lock.
-- params:  1 schema
-- returns: 1 or 0
SELECT EXISTS (SELECT FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = 'state');

-- name: tables_schema_closed
-- May this role not even look at what is in the schema, which exists?
-- params:  1 schema
-- returns: 1 or 0
SELECT EXISTS (SELECT FROM pg_namespace
               WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE'));

-- name: tables_make_schema
-- Only if it is missing: a role that may not create schemas can be given an empty one. The quoted
-- name follows.
CREATE SCHEMA

-- name: tables_path
-- Until here the search_path is pg_catalog, so no name is looked up in a schema that others may
-- write to. pg_catalog stays the first one that is searched; tables are created in the schema.
-- params:  1 schema
SELECT set_config('search_path', quote_ident($1) || ', pg_temp', true);
