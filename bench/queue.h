/*
 * queue.h: jobs through the library in batches, for the benchmarks of queues.
 */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "bench.h"
#include "queue_raw.h"

#define QUEUE_BATCH 100
#define QUEUE_CLAIM_MAX 250 /* jobs of one claim, where it is not a batch */
#define QUEUE_PAYLOAD_BYTES 100

/* A store with a queue, and what a batch needs. */
struct jobs {
    il      *store;
    char     path[BENCH_PATH_BYTES]; /* of a database that is a file */
    char     worker[24];
    unsigned n_batches; /* of a round */
    char     ids[QUEUE_BATCH][RAW_ID_BYTES];
    char     payload[QUEUE_PAYLOAD_BYTES];
    il_op    ops[QUEUE_CLAIM_MAX + 1];
    il_op    claim;   /* the last one, and what it gave */
    uint32_t n_claim; /* jobs that it asks for */
    il_error err;
};

/* In a SQLite file of its own, or at a URL. */
void jobs_open(struct jobs *j, const struct bench *b, const char *name, unsigned n_batches);
void jobs_open_url(struct jobs *j, const char *url, unsigned i_worker, unsigned n_batches);
void jobs_close(struct jobs *j);

/* New ids for a batch; outside the measured time. */
void queue_ids(char ids[QUEUE_BATCH][RAW_ID_BYTES]);
/* Push a batch with j->ids; claim a batch, and finish what it gave. An il_apply() each. */
void jobs_push(struct jobs *j);
void jobs_claim(struct jobs *j);
void jobs_finish(struct jobs *j);
/* What a worker does: finish what the last call gave, and claim what is there, a batch at most, with one il_apply(). How many were finished; j->claim has the next ones. */
size_t jobs_work(struct jobs *j);

/* Rounds of ours, in jobs per second: the time of the pushes; of claims and finishes, with pushes before that. */
double jobs_push_round(void *cookie);
double jobs_claim_round(void *cookie);

#endif
