-- start_list: claims of a queue that the rate counts, oldest first.
-- params:  1 queue
-- returns: at_ms, how many
SELECT at_ms, n FROM il_start WHERE queue = ?1 ORDER BY at_ms;
