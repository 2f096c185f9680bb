/*
 * mapped_file.c: the SIGBUS handler and the table of mappings it searches; the contract is in
 * mapped_file.h.
 *
 * The handler searches the table without a lock. An entry is filled in before any thread accesses
 * its mapping, and cleared after all threads have stopped, so a faulting thread always finds the
 * entry it needs.
 */
#include "base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/mutex.h"

#define WATCHED_MAX 1024
#define EXTENDED_MAX 1000 /* faults until the owner maps it again: the disk may be broken */

struct il__mapped_file {
    _Atomic uintptr_t start; /* 0 = free */
    _Atomic size_t    n_bytes;
    _Atomic int       fd;
    _Atomic uintptr_t spare;
    _Atomic uint32_t  n_extended;
    atomic_bool       is_lost;
};

static struct il__mapped_file mappings[WATCHED_MAX];

/* protects what follows */
static struct il__mutex mutex = { PTHREAD_MUTEX_INITIALIZER, IL__MUTEX_mapping };
static size_t           n_watched;
static struct sigaction before; /* also read by the handler, which is installed after it is set */

/* Both are plain system calls. The spare memory is mapped a second time: its owner keeps it
 * mapped. */
static bool
mend(struct il__mapped_file *m, void *start, size_t n_bytes)
{
#ifndef IL_MUTANT_cut_file_left
    if (atomic_fetch_add(&m->n_extended, 1) < EXTENDED_MAX &&
        fallocate(atomic_load(&m->fd), 0, 0, (off_t)n_bytes) == 0)
        return true;
#endif
    void *spare = (void *)atomic_load(&m->spare);
    return mremap(spare, 0, n_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) != MAP_FAILED;
}

/* Make the mapping that contains this address usable. Async-signal-safe. */
static bool
mend_at(uintptr_t address)
{
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct il__mapped_file *m       = &mappings[i];
        uintptr_t               start   = atomic_load(&m->start);
        size_t                  n_bytes = atomic_load(&m->n_bytes);
        if (start == 0 || address < start || address - start >= n_bytes)
            continue;
        bool ok = mend(m, (void *)start, n_bytes);
        /* Set afterwards: if the owner maps the file again meanwhile and the spare memory covers
         * that mapping, the owner must find out. */
        atomic_store(&m->is_lost, true);
        return ok;
    }
    return false;
}

static void
on_sigbus(int signo, siginfo_t *info, void *context)
{
    int  err     = errno;
    bool is_ours = info->si_code > 0 && mend_at((uintptr_t)info->si_addr);

    errno = err;
    if (is_ours)
        return;
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(signo, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signo);
    } else if (info->si_code > 0 || before.sa_handler == SIG_DFL) {
        /* Restore the previous action: a fault recurs at once, a kill() is repeated. */
        (void)sigaction(signo, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
        if (info->si_code <= 0)
            (void)raise(signo);
    }
}

static bool
is_installed(void)
{
    struct sigaction now;

    CHECK(sigaction(SIGBUS, NULL, &now) == 0);
    return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_sigbus;
}

/* Under the mutex. */
static struct il__mapped_file *
free_entry(void)
{
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        if (atomic_load(&mappings[i].start) == 0)
            return &mappings[i];
    }
    return NULL;
}

struct il__mapped_file *
il__mapped_file_watch(void *start, size_t n_bytes, int fd, void *spare)
{
    il__mutex_lock(&mutex);
    struct il__mapped_file *m = free_entry();
    if (m != NULL) {
        il__mapped_file_found(m);
        atomic_store(&m->n_bytes, n_bytes);
        atomic_store(&m->fd, fd);
        atomic_store(&m->spare, (uintptr_t)spare);
        atomic_store(&m->start, (uintptr_t)start);
#ifndef IL_MUTANT_cut_board_kills
        if (n_watched == 0 && !is_installed()) {
            struct sigaction ours = { .sa_sigaction = on_sigbus,
                                      .sa_flags     = SA_SIGINFO | SA_ONSTACK };
            (void)sigemptyset(&ours.sa_mask);
            CHECK(sigaction(SIGBUS, NULL, &before) == 0);
            CHECK(sigaction(SIGBUS, &ours, NULL) == 0);
        }
#endif
        n_watched++;
    }
    il__mutex_unlock(&mutex);
    return m;
}

void
il__mapped_file_unwatch(struct il__mapped_file *m)
{
    if (m == NULL)
        return;
    il__mutex_lock(&mutex);
    atomic_store(&m->start, 0);
    n_watched--;
    /* The application may have installed a handler over ours; then ours stays, since theirs may
     * call it. */
    if (n_watched == 0 && is_installed())
        CHECK(sigaction(SIGBUS, &before, NULL) == 0);
    il__mutex_unlock(&mutex);
}

bool
il__mapped_file_is_lost(const struct il__mapped_file *m)
{
    return m != NULL && atomic_load(&m->is_lost);
}

void
il__mapped_file_found(struct il__mapped_file *m)
{
    if (m == NULL)
        return;
    atomic_store(&m->n_extended, 0);
    atomic_store(&m->is_lost, false);
}
