-- run_offered: the waiter of a pending run has become an offered lease.
-- params:  1 seq  2 fence
UPDATE il_run SET fence = ?2, ticket = 0 WHERE seq = ?1;
