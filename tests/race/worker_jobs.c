/*
 * worker_jobs.c: a worker of a queue. Its jobs write lines to a log outside the store:
 *
 *   S ID TOKEN   it starts the job
 *   F ID TOKEN   its finish was accepted: this is the effect, which must be there once
 *   X ID TOKEN   its finish was refused
 *
 * A worker that `stops` does so now and then in the middle of a job, after a line `stopped ID
 * TOKEN` on stdout, until it is continued. A `careless` one stops in its first job, and ignores
 * whether its finish was accepted.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/rng.h"
#include "race/worker.h"

#define LEASE_MS 1000
#define CLAIM_MAX 8
#define STOPS_MAX 5 /* of one worker */

struct worker {
    il          *h;
    const char  *queue;
    const char  *log;
    const char  *name;
    bool         careless;
    unsigned     stops; /* in one of so many jobs; 0 = never */
    struct t_rng rng;
    unsigned     n_claims;
    unsigned     n_stops;
};

/* A busy store says so; what is not known to have happened is repeated as it was. */
static void
apply(struct worker *w, il_op *op)
{
    il_error err = { 0 };

    for (unsigned tries = 0; il_apply(w->h, op, 1, &err) != IL_OK; tries++) {
        if (tries > 10) {
            (void)fprintf(stderr, "race-worker: %s\n", err.message);
            exit(95);
        }
    }
}

static void
note(const struct worker *w, char what, const il_job_info *job)
{
    char line[128];

    (void)snprintf(line, sizeof line, "%c %s %" PRIu64 "\n", what, job->id, job->token);
    worker_append(w->log, line);
}

static void
stop(struct worker *w, const il_job_info *job)
{
    w->n_stops++;
    (void)printf("stopped %s %" PRIu64 "\n", job->id, job->token);
    (void)fflush(stdout);
    (void)raise(SIGSTOP);
}

static void
do_job(struct worker *w, const il_job_info *job)
{
    il_op op = { .type = IL_OP_JOB_FINISH, .fence = job->token };
    char  result[32];
    int   n = snprintf(result, sizeof result, "%" PRIu64, job->token);

    note(w, 'S', job);
    if (w->stops > 0 && w->n_stops < STOPS_MAX && t_rng_one_in(&w->rng, w->stops))
        stop(w, job);
    op.in.job.id         = job->id;
    op.in.job.data       = result;
    op.in.job.data_bytes = (size_t)n;
    apply(w, &op);
    note(w, op.status == IL_OK || w->careless ? 'F' : 'X', job);
    il_op_release(&op);
}

static bool
all_done(struct worker *w)
{
    il_op op = { .type = IL_OP_QUEUE_LIST };

    op.in.list.prefix = w->queue;
    apply(w, &op);
    bool done = op.out.n_queues == 1 && op.out.queues[0].n_ready == 0 &&
                op.out.queues[0].n_scheduled == 0 && op.out.queues[0].n_running == 0;
    il_op_release(&op);
    return done;
}

/* False when nothing is left to do. */
static bool
do_some(struct worker *w)
{
    il_op op = { .type = IL_OP_JOB_CLAIM, .key = w->queue, .holder = w->name };
    char  id[64];

    (void)snprintf(id, sizeof id, "%s-%u", w->name, w->n_claims++);
    op.in.job.id       = id;
    op.in.job.limit    = 1 + t_rng_below(&w->rng, CLAIM_MAX);
    op.in.job.lease_ms = LEASE_MS;
    apply(w, &op);
    for (size_t i = 0; i < op.out.n_jobs; i++)
        do_job(w, &op.out.jobs[i]);
    bool more = op.status == IL_OK || !all_done(w);
    if (op.status == IL_EMPTY && more && il_wait(w->h, &op, 200) == IL_INVAL)
        worker_die("il_wait");
    il_op_release(&op);
    return more;
}

int
worker_jobs(const char *url, const char *queue, const char *log, const char *name, const char *how)
{
    struct worker w = { .h = worker_open(url), .queue = queue, .log = log, .name = name };

    w.careless = strcmp(how, "careless") == 0;
    w.stops    = w.careless ? 1 : strcmp(how, "stops") == 0 ? 100 : 0;
    t_rng_init(&w.rng, strtoull(name + strcspn(name, "0123456789"), NULL, 10));
    while (do_some(&w))
        ;
    il_close(w.h);
    return 0;
}
