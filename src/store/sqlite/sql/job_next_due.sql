-- job_next_due: when the next scheduled job of a queue is due.
-- params:  1 lane
-- returns: run_at_ms, NULL without any
SELECT min(ord) FROM il_live WHERE lane = ?1;
