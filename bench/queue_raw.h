/*
 * queue_raw.h: the baseline for queues: a hand-written queue on SQLite, one thread, prepared
 * statements.
 */
#ifndef BENCH_QUEUE_RAW_H
#define BENCH_QUEUE_RAW_H

#include "base/base.h"

#define RAW_ID_BYTES 40

struct raw_queue;

/* Create the database. This and the functions below die on failure. */
struct raw_queue *raw_queue_open(const char *path);
void              raw_queue_close(struct raw_queue *r);

/* Each is one transaction. */
void raw_queue_push(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n, const void *payload,
                    size_t payload_bytes);
/* Take n jobs and return their ids. */
void raw_queue_claim(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n);
void raw_queue_finish(struct raw_queue *r, char ids[][RAW_ID_BYTES], size_t n);

#endif
