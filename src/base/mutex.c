/*
 * mutex.c: ranked mutexes; the contract is in mutex.h.
 */
#include "base/mutex.h"

#include <errno.h>
#include <time.h>

#define SPIN_MIN 64
#define SPIN_MAX 2048

static _Thread_local uint64_t held; /* bit per class */

_Static_assert(IL__MUTEX_CLASS_COUNT <= 64, "one bit per class");

static const struct {
    const char *name;
    bool        spins;
    const char *text;
} classes[] = {
#define X(name, spins, text) { #name, spins, text },
#include "base/mutex.def"
#undef X
};

const char *
il__mutex_class_name(enum il__mutex_class rank)
{
    CHECK(rank < IL__MUTEX_CLASS_COUNT);
    return classes[rank].name;
}

const char *
il__mutex_class_text(enum il__mutex_class rank)
{
    CHECK(rank < IL__MUTEX_CLASS_COUNT);
    return classes[rank].text;
}

void
il__mutex_init(struct il__mutex *m, enum il__mutex_class rank)
{
    pthread_mutexattr_t attr;

    /* Adaptive: spins briefly in any case. */
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
    CHECK(pthread_mutex_init(&m->m, &attr) == 0);
    CHECK(pthread_mutexattr_destroy(&attr) == 0);
    m->rank = rank;
}

void
il__mutex_destroy(struct il__mutex *m)
{
    CHECK(pthread_mutex_destroy(&m->m) == 0);
}

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/*
 * Retry after increasing pauses, about 100 microseconds in total; usually the first or second is
 * enough. The pauses let the owner take the mutex several times in a row while the data it protects
 * is in its cache; moving that data between CPUs costs more than the work itself.
 */
static bool
spin(pthread_mutex_t *m)
{
    for (unsigned n = SPIN_MIN; n <= SPIN_MAX; n *= 2) {
        for (unsigned i = 0; i < n; i++)
            pause_cpu();
        if (pthread_mutex_trylock(m) == 0)
            return true;
    }
    return false;
}

void
il__mutex_lock(struct il__mutex *m)
{
    CHECK((held >> m->rank) == 0); /* no mutex of this class or of a later one is held */
    if (!classes[m->rank].spins || (pthread_mutex_trylock(&m->m) != 0 && !spin(&m->m)))
        CHECK(pthread_mutex_lock(&m->m) == 0);
    held |= UINT64_C(1) << m->rank;
}

void
il__mutex_unlock(struct il__mutex *m)
{
    CHECK(il__mutex_held(m));
    held &= ~(UINT64_C(1) << m->rank);
    CHECK(pthread_mutex_unlock(&m->m) == 0);
}

bool
il__mutex_held(const struct il__mutex *m)
{
    return (held & (UINT64_C(1) << m->rank)) != 0;
}

void
il__cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;

    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(c, &attr) == 0);
    CHECK(pthread_condattr_destroy(&attr) == 0);
}

bool
il__cond_wait(pthread_cond_t *c, struct il__mutex *m, int64_t timeout_ns)
{
    CHECK(il__mutex_held(m));
    if (timeout_ns < 0) {
        CHECK(pthread_cond_wait(c, &m->m) == 0);
        return true;
    }
    struct timespec until;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    int64_t nsec = until.tv_nsec + timeout_ns % 1000000000;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    int rc        = pthread_cond_timedwait(c, &m->m, &until);
    CHECK(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}
