-- migrate_wait: how long this transaction waits for a lock.
-- params:  1 milliseconds
SELECT set_config('lock_timeout', $1, true)
