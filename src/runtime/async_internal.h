/*
 * async_internal.h: what the files of il__async share.
 *
 *   async.c       opening and closing; lanes: calls gather, and are applied as one batch
 *   async_call.c  one call: what is asked before each attempt, and what its answer means: done, parked, once more
 *   async_wait.c  parked calls, and the watcher that has them repeated
 *   announce.c    messages between all that use the store
 *
 * The life of a call: QUEUED in a lane, or being applied; then DONE, or PARKED until it is QUEUED again. What is QUEUED belongs to the lane, and to its thread while
 * that applies it; what is PARKED may be taken by whoever has the mutex: so a call is in one place only, and told once.
 */
#ifndef IL_RUNTIME_ASYNC_INTERNAL_H
#define IL_RUNTIME_ASYNC_INTERNAL_H

#include <pthread.h>

#include "base/mutex.h"
#include "base/ring.h"
#include "runtime/async.h"
#include "runtime/handle.h"

enum call_state {
    CALL_NEW,
    CALL_QUEUED,
    CALL_PARKED,
    CALL_DONE
};

enum call_flags {
    CALL_WAITS  = 1 << 0, /* it has one op and a time to wait */
    CALL_LOOKED = 1 << 1, /* was applied before */
    CALL_WOKEN  = 1 << 2, /* is repeated because its word has changed */
    CALL_LAST   = 1 << 3, /* its time is over: this attempt is the last */
    CALL_QUEUES = 1 << 4, /* was told QUEUED */
    CALL_LEAVES = 1 << 5, /* a run's start that gives its place up: its op is a RUN_CANCEL for now */
    CALL_OBLIGED = 1 << 6, /* a claim that was woken on behalf of others too */
};

/* A list of calls, linked by `next`. */
struct call_list {
    struct il__call *head, *tail;
};

static inline void
il__calls_add(struct call_list *l, struct il__call *call)
{
    call->next = NULL;
    if (l->tail != NULL)
        l->tail->next = call;
    else
        l->head = call;
    l->tail = call;
}

/* The first one, or NULL. */
static inline struct il__call *
il__calls_take(struct call_list *l)
{
    struct il__call *call = l->head;

    if (call != NULL) {
        l->head = call->next;
        if (l->head == NULL)
            l->tail = NULL;
        call->next = NULL;
    }
    return call;
}

#define ASYNC_READS IL__LANES_MAX /* the lane of what changes nothing */
#define ASYNC_LANES (IL__LANES_MAX + 1)

/* Calls that one thread applies. */
struct async_lane {
    struct il__async *a;
    unsigned          i; /* which executor of the handle, or ASYNC_READS */
    pthread_t         thread;
    bool              started;
    pthread_cond_t    filled;
    bool              idle;
    struct call_list  calls;
    il_op           **ptrs; /* room for a batch; its thread's */
};

struct il__async {
    il  *h;
    bool direct; /* the store is called on whatever thread there is; no lanes */

    struct il__mutex  mutex; /* protects what follows */
    struct async_lane lanes[ASYNC_LANES];
    size_t            n_queued; /* in all lanes */
    unsigned          n_busy;   /* queued or being applied */
    size_t            n_live;   /* submitted and not done */
    bool              closing;  /* whatever waits is cancelled */
    atomic_bool       hurried;  /* nothing waits any longer */
    bool              stopping; /* the threads end */
    pthread_cond_t    drained;  /* n_live has become 0 */
    uint64_t          n_wakes, n_repeats;
    struct call_list  handed; /* direct stores: for the watcher to apply */
    struct call_list  ended;  /* for the watcher to tell */

    /* Parked calls: by their word, and by the time they are due. */
    size_t           n_parked;
    struct il__heap  due;
    struct il__call *first[IL__BOARD_WORDS], *last[IL__BOARD_WORDS];
    uint32_t  seen[IL__BOARD_WORDS]; /* words as the watcher has seen them; of those with calls */
    uint64_t  occupied[IL__BOARD_WORDS / 64]; /* words with calls, a bit each */
    pthread_t watcher;
    bool      watcher_started;
    bool      watches;  /* it has set WATCHED, and sees what changes */
    bool      poked;    /* it has been told to look */
    int64_t   wakes_ns; /* when it looks again by itself */

    /* announce.c */
    il__announce_fn       *hear;
    void                  *hear_cookie;
    struct il__ring_reader reader; /* the watcher's */
    char                 **outbox; /* texts on their way to other processes */
    size_t                 n_outbox;
};

/* ---- async.c ----------------------------------------------------------------------------------------------------- */

/* Put a call that is nobody's into its lane; on a direct store, the watcher applies it. The mutex is held, and the watcher is poked afterwards. */
void il__async_enqueue(struct il__async *a, struct il__call *call);
/* Apply them one by one, here. The store is direct; the mutex is not held. */
void il__async_apply_here(struct il__async *a, struct call_list *calls);
/* A call is done without having been applied again; the watcher tells. The mutex is held, and the watcher is poked afterwards. */
void il__async_end(struct il__async *a, struct il__call *call);
/* Call done() of each. The mutex is not held. */
void il__async_tell(struct call_list *done);

/* ---- async_call.c ------------------------------------------------------------------------------------------------ */

/* Before the first attempt: does it wait, and until when does its op? */
void il__call_init(struct il__call *call);
/* Before each attempt: the op's inputs for this one. */
void il__call_ready(const struct il__async *a, struct il__call *call, int64_t now_ns);

enum call_next {
    NEXT_DONE,
    NEXT_PARK,
    NEXT_AGAIN, /* at once */
};
/* What an attempt has come to. The call's status is set. The mutex is held. */
enum call_next il__call_next(const struct il__async *a, struct il__call *call, int64_t now_ns);
/* A parked call is cancelled: DONE, or AGAIN to leave its queue. */
enum call_next il__call_give_up(struct il__call *call);
/* Must what it was given be given back, for nobody waits for it? */
bool il__call_gives_back(const struct il__call *call);
/* Do so. Blocks in the store; the mutex is not held. */
void il__call_give_back(struct il__async *a, const struct il__call *call);

/* ---- async_wait.c ------------------------------------------------------------------------------------------------ */

/* Park a call; false: its word has changed already, it is to be applied again. *ret_poke: poke the board afterwards. The mutex is held. */
bool il__call_park(struct il__async *a, struct il__call *call, int64_t now_ns, bool *ret_poke);
/* A claim that was woken on behalf of others is done: unless it found nothing to do, those behind it are to look. The mutex is held. */
void  il__call_pass_on(struct il__async *a, const struct il__call *call, struct call_list *ready);
void *il__async_watch(void *arg);

/* ---- announce.c -------------------------------------------------------------------------------------------------- */

/* Tell what has been said since; on the watcher's thread, without the mutex. True: somebody is about to say something. */
bool il__async_hear(struct il__async *a, il__announce_fn *fn);
/* Send the outbox; on a lane's thread. The mutex is held, but not meanwhile. */
void il__async_send(struct il__async *a);

#endif
