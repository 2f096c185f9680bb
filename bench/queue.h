/*
 * queue.h: jobs through the library in batches, for the benchmarks of queues.
 */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "bench.h"
#include "queue_raw.h"

#define QUEUE_BATCH 100
#define QUEUE_CLAIM_MAX 250 /* jobs per claim, unless it claims a batch */
#define QUEUE_PAYLOAD_BYTES 100

/* A store with a queue, and the buffers of a batch. */
struct jobs {
    il      *store;
    char     path[BENCH_PATH_BYTES]; /* of a database file */
    char     worker[24];
    unsigned n_batches; /* of a round */
    char     ids[QUEUE_BATCH][RAW_ID_BYTES];
    char     payload[QUEUE_PAYLOAD_BYTES];
    il_op    ops[QUEUE_CLAIM_MAX + 1];
    il_op    claim;   /* the last one, and its result */
    uint32_t n_claim; /* jobs requested */
    il_error err;
};

/* In a separate SQLite file, or at a URL. */
void jobs_open(struct jobs *j, const struct bench *b, const char *name, unsigned n_batches);
void jobs_open_url(struct jobs *j, const char *url, unsigned i_worker, unsigned n_batches);
void jobs_close(struct jobs *j);

/* New ids for a batch; outside the measured time. */
void queue_ids(char ids[QUEUE_BATCH][RAW_ID_BYTES]);
/* Push a batch with j->ids; claim a batch, and finish its jobs. An il_apply() each. */
void jobs_push(struct jobs *j);
void jobs_claim(struct jobs *j);
void jobs_finish(struct jobs *j);
/* A worker's step: finish the jobs of the last call and claim the next ones, at most a batch, with
 * one il_apply(). Returns how many were finished; j->claim has the next ones. */
size_t jobs_work(struct jobs *j);

/* Rounds of ours, in jobs per second: timing the pushes; timing claims and finishes, after untimed
 * pushes. */
double jobs_push_round(void *cookie);
double jobs_claim_round(void *cookie);

#endif
