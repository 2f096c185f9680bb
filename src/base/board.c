/*
 * board.c: futex words; the contract is in board.h.
 */
#include "base/board.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

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

bool
il__board_init_file(struct il__board *b, int fd, size_t n_bytes)
{
    CHECK(n_bytes >= IL__BOARD_BYTES);
    b->n_bytes = n_bytes >= IL__BOARD_FILE_BYTES ? IL__BOARD_FILE_BYTES : IL__BOARD_BYTES;
    char *p    = mmap(NULL, b->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    b->words  = p != MAP_FAILED ? (void *)p : NULL;
    b->mapped = true;
    atomic_init(&b->ring, b->words != NULL && b->n_bytes == IL__BOARD_FILE_BYTES
                              ? (void *)(p + IL__BOARD_BYTES)
                              : NULL);
    atomic_init(&b->n_sleepers, 0);
    return b->words != NULL;
}

void
il__board_release(struct il__board *b)
{
    if (b->words == NULL)
        return;
    if (b->mapped) {
        CHECK(munmap(b->words, b->n_bytes) == 0);
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
futex(const struct il__board *b, uint32_t slot, int op, uint32_t value, const struct timespec *timeout)
{
    if (!b->mapped)
        op |= FUTEX_PRIVATE_FLAG;
    return syscall(SYS_futex, &b->words[slot], op, value, timeout, NULL, 0);
}

/* The words that watchers look at are those of waiters: the others would wake them for nothing, at every commit. */
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
     * Most of the time nobody sleeps, and a system call would be most of what this costs. Who goes to sleep counts himself first and has the
     * kernel compare the word then: if we do not see him here, he comes after the bump, and does not sleep. Of a mapped board others may sleep,
     * and nobody could count one that is killed.
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
    /* EAGAIN: changed already; EINTR: a signal, the caller looks again; ETIMEDOUT. */
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
/* Sleep on both words; false when this kernel cannot. */
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

    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0); /* this call takes a point in time */
    int64_t nsec = until.tv_nsec + timeout_ns % 1000000000;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    /* Anything else: not in this kernel (ENOSYS), or not for us (a filter may answer EPERM). */
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
