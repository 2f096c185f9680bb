/*
 * board.c: the wake-up board, built on futex words; the contract is in board.h.
 */
#include "base/board.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mapped_file.h"

_Static_assert(sizeof(_Atomic uint32_t) == 4, "a futex word has 32 bits");

bool
il__board_init_private(struct il__board *b)
{
    b->words  = il__calloc(IL__BOARD_WORDS, sizeof(uint32_t));
    b->mapped = false;
    atomic_init(&b->ring, NULL);
    atomic_init(&b->n_sleepers, 0);
    return b->words != NULL;
}

static void *
map(size_t n_bytes, int flags, int fd)
{
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

    return p != MAP_FAILED ? p : NULL;
}

static void
unmap(struct il__board *b)
{
    if (b->words != NULL)
        CHECK(munmap(b->words, b->n_bytes) == 0);
    if (b->spare != NULL)
        CHECK(munmap(b->spare, b->n_bytes) == 0);
    if (b->fd >= 0)
        (void)close(b->fd); /* nothing is written through it */
    b->words = b->spare = NULL;
    b->fd               = -1;
}

bool
il__board_init_file(struct il__board *b, int fd, size_t n_bytes)
{
    CHECK(n_bytes >= IL__BOARD_BYTES);
    b->n_bytes = n_bytes >= IL__BOARD_FILE_BYTES ? IL__BOARD_FILE_BYTES : IL__BOARD_BYTES;
    b->mapped  = true;
    b->fd      = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    b->spare   = map(b->n_bytes, MAP_ANONYMOUS, -1);
    b->words   = map(b->n_bytes, 0, fd);
    atomic_init(&b->n_sleepers, 0);
    atomic_init(&b->ring, NULL);
    if (b->words == NULL || b->spare == NULL || b->fd < 0) {
        int err = errno;
        unmap(b);
        errno = err;
        return false;
    }
    b->mapping   = il__mapped_file_watch(b->words, b->n_bytes, b->fd, b->spare);
    void *behind = b->words + IL__BOARD_WORDS;
    if (b->n_bytes == IL__BOARD_FILE_BYTES)
        atomic_init(&b->ring, behind);
    return true;
}

bool
il__board_is_cut(const struct il__board *b)
{
    return b->mapped && il__mapped_file_is_lost(b->mapping);
}

void
il__board_release(struct il__board *b)
{
    if (b->words == NULL)
        return;
    if (b->mapped) {
        il__mapped_file_unwatch(b->mapping);
        unmap(b);
    } else {
        il__free(b->words);
        il__free(atomic_load(&b->ring));
    }
    b->words = NULL;
    atomic_store(&b->ring, NULL);
}

uint32_t
il__board_slot(const char *tenant, const char *key, const char *holder)
{
    uint64_t h = il__hash_stable(tenant, strlen(tenant), 1);

    h = il__hash_stable(key, strlen(key), h);
    h = il__hash_stable(holder, strlen(holder), h);
    return IL__BOARD_WAITER + (uint32_t)(h % (IL__BOARD_WORDS - IL__BOARD_WAITER));
}

uint32_t
il__board_read(const struct il__board *b, uint32_t slot)
{
    CHECK(slot < IL__BOARD_WORDS);
    return atomic_load(&b->words[slot]);
}

static long
futex(const struct il__board *b, uint32_t slot, int op, uint32_t value,
      const struct timespec *timeout)
{
    if (!b->mapped)
        op |= FUTEX_PRIVATE_FLAG;
    return syscall(SYS_futex, &b->words[slot], op, value, timeout, NULL, 0);
}

/* Watchers only look at waiters' words: the others would wake them for nothing at every commit. */
static void
bump(struct il__board *b, uint32_t slot)
{
    atomic_fetch_add(&b->words[slot], 1);
    if (slot >= IL__BOARD_WAITER)
        il__board_changed(b);
}

