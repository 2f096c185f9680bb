-- raw_job_create: what a hand-written queue keeps: a table of jobs with the three indexes of such tables (the id, what is ready
-- by age, what runs by its last update), and a history that finished jobs move to.
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
