/*
 * remote.h: the common part of engines whose verbs run in a server; see README.md.
 *
 * An engine fills in a struct remote_store with its transport and calls il__remote_init(). The rest
 * of what an engine must do (struct il__store_ops) is implemented here, on top of the transport.
 */
#ifndef IL_STORE_REMOTE_H
#define IL_STORE_REMOTE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/mutex.h"
#include "core/order.h"
#include "store/store.h"

struct remote_store;

/* Borrowed bytes; data is NULL if there are none (not even an empty value). */
struct remote_blob {
    const void *data;
    size_t      n_bytes;
};

struct remote_request {
    struct il__buf     json; /* or the output of the transport's encode() */
    struct remote_blob blob;
    il_op             *op; /* the op it belongs to; NULL: a private request */
};

/* A job or a schedule in a reply. The transport owns the blobs. */
struct remote_part {
    json_t            *json;
    struct remote_blob blob, blob2;
};

/*
 * A job from a transport that has columns: a claimed one, or a finished one. NULL means the op's
 * own value (queue, id, worker, token) or none. The transport owns the strings.
 */
struct remote_job {
    const char        *queue, *id, *parent, *group, *unique_key, *worker, *error, *message;
    struct remote_blob payload;
    uint64_t           seq, token; /* token 0: the op's */
    int64_t            created_ms, run_at_ms, started_ms;
    uint32_t           attempt, max_attempts;
    int32_t            priority, progress;
    bool               cancelled;
};

struct remote_reply {
    json_t     *head;   /* NULL: the request was not executed, unless: */
    const void *packed; /* the reply in the transport's own form, instead of the rest; or */
    bool unreadable;    /* a reply came, but it makes no sense, or there was no memory for it; or */
    /* its results are already in the op: il__remote_take_job(), il__remote_take_lock() */
    bool                taken;
    struct remote_blob  value;
    struct remote_part *parts;
    size_t              n_parts;
};

/* One batch: requests and, afterwards, the replies to those that were executed. */
struct remote_call {
    const struct remote_request *requests;
    size_t                       n;
    bool    bare;  /* takes_ops() accepted the ops: no request has JSON, except a claim */
    bool    reads; /* read-only: concurrent with an apply, on a separate connection */
    bool    timed; /* the test clock: */
    int64_t now_ms, wall_ms;
    struct remote_reply *replies; /* one per request */
    size_t               n_replies;
    uint32_t            *wakes; /* words of the board */
    size_t               n_wakes, wakes_capacity;
    bool                 refused; /* the call failed, and the server says that it had no effect */
    /* a reply could not be parsed or attributed; or there was no memory for it */
    bool  failed;
    void *result; /* owned by the transport: blobs point into it until `done` */
};

/*
 * The engine-specific part. `call` executes requests in order, in one commit or several, until one
 * asks back or all are done, and hands each reply over with il__remote_take_row(). IL_OK: what was
 * taken is permanent. Otherwise nothing may be concluded, unless call->refused. It gives up after
 * the store's timeout. Calls with `reads` may come from any thread, the others from n_lanes at a
 * time.
 */
struct remote_transport {
    const char *name;
    unsigned    caps;           /* enum il__store_caps */
    unsigned    n_lanes;        /* concurrent calls, besides those that read; 0 = 1 */
    size_t      n_requests_max; /* per call: the maximum sum of their weights */

    /* How much of n_requests_max an op takes, at least 1. NULL: each takes 1. */
    size_t (*weight)(const il_op *op);
    /*
     * For ops that are worth their own format instead of JSON; both or neither. encode: false: not
     * this op (nothing was written). decode: of a reply that was handed over with
     * il__remote_take_packed(); false: no memory, or it makes no sense.
     */
    bool (*encode)(const struct remote_store *s, const il_op *op, struct remote_request *ret);
    bool (*decode)(struct remote_store *s, il_op *op, const void *packed);

