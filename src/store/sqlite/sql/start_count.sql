-- start_count: how many claims of a queue the rate counts.
-- params:  1 queue
-- returns: the number
SELECT coalesce(sum(n), 0) FROM il_start WHERE queue = ?1;
