/*
 * remote.h: engines whose verbs run in a server; see README.md.
 *
 * An engine makes a struct remote_store with its transport and calls il__remote_init(). Everything else that an engine
 * must do (struct il__store_ops) is done here, through the transport.
 */
#ifndef IL_STORE_REMOTE_H
#define IL_STORE_REMOTE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/mutex.h"
#include "core/order.h"
#include "store/store.h"

struct remote_store;

/* Bytes of somebody else's; data is NULL when there are none (not even an empty value). */
struct remote_blob {
    const void *data;
    size_t      n_bytes;
};

struct remote_request {
    struct il__buf     json; /* or what the transport's encode() has made of the op */
    struct remote_blob blob;
    il_op             *op; /* whose request it is; NULL: a private one */
};

/* A job or a schedule of a reply. The blobs are the transport's. */
struct remote_part {
    json_t            *json;
    struct remote_blob blob, blob2;
};

/*
 * A job as the row of a transport that has columns: a claimed one, or one that was finished. NULL is what the op says (queue, id, worker, token)
 * or none. Texts are the transport's.
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
    json_t     *head;   /* NULL: the request was not carried out, unless: */
    const void *packed; /* the reply in the transport's own form, instead of all that follows; or */
    bool unreadable; /* something came, but it makes no sense, or there was no memory for it; or */
    bool taken; /* its results are in the op already: il__remote_take_job(), il__remote_take_lock() */
    struct remote_blob  value;
    struct remote_part *parts;
    size_t              n_parts;
};

/* One batch: requests and, afterwards, as many replies as were carried out. */
struct remote_call {
    const struct remote_request *requests;
    size_t                       n;
    bool    bare;  /* takes_ops() said that the ops are enough: no request has JSON, but a claim */
    bool    reads; /* nothing is changed: beside an apply under way, on a connection of its own */
    bool    timed; /* the test clock: */
    int64_t now_ms, wall_ms;
    struct remote_reply *replies; /* one per request */
    size_t               n_replies;
    uint32_t            *wakes; /* words of the board */
    size_t               n_wakes, wakes_capacity;
    bool refused; /* the call failed, and the server said that nothing of it happened */
    bool failed; /* what came could not be understood, nor said whose it is; or there was no memory for it */
    void *result; /* the transport's: blobs point into it until `done` */
};

/*
 * What an engine is. `call` carries out requests in order, in one commit or several, until one asks back (il__remote_took()
 * says so) or all are done, and hands each reply over with il__remote_take(). IL_OK: what was taken has happened for good. Else nothing
 * may be concluded, unless call->refused. It is given up after the store's timeout. `reads` may come from any thread; of the others n_lanes at
 * a time.
 */
struct remote_transport {
    const char *name;
    unsigned    caps;           /* enum il__store_caps */
    unsigned    n_lanes;        /* calls at once, besides those that read; 0 = 1 */
    size_t      n_requests_max; /* in one call: what their weights may add up to */

    /* How much of n_requests_max an op takes, at least 1. NULL: each takes 1. */
    size_t (*weight)(const il_op *op);
    /*
     * For ops that are worth a form of their own, instead of JSON; both or neither. encode: false: not this op (nothing was written).
     * decode: of a reply that was handed over with il__remote_take_packed(); false: no memory, or it makes no sense.
     */
    bool (*encode)(const struct remote_store *s, const il_op *op, struct remote_request *ret);
    bool (*decode)(struct remote_store *s, il_op *op, const void *packed);

    il_status (*call)(struct remote_store *s, struct remote_call *c, il_error *reterr);
    /*
     * May be NULL. Can `call` carry these out, or some of them, from the ops alone? Then it gets them without JSON (call->bare), but for a claim, which may be the last one;
     * and what it has not taken (finishes with il__remote_take_job(), locks with il__remote_take_lock()) has not happened, and comes again with JSON,
     * behind what was taken. A claim is taken only if all before it were.
     */
    bool (*takes_ops)(struct remote_store *s, il_op *const *ops, size_t n);
    /* Free c->result. */
    void (*done)(struct remote_store *s, struct remote_call *c);
    /* Tell other processes to wake these words of their boards; ours has been done. A hint: it may fail. */
    void (*wake)(struct remote_store *s, const uint32_t *slots, size_t n);
    void (*free)(struct remote_store *s); /* the engine's own part, and then il__remote_release() and the memory */
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
    struct il__store_ops           ops; /* the transport's name and abilities, and our functions */
    const struct remote_transport *via;
    struct il__board               board;
    const il_clock                *clock;
    bool                           test_clock;
    struct il__ranks               ranks; /* our own */
    struct il__mutex order_mutex; /* protects what follows: learned lock order, as far as read */
    struct il__order order;
    int64_t          order_n; /* edges of the store when they were read; -1 = never */
};

/* False: no memory; il__remote_release() is still to be called. */
bool il__remote_init(struct remote_store *s, const struct remote_transport *via,
                     const struct il__store_open *o) MUST_USE;
void il__remote_release(struct remote_store *s);

static inline struct remote_store *
il__remote_from(struct il__store *s)
{
    return container_of(s, struct remote_store, base);
}

/* ---- for transports ------------------------------------------------------------------------------------ */

/*
 * Take one row of the reply to request i: the head first, then its parts. The blobs must live until `done`. One that is no JSON, or for which there is no memory, is
 * the trouble of this request alone. False: there is no such request; call->failed is set.
 */
bool il__remote_take(struct remote_call *c, size_t i, const char *json, size_t n_bytes,
                     struct remote_blob blob, struct remote_blob blob2);