    il_status (*call)(struct remote_store *s, struct remote_call *c, il_error *reterr);
    /*
     * May be NULL. Can `call` execute these, or some of them, from the ops alone? Then it gets them
     * without JSON (call->bare), except for a claim, which may be the last one. What it has not
     * taken (finishes with il__remote_take_job(), locks with il__remote_take_lock()) has not
     * happened, and comes again with JSON, after what was taken. A claim is taken only if all ops
     * before it were.
     */
    bool (*takes_ops)(struct remote_store *s, il_op *const *ops, size_t n);
    /* Free c->result. */
    void (*done)(struct remote_store *s, struct remote_call *c);
    /* Tell other processes to wake these words of their boards; ours is done. A hint: it may
     * fail. */
    void (*wake)(struct remote_store *s, const uint32_t *slots, size_t n);
    /* frees the engine's own part, then calls il__remote_release() and frees the memory */
    void (*free)(struct remote_store *s);
    /* As il__store_report(). */
    il_status (*report)(struct remote_store *s, const char *table, il__report_fn *each,
                        void *cookie, il_error *reterr);
    /* As il__store_advisory_take(). */
    il_status (*advisory_take)(struct remote_store *s, const char *key, int64_t id,
                               struct il__store_advisory **ret, il_error *reterr);
    /* As il__store_guard_table(). */
    il_status (*guard_table)(struct remote_store *s, const struct il__table_guard *change,
                             il__table_guard_fn *each, void *cookie, il_error *reterr);
};

struct remote_store {
    struct il__store               base;
    struct il__store_ops           ops; /* the transport's name and caps, and our functions */
    const struct remote_transport *via;
    struct il__board               board;
    const il_clock                *clock;
    bool                           test_clock;
    struct il__ranks               ranks; /* our own */
    struct il__mutex order_mutex; /* protects the following: learned lock order, as far as read */
    struct il__order order;
    int64_t          order_n; /* edges in the store when they were read; -1 = never */
};

/* False: no memory; call il__remote_release() even then. */
bool il__remote_init(struct remote_store *s, const struct remote_transport *via,
                     const struct il__store_open *o) MUST_USE;
void il__remote_release(struct remote_store *s);

static inline struct remote_store *
il__remote_from(struct il__store *s)
{
    return container_of(s, struct remote_store, base);
}

/* ---- for transports -------------------------------------------------------------------------- */

/*
 * Take one row of the reply to request i: the head first, then its parts. The blobs must live until
 * `done`. A row that is not JSON, or for which there is no memory, only affects this request.
 * False: there is no such request; call->failed is set.
 */
bool il__remote_take_row(struct remote_call *c, size_t i, const char *json, size_t n_bytes,
                         struct remote_blob blob, struct remote_blob blob2);
/* Take the whole reply to request i in the transport's own form, which must live until `done`. */
bool il__remote_take_packed(struct remote_call *c, size_t i, const void *packed);
/*
 * Take a job that request i has claimed or finished at wall_ms, in place of a part, and wake those
 * who wait for it. It goes into the op at once. The head of a claim was taken before; remaining_ms:
 * how long its jobs stay claimed.
 */
bool il__remote_take_job(struct remote_call *c, size_t i, const struct remote_job *job,
                         int64_t wall_ms, int64_t remaining_ms);
/* Record that request i, an acquire, a renewal or a release, was done, in place of its reply. */
bool il__remote_take_lock(struct remote_call *c, size_t i, il_op_type type, uint64_t fence,
                          int64_t remaining_ms);
/* Take wake-ups that came separately from the replies, as a JSON array. */
bool il__remote_take_wakes(struct remote_call *c, const char *json, size_t n_bytes);
/* Was request i taken, and did it ask back? Then the requests after it were not executed. */
bool il__remote_asked(const struct remote_call *c, size_t i);

/* ---- remote.c: one private request ----------------------------------------------------------- */

/* A stand-alone reply; free with il__remote_answer_release(). */
struct remote_answer {
    struct remote_store *s;
    struct remote_call   call;
    struct remote_reply  reply;
};
il_status il__remote_send_alone(struct remote_store *s, const struct remote_request *r, bool reads,
                                struct remote_answer *ret, il_error *reterr) MUST_USE;
/* The same for a verb that fails only if it finds damaged rows: it then returns IL_CORRUPT. */
il_status il__remote_ask_sure(struct remote_store *s, const struct remote_request *r, bool reads,
                              struct remote_answer *ret, il_error *reterr) MUST_USE;
void      il__remote_answer_release(struct remote_answer *a);
#define AUTO_ANSWER AUTO(il__remote_answer_release)

/* ---- encode.c -------------------------------------------------------------------------------- */

/* False: no memory. */
bool il__remote_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret)
    MUST_USE;
/* A private request: begin, add fields, end. */
void il__remote_begin(struct remote_request *r, const char *verb);
/* NULL: left out */
void il__remote_put_text(struct remote_request *r, const char *name, const char *text);
void il__remote_put_bytes(struct remote_request *r, const char *name, const char *text, size_t n);
void il__remote_put_texts(struct remote_request *r, const char *name, const char *const *texts,
                          size_t n);
