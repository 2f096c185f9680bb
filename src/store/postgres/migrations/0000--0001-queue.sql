-- 0000--0001-queue: queues, jobs, schedules. The rules are in src/core/queue.md.
--
-- A job is a row of `job` from its push to its purge, which never changes and carries the payload, and one of `job_live` or of
-- `job_done`. So what a claim looks at does not grow with history, a payload is written once, and an id is unique by one index,
-- whoever pushes it at the same time.

-- A queue: its settings. Jobs refer to it by number. Never forgotten, and written only by those who set it, so reading it waits for nobody.
CREATE TABLE queue (
    no                    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant                text COLLATE "C" NOT NULL,
    name                  text COLLATE "C" NOT NULL,
    strategy              int     NOT NULL DEFAULT 1, -- 1 pessimistic, 2 optimistic
    max_attempts          int     NOT NULL DEFAULT 5,
    lease_ms              bigint  NOT NULL DEFAULT 30000,
    backoff_ms            bigint  NOT NULL DEFAULT 1000,
    backoff_max_ms        bigint  NOT NULL DEFAULT 3600000,
    group_limit           int     NOT NULL DEFAULT -1, -- -1: none
    rate_n                int     NOT NULL DEFAULT -1, -- -1: none
    rate_ms               bigint  NOT NULL DEFAULT 1000,
    keep_ms               bigint  NOT NULL DEFAULT 604800000,  -- -1: for ever
    keep_dead_ms          bigint  NOT NULL DEFAULT 2592000000, -- -1: for ever
    processing_timeout_ms bigint  NOT NULL DEFAULT 300000,
    executing_timeout_ms  bigint  NOT NULL DEFAULT 120000,
    paused                boolean NOT NULL DEFAULT false,
    marked                boolean NOT NULL DEFAULT false, -- it has, or had, rows of job_mark
    reason                text    NOT NULL DEFAULT '',
    UNIQUE (tenant, name)
);

-- Totals since the queue was made: a row for each op that counted something, to be summed up. One row per queue, or a few,
-- would be where all callers meet, and where a snapshot that somebody holds open lets thousands of versions pile up.
-- Whoever adds a row sometimes puts a thousand old ones together.
CREATE TABLE job_total (
    n     bigint   NOT NULL,
    queue int      NOT NULL,
    what  smallint NOT NULL -- 1 pushed, 2 claimed, 3 completed, 4 failed, 5 dead, 6 snoozed, 7 cancelled, 8 recovered, 9 duplicates, 10 stale
);
CREATE INDEX job_total_queue ON job_total (queue);

-- A job: who it is and what it carries.
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
CREATE INDEX job_parent ON job (parent, ordinal) WHERE parent IS NOT NULL;

-- What changes of a live job. `lane` is where it waits: 8 * queue + kind, and (ord, at, seq) its place there:
--   1  SCHEDULED, by run_at         ord = run_at_ms   at = 0
--   2  READY, in claiming order     ord = priority    at = run_at_ms
--   3  RUNNING, a parent            ord = 0           at = 0
--   4  READY, its group is full     ord = priority    at = run_at_ms
--   5  READY, of a group with a limit: the next claim finds out whether there is room
-- and lane 0 for the claimed ones of all queues, at = 0: ord is when somebody has to look whether the claim is dead, never later than expires_ms. A
-- heartbeat leaves it as it is, so it changes no index and finds room on its page (a HOT update); whoever looks in vain moves it on.
-- `glane` is 8 * queue + kind, for a claimed one too, if the job has a group.
--
-- Why there are so few indexes, and expressions in them: the planner has statistics of this table from some moment when it was nearly empty, and then takes
-- any index that has a column of the question, at whatever place. So each column that is asked for is in one index only.
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
    last       smallint NOT NULL, -- how the last attempt ended: enum il__job_last
    flags      smallint NOT NULL, -- 1 cancelled, 2 silent, 4 sealed
    progress   smallint NOT NULL,
    grp        text COLLATE "C",
    worker     text COLLATE "C" NOT NULL,
    error      text     NOT NULL,
    message    text     NOT NULL,
    PRIMARY KEY (queue, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_live_lane ON job_live (lane, ord, at, (seq + 0));
CREATE INDEX job_live_group ON job_live (grp, glane, ord, at, (seq + 0)) WHERE grp IS NOT NULL;
CREATE INDEX job_live_parent ON job_live (parent, (seq + 0)) WHERE parent IS NOT NULL;

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
    state        smallint NOT NULL, -- 4 COMPLETED, 5 FAILED, 6 CANCELLED
    last         smallint NOT NULL,
    flags        smallint NOT NULL,
    progress     smallint NOT NULL,
    worker       text COLLATE "C" NOT NULL,
    error        text     NOT NULL,
    message      text     NOT NULL,
    result       bytea    NOT NULL,
    PRIMARY KEY (queue, state, seq)
);
CREATE INDEX job_done_purge ON job_done (purge_at_ms, seq) WHERE purge_at_ms < 9223372036854775807;

