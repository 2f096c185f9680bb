/*
 * mutex.h: mutexes with a class and a rank (mutex.def). Every build checks the lock order: the
 * check is two instructions on a thread-local word.
 */
#ifndef IL_BASE_MUTEX_H
#define IL_BASE_MUTEX_H

#include <pthread.h>

#include "base/base.h"

enum il__mutex_class {
#define X(name, spins, text) IL__MUTEX_##name,
#include "base/mutex.def"
#undef X
    IL__MUTEX_CLASS_COUNT
};

struct il__mutex {
    pthread_mutex_t      m;
    enum il__mutex_class rank;
};

const char *il__mutex_class_name(enum il__mutex_class rank);
const char *il__mutex_class_text(enum il__mutex_class rank);

void il__mutex_init(struct il__mutex *m, enum il__mutex_class rank);
void il__mutex_destroy(struct il__mutex *m);
void il__mutex_lock(struct il__mutex *m);
void il__mutex_unlock(struct il__mutex *m);
/* Does this thread hold a mutex of this class? For CHECK in functions that need it. */
bool il__mutex_held(const struct il__mutex *m);

/* A condition variable on CLOCK_MONOTONIC. Waiting releases the mutex and takes it again. */
void il__cond_init(pthread_cond_t *c);
/* False on timeout; a negative timeout_ns waits forever. */
bool il__cond_wait(pthread_cond_t *c, struct il__mutex *m, int64_t timeout_ns);

#endif
