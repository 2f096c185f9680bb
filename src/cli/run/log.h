/*
 * log.h: the output of a recorded run on its way into the store.
 *
 * A thread of its own writes what has come every now and then: the pump must not wait for the store, and the store
 * should not be asked for every line. What comes faster than the store takes it is cut to the tail that would be kept
 * anyway, and a line in the log says so.
 */
#ifndef IL_CLI_RUN_LOG_H
#define IL_CLI_RUN_LOG_H

#include <pthread.h>

#include "base/buf.h"

struct il__run_log {
    il_run         *run;
    pthread_mutex_t mutex; /* protects what follows */
    pthread_cond_t  cond;
    struct il__buf  coming; /* the newest; what was before it and is lost: */
    uint64_t        n_lost; /* bytes */
    bool            quit;
    pthread_t       thread;
    bool            running;
};

/* Start it. false: there is no thread to be had. */
bool il__run_log_start(struct il__run_log *l, il_run *run);
/* Callable from any thread; never waits for the store. */
void il__run_log_add(struct il__run_log *l, const void *data, size_t n_bytes);
/* Write the rest and end the thread. Safe to repeat. */
void il__run_log_finish(struct il__run_log *l);

#endif
