/*
 * log.h: writes the output of a recorded run to the store.
 *
 * A separate thread writes what has arrived at intervals: the pump must not wait for the store, and
 * the store should not be called for every line. Output that arrives faster than the store accepts
 * it is cut to the tail that would be kept anyway, and a line in the log says so.
 */
#ifndef IL_CLI_WRAP_LOG_H
#define IL_CLI_WRAP_LOG_H

#include <pthread.h>

#include "base/buf.h"
#include "base/mutex.h"

struct wrap_log {
    il_run          *run;
    struct il__mutex mutex; /* protects what follows */
    pthread_cond_t   cond;
    struct il__buf   coming; /* the newest output; lost before it: */
    uint64_t         n_lost; /* bytes */
    bool             quit;
    pthread_t        thread;
    bool             running;
};

/* Start it. false: cannot start a thread. */
bool wrap_log_start(struct wrap_log *l, il_run *run);
/* Callable from any thread; never waits for the store. */
void wrap_log_add(struct wrap_log *l, const void *data, size_t n_bytes);
/* Write the rest and stop the thread. Safe to repeat. */
void wrap_log_finish(struct wrap_log *l);

#endif
