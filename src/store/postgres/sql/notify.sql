-- notify: wake-ups for other processes, after the commit that they tell of, and in a transaction of its own: NOTIFY takes a lock that all
-- commits of the database share, so it must not be held while a commit waits for the disk. That is why this one does not wait either.
-- params:  1 channel  2 words of the board
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)
