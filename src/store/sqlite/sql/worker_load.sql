-- worker_load: a worker's last claim.
-- params:  1 queue  2 worker
-- returns: claim, seen_ms, jobs
SELECT claim, seen_ms, jobs FROM il_worker WHERE queue = ?1 AND worker = ?2;
