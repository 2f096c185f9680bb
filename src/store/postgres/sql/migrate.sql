-- migrate.sql: installs and upgrades a store. @schema and @name are filled in when a store is
-- opened.
--
-- All of it is one transaction that holds migrate_lock until its end: a second migration finds the
-- work done.

-- name: state
-- What is installed. No such table: nothing.
-- returns: version, min_version, test_clock, functions
SELECT version, min_version, test_clock, functions FROM @schema.state

-- name: migrate_begin
-- Until migrate_path, no name is looked up in a schema that others may write to. The bodies of
-- functions are not checked when they are created, because they may use one another in any order.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = 'error';
SET LOCAL check_function_bodies = off

-- name: migrate_wait
-- How long this transaction waits for a lock.
-- params:  1 milliseconds
SELECT set_config('lock_timeout', $1, true)

-- name: migrate_lock
-- One migration at a time: a second one waits here.
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || '@name', 0))

-- name: migrate_look
-- Does the schema exist, a store in it, or tables of an app (whose upgrades take the same lock, so
-- that only one of the two is created there)? From the catalogue: to_regclass() may return what
-- this session cached before it waited for its lock, although another process has created the store
-- meanwhile.
-- returns: bool, bool, the encoding of the database, bool
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = '@name'),
       EXISTS (SELECT FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = '@name' AND c.relname = 'state'),
       current_setting('server_encoding'),
       EXISTS (SELECT FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = '@name' AND c.relname = 'interlock_tables')

-- name: migrate_schema
-- Only if it is missing: a role that may not create schemas can be given an empty one.
CREATE SCHEMA @schema

-- name: migrate_path
-- Where everything that follows is created, and the search_path that the entry points keep (SET
-- search_path FROM CURRENT). pg_catalog, which is not named, comes first; if it were named, tables
-- would be created there. pg_temp, which would come before it, comes last.
SET LOCAL search_path = @schema, pg_temp

-- name: migrate_state
-- The one row, at the birth of a store.
-- params:  1 version  2 min_version  3 test_clock
INSERT INTO state (version, min_version, test_clock) VALUES ($1, $2, $3)

-- name: migrate_done
-- What is installed now.
-- params:  1 version  2 min_version  3 functions
UPDATE state SET version = $1, min_version = $2, functions = $3
