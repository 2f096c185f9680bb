/*
 * queue_served.c: jobs on PostgreSQL and Redis: ours, with 4 workers that finish their jobs and
 * claim the next ones, compared with npm job queues on the same server. Jobs are pushed before each
 * round, outside the measured time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "load.h"
#include "peer.h"
#include "queue.h"
#include "servers.h"

#define N_WORKERS 4
#define N_JOBS 20000 /* of ours, in a round */
#define N_JOBS_QUICK 100

/* ---- ours ------------------------------------------------------------------------------------ */

/* Each worker has its own handle, as if it were a process: they share only the server. */
struct crew {
    struct jobs     jobs[N_WORKERS];
    _Atomic int64_t n_left; /* jobs of this round */
    _Atomic int64_t end_ns;
};

struct worker {
    struct crew *crew;
    struct jobs *jobs;
};

static void
crew_open(struct crew *c, const struct bench *b, const char *url, uint32_t n_claim)
{
    for (unsigned i = 0; i < N_WORKERS; i++) {
        jobs_open_url(&c->jobs[i], url, i + 1, (b->quick ? N_JOBS_QUICK : N_JOBS) / QUEUE_BATCH);
        c->jobs[i].n_claim = n_claim;
    }
}

static void
crew_close(struct crew *c)
{
    for (unsigned i = 0; i < N_WORKERS; i++)
        jobs_close(&c->jobs[i]);
}

static void *
worker_main(void *cookie)
{
    struct worker *w = cookie;
    struct crew   *c = w->crew;

    while (atomic_load(&c->n_left) > 0) {
        size_t n = jobs_work(w->jobs);
        if (n > 0 && atomic_fetch_sub(&c->n_left, (int64_t)n) == (int64_t)n)
            atomic_store(&c->end_ns, il__clock_boot_ns());
        else if (w->jobs->claim.out.n_jobs == 0)
            (void)usleep(1000); /* the others have the rest */
    }
    return NULL;
}

static double
crew_round(void *cookie)
{
    struct crew  *c = cookie;
    pthread_t     threads[N_WORKERS];
    struct worker workers[N_WORKERS];

    IGNORE(jobs_push_round(&c->jobs[0]) > 0); /* not measured here */
    int64_t n_jobs = (int64_t)c->jobs[0].n_batches * QUEUE_BATCH;
    atomic_store(&c->n_left, n_jobs);
    int64_t start_ns = il__clock_boot_ns();
    for (unsigned i = 0; i < N_WORKERS; i++) {
        workers[i] = (struct worker){ c, &c->jobs[i] };
        if (pthread_create(&threads[i], NULL, worker_main, &workers[i]) != 0)
            die("cannot start a thread");
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return (double)n_jobs * BENCH_NS_PER_S / (double)(atomic_load(&c->end_ns) - start_ns);
}

/* ---- both ------------------------------------------------------------------------------------ */

struct row {
    const char *name, *against, *script, *mode;
    unsigned    n_jobs; /* of the peer, in a round: a few seconds at most */
    /* of ours, at once: the workers hold as many as the peer, where that is configurable */
    uint32_t n_claim;
    double   wanted;
};

static void
measure(struct bench *b, const struct row *row, const char *url, const char *const args[3],
        const char *durability)
{
    struct result r    = { .name         = row->name,
                           .what         = "finishes and a claim of the next jobs, 4 workers",
                           .against      = row->against,
                           .durability   = durability,
                           .unit         = UNIT_PAIRS_PER_S,
                           .wanted       = WANTED_RATIO_AT_LEAST,
                           .wanted_value = row->wanted };
    struct crew  *ours = must_calloc(1, sizeof *ours);
    struct peer   peer = { 0 };

    crew_open(ours, b, url, row->n_claim);
    peer_open(&peer, b, row->script, args, b->quick ? N_JOBS_QUICK : row->n_jobs);
    compare(&r, b->n_rounds, (struct side){ crew_round, ours }, (struct side){ peer_round, &peer });
    peer_close(&peer);
    crew_close(ours);
    free(ours);
    report_add(&b->report, &r);
}

void
bench_queue_postgres(struct bench *b, unsigned unused UNUSED)
{
    static const struct row rows[] = {
        { "queue-postgres-graphile",
          "graphile-worker, 24 at once, local queue of 500, batched completion",
          "graphile-worker.mjs", "batched", 20000, 500 / N_WORKERS, 1.5 },
        { "queue-postgres-default", "graphile-worker, 24 at once, its default",
          "graphile-worker.mjs", "default", 4000, QUEUE_BATCH, 10 },
        { "queue-postgres-pg-boss", "pg-boss, 4 workers that fetch and complete 100", "pg-boss.mjs",
          NULL, 10000, QUEUE_BATCH, 5 },
    };
    const char *why;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!postgres_ready(b, &why) || !peers_ready(b, &why)) {
            report_leave_out(&b->report, rows[i].name, why);
            continue;
        }
        struct database ours = postgres_database(b, 0);
        struct database peer = postgres_database(b, 1);
        measure(b, &rows[i], ours.url,
                (const char *const[3]){ postgres_dir(b), peer.name, rows[i].mode }, BENCH_POSTGRES);
        postgres_drop(b, &ours);
        postgres_drop(b, &peer);
    }
}

void
bench_queue_redis(struct bench *b, unsigned unused UNUSED)
{
    static const struct row row = {
        "queue-redis-bullmq", "BullMQ, 50 at once", "bullmq.mjs", NULL, 20000, QUEUE_BATCH, 3
    };
    char        url[BENCH_URL_BYTES];
    const char *why;

    if (!redis_ready(b, false, &why) || !peers_ready(b, &why)) {
        report_leave_out(&b->report, row.name, why);
        return;
    }
    measure(b, &row, redis_url(b, false, url), (const char *const[3]){ redis_socket(b, false) },
            BENCH_REDIS);
    redis_empty(b, false);
}
