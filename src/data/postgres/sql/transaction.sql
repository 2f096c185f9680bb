-- transaction.sql: this engine's transactions, the check whether its tables exist, and upgrades.
--
-- @schema and @name are filled in when a data store is opened. Two servers may run any statement of
-- this folder at once: one waits for a row that another transaction has changed, then sees the
-- committed row (READ COMMITTED).

-- name: begin
-- READ COMMITTED, whatever the server's default: a statement that has waited for a row sees what
-- its owner has committed. Waiting for another transaction's row has a time limit.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '5s'

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: there
-- Do our tables exist? Reading a missing one would abort the transaction, and to_regclass() may
-- answer from the session's cache, from before it waited for its lock; the catalogue itself shows
-- what changed meanwhile.
-- returns: bool
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = '@name' AND c.relname = 'data_meta')

-- name: upgrade_begin
-- One upgrade at a time: a second one waits here and then finds the work done. No name is looked up
-- in a schema that others may write to.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL lock_timeout = '30s';
SET LOCAL client_min_messages = 'error';
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || '@name', 0))

-- name: upgrade_look
-- Does the schema exist? See there.
-- returns: bool, and the encoding of the database
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '@name'),
       current_setting('server_encoding')

-- name: upgrade_schema
-- Only if it is missing: a role that may not create schemas can be given an empty one.
CREATE SCHEMA @schema

-- name: upgrade_path
-- Where the tables of a migration are created. See the store's migrate_path.
SET LOCAL search_path = @schema, pg_temp
