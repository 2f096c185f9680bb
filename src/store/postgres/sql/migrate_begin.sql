-- migrate_begin: one migration at a time: whoever comes second waits here, and then finds the work done. The bodies of functions are not checked
-- when they are made, for they may use one another in any order.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '30s';
SET LOCAL client_min_messages = 'error';
SET LOCAL check_function_bodies = off;
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || '@name', 0))