-- Who has a unique key, live or ended: the job itself says whether it still keeps others from it.
CREATE TABLE job_unique (
    queue int    NOT NULL,
    key   text COLLATE "C" NOT NULL,
    seq   bigint NOT NULL,
    PRIMARY KEY (queue, key)
);

-- A worker's last claim: its id, when it was (lease time), and the first and last token that it gave (NULL: none). A claim adds a row and
-- deletes the one before; the newest is the truth, and is found at once however many dead ones a long snapshot keeps.
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

-- Of queues with a rate: how many jobs were claimed when, in lease time.
CREATE TABLE job_start (
    at_ms bigint NOT NULL,
    n     bigint NOT NULL,
    queue int    NOT NULL,
    PRIMARY KEY (queue, at_ms)
);

-- A job has left those of a group with a limit that run or can be claimed: the next claim finds out who takes its place.
CREATE TABLE job_left (
    n     bigint NOT NULL,
    queue int    NOT NULL,
    grp   text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_left_queue ON job_left (queue, n);

-- Where a claim may begin to look: of a queue and kind (1, 2, 5; 0: claimed) nothing is before (ord, at, seq) in its lane; kind 6: nothing of job_left
-- before n = ord. Claimed and finished jobs stay in the index as long as somebody holds a snapshot in which they were there, and
-- stepping over them takes time. See queue_mark.sql.
CREATE TABLE job_mark (
    base    bigint   NOT NULL, -- the newest counts, and of its rows the lowest
    ord     bigint   NOT NULL,
    at      bigint   NOT NULL,
    seq     bigint   NOT NULL,
    made_ms bigint   NOT NULL,
    queue   int      NOT NULL,
    kind    smallint NOT NULL
);
CREATE INDEX job_mark_order ON job_mark (queue, kind, base DESC, ord, at, seq);

-- Schedules. Their queue is a name here: they push as anybody else does.
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

-- A job as the functions hand it around: what `job` and `job_live` or `job_done` say of it.
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
    blocked         boolean, -- READY, but in lane 4 or 5
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

-- What the verbs of jobs and schedules answer, as the types reply and reply_many: but JSON is text here. A job is put together as text for a
-- quarter of what it costs as jsonb, which would be turned into text in the end.
CREATE TYPE job_reply AS (
    out   text,
    data  bytea,
    data2 bytea
);
CREATE TYPE job_reply_many AS (
    i     int,
    out   text,
    data  bytea,
    data2 bytea
);

-- What a claim has taken, in claiming order.
CREATE TYPE job_claim AS (
    seqs     bigint[],
    tokens   bigint[],
    attempts int[],
    run_ats  bigint[],
    errors   text[]
);

-- A place in a lane.
CREATE TYPE job_place AS (
    ord bigint,
    at  bigint,
    seq bigint
);

-- A claim that is dead, as sweeps gather them.
CREATE TYPE job_due AS (
    queue int,
    seq   bigint
);
