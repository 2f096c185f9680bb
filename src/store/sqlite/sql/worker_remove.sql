-- worker_remove: forget a worker.
-- params:  1 queue  2 worker
DELETE FROM il_worker WHERE queue = ?1 AND worker = ?2;
