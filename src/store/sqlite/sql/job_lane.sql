-- job_lane: a READY job has to wait for its group from now on, or no longer.
-- params:  1 seq  2 lane
UPDATE il_live SET lane = ?2 WHERE seq = ?1;
