-- migrate_lock: one migration at a time: whoever comes second waits here, and then finds the work done.
SELECT pg_advisory_xact_lock(hashtextextended('interlock migrate ' || '@name', 0))