void il__remote_put_number(struct remote_request *r, const char *name, int64_t number);
bool il__remote_end(struct remote_request *r) MUST_USE; /* false: no memory */
void il__remote_request_release(struct remote_request *r);
#define AUTO_REQUEST AUTO(il__remote_request_release)

/* ---- decode.c, decode_run.c, decode_job.c ---------------------------------------------------- */

/*
 * Numbers may come as numbers or as strings; 0 if missing. Either way they are within 2^60, so that
 * sums and differences of a few do not overflow. Strings: "" if missing.
 */
int64_t     il__remote_number(const json_t *object, const char *name);
int64_t     il__remote_number_of(const json_t *value);
const char *il__remote_text(const json_t *object, const char *name);
/* The i-th string of an array; "" if it is not one. */
const char *il__remote_text_at(const json_t *array, size_t i);
/* The field or NULL when it is absent. */
const char *il__remote_text_or_null(const json_t *object, const char *name);

/* The status in a reply to something that is not an op; IL_STORE if there is none. */
il_status il__remote_status(const json_t *head);

/* Can a lease or waiter be in this state? Decisions about them require a valid one. */
static inline bool
il__remote_is_state(int64_t state)
{
    return state >= 0 && state < IL_LEASE_STATE_COUNT;
}

/* Decode the status and results of an op from its reply. False: no memory, or the reply makes no
 * sense. */
bool il__remote_decode(il_op *op, const struct remote_reply *reply) MUST_USE;
bool il__remote_decode_runs(il_op *op, const json_t *head) MUST_USE;
bool il__remote_decode_jobs(il_op *op, const struct remote_reply *reply) MUST_USE;
/* Add a job that came as a row to the results of its op. False: no memory. */
bool il__remote_show_row(il_op *op, const struct remote_job *row, int64_t remaining_ms,
                         int64_t wall_ms) MUST_USE;
bool il__remote_decode_crons(il_op *op, const struct remote_reply *reply) MUST_USE;
bool il__remote_decode_queues(il_op *op, const json_t *head) MUST_USE;

/* ---- ask_back.c, order.c, sweep.c ------------------------------------------------------------ */

/*
 * A shared budget for the follow-up requests of the ops of one call, because the next callers wait
 * for them. It is counted down; 0: no more.
 */
struct remote_budget {
    /* edges of the lock order; the next caller on the same path learns the rest */
    unsigned n_learn;
    /* requests of deadlock searches; the next sweep finds the remaining ones */
    unsigned n_asks;
};

/*
 * Search for a deadlock, within the remaining requests; without any, nothing is found. *ret_found:
 * one was broken, and *ret_victim was cancelled for it.
 */
il_status il__remote_search(struct remote_store *s, const char *tenant, const char *const *holders,
                            size_t n, struct remote_budget *left, uint64_t *ret_victim,
                            struct il__buf *why, bool *ret_found, il_error *reterr) MUST_USE;
/* Push the jobs of due schedules (the parts of `reply`), up to `budget` ticks. */
il_status il__remote_tick(struct remote_store *s, const struct remote_reply *reply, uint32_t budget,
                          uint32_t *ret_pushed, bool *ret_more, il_error *reterr) MUST_USE;
/* Answer the questions in the reply of `op`; *ret_repeat: send the request, which may have changed,
 * once more. */
il_status il__remote_answer_questions(struct remote_store *s, il_op *op, struct remote_request *r,
                                      const struct remote_reply *reply, struct remote_budget *left,
                                      bool *ret_repeat, il_error *reterr) MUST_USE;

/*
 * Check what a new request of the op says about lock order, and learn from it: each new edge is a
 * separate request, within the remaining budget.
 */
il_status il__remote_learn(struct remote_store *s, il_op *op, const struct remote_reply *reply,
                           struct remote_budget *left, il_error *reterr) MUST_USE;
/* Makes the next check read all of it again. */
void il__remote_forget_order(struct remote_store *s);
/* ORDER: the words. False: no memory. */
bool il__remote_say_rank(const struct remote_store *s, il_op *op, const json_t *head) MUST_USE;
/* HISTORY: the page, from all events of the key. False: no memory, or not understood. */
bool il__remote_history(il_op *op, const json_t *head) MUST_USE;
/* ORDER_LIST: the page, from all edges of the tenant. False: no memory. */
bool il__remote_order_list(const struct remote_store *s, il_op *op, const json_t *head) MUST_USE;

il_status il__remote_sweep(struct remote_store *s, il_op *op, il_error *reterr) MUST_USE;

#endif
