/*
 * store.h: a store under test: its engine, clock and handles, and one-line helpers for ops.
 *
 * IL_TEST_STORE names the engine (a row of t_engines); without it a suite runs on every row. An
 * engine is one row: the rest of the tests only know an engine's capabilities, not which one it is.
 */
#ifndef T_STORE_H
#define T_STORE_H

#include "harness/check.h"
#include "harness/clock.h"
#include "harness/server.h"
#include "harness/tmp.h"

#define T_HANDLES_MAX 4
#define T_RESULTS_MAX 256 /* results that stay readable */

struct t_engine {
    const char *name;
    const char *url;       /* with one %s for the folder of the test */
    const char *real_url;  /* another store of the same kind, on the machine's clock */
    bool        shared;    /* several handles can open one store */
    bool        durable;   /* what it knows survives a close */
    size_t      n_handles; /* ops go through this many handles in turn */
    bool        traced;    /* each handle is opened with a trace */
    /* Instead of the two URLs: the server that says where the stores are; or NULL. */
    const struct t_server *server;
};

/* Ends with a row whose name is NULL. */
extern const struct t_engine t_engines[];

/* The URLs of two new, empty stores of this engine: in the folder, or wherever its server keeps
 * them. */
void t_engine_make(const struct t_engine *engine, const char *dir, char url[T_PATH_BYTES],
                   char real_url[T_PATH_BYTES]);
/* The folder is removed by its owner; what is elsewhere goes here. */
void t_engine_forget(const struct t_engine *engine, const char *url, const char *real_url);

/* The row with this name; fails when there is none. */
const struct t_engine *t_engine_find(const char *name);

struct t_store {
    const struct t_engine *engine;
    struct t_clock         clock;
    char                   dir[T_PATH_BYTES];
    char                   url[T_PATH_BYTES];
    char                   real_url[T_PATH_BYTES];
    const char *const     *ranks;
    size_t                 n_ranks;
    il                    *handles[T_HANDLES_MAX];
    size_t                 n_handles;
    size_t                 i_turn; /* which handle is next */
    il_op                 *results;
    size_t                 i_result;
};

/* A new, empty store; t_store_free() also removes its folder. */
struct t_store *t_store_new(const struct t_engine *engine);
void            t_store_free(struct t_store *s);

/* Open one more handle of the same store (the caller's), only on a shared engine. */
il *t_store_open(struct t_store *s);
/* Open a handle of the store that lives on the machine's clock (the caller's). */
il *t_store_open_real(struct t_store *s);
/* Wait until what other handles wake reaches this one. */
void t_attend(il *h);
/* Wait until all that was woken has reached these handles of the store. They have attended. */
void t_settle(struct t_store *s, il *const *handles, size_t n);
/* The URL of a store on the machine's clock that does not exist yet. */
void t_store_absent(struct t_store *s, char url[T_PATH_BYTES]);
/* Close every handle and open them anew. On an engine that is not durable the store is empty
 * then. */
void t_store_reopen(struct t_store *s);
/* Declare lock order on every handle, by reopening; borrowed. Before the first op. */
void t_store_set_ranks(struct t_store *s, const char *const *ranks, size_t n);
/* The handle whose turn it is. */
il *t_handle(struct t_store *s);

/* Time passes. */
void t_pass(struct t_store *s, int64_t ms);

/* ---- ops ---------------------------------------------------------------------------------------
 * Each applies one op and fails the test when il_apply() itself fails. The result belongs to the
 * store and stays readable until T_RESULTS_MAX more ops were applied.
 */
struct t_args {
    int         unused_;
    int64_t     ttl_ms;
    int64_t     wait_ms;
    int64_t     settle_ms;
    il_mode     mode;
    uint32_t    permits;
    const char *meta;
    const char *place;
    const char *reason;
    const char *tenant;
    uint32_t    flags;
    uint32_t    limit;
    const char *cursor;
};

#define T_ARGS(...) ((struct t_args){ .unused_ = 0, __VA_ARGS__ })

#define t_acquire(s, key, holder, ...) \
    t_op_run(s, NULL, t_op(IL_OP_ACQUIRE, key, holder, 0, T_ARGS(__VA_ARGS__)))
#define t_renew(s, key, holder, fence, ...) \
    t_op_run(s, NULL, t_op(IL_OP_RENEW, key, holder, fence, T_ARGS(__VA_ARGS__)))
#define t_release(s, key, holder, fence, ...) \
    t_op_run(s, NULL, t_op(IL_OP_RELEASE, key, holder, fence, T_ARGS(__VA_ARGS__)))
#define t_break(s, key, fence, ...) \
    t_op_run(s, NULL, t_op(IL_OP_BREAK, key, NULL, fence, T_ARGS(.reason = "test", __VA_ARGS__)))
#define t_get(s, key, ...) t_op_run(s, NULL, t_op(IL_OP_GET, key, NULL, 0, T_ARGS(__VA_ARGS__)))
#define t_check(s, key, fence, ...) \
    t_op_run(s, NULL, t_op(IL_OP_CHECK_FENCE, key, NULL, fence, T_ARGS(__VA_ARGS__)))
#define t_list(s, prefix, ...) \
    t_op_run(s, NULL, t_op(IL_OP_LIST, prefix, NULL, 0, T_ARGS(__VA_ARGS__)))
#define t_order_list(s, prefix, ...) \
    t_op_run(s, NULL, t_op(IL_OP_ORDER_LIST, prefix, NULL, 0, T_ARGS(__VA_ARGS__)))
#define t_sweep(s, ...) t_op_run(s, NULL, t_op(IL_OP_SWEEP, NULL, NULL, 0, T_ARGS(__VA_ARGS__)))

/* Shorthands for the other modes. */
#define T_SHARED .mode = IL_MODE_SHARED
#define T_PERMITS(n) .mode = IL_MODE_PERMIT, .permits = (n)

/* Build an op without applying it, for batches. For LIST and ORDER_LIST `key` is the prefix. */
il_op t_op(il_op_type type, const char *key, const char *holder, uint64_t fence, struct t_args a);
/* Apply through `h`, or the handle whose turn it is when NULL. */
const il_op *t_op_run(struct t_store *s, il *h, il_op op);
/* Apply a batch through the handle whose turn it is; the caller releases the ops. */
void t_batch(struct t_store *s, il_op *ops, size_t n);

/* Nothing more comes of an op that was applied and can be waited for; it is applied again until
 * that is so. */
void t_quiet(il *h, il_op *op);

/* The op has this status; the op itself, so that its result can be used in the same line. */
#define T_IS(op, status) t_is((op), (status), __FILE__, __LINE__)
const il_op *t_is(const il_op *op, il_status status, const char *file, int line);

/* What an op was and what came of it, for people. Returns `out`. */
#define T_OP_TEXT_BYTES 2048
const char *t_op_text(const il_op *op, char out[T_OP_TEXT_BYTES]);

/* Sweep until nothing is left to do; the sums. */
il_sweep_out t_sweep_all(struct t_store *s, uint32_t limit);

/* The live leases (or, with IL_LIST_WAITERS, waiters) of the key: how many, and the i-th one. */
size_t t_count(struct t_store *s, const char *key, uint32_t flags);
/* The lease of `holder` on `key`, among those that get shows; NULL when there is none. */
const il_lease_info *t_lease_of(struct t_store *s, const char *key, const char *holder);
/* The waiter `holder` of `key`; NULL when there is none. */
const il_lease_info *t_waiter_of(struct t_store *s, const char *key, const char *holder);

#endif
