-- raw_queue.sql: the baseline for queues: a typical hand-written job queue.

-- name: raw_job_create
-- The tables of a hand-written queue: jobs with the usual three indexes (the id, ready jobs by age,
-- running jobs by last update), and a history that finished jobs move to.
CREATE TABLE job (
    no         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    status     INTEGER NOT NULL, -- 0 ready, 1 running
    worker     TEXT,
    attempts   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    payload    BLOB    NOT NULL
);
CREATE UNIQUE INDEX idx_job_id ON job (id);
CREATE INDEX idx_job_ready ON job (status, created_at);
CREATE INDEX idx_job_running ON job (status, updated_at);
CREATE TABLE history (
    id           TEXT    PRIMARY KEY,
    worker       TEXT,
    attempts     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    completed_at INTEGER NOT NULL,
    payload      BLOB    NOT NULL
) WITHOUT ROWID;

-- name: raw_job_push
-- Add a job.
-- params:  1 id  2 now  3 payload
INSERT INTO job (id, status, attempts, created_at, updated_at, payload)
VALUES (?1, 0, 0, ?2, ?2, ?3);

-- name: raw_job_ready
-- The next jobs, oldest first.
-- params:  1 rows
-- returns: no, id, payload
SELECT no, id, payload FROM job WHERE status = 0 ORDER BY created_at LIMIT ?1;

-- name: raw_job_mark
-- A worker takes a job.
-- params:  1 no  2 worker  3 now
UPDATE job SET status = 1, worker = ?2, attempts = attempts + 1, updated_at = ?3
 WHERE no = ?1 AND status = 0;

-- name: raw_job_move
-- Move a finished job into the history; the first half.
-- params:  1 id  2 now  3 worker
INSERT INTO history (id, worker, attempts, created_at, completed_at, payload)
SELECT id, worker, attempts, created_at, ?2, payload
  FROM job WHERE id = ?1 AND status = 1 AND worker = ?3;

-- name: raw_job_remove
-- Move a finished job into the history; the second half.
-- params:  1 id
DELETE FROM job WHERE id = ?1;
