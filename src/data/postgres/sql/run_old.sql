-- run_old: runs to be forgotten, the oldest first. Who has a row is the only one who deletes what belongs to it: two that purge at once do not wait for each other, and
-- since writers take this row first, too, they do not deadlock.
-- params:  1 created before, in ms since 1970  2 limit
-- returns: tenant, run
SELECT tenant, run FROM @schema.run_detail WHERE created_at_ms < $1 ORDER BY created_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED;