void
il__board_bump(struct il__board *b, uint32_t slot)
{
    CHECK(slot < IL__BOARD_WORDS);
    bump(b, slot);
}

void
il__board_wake(struct il__board *b, uint32_t slot)
{
    CHECK(slot < IL__BOARD_WORDS);
    bump(b, slot);
    /*
     * Usually no thread sleeps, and a system call would be most of the cost. A sleeper first
     * increments the count and then lets the kernel compare the word: if we do not see it here, its
     * comparison comes after the bump and it does not sleep. On a mapped board other processes may
     * sleep, and a count would go wrong when one of them is killed.
     */
    if (b->mapped || atomic_load(&b->n_sleepers) > 0)
        (void)futex(b, slot, FUTEX_WAKE, INT32_MAX, NULL); /* how many slept does not matter */
}

void
il__board_wake_everybody(struct il__board *b)
{
    il__board_wake(b, IL__BOARD_BREAK);
    for (uint32_t slot = IL__BOARD_WAITER; slot < IL__BOARD_WORDS; slot++)
        il__board_wake(b, slot);
}

static bool
is_slept_on(uint32_t slot)
{
    return slot != IL__BOARD_LOCK_WANTED && slot != IL__BOARD_WATCHED && slot != IL__BOARD_SAID;
}

