-- job_any: is there a job in one of two lanes?
-- params:  1 lane  2 lane
-- returns: 0 or 1
SELECT EXISTS (SELECT 1 FROM il_live WHERE lane = ?1) OR EXISTS (SELECT 1 FROM il_live WHERE lane = ?2);
