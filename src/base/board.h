/*
 * board.h: the wake-up board: an array of 32-bit words that waiters sleep on (futex) and that whoever
 * gives a key on bumps. In memory for one process, in a mapped file for several.
 *
 * A word only ever says "look again": a wake-up too many costs a look, and nothing is read from the board
 * but whether a word has changed. So its content needs no protection, and a damaged file cannot do harm.
 *
 * No wake-up is lost: read the word, then look at the store, then sleep only while the word is still
 * what was read. A change after the look has bumped the word, so the sleep ends at once.
 */
#ifndef IL_BASE_BOARD_H
#define IL_BASE_BOARD_H

#include <stdatomic.h>

#include "base/base.h"

#define IL__BOARD_WORDS 4096
#define IL__BOARD_BYTES (IL__BOARD_WORDS * sizeof(uint32_t))
/* What lies behind the words in a mapped file: the ring (ring.h). Files of older versions end before it. */
#define IL__BOARD_RING_BYTES ((size_t)32 * 4096)
#define IL__BOARD_FILE_BYTES (IL__BOARD_BYTES + IL__BOARD_RING_BYTES)
#define IL__BOARD_LOCK_FREED 0  /* the store's write lock was given up */
#define IL__BOARD_LOCK_WANTED 1 /* somebody waits for it */
#define IL__BOARD_LOCK_TAKEN 2  /* somebody who waited has it */
#define IL__BOARD_BREAK \
    3 /* a lease was broken or a build dropped: holders look whether it was theirs */
#define IL__BOARD_WATCHED 4 /* 1: a watcher sleeps on ANY, or is about to */
#define IL__BOARD_ANY 5     /* watchers sleep on it: some word has changed */
#define IL__BOARD_SAID 6    /* how many messages were put into the ring */
#define IL__BOARD_WAITER 16 /* the first of the waiters' words */

/* Who waits for something else than a lease sleeps on il__board_slot(tenant, name, one of these). */
#define IL__WAKE_RUN "#run"     /* a run's id: it has changed */
#define IL__WAKE_ONCE "#once"   /* an idempotency key: answered, or free */
#define IL__WAKE_QUEUE "#queue" /* a queue's name: a job may be due */
#define IL__WAKE_JOB "#job"     /* a job's id: it has changed */
#define IL__WAKE_CACHE "#cache" /* a cache key: filled, or free */

struct il__ring_cell;

struct il__board {
    _Atomic uint32_t               *words;
    bool                            mapped;
    size_t                          n_bytes; /* of the mapping */
    _Atomic(struct il__ring_cell *) ring;    /* ring.c's; NULL = none, or not yet */
    _Atomic uint32_t n_sleepers; /* of a board in memory: threads that sleep on it, or are about to */
};

/* In memory of this process. False: no memory. */
bool il__board_init_private(struct il__board *b) MUST_USE;
/*
 * In a file of n_bytes: at least IL__BOARD_BYTES, and with less than IL__BOARD_FILE_BYTES there is no ring. `fd` may be closed afterwards. False: cannot
 * be mapped.
 */
bool il__board_init_file(struct il__board *b, int fd, size_t n_bytes) MUST_USE;
void il__board_release(struct il__board *b);

/* The word of a waiter; waiters may share one. The same in every process. */
uint32_t il__board_slot(const char *tenant, const char *key, const char *holder);

uint32_t il__board_read(const struct il__board *b, uint32_t slot);
/* Bump the word. */
void il__board_bump(struct il__board *b, uint32_t slot);
/* Bump the word and wake who sleeps on it. */
void il__board_wake(struct il__board *b, uint32_t slot);
/* Wake every waiter, and whoever holds something: nobody knows what was missed. */
void il__board_wake_everybody(struct il__board *b);
/* Sleep while the word is `seen`, at most timeout_ns. True when it has changed. */
bool il__board_sleep(struct il__board *b, uint32_t slot, uint32_t seen, int64_t timeout_ns);

/*
 * Sleep until the word changes, or `own` (a word of this process) is no longer `own_seen`, or timeout_ns
 * has passed. Kernels before 5.16 notice a change of the board's word only after IL__BOARD_BLIND_NS.
 */
#define IL__BOARD_BLIND_NS 1000000000
void il__board_sleep_or(struct il__board *b, uint32_t slot, uint32_t seen, _Atomic uint32_t *own,
                        uint32_t own_seen, int64_t timeout_ns);

/*
 * A watcher waits for many words at once. In turn: il__board_watch(), then look at every word that matters (and at the ring), then
 * il__board_sleep() on IL__BOARD_ANY while it is what il__board_watch() returned. Whoever bumps a waiter's word, or puts something into the ring, looks at
 * WATCHED afterwards; if it is 1 he takes it back to 0, and bumps and wakes ANY. Where nobody watches, that is one load.
 *
 * No change is missed, in whatever process and however many watchers there are. il__board_watch() reads ANY *first*, then sets WATCHED.
 * Take a word that is bumped after a watcher has looked at it, so after it has set WATCHED. Whoever bumped it then finds either 1: he bumps ANY, which was read
 * before. Or 0: then somebody has taken a 1 back after it was set, and so bumps ANY after it was read. In both cases the sleep does not begin, or ends. It is
 * not enough to read ANY after setting WATCHED: it might be read as bumped already by the one who has taken the 1 back, and then the sleep would
 * begin with WATCHED at 0, and nobody would end it. That several watchers share the word is no matter: they all sleep on ANY, and all are woken.
 *
 * A watcher that has crashed leaves a 1: one useless wake-up, and it is gone. A waker that is killed between the word and ANY owes a wake-up: a
 * watcher that has something to wait for looks by itself now and then, as every waiter does. So it does for processes of older versions, which know nothing of ANY.
 */
uint32_t il__board_watch(struct il__board *b);
/* Have every watcher look, whether or not something has changed. */
void il__board_poke(struct il__board *b);
/* A waiter's word or the ring has changed: tell the watchers. */
void il__board_changed(struct il__board *b);

/* Bump a word of this process and wake who sleeps on it. */
void il__word_wake(_Atomic uint32_t *word);

#endif
