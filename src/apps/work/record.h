/*
 * record.h: the recorder: a thread that writes the history of runs (data/history.h), committing
 * what has accumulated in batches. Callers hand over a copy and never wait for the data store.
 */
#ifndef IL_APPS_WORK_RECORD_H
#define IL_APPS_WORK_RECORD_H

#include <pthread.h>

#include "base/mutex.h"
#include "data/history.h"

struct work_record; /* a record that waits to be written */

struct work_recorder {
    /* set by the owner before it is started */
    struct il__data *data;      /* NULL: nothing is recorded */
    const char      *run_class; /* of the runs */
    int64_t          keep_ms;
    bool             purges; /* old history of the class, every ten minutes */
    /* The data store failed; the write is repeated. May be called often. */
    void (*trouble)(void *cookie, const char *what, const il_error *error);
    void *cookie;

    struct il__mutex    mutex; /* protects what follows */
    pthread_cond_t      wake, written;
    pthread_t           thread;
    bool                ready, started, closing;
    int64_t             close_ns; /* closing: deadline for the data store */
    struct work_record *first, **last;
    size_t              n, n_bytes;
    uint64_t            n_added, n_written; /* so far; dropped records count as written */
    uint64_t            n_wanted;           /* a caller waits until this many are written */
    int64_t             first_ns;           /* since when the queue is not empty */
    uint64_t            n_dropped;
};

il_status work_recorder_start(struct work_recorder *q, il_error *reterr) MUST_USE;
/* Writes what is left, unless the data store is unreachable for limit_ms. Also if it was never
 * started. */
void work_recorder_stop(struct work_recorder *q, int64_t limit_ms);

/* Copy; never block. */
void work_record_detail(struct work_recorder *q, const struct il__data_detail *detail);
void work_record_step(struct work_recorder *q, const struct il__data_step *step);
void work_record_join(struct work_recorder *q, const struct il__data_join *join);
/* Wait until everything recorded so far is written, at most limit_ms. */
void work_record_wait(struct work_recorder *q, int64_t limit_ms);
/* Records that could not be written. */
uint64_t work_records_dropped(struct work_recorder *q);

#endif
