-- schema/queue.sql: queues, jobs, schedules. The rules are in src/core/queue.md.
--
-- A job has a row in `job` from its push to its purge, which never changes and carries the payload,
-- and one in either `job_live` or `job_done`. So what a claim reads does not grow with history, a
-- payload is written once, and a single index keeps ids unique, also against concurrent pushes.

-- A queue: its settings. Jobs refer to it by number. Never deleted, and written only when it is
-- configured, so reading it never waits.
CREATE TABLE queue (
    no                    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant                text COLLATE "C" NOT NULL,
    name                  text COLLATE "C" NOT NULL,
    strategy              int     NOT NULL DEFAULT @DEFAULT_STRATEGY@,
    max_attempts          int     NOT NULL DEFAULT @DEFAULT_MAX_ATTEMPTS@,
    lease_ms              bigint  NOT NULL DEFAULT @DEFAULT_LEASE_MS@,
    backoff_ms            bigint  NOT NULL DEFAULT @DEFAULT_BACKOFF_MS@,
    backoff_max_ms        bigint  NOT NULL DEFAULT @DEFAULT_BACKOFF_MAX_MS@,
    group_limit           int     NOT NULL DEFAULT @DEFAULT_GROUP_LIMIT@, -- -1: none
    rate_n                int     NOT NULL DEFAULT @DEFAULT_RATE_N@, -- -1: none
    rate_ms               bigint  NOT NULL DEFAULT @DEFAULT_RATE_MS@,
    keep_ms               bigint  NOT NULL DEFAULT @DEFAULT_KEEP_MS@, -- -1: for ever
    keep_failed_ms        bigint  NOT NULL DEFAULT @DEFAULT_KEEP_FAILED_MS@, -- -1: for ever
    processing_timeout_ms bigint  NOT NULL DEFAULT @DEFAULT_PROCESSING_TIMEOUT_MS@,
    executing_timeout_ms  bigint  NOT NULL DEFAULT @DEFAULT_EXECUTING_TIMEOUT_MS@,
    paused                boolean NOT NULL DEFAULT false,
    reason                text    NOT NULL DEFAULT '',
    UNIQUE (tenant, name)
);

-- Totals since the queue was created: a row for each op that counted something, to be summed up.
-- With one row per queue, or a few, all callers would contend for it, and an open snapshot would
-- let thousands of versions pile up. An op that adds a row sometimes merges a thousand old ones.
CREATE TABLE job_total (
    n     bigint   NOT NULL,
    queue int      NOT NULL,
    what  smallint NOT NULL -- TOTAL_*, or DEPTH_*: a correction, see depth_add()
);
CREATE INDEX job_total_queue ON job_total (queue);

-- A job: its identity and its payload.
CREATE TABLE job (
    seq             bigint  PRIMARY KEY, -- the order of pushes
    created_ms      bigint  NOT NULL,
    unique_until_ms bigint  NOT NULL,    -- 0 = none
    parent          bigint,              -- its seq
    queue           int     NOT NULL,
    priority        int     NOT NULL,
    max_attempts    int     NOT NULL,
    n_children      bigint  NOT NULL,    -- of a parent: how many were announced
    ordinal         int,                 -- 1 for the parent's first child, and so on
    is_parent       boolean NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    id              text COLLATE "C" NOT NULL,
    parent_id       text COLLATE "C",
    grp             text COLLATE "C",
    unique_key      text COLLATE "C",
    payload         bytea   NOT NULL,
    UNIQUE (tenant, id)
);
CREATE UNIQUE INDEX job_parent ON job (parent, ordinal) WHERE parent IS NOT NULL;

