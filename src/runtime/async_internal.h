/*
 * async_internal.h: declarations shared by the files of il__async.
 *
 *   async.c       opening and closing; direct stores
 *   async_lane.c  lanes: gather calls and apply them piece by piece, many in one batch
 *   async_call.c  one call: prepares each attempt and interprets its answer: done, parked or
 *                 repeat
 *   async_wait.c  parked calls, and the watcher that has them repeated
 *   announce.c    messages between all users of the store
 *
 * The life of a call: QUEUED in a lane or being applied; then DONE, or PARKED until it is QUEUED
 * again. A QUEUED call belongs to the lane, and to the lane's thread while it is applied; a PARKED
 * call may be taken by any thread that holds the mutex. So a call is in one place only, and
 * completed once.
 */
#ifndef IL_RUNTIME_ASYNC_INTERNAL_H
#define IL_RUNTIME_ASYNC_INTERNAL_H

#include <pthread.h>

#include "base/mutex.h"
#include "base/ring.h"
#include "runtime/async.h"
#include "runtime/fair.h"
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
    CALL_WOKEN  = 1 << 2, /* repeated because its word has changed */
    CALL_LAST   = 1 << 3, /* its time is over: this attempt is the last */
    CALL_QUEUES = 1 << 4, /* was told QUEUED */
    /* a run's start that gives up its place: its op is a RUN_CANCEL for now */
    CALL_LEAVES  = 1 << 5,
    CALL_OBLIGED = 1 << 6, /* a claim that was woken on behalf of others too */
    CALL_LONG    = 1 << 7, /* many ops, or lists: not on the submitting thread */
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

#define ASYNC_READS IL__LANES_MAX /* the lane of read-only calls */
#define ASYNC_LANES (IL__LANES_MAX + 1)

/* The calls that one thread applies. */
struct async_lane {
    struct il__async *a;
    unsigned          i; /* which executor of the handle, or ASYNC_READS */
    pthread_t         thread;
    bool              started;
    pthread_cond_t    filled;
    bool              idle;
    struct il__fair   keepalives, others; /* calls by their turn: keep-alives, and the others */
    il_op           **ptrs;               /* room for a batch; used by its thread */
};

struct il__async {
    il  *h;
    bool direct; /* the store is called on any thread; no lanes */

    struct il__mutex  mutex; /* protects what follows */
    struct async_lane lanes[ASYNC_LANES];
    size_t            n_queued; /* in all lanes */
    unsigned          n_busy;   /* queued or being applied */
    size_t            n_live;   /* submitted and not done */
    bool              closing;  /* all waits are cancelled */
    atomic_bool       hurried;  /* no call may wait any more */
    bool              stopping; /* the threads end */
    pthread_cond_t    drained;  /* n_live has become 0 */
    uint64_t          n_wakes, n_repeats;
    struct call_list  handed; /* direct stores: for the watcher to apply */
    struct call_list  ended;  /* for the watcher to complete */

    /* Parked calls: by their word, and by the time they are due. */
    size_t           n_parked;
    struct il__heap  due;
    struct il__call *first[IL__BOARD_WORDS], *last[IL__BOARD_WORDS];
    uint32_t  seen[IL__BOARD_WORDS]; /* last values seen by the watcher, of words with calls */
    uint64_t  occupied[IL__BOARD_WORDS / 64]; /* words with calls, a bit each */
    pthread_t watcher;
    bool      watcher_started;
    bool      watches;  /* it has set WATCHED and sees changes */
    bool      poked;    /* it has been poked */
    int64_t   wakes_ns; /* when it checks again by itself */

    /* announce.c */
    il__announce_fn       *hear;
    void                  *hear_cookie;
    struct il__ring_reader reader; /* the watcher's */
    char                 **outbox; /* messages to be sent to other processes */
    size_t                 n_outbox;
};

/* Does a lane apply this call? On a direct store the submitting thread applies a short call. */
static inline bool
il__call_has_lane(const struct il__async *a, const struct il__call *call)
{
    return !a->direct || (call->flags & CALL_LONG) != 0;
}

/* ---- async.c --------------------------------------------------------------------------------- */

/* Apply them one by one, here. The store is direct; the mutex is not held. */
void il__async_apply_here(struct il__async *a, struct call_list *calls);

/* ---- async_lane.c ---------------------------------------------------------------------------- */

/* Put a call that is in no list into its lane; on a direct store, the watcher applies it. The mutex
 * is held; the caller pokes the watcher afterwards. */
void il__async_enqueue(struct il__async *a, struct il__call *call);
/*
 * The pieces of these calls were applied: complete the calls that are done, park those that wait,
 * and queue those with more pieces. n_done: number of their ops done. The mutex is not held.
 */
void  il__async_conclude(struct il__async *a, struct call_list *calls, size_t n_done, il_status st,
                         const il_error *err);
void *il__async_lane(void *arg); /* the thread of a lane */
/* IL_LIMIT: the call's budget is used up. */
il_status il__async_no_room(il_error *reterr);
/* A call is done without having been applied again; the watcher completes it. The mutex is held;
 * the caller pokes the watcher afterwards. */
void il__async_end(struct il__async *a, struct il__call *call);
/* Call done() for each. The mutex is not held. */
void il__async_tell(struct call_list *done);

/* ---- async_call.c ---------------------------------------------------------------------------- */

/* Before the first attempt: does the call wait, and until when does its op? */
void il__call_init(struct il__call *call);
/* Before each attempt: set the op's inputs. */
void il__call_ready(const struct il__async *a, struct il__call *call, int64_t now_ns);

enum call_next {
    NEXT_DONE,
    NEXT_PARK,
    NEXT_AGAIN, /* at once */
};
/* The outcome of an attempt. Sets the call's status. The mutex is held. */
enum call_next il__call_next(const struct il__async *a, struct il__call *call, int64_t now_ns);
/* A parked call is cancelled: DONE, or AGAIN to leave its queue. */
enum call_next il__call_give_up(struct il__call *call);
/* Must its grant be given back, because no caller waits for it? */
bool il__call_gives_back(const struct il__call *call);
/* Give it back. Blocks in the store; the mutex is not held. */
void il__call_give_back(struct il__async *a, const struct il__call *call);

/* ---- async_wait.c ---------------------------------------------------------------------------- */

/* Park a call; false: its word has changed already, apply it again. *ret_poke: poke the board
 * afterwards. The mutex is held. */
bool il__call_park(struct il__async *a, struct il__call *call, int64_t now_ns, bool *ret_poke);
/* A claim that was woken on behalf of others is done: unless it found nothing, wake the next ones.
 * The mutex is held. */
void  il__call_pass_on(struct il__async *a, const struct il__call *call, struct call_list *ready);
void *il__async_watch(void *arg);

/* ---- announce.c ------------------------------------------------------------------------------ */

/* Deliver new messages; on the watcher's thread, without the mutex. True: a message is being
 * written. */
bool il__async_hear(struct il__async *a, il__announce_fn *fn);
/* Send the outbox; on a lane's thread. The mutex is held, but released while sending. */
void il__async_send(struct il__async *a);

#endif
