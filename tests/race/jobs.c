/*
 * jobs.c: eight workers and 10,000 jobs on one SQLite file. Workers are killed with kill -9 and
 * replaced, and stopped for longer than their claims last; afterwards a log outside the store shows
 * that every job was finished exactly once, and late finishes were refused. The same check must
 * catch a worker that ignores whether its finish was accepted; otherwise this would prove nothing.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fault/integrity.h"
#include "harness/rng.h"
#include "race/race.h"

#define WORKERS 8
#define JOBS 10000
#define KILLS 12
#define QUEUE "jobs"
#define LIMIT_MS 60000
#define BYTES_OF_JOB 60 /* of log, about */

struct worker {
    struct t_proc proc;
    bool          running;
    bool          stopped;
    char          id[32]; /* the job it was stopped in, and its token */
    uint64_t      token;
};

struct scene {
    struct race   r;
    il           *h;
    struct worker workers[WORKERS];
    unsigned      n_names;
    unsigned      n_stops;
    unsigned      n_kills;
    struct t_rng  rng;
};

/* What the log says of a job, and what is wrong about it. */
struct judged {
    unsigned n_finished;
    uint64_t finished;
    unsigned n_refused;
};

struct verdict {
    unsigned n_missing; /* not completed */
    unsigned n_doubled; /* more than one effect */
    unsigned n_wrong;   /* the effect of another attempt than the one that the store has */
    unsigned n_refused;
};

/* ---- the store ------------------------------------------------------------------------------- */

static void
push_all(il *h, unsigned n_jobs)
{
    il_op ops[500];
    char  ids[500][16];

    for (unsigned from = 0; from < n_jobs; from += ARRAY_LEN(ops)) {
        unsigned n = MIN(n_jobs - from, (unsigned)ARRAY_LEN(ops));
        for (unsigned i = 0; i < n; i++) {
            ops[i] = (il_op){ .type = IL_OP_JOB_PUSH, .key = QUEUE };
            (void)snprintf(ids[i], sizeof ids[i], "j%05u", from + i);
            ops[i].in.job.id           = ids[i];
            ops[i].in.job.max_attempts = IL_ATTEMPTS_MAX;
        }
        T_EQ(il_apply(h, ops, n, NULL), IL_OK);
        for (unsigned i = 0; i < n; i++) {
            T_EQ(ops[i].status, IL_OK);
            il_op_release(&ops[i]);
        }
    }
}

static struct scene *
scene_new(unsigned n_jobs)
{
    struct scene *s = calloc(1, sizeof *s);

    CHECK(s != NULL);
    race_init(&s->r);
    s->h = race_open(&s->r);
    push_all(s->h, n_jobs);
    t_rng_init(&s->rng, t_env_u64("IL_TEST_SEED", 1));
    return s;
}

static void
scene_free(struct scene *s)
{
    for (unsigned i = 0; i < WORKERS; i++)
        t_proc_release(&s->workers[i].proc);
    il_close(s->h);
    race_release(&s->r);
    free(s);
}

/* Has somebody else got the job, or has it ended? */
static bool
is_taken_over(il *h, const char *id, uint64_t token)
{
    il_op op = { .type = IL_OP_JOB_GET };

    op.in.job.id = id;
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    bool taken = op.status == IL_OK &&
                 (op.out.jobs[0].token != token || op.out.jobs[0].state > IL_JOB_RUNNING);
    il_op_release(&op);
    return taken;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void
start(struct scene *s, struct worker *w, const char *how)
{
    char name[16];

    (void)snprintf(name, sizeof name, "w%u", s->n_names++);
    RACE_WORKER(&s->r, &w->proc, "jobs", s->r.url, QUEUE, s->r.log, name, how);
    w->running = true;
    w->stopped = false;
}

/* Half of them stop now and then; the others go on, and take over. */
static const char *
how_of(const struct scene *s, const struct worker *w)
{
    return (w - s->workers) % 2 == 0 ? "stops" : "";
}

/* A worker that has stopped itself goes on when its job is somebody else's. */
static void
watch(struct scene *s, struct worker *w)
{
    char line[T_PROC_LINE_BYTES];

    if (!w->stopped && t_proc_line(&w->proc, "stopped ", 1, line)) {
        T_EQ(sscanf(line, "stopped %31s %" SCNu64, w->id, &w->token), 2);
        T_TRUE(t_pid_in_state(w->proc.pid, 'T', LIMIT_MS));
        w->stopped = true;
        s->n_stops++;
    }
    if (w->stopped && is_taken_over(s->h, w->id, w->token)) {
        t_proc_signal(&w->proc, SIGCONT);
        w->stopped = false;
    }
    if (!w->stopped && t_proc_end(&w->proc, 0)) {
        if (w->proc.status != 0)
            T_FAIL("a worker ended with %d: %s", w->proc.status, w->proc.text);
        w->running = false;
    }
}

static void
kill_one(struct scene *s)
{
    struct worker *w = &s->workers[t_rng_below(&s->rng, WORKERS)];

    if (!w->running || w->stopped)
        return; /* another one, the next time */
    t_proc_signal(&w->proc, SIGKILL);
    T_EQ(t_proc_exit(&w->proc, LIMIT_MS), 128 + SIGKILL);
    t_proc_release(&w->proc);
    start(s, w, how_of(s, w));
    s->n_kills++;
}

static size_t
log_bytes(const struct scene *s)
{
    struct stat st;

    return stat(s->r.log, &st) == 0 ? (size_t)st.st_size : 0;
}

/* Until all have ended; kills are spread over the work that is done. */
static void
let_work(struct scene *s, unsigned n_kills, size_t every_bytes)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    for (bool any = true; any;) {
        any = false;
        for (unsigned i = 0; i < WORKERS; i++) {
            if (s->workers[i].running)
                watch(s, &s->workers[i]);
            any = any || s->workers[i].running;
        }
        if (any && s->n_kills < n_kills && log_bytes(s) > (s->n_kills + 1) * every_bytes)
            kill_one(s);
        if (t_real_ms() >= until_ms)
            T_FAIL("the jobs are not done within %d ms", LIMIT_MS);
    }
}

