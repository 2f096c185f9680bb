/*
 * power_jobs.c: a child pushes, claims and finishes jobs one at a time, and reports each OK it
 * gets; one job is always claimed and unfinished. Nothing acknowledged is lost, and nothing is
 * duplicated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "fault/power.h"

#define N_JOBS 10
#define N_PER_OPEN 4
#define QUEUE "jobs"

/* What was acknowledged. The op after the last line may have happened or not. */
struct told {
    bool     pushed[N_JOBS];
    uint64_t token[N_JOBS]; /* 0 = no claim was acknowledged */
    bool     finished[N_JOBS];
    unsigned n_pushed;
    unsigned n_lines;
};

static void
name(unsigned i, char id[16])
{
    (void)snprintf(id, 16, "job-%u", i);
}

static void
say(const char *what, unsigned i, uint64_t token)
{
    char line[64];
    int  n = snprintf(line, sizeof line, "%s %u %" PRIu64 "\n", what, i, token);

    CHECK(write(STDOUT_FILENO, line, (size_t)n) == n);
}

static void
push(il *h, unsigned i)
{
    char  id[16];
    il_op op = { .type = IL_OP_JOB_PUSH, .key = QUEUE };

    name(i, id);
    op.in.job = (il_job_in){ .id = id, .data = "work", .data_bytes = 4 };
    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    il_op_release(&op);
    say("push", i, 0);
}

static uint64_t
claim(il *h, unsigned i)
{
    char  id[16];
    il_op op = { .type = IL_OP_JOB_CLAIM, .key = QUEUE, .holder = "worker" };

    name(i, id);
    op.in.job = (il_job_in){ .id = id, .lease_ms = IL_TTL_MS_MAX };
    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_jobs == 1);
    CHECK(strcmp(op.out.jobs[0].id, id) == 0);
    uint64_t token = op.out.jobs[0].token;
    il_op_release(&op);
    say("claim", i, token);
    return token;
}

static void
finish(il *h, unsigned i, uint64_t token)
{
    char  id[16];
    il_op op = { .type = IL_OP_JOB_FINISH, .fence = token };

    name(i, id);
    op.in.job = (il_job_in){ .id = id, .data = "done", .data_bytes = 4 };
    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    il_op_release(&op);
    say("finish", i, token);
}

int
power_job_work(void *arg)
{
    struct power *w = arg;
    uint64_t      tokens[N_JOBS];
    il           *h = NULL;

    disk_install(w->image, &w->plan);
    for (unsigned i = 0; i < N_JOBS; i++) {
        if (i % N_PER_OPEN == 0) {
            il_close(h);
            CHECK(il_open(w->url, NULL, &h, NULL) == IL_OK);
        }
        push(h, i);
        tokens[i] = claim(h, i);
        if (i >= 1)
            finish(h, i - 1, tokens[i - 1]);
    }
    il_close(h);
    return 0;
}

static struct told
read_told(const char *text)
{
    struct told t = { 0 };

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char     what[16];
        unsigned i;
        uint64_t token;
        CHECK(sscanf(line, "%15s %u %" SCNu64, what, &i, &token) == 3 && i < N_JOBS);
        if (strcmp(what, "push") == 0) {
            t.pushed[i] = true;
            t.n_pushed++;
        } else if (strcmp(what, "claim") == 0) {
            t.token[i] = token;
        } else {
            t.finished[i] = true;
        }
        t.n_lines++;
    }
    return t;
}

/* Is the job as it was told, or one op further? */
static bool
is_kept(const struct told *t, unsigned i, const il_job_info *job)
{
    bool running   = job->state == IL_JOB_RUNNING;
    bool completed = job->state == IL_JOB_COMPLETED && job->result_bytes == 4;

    if (t->finished[i])
        return completed && job->token == t->token[i];
    if (t->token[i] != 0)
        return (running || completed) && job->token == t->token[i];
    return job->attempt <= 1 && (job->state == IL_JOB_READY || running);
}

/* How many jobs are in the store? */
static size_t
count(il *h)
{
    il_op op = { .type = IL_OP_JOB_LIST, .key = QUEUE };

    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    size_t n = op.out.n_jobs;
    il_op_release(&op);
    return n;
}

int
power_job_judge(void *arg)
{
    struct power *w      = arg;
    struct told   told   = read_told(w->said);
    il           *h      = power_open_image(w);
    int           n_lost = 0;

    if (h == NULL)
        return POWER_DAMAGED;
    for (unsigned i = 0; i < N_JOBS; i++) {
        char  id[16];
        il_op op = { .type = IL_OP_JOB_GET };
        name(i, id);
        op.in.job.id = id;
        CHECK(il_apply(h, &op, 1, NULL) == IL_OK);
        if (told.pushed[i] && (op.status != IL_OK || !is_kept(&told, i, &op.out.jobs[0]))) {
            (void)printf("%s is %s\n", id,
                         op.status == IL_OK ? il_job_state_name(op.out.jobs[0].state)
                                            : il_status_name(op.status));
            n_lost++;
        }
        il_op_release(&op);
    }
    size_t n = count(h);
    if (n < told.n_pushed || n > told.n_pushed + 1U) {
        (void)printf("%zu jobs, %u were pushed\n", n, told.n_pushed);
        n_lost++;
    }
    il_close(h);
    return n_lost > 0 ? POWER_LOST : 0;
}
