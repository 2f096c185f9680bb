/*
 * store.h: what an engine is.
 *
 * An engine implements `apply` over a batch of ops: domain verbs, each atomic, all of them one commit. What
 * each op must do is in src/core/README.md; how the engines do it is in README.md here. Callers
 * use the il__store_* wrappers, which hold the pre- and post-conditions that all engines share.
 * Differences between engines are capabilities, never their names.
 */
#ifndef IL_STORE_STORE_H
#define IL_STORE_STORE_H

#include "base/base.h"
#include "base/board.h"
#include "core/order.h"
#include "store/migration.h"
#include "store/report.h"
#include "store/request.h"
#include "store/table_guard.h"

enum il__store_caps {
    IL__STORE_DURABLE = 1 << 0, /* what apply acknowledged survives a crash of the machine */
    IL__STORE_SHARED  = 1 << 1, /* several processes may use it at once */
    IL__STORE_DIRECT  = 1 << 2, /* apply is cheap and safe from any thread: no executor needed */
};

struct il__store;
struct il__store_tx;
struct il__store_advisory;
struct sqlite3;

#define IL__LANES_MAX 8 /* half of them are for ops on jobs: see il__lane_of() */

struct il__store_ops {
    const char *name;
    unsigned    caps; /* enum il__store_caps */
    unsigned n_lanes; /* so many callers of apply at once, up to IL__LANES_MAX; 0 = 1. DIRECT: any number */

    void (*free)(struct il__store *s); /* required */

    /*
     * Carry out n prepared ops in order, in one commit, at one `now` of the store's clock. Each op's
     * status and out are set; refused ops (il__op_refused) are passed over. IL_OK: all of it is as
     * durable as the engine promises, and whoever has to be woken has been. Anything else: nothing may be
     * concluded about any op (it may or may not have happened), except that repeating all of them is
     * safe. n_lanes callers at a time, or any number if DIRECT. Required.
     */
    il_status (*apply)(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr);

    /*
     * The same for ops that change nothing; safe from any thread, beside an `apply` under way, for
     * which it does not wait. NULL: use apply.
     */
    il_status (*read)(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr);

    /*
     * Would a sweep find something to do? A look that takes no lock and writes nothing, so that idle
     * processes cost an idle store nothing. NULL, or a failed look: sweep.
     */
    bool (*overdue)(struct il__store *s);

    /*
     * Somebody is about to sleep on the board, or keeps a lease that may be broken: from now on what other processes wake must
     * reach our board. Returns after how many milliseconds, at the latest, whoever sleeps should look by himself; 0: there is no need.
     * Cheap; safe from any thread. NULL: it always reaches it.
     */
    int64_t (*attend)(struct il__store *s);

    /*
     * Wait until this op, which was applied, should be repeated, or timeout_ms has passed, or *interrupted is set (IL_CANCELLED). Instead of
     * sleeping on the board, for an engine whose server can do that. IL_OK: repeat it, and if the store is not there that will say so. Safe
     * from any thread. NULL: sleep on the board.
     */
    il_status (*wait)(struct il__store *s, const il_op *op, int64_t timeout_ms,
                      const atomic_bool *interrupted);

    /*
     * Tell every other process that has the store open this text (announce.c): a hint, which may be lost. Their engine puts it into the ring of their
     * board (base/ring.h), and says so there when some may have been lost. The text fits (il__ring_fits()); NULL: some were lost here. May block; safe from
     * any thread. NULL: the ring is shared by all of them.
     */
    void (*announce)(struct il__store *s, const char *text);

    /*
     * Begin a transaction of the caller's own; see il_tx_begin(). It ends with commit or rollback of *ret. Safe from any
     * thread. NULL: this engine has none.
     */
    il_status (*tx_begin)(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret,
                          il_error *reterr);

    /*
     * Look at the settings of the store and its server, and say what they mean. `table`: look at this table of the user's, which
     * is used as a queue, instead; NULL = none. Safe from any thread. NULL: there is nothing to say.
     */
    il_status (*report)(struct il__store *s, const char *table, il__report_fn *each, void *cookie,
                        il_error *reterr);

    /*
     * Take an advisory lock of the server's own: the one of `key`, or, if that is NULL, the one with this id. Safe from any thread. NULL: this
     * engine has none.
     */
    il_status (*advisory_take)(struct il__store *s, const char *key, int64_t id,
                               struct il__store_advisory **ret, il_error *reterr);

    /* Put a guard on a table, or take it away; change NULL: list them. NULL: this engine cannot do that. */
    il_status (*guard_table)(struct il__store *s, const struct il__table_guard *change,
                             il__table_guard_fn *each, void *cookie, il_error *reterr);

    /* Ask the server that the store is behind something that is no op; see store/request.h. Safe from any thread. NULL: there is none. */
    il_status (*request)(struct il__store *s, struct il__request *r, il_error *reterr);
};

/* An advisory lock that is held. One thread at a time; the store outlives it. */
struct il__store_advisory {
    il_status (*check)(struct il__store_advisory *a, il_error *reterr); /* IL_OK, or IL_LOST */
    void (*release)(struct il__store_advisory *a);
    int fd; /* can be read when it may be lost: check */
};