/* ---- the judge ------------------------------------------------------------------------------- */

static struct judged *
read_log(const struct scene *s, unsigned n_jobs)
{
    struct judged *jobs = calloc(n_jobs, sizeof *jobs);
    char          *text = t_file_read(s->r.log, NULL);

    CHECK(jobs != NULL);
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char     what;
        unsigned i;
        uint64_t token;
        T_EQ(sscanf(line, "%c j%u %" SCNu64, &what, &i, &token), 3);
        T_LESS(i, n_jobs);
        if (what == 'F') {
            jobs[i].n_finished++;
            jobs[i].finished = token;
        }
        jobs[i].n_refused += what == 'X';
    }
    free(text);
    return jobs;
}

/* The store says which token's finish it took, and keeps that one's result; the log says whose
 * effect there is. One that was killed between the two has left none. */
static void
judge_job(il *h, unsigned i, const struct judged *j, struct verdict *v)
{
    il_op op = { .type = IL_OP_JOB_GET };
    char  id[16];
    char  token[32];

    (void)snprintf(id, sizeof id, "j%05u", i);
    op.in.job.id = id;
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    const il_job_info *job = &op.out.jobs[0];
    (void)snprintf(token, sizeof token, "%" PRIu64, job->token);
    v->n_missing += job->state != IL_JOB_COMPLETED;
    v->n_doubled += j->n_finished > 1;
    v->n_wrong += j->n_finished > 0 && j->finished != job->token;
    v->n_wrong +=
        job->state == IL_JOB_COMPLETED &&
        (job->result_bytes != strlen(token) || memcmp(job->result, token, job->result_bytes) != 0);
    v->n_refused += j->n_refused;
    il_op_release(&op);
}

static struct verdict
judge(const struct scene *s, unsigned n_jobs)
{
    struct verdict v    = { 0 };
    struct judged *jobs = read_log(s, n_jobs);

    for (unsigned i = 0; i < n_jobs; i++)
        judge_job(s->h, i, &jobs[i], &v);
    free(jobs);
    return v;
}

static void
judge_totals(const struct scene *s, const struct verdict *v)
{
    il_op op = { .type = IL_OP_QUEUE_LIST };

    T_EQ(il_apply(s->h, &op, 1, NULL), IL_OK);
    T_EQU(op.out.n_queues, 1);
    const il_queue_info *q = &op.out.queues[0];
    print_message("# %u kills, %u stops, %u claims ran out, %u finishes refused\n", s->n_kills,
                  s->n_stops, (unsigned)q->recovered, (unsigned)q->stale);
    T_EQU(q->completed, JOBS);
    T_TRUE(q->stale >= v->n_refused); /* one that was killed did not log it */
    T_TRUE(q->recovered >= s->n_stops);
    T_EQU(q->claimed, JOBS + q->recovered);
    il_op_release(&op);
}

U_TEST(every_job_is_finished_once)
{
    struct scene *s = scene_new(JOBS);
    char          path[T_PATH_BYTES];

    for (unsigned i = 0; i < WORKERS; i++)
        start(s, &s->workers[i], how_of(s, &s->workers[i]));
    let_work(s, KILLS, (size_t)JOBS * BYTES_OF_JOB / 2 / (KILLS + 1));
    struct verdict v = judge(s, JOBS);
    judge_totals(s, &v);
    T_EQU(v.n_missing, 0);
    T_EQU(v.n_doubled, 0);
    T_EQU(v.n_wrong, 0);
    T_LESS(1, s->n_stops); /* else nothing came too late */
    T_LESS(0, v.n_refused);
    T_EQU(s->n_kills, KILLS);
    t_path(path, "%s/x.db", s->r.dir);
    T_TRUE(s->r.server != NULL || db_is_whole(path));
    scene_free(s);
}

/* Each stops in its first job until that is somebody else's, and then writes its effect all the
 * same. */
U_TEST(one_that_does_not_care_is_found_out)
{
    struct scene *s = scene_new(20);

    for (unsigned i = 0; i < 2; i++) {
        int64_t until_ms = t_real_ms() + LIMIT_MS;
        start(s, &s->workers[i], "careless");
        while (!s->workers[i].stopped && t_real_ms() < until_ms)
            watch(s, &s->workers[i]);
    }
    start(s, &s->workers[2], "");
    let_work(s, 0, 1);
    struct verdict v = judge(s, 20);
    print_message("# %u effects twice, %u of the wrong attempt\n", v.n_doubled, v.n_wrong);
    T_EQU(v.n_missing, 0);
    T_LESS(0, v.n_doubled);
    scene_free(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(every_job_is_finished_once),
                                               U_ROW(one_that_does_not_care_is_found_out) };

    return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
