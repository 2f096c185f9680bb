/*
 * crowd.h: processes that do the same thing at the same moment. They are forked from the test and
 * share some memory with it: a barrier, counters, and a clock, so that several processes can use a
 * store with a test clock.
 */
#ifndef T_CROWD_H
#define T_CROWD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "race/race.h"

#define CROWD_MAX 20
#define CROWD_LIMIT_MS 30000

struct crowd_shared {
    pthread_barrier_t barrier;   /* of all processes and the test */
    sem_t             ready;     /* counts those that are about to do it */
    sem_t             begun;     /* counts those that have begun */
    sem_t             go;        /* lets one of those that have begun end */
    _Atomic pid_t     begun_pid; /* the last of those */
    atomic_uint       n_done;    /* counts what the test says */
    atomic_uint       n_other;
    uint64_t          tokens[CROWD_MAX];
    struct t_clock    clock;
};

struct crowd;

struct crowd_member {
    struct crowd *crowd;
    unsigned      i;
    struct t_proc proc;
};

struct crowd {
    struct race          race;
    struct crowd_shared *shared;
    struct crowd_member  members[CROWD_MAX];
    unsigned             n;
};

typedef int crowd_fn(struct crowd *c, unsigned i);

/* Start n processes that each call fn; its return value is their exit status. No handle may be
 * open. */
struct crowd *crowd_new(unsigned n, crowd_fn *fn);
/* Wait for their ends; those that were killed by the test (kill_pid, 0 = none) may end so, the
 * others must end with 0. */
void crowd_end(struct crowd *c, pid_t kill_pid);
void crowd_free(struct crowd *c);

/* What a thread of crowd_call() gets. */
struct crowd_caller {
    struct crowd *crowd;
    il           *h; /* of its process */
};
/* In a process: n threads at once, which post `ready` before what they do. Returns 0 when all have
 * ended. */
int crowd_call(struct crowd *c, unsigned n, void *(*fn)(void *caller));
/* In the test: a new crowd whose n_ready callers are ready, and one of them has begun. */
struct crowd *crowd_begun(unsigned n_processes, unsigned n_ready, crowd_fn *fn);

/* All processes and the test meet. */
void crowd_meet(struct crowd *c);
/* Take the semaphore; false when that was not possible within the limit. */
bool crowd_take(sem_t *sem);
#define CROWD_AWAIT(sem, what) (crowd_take(sem) ? (void)0 : T_FAIL("waited in vain until %s", what))

/* In a process: open the store, the program ends when that fails; and append a line to the race's
 * log. */
il  *crowd_open(struct crowd *c, bool test_clock);
void crowd_log(const struct crowd *c, const char *line);
/* How many lines of the log are this one? */
unsigned crowd_count(const struct crowd *c, const char *line);

#endif
