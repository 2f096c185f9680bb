/*
 * board.h: the wake-up board: an array of 32-bit futex words. Waiters sleep on a word; a thread
 * that hands over a key bumps it. In memory for one process, in a mapped file for several.
 *
 * A word only means "check the store again". A spurious wake-up costs one check, and readers only
 * ask whether a word has changed. So the content needs no protection, and a damaged file does no
 * harm.
 *
 * No wake-up is lost: read the word, check the store, then sleep only while the word still has the
 * value read. A change after the check has bumped the word, so the sleep returns at once.
 */
#ifndef IL_BASE_BOARD_H
#define IL_BASE_BOARD_H

#include <stdatomic.h>

#include "base/base.h"

#define IL__BOARD_WORDS 4096
#define IL__BOARD_BYTES (IL__BOARD_WORDS * sizeof(uint32_t))
/* In a mapped file the ring (ring.h) follows the words. A file that could not be extended that far
 * has no ring. */
#define IL__BOARD_RING_BYTES ((size_t)32 * 4096)
#define IL__BOARD_FILE_BYTES (IL__BOARD_BYTES + IL__BOARD_RING_BYTES)
#define IL__BOARD_LOCK_FREED 0  /* the store's write lock was released */
#define IL__BOARD_LOCK_WANTED 1 /* a thread waits for it */
#define IL__BOARD_LOCK_TAKEN 2  /* a waiter has taken it */
/* a lease was broken or a build dropped: holders check whether it was theirs */
#define IL__BOARD_BREAK 3
#define IL__BOARD_WATCHED 4 /* 1: a watcher sleeps on ANY, or is about to */
#define IL__BOARD_ANY 5     /* watchers sleep on it: some word has changed */
#define IL__BOARD_SAID 6    /* number of messages put into the ring */
#define IL__BOARD_WAITER 16 /* the first of the waiters' words */

/* A wait for anything other than a lease sleeps on il__board_slot(tenant, name, one of these). */
#define IL__WAKE_RUN "#run"     /* a run's id: it has changed */
#define IL__WAKE_ONCE "#once"   /* an idempotency key: answered or free */
#define IL__WAKE_QUEUE "#queue" /* a queue's name: a job may be due */
#define IL__WAKE_JOB "#job"     /* a job's id: it has changed */
#define IL__WAKE_CACHE "#cache" /* a cache key: filled, or free */

struct il__mapped_file;
struct il__ring_cell;

struct il__board {
    _Atomic uint32_t               *words;
    bool                            mapped;
    size_t                          n_bytes; /* of the mapping */
    struct il__mapped_file         *mapping; /* of a mapped board, as the next two */
    int                             fd;      /* of the file; the number never changes */
    _Atomic uint32_t               *spare;   /* replaces a file that cannot be extended */
    _Atomic(struct il__ring_cell *) ring;    /* owned by ring.c; NULL = none, or not yet */
    /* board in memory: number of threads that sleep on it or are about to */
    _Atomic uint32_t n_sleepers;
};

/* In this process's memory. False: out of memory. */
bool il__board_init_private(struct il__board *b) MUST_USE;
/*
 * In a file of n_bytes, at least IL__BOARD_BYTES; below IL__BOARD_FILE_BYTES the board has no ring.
 * `fd` may be closed afterwards. False: cannot be mapped.
 */
bool il__board_init_file(struct il__board *b, int fd, size_t n_bytes) MUST_USE;
/*
 * The file was truncated while mapped: its words started at 0 again. Wake-ups may have been missed,
 * and if the file could not be extended, wake-ups from other processes no longer arrive.
 */
bool il__board_is_cut(const struct il__board *b);
/*
 * Map another file, or the same one again, in place of the first, and wake every sleeper in this
 * process. Other processes that have the old file mapped notice by themselves. The new file must
 * not be smaller. Threads may use the board meanwhile, but only one may call this at a time. False:
 * see errno.
 */
bool il__board_map_again(struct il__board *b, int fd, size_t n_bytes) MUST_USE;
void il__board_release(struct il__board *b);

/* The word of a waiter; several waiters may share one. The same in every process. */
uint32_t il__board_slot(const char *tenant, const char *key, const char *holder);

uint32_t il__board_read(const struct il__board *b, uint32_t slot);
/* Bump the word. */
void il__board_bump(struct il__board *b, uint32_t slot);
/* Bump the word and wake its sleepers. */
void il__board_wake(struct il__board *b, uint32_t slot);
/* Wake all waiters and all holders: any wake-up may have been missed. */
void il__board_wake_everybody(struct il__board *b);
/* Sleep while the word is `seen`, at most timeout_ns. True when it has changed. */
bool il__board_sleep(struct il__board *b, uint32_t slot, uint32_t seen, int64_t timeout_ns);

/*
 * Sleep until the word changes, or `own` (a word of this process) is no longer `own_seen`, or
 * timeout_ns has passed. Kernels before 5.16 notice a change of the board's word only after
 * IL__BOARD_BLIND_NS.
 */
#define IL__BOARD_BLIND_NS 1000000000
void il__board_sleep_or(struct il__board *b, uint32_t slot, uint32_t seen, _Atomic uint32_t *own,
                        uint32_t own_seen, int64_t timeout_ns);

/*
 * A watcher waits for many words at once. It calls il__board_watch(), checks every word it cares
 * about (and the ring), then calls il__board_sleep() on IL__BOARD_ANY with the value that
 * il__board_watch() returned. A waker bumps a waiter's word or writes to the ring, then checks
 * WATCHED; if it is 1 the waker resets it to 0, and bumps and wakes ANY. Without watchers that
 * costs one load.
 *
 * No change is missed, in any process and with any number of watchers. il__board_watch() reads ANY
 * *first*, then sets WATCHED. Take a word that is bumped after a watcher has checked it, and so
 * after it has set WATCHED. If the waker finds 1, it bumps ANY, which the watcher has read before.
 * If it finds 0, another waker has reset WATCHED after it was set, and so bumps ANY after it was
 * read. In both cases the sleep does not begin, or ends. Reading ANY after setting WATCHED would
 * not be enough: the value might already include the bump of the waker that reset WATCHED, and the
 * sleep would begin with WATCHED at 0 and never be ended. Several watchers can share the word: they
 * all sleep on ANY, and all are woken.
 *
 * A crashed watcher leaves a 1, which costs one useless wake-up. A waker killed between the word
 * and ANY loses a wake-up: so a watcher, like every waiter, also checks by itself from time to
 * time.
 */
uint32_t il__board_watch(struct il__board *b);
/* Make every watcher check, whether or not anything has changed. */
void il__board_poke(struct il__board *b);
/* A waiter's word or the ring has changed: notify the watchers. */
void il__board_changed(struct il__board *b);

/* Bump a word of this process and wake its sleepers. */
void il__word_wake(_Atomic uint32_t *word);

#endif