/* Take the whole reply to request i in the transport's own form, which must live until `done`. */
bool il__remote_take_packed(struct remote_call *c, size_t i, const void *packed);
/*
 * Take a job that request i has claimed or finished at wall_ms, in place of a part, and wake those who wait for it. It goes into the op at once. The head of a
 * claim was taken before; remaining_ms: how long its jobs are its own.
 */
bool il__remote_take_job(struct remote_call *c, size_t i, const struct remote_job *job,
                         int64_t wall_ms, int64_t remaining_ms);
/* Take that request i, an acquire, a renewal or a release, was done, in place of its reply. */
bool il__remote_take_lock(struct remote_call *c, size_t i, il_op_type type, uint64_t fence,
                          int64_t remaining_ms);
/* Take wakes that came apart from the replies, as a JSON array. */
bool il__remote_take_wakes(struct remote_call *c, const char *json, size_t n_bytes);
/* Was request i taken, and has it asked back? Then the ones behind it were not carried out. */
bool il__remote_asked(const struct remote_call *c, size_t i);

/* ---- remote.c: one private request ---------------------------------------------------------------------- */

/* A reply on its own; free with il__remote_answer_release(). */
struct remote_answer {
    struct remote_store *s;
    struct remote_call   call;
    struct remote_reply  reply;
};
il_status il__remote_ask(struct remote_store *s, const struct remote_request *r, bool reads,
                         struct remote_answer *ret, il_error *reterr) MUST_USE;
/* The same, of a verb that fails only if it finds rows that are damaged: what it says then is IL_CORRUPT. */
il_status il__remote_ask_sure(struct remote_store *s, const struct remote_request *r, bool reads,
                              struct remote_answer *ret, il_error *reterr) MUST_USE;
void      il__remote_answer_release(struct remote_answer *a);
#define AUTO_ANSWER AUTO(il__remote_answer_release)

/* Carry out one request of an op and decode its reply; what it asks back is answered. */
il_status il__remote_apply_one(struct remote_store *s, il_op *op, struct remote_request *r,
                               il_error *reterr) MUST_USE;

/* ---- encode.c --------------------------------------------------------------------------------------------- */

/* False: no memory. */
bool il__remote_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret)
    MUST_USE;
/* A private request: begin, add fields, end. */
void il__remote_begin(struct remote_request *r, const char *verb);
void il__remote_put_text(struct remote_request *r, const char *name, const char *text); /* NULL: left out */
void il__remote_put_bytes(struct remote_request *r, const char *name, const char *text, size_t n);
void il__remote_put_texts(struct remote_request *r, const char *name, const char *const *texts,
                          size_t n);
void il__remote_put_number(struct remote_request *r, const char *name, int64_t number);
bool il__remote_end(struct remote_request *r) MUST_USE; /* false: no memory */
void il__remote_request_release(struct remote_request *r);
#define AUTO_REQUEST AUTO(il__remote_request_release)

/* ---- decode.c, decode_run.c, decode_job.c ------------------------------------------------------------------- */

/* Numbers may come as numbers or as strings; 0 when absent. Texts: "" when absent. */
int64_t     il__remote_number(const json_t *object, const char *name);
int64_t     il__remote_number_of(const json_t *value);
const char *il__remote_text(const json_t *object, const char *name);
/* The i-th of an array; "" when it is no text. */
const char *il__remote_text_at(const json_t *array, size_t i);
/* The field or NULL when it is absent. */
const char *il__remote_text_or_null(const json_t *object, const char *name);

/* Status and results of an op from its reply. False: no memory, or the reply makes no sense. */
bool il__remote_decode(il_op *op, const struct remote_reply *reply) MUST_USE;
bool il__remote_decode_runs(il_op *op, const json_t *head) MUST_USE;
bool il__remote_decode_jobs(il_op *op, const struct remote_reply *reply) MUST_USE;
/* A job that came as a row, into the results of its op. False: no memory. */
bool il__remote_show_row(il_op *op, const struct remote_job *row, int64_t remaining_ms,
                         int64_t wall_ms) MUST_USE;
bool il__remote_decode_crons(il_op *op, const struct remote_reply *reply) MUST_USE;
bool il__remote_decode_queues(il_op *op, const json_t *head) MUST_USE;

/* ---- ask.c, order.c, sweep.c --------------------------------------------------------------------------------- */

/* A waiter of this op is new: search for a deadlock. *ret_found: one was opened, and *ret_victim was cancelled for it. */
il_status il__remote_search(struct remote_store *s, const char *tenant, const char *const *holders,
                            size_t n, uint64_t *ret_victim, struct il__buf *why, bool *ret_found,
                            il_error *reterr) MUST_USE;
/* Push what schedules are due for, up to `budget` ticks: the parts of `reply`. */
il_status il__remote_tick(struct remote_store *s, const struct remote_reply *reply, uint32_t budget,
                          uint32_t *ret_pushed, bool *ret_more, il_error *reterr) MUST_USE;
/* Answer what the reply of `op` asks; *ret_repeat: send the request, which may have changed, once more. */
il_status il__remote_answer(struct remote_store *s, il_op *op, struct remote_request *r,
                            const struct remote_reply *reply, bool *ret_repeat, il_error *reterr)
    MUST_USE;

/* Judge what a new request of the op says about lock order, and learn from it. */
il_status il__remote_learn(struct remote_store *s, il_op *op, const struct remote_reply *reply,
                           il_error *reterr) MUST_USE;
/* The next judgement reads all of it again. */
void il__remote_forget_order(struct remote_store *s);
/* ORDER: the words. False: no memory. */
bool il__remote_say_rank(const struct remote_store *s, il_op *op, const json_t *head) MUST_USE;

il_status il__remote_sweep(struct remote_store *s, il_op *op, il_error *reterr) MUST_USE;

#endif
