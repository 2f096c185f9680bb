-- worker_save: a worker has claimed.
-- params:  1 queue  2 worker  3 claim  4 seen_ms  5 jobs
INSERT INTO il_worker (queue, worker, claim, seen_ms, jobs) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (queue, worker) DO UPDATE
   SET claim = excluded.claim, seen_ms = excluded.seen_ms, jobs = excluded.jobs;
