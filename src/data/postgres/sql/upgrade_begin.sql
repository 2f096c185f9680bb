-- upgrade_begin: one at a time, the store's own migrations included: both may find that there is no schema yet.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '30s';
SET LOCAL client_min_messages = 'error';
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || '@name', 0))