-- The part of a live job that changes. `lane` is where it waits: 8 * queue + kind, and (ord, at,
-- seq) is its place there:
--   LANE_SCHEDULED  SCHEDULED, by run_at         ord = run_at_ms   at = 0
--   LANE_READY      READY, in claiming order     ord = priority    at = run_at_ms
--   LANE_PARENT     RUNNING, a parent            ord = 0           at = 0
--   LANE_BLOCKED    READY, its group is full     ord = priority    at = run_at_ms
--   LANE_UNDECIDED  READY, of a group with a limit: the next claim decides whether there is room
-- and LANE_CLAIMED for the claimed ones of all queues, at = 0: ord is when to check whether the
-- claim is dead, never later than expires_ms. A heartbeat does not change it, so it changes no
-- index and finds room on its page (a HOT update); a check that finds the claim alive moves it on.
-- `glane` is 8 * queue + kind, for a claimed one too, if the job has a group.
--
-- Why there are so few indexes, and expressions in them: the planner may have statistics of this
-- table from a time when it was nearly empty, and then uses any index that has a column of the
-- query, at any position. So each column in a condition is in one index only.
CREATE TABLE job_live (
    seq        bigint   NOT NULL,
    lane       bigint   NOT NULL,
    ord        bigint   NOT NULL,
    at         bigint   NOT NULL,
    glane      bigint,
    run_at_ms  bigint   NOT NULL,
    expires_ms bigint   NOT NULL, -- of a claim, in lease time; else 0
    lease_ms   bigint   NOT NULL,
    token      bigint   NOT NULL, -- of the last attempt; 0 = never claimed
    started_ms bigint   NOT NULL,
    updated_ms bigint   NOT NULL,
    parent     bigint,
    queue      int      NOT NULL,
    priority   int      NOT NULL,
    attempt    int      NOT NULL,
    bytes      int      NOT NULL, -- of the payload: a claim adds them up before it takes jobs
    last       smallint NOT NULL, -- how the last attempt ended: enum il__job_last
    flags      smallint NOT NULL, -- JOB_FLAG_*
    progress   smallint NOT NULL,
    grp        text COLLATE "C",
    worker     text COLLATE "C" NOT NULL,
    error      text     NOT NULL,
    message    text     NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
        autovacuum_vacuum_cost_delay = 0);
-- Not unique, because job.seq is: a push adds a job to the live ones once, and a retry takes it
-- from the ended ones. A claim changes every job that it takes in this index, and a unique one
-- would check the row before it each time: an eighth of what a worker's claims and finishes cost
-- the server.
CREATE INDEX job_live_seq ON job_live (queue, seq);
CREATE INDEX job_live_lane ON job_live (lane, ord, at, (seq + 0));
CREATE INDEX job_live_group ON job_live (grp, glane, ord, at, (seq + 0)) WHERE grp IS NOT NULL;
CREATE INDEX job_live_parent ON job_live (parent, (seq + 0)) WHERE parent IS NOT NULL;
-- For listings of running and scheduled jobs, newest first.
CREATE INDEX job_live_running ON job_live ((queue::bigint), (seq + 0))
    WHERE lane & 7 IN (@LANE_CLAIMED@, @LANE_PARENT@);
CREATE INDEX job_live_later ON job_live ((queue::bigint), (seq + 0))
    WHERE lane & 7 = @LANE_SCHEDULED@;

-- The same of an ended job.
CREATE TABLE job_done (
    seq          bigint   NOT NULL,
    purge_at_ms  bigint   NOT NULL, -- the largest number: not by itself
    token        bigint   NOT NULL,
    run_at_ms    bigint   NOT NULL,
    started_ms   bigint   NOT NULL,
    completed_ms bigint   NOT NULL, -- and updated
    queue        int      NOT NULL,
    attempt      int      NOT NULL,
    state        smallint NOT NULL, -- COMPLETED, FAILED or CANCELLED
    last         smallint NOT NULL,
    flags        smallint NOT NULL,
    progress     smallint NOT NULL,
    worker       text COLLATE "C" NOT NULL,
    error        text     NOT NULL,
    message      text     NOT NULL,
    result       bytea    NOT NULL,
    PRIMARY KEY (queue, state, seq)
);
CREATE INDEX job_done_purge ON job_done (purge_at_ms, seq) WHERE purge_at_ms < @NEVER@;