/* A transaction of the caller's own. One thread at a time; the store outlives it. */
struct il__store_tx {
    /* Carry out prepared ops (il__store_tx_takes) in it: all of them, or none on failure. */
    il_status (*apply)(struct il__store_tx *tx, il_op *const *ops, size_t n, il_error *reterr);
    /* Each ends it and frees it, whatever is returned. */
    il_status (*commit)(struct il__store_tx *tx, il_error *reterr);
    void (*rollback)(struct il__store_tx *tx);
};

struct il__store {
    const struct il__store_ops *ops;
    struct il__board           *board; /* the engine's; waiters sleep here */
    const char *tenant;                /* the only one that can be reached through it; NULL = any */
};

/* What every engine's open function gets. All borrowed for the call, except clock: until free. */
struct il__store_open {
    const char      *url;        /* all of it; may hold a password */
    const char      *scheme;     /* with the colon */
    const char      *query;      /* what follows '?', or NULL; clock=test has been taken note of */
    const char      *path;       /* what follows the scheme, without the query */
    const il_clock  *clock;      /* never NULL */
    bool             test_clock; /* the URL says clock=test */
    bool             existing;   /* do not create */
    int64_t          timeout_ms; /* give up on a busy store after */
    struct il__ranks ranks;
};

/* Open by URL. IL_INVAL for an unknown scheme or query, else what the engine's open says. */
il_status il__store_open(const char *url, const il_open_opts *opts, struct il__store **ret,
                         il_error *reterr) MUST_USE;
void      il__store_free(struct il__store *s); /* NULL is fine */

/*
 * Bring the store of this URL up to date, or make it; `check`: only say what would be done. What opening does for most, a server's
 * tables get only when whoever owns them asks for it.
 */
il_status il__store_migrate(const char *url, const il_open_opts *opts, bool check,
                            struct il__migration *ret, il_error *reterr) MUST_USE;

/* The wrappers: check before and after. `ops` must have passed il__op_prepare() or be refused. */
il_status il__store_apply(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr) MUST_USE;
il_status il__store_read(struct il__store *s, il_op *const *ops, size_t n, il_error *reterr) MUST_USE;

bool    il__store_overdue(struct il__store *s);
int64_t il__store_attend(struct il__store *s);
void    il__store_announce(struct il__store *s, const char *text);

/* check.c: the post-conditions of an op that was carried out. */
void il__store_check_result(const il_op *op);

/* What `interlock doctor` shows. */
il_status il__store_report(struct il__store *s, const char *table, il__report_fn *each,
                           void *cookie, il_error *reterr) MUST_USE;

/* IL_OK, IL_HELD, IL_INVAL when the engine has no such locks, IL_STORE. */
il_status il__store_advisory_take(struct il__store *s, const char *key, int64_t id,
                                  struct il__store_advisory **ret, il_error *reterr) MUST_USE;
/* IL_INVAL when the engine cannot guard tables. */
il_status il__store_guard_table(struct il__store *s, const struct il__table_guard *change,
                                il__table_guard_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* IL_INVAL when there is no server. */
il_status il__store_request(struct il__store *s, struct il__request *r, il_error *reterr) MUST_USE;

/* IL_INVAL when the engine has no such transactions. */
il_status il__store_tx_begin(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret,
                             il_error *reterr) MUST_USE;
/* May an op of this type be part of one? */
bool il__store_tx_takes(il_op_type type);

/* The engines. */
il_status il__store_memory_open(const struct il__store_open *o, struct il__store **ret,
                                il_error *reterr) MUST_USE;
il_status il__store_sqlite_open(const struct il__store_open *o, struct il__store **ret,
                                il_error *reterr) MUST_USE;
il_status il__store_postgres_open(const struct il__store_open *o, struct il__store **ret,
                                  il_error *reterr) MUST_USE;
il_status il__store_postgres_migrate(const struct il__store_open *o, bool check,
                                     struct il__migration *ret, il_error *reterr) MUST_USE;
il_status il__store_redis_open(const struct il__store_open *o, struct il__store **ret,
                               il_error *reterr) MUST_USE;
il_status il__store_server_open(const struct il__store_open *o, struct il__store **ret,
                                il_error *reterr) MUST_USE;

/*
 * Decorators: a store over another one, which they own from then on (on IL_OK only).
 */

/* Every batch as one line to `trace`: ops with arguments, statuses, microseconds. */
il_status il__store_trace_wrap(struct il__store *inner, il_trace_fn *trace, void *cookie,
                               struct il__store **ret, il_error *reterr) MUST_USE;

enum il__fault_kind {
    IL__FAULT_BEFORE, /* the call fails and nothing happened */
    IL__FAULT_AFTER,  /* it happened, but the caller is told that it failed */
};
/* Fail the n-th call (counted from 1; 0 = none) of apply or read with IL_STORE. */
il_status il__store_fault_wrap(struct il__store *inner, unsigned n, enum il__fault_kind kind,
                               struct il__store **ret, il_error *reterr) MUST_USE;
/* Has the fault been injected? `s` is a fault store. */
bool il__store_fault_fired(struct il__store *s);

#endif