static void
wake_all(_Atomic uint32_t *words)
{
    for (uint32_t slot = 0; slot < IL__BOARD_WORDS; slot++) {
        if (is_slept_on(slot))
            (void)syscall(SYS_futex, &words[slot], FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

/*
 * A thread sleeps on the memory that was mapped when it went to sleep, not on an address: on the
 * old file, on the spare memory, or on the new file. So all three are woken, the first two through
 * separate mappings, which stay valid whatever the SIGBUS handler maps at b->words meanwhile.
 *
 * No thread stays asleep. The kernel compares the word and puts the thread to sleep under a lock
 * that a wake-up also takes. A thread that takes the lock before our wake-up is woken. One that
 * takes it later compares the word of the new file, which was changed before the wake-ups, with
 * what the thread has read earlier. They differ, so it does not sleep. It may have read any value,
 * from either file, so adding 1 is not enough (1 in the old file, 0 in the new one). We add the
 * clock instead; two values are then equal once in four billion times.
 *
 * If the handler maps the spare memory over the new file while we are here, the board counts as cut
 * again, and the next call wakes the threads that sleep on either.
 */
bool
il__board_map_again(struct il__board *b, int fd, size_t n_bytes)
{
    CHECK(b->mapped);
    if (n_bytes < b->n_bytes) {
        errno = ENOSPC;
        return false;
    }
    /* The kernel finds sleepers by their page, and a truncated file has lost that page. */
    IGNORE(fallocate(b->fd, 0, 0, (off_t)b->n_bytes) != 0);
    _Atomic uint32_t *old = map(b->n_bytes, 0, b->fd);
    if (old == NULL)
        return false;
    /* Reset before mapping, so that a file truncated again right afterwards is noticed again. */
    il__mapped_file_found(b->mapping);
    bool ok = mmap(b->words, b->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
              MAP_FAILED;
    if (ok) {
        uint32_t step = (uint32_t)il__clock_boot_ns() | 1;
        for (uint32_t slot = 0; slot < IL__BOARD_WORDS; slot++) {
            if (is_slept_on(slot))
                atomic_fetch_add(&b->words[slot], step);
        }
        wake_all(b->words);
#ifndef IL_MUTANT_sleepers_left_behind
        wake_all(b->spare);
        wake_all(old);
#endif
        /* Atomic: the handler never sees the descriptor closed or referring to another file. */
        ok = dup3(fd, b->fd, O_CLOEXEC) >= 0;
    }
    CHECK(munmap(old, b->n_bytes) == 0);
    return ok;
}

uint32_t
il__board_watch(struct il__board *b)
{
    uint32_t seen = atomic_load(&b->words[IL__BOARD_ANY]);

    atomic_store(&b->words[IL__BOARD_WATCHED], 1);
    return seen;
}

void
il__board_poke(struct il__board *b)
{
    atomic_fetch_add(&b->words[IL__BOARD_ANY], 1);
    (void)futex(b, IL__BOARD_ANY, FUTEX_WAKE, INT32_MAX, NULL);
}

void
il__board_changed(struct il__board *b)
{
    if (atomic_load(&b->words[IL__BOARD_WATCHED]) != 0 &&
        atomic_exchange(&b->words[IL__BOARD_WATCHED], 0) != 0)
        il__board_poke(b);
}

bool
il__board_sleep(struct il__board *b, uint32_t slot, uint32_t seen, int64_t timeout_ns)
{
    CHECK(slot < IL__BOARD_WORDS);
    CHECK(timeout_ns >= 0);
    struct timespec timeout = { .tv_sec  = (time_t)(timeout_ns / 1000000000),
                                .tv_nsec = (long)(timeout_ns % 1000000000) };
    /* EAGAIN: changed already; EINTR: a signal, the caller checks again; ETIMEDOUT. */
    atomic_fetch_add(&b->n_sleepers, 1);
    (void)futex(b, slot, FUTEX_WAIT, seen, &timeout);
    atomic_fetch_sub(&b->n_sleepers, 1);
    return il__board_read(b, slot) != seen;
}

void
il__word_wake(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#if defined(SYS_futex_waitv) && defined(FUTEX_32)
/* Sleep on both words; false if this kernel does not support it. */
static bool
sleep_on_both(const struct il__board *b, uint32_t slot, uint32_t seen, _Atomic uint32_t *own,
              uint32_t own_seen, int64_t timeout_ns)
{
    struct timespec    until;
    struct futex_waitv both[2] = {
        { .val   = seen,
          .uaddr = (uintptr_t)&b->words[slot],
          .flags = FUTEX_32 | (b->mapped ? 0 : FUTEX_PRIVATE_FLAG) },
        { .val = own_seen, .uaddr = (uintptr_t)own, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG },
    };

    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0); /* this call takes an absolute time */
    int64_t nsec = until.tv_nsec + timeout_ns % 1000000000;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    /* Anything else: not supported (ENOSYS), or not permitted (a seccomp filter may return
     * EPERM). */
    return syscall(SYS_futex_waitv, both, 2, 0, &until, CLOCK_MONOTONIC) >= 0 || errno == EAGAIN ||
           errno == EINTR || errno == ETIMEDOUT;
}
#else
static bool
sleep_on_both(const struct il__board *b UNUSED, uint32_t slot UNUSED, uint32_t seen UNUSED,
              _Atomic uint32_t *own UNUSED, uint32_t own_seen UNUSED, int64_t timeout_ns UNUSED)
{
    return false;
}
#endif

void
il__board_sleep_or(struct il__board *b, uint32_t slot, uint32_t seen, _Atomic uint32_t *own,
                   uint32_t own_seen, int64_t timeout_ns)
{
    CHECK(slot < IL__BOARD_WORDS);
    timeout_ns = MAX(timeout_ns, 0);
    atomic_fetch_add(&b->n_sleepers, 1);
    bool slept = sleep_on_both(b, slot, seen, own, own_seen, timeout_ns);
    atomic_fetch_sub(&b->n_sleepers, 1);
    if (slept)
        return;
    timeout_ns              = MIN(timeout_ns, IL__BOARD_BLIND_NS);
    struct timespec timeout = { .tv_sec  = (time_t)(timeout_ns / 1000000000),
                                .tv_nsec = (long)(timeout_ns % 1000000000) };
    (void)syscall(SYS_futex, own, FUTEX_WAIT_PRIVATE, own_seen, &timeout, NULL, 0);
}