-- The job that has a unique key, live or ended: the job itself tells whether it still excludes
-- others.
CREATE TABLE job_unique (
    queue int    NOT NULL,
    key   text COLLATE "C" NOT NULL,
    seq   bigint NOT NULL,
    PRIMARY KEY (queue, key)
);

-- A worker's last claim: its id, when it was (lease time), and the first and last token that it
-- gave (NULL: none). A claim adds a row and deletes the one before; the newest is authoritative,
-- and is found at once however many dead ones a long snapshot keeps.
CREATE TABLE job_worker (
    n           bigint NOT NULL,
    seen_ms     bigint NOT NULL,
    first_token bigint,
    last_token  bigint,
    queue       int    NOT NULL,
    worker      text COLLATE "C" NOT NULL,
    claim       text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, worker, n)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_worker_seen ON job_worker (seen_ms);

-- A queue with a rate has rate_n of these: the times of the last claims, in lease time. A claim
-- needs one for each job, and takes the oldest that are not locked and older than rate_ms. Numbers
-- above rate_n remain from a higher rate, and count again if it is restored.
CREATE TABLE job_start (
    at_ms bigint NOT NULL,
    queue int    NOT NULL,
    no    int    NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_start_queue ON job_start (queue, at_ms);

-- A job no longer counts against the limit of its group: the next claim decides which job takes its
-- place.
CREATE TABLE job_left (
    n     bigint NOT NULL,
    queue int    NOT NULL,
    grp   text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_left_queue ON job_left (queue, n);

-- Schedules. They refer to their queue by name, because they push like any other caller.
CREATE TABLE cron (
    tenant       text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    schedule     text    NOT NULL,
    missed       int     NOT NULL,
    priority     int     NOT NULL,
    max_attempts int     NOT NULL,
    n_ticks      bigint  NOT NULL,
    next_ms      bigint  NOT NULL, -- wall clock
    last_ms      bigint  NOT NULL,
    payload      bytea   NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX cron_next ON cron (next_ms, tenant, name);
CREATE INDEX cron_queue ON cron (tenant, queue, next_ms, name);
-- those of a queue, by name
CREATE INDEX cron_list ON cron ((tenant || E'\x1f' || queue), (name || ''));

-- A job as passed between functions: the columns of `job` and of `job_live` or `job_done`.
CREATE TYPE job_row AS (
    seq             bigint,
    queue           int,
    tenant          text,
    id              text,
    priority        int,
    max_attempts    int,
    is_parent       boolean,
    n_children      bigint,
    created_ms      bigint,
    unique_until_ms bigint,
    parent          bigint, -- NULL = none, and so on
    parent_id       text,
    grp             text,
    unique_key      text,
    state           int,
    blocked         boolean, -- READY, but in LANE_BLOCKED or LANE_UNDECIDED
    last            int,
    attempt         int,
    token           bigint,
    cancelled       boolean,
    silent          boolean,
    sealed          boolean,
    progress        int,
    run_at_ms       bigint,
    lease_ms        bigint,
    expires_ms      bigint,
    started_ms      bigint,
    updated_ms      bigint,
    completed_ms    bigint,
    purge_at_ms     bigint,
    worker          text,
    error           text,
    message         text
);

-- The reply of the verbs of jobs and schedules, like the type reply, but with JSON as text.
-- Building a job as text costs a quarter of building it as jsonb, which would be converted to text
-- in the end.
CREATE TYPE job_reply AS (
    out   text,
    data  bytea,
    data2 bytea
);
-- The same from a verb that executes several requests at once; i counts them from 1.
CREATE TYPE job_reply_many AS (
    i     int,
    out   text,
    data  bytea,
    data2 bytea
);

-- A dead claim, as collected by sweeps.
CREATE TYPE job_due AS (
    queue int,
    seq   bigint
);
