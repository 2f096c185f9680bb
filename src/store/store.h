/*
 * store.h: the interface of an engine.
 *
 * An engine implements `apply` over a batch of ops: domain verbs, each atomic, in one commit.
 * src/core/README.md specifies what each op must do; README.md here describes how the engines do
 * it. Callers use the il__store_* wrappers, which check the pre- and postconditions that all
 * engines share. Code distinguishes engines by capability, never by name.
 */
#ifndef IL_STORE_STORE_H
#define IL_STORE_STORE_H

#include "base/base.h"
#include "base/board.h"
#include "core/order.h"
#include "core/schema.h"
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

#define IL__LANES_MAX 10 /* who uses which: il__lane_of() */

struct il__store_ops {
    const char *name;
    unsigned    caps; /* enum il__store_caps */
    /* concurrent callers of apply, up to IL__LANES_MAX; 0 = 1. DIRECT: any number */
    unsigned n_lanes;

    void (*free)(struct il__store *s); /* required */

    /*
     * Execute the first ops of n prepared ones, in order, in one commit, at one `now` of the
     * store's clock: all of them, or as many as fit into IL__COMMIT_MS, but at least one; *ret_done
     * says how many. Sets the status and out of each; skips refused ops (il__op_refused). IL_OK:
     * what was done is as durable as the engine promises, all waiters concerned have been woken,
     * and nothing has happened to the remaining ops. Any other status: nothing may be concluded
     * about any op (it may or may not have happened), except that repeating all of them is safe.
     * n_lanes callers at a time, or any number if DIRECT. Required.
     */
    il_status (*apply)(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                       il_error *reterr);

    /*
     * The same for ops that change nothing; safe from any thread, also during an `apply`, for which
     * it does not wait. NULL: use apply.
     */
    il_status (*read)(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                      il_error *reterr);

    /*
     * Would a sweep have something to do? Takes no lock and writes nothing, so that idle processes
     * cost an idle store nothing. NULL, or a failure: sweep.
     */
    bool (*overdue)(struct il__store *s);

    /*
     * A caller is about to sleep on the board, or keeps a lease that may be broken: from now on
     * wake-ups from other processes must reach our board. Returns the interval in milliseconds at
     * which sleepers should poll; 0: no need. Cheap; safe from any thread. NULL: wake-ups always
     * reach the board.
     */
    int64_t (*attend)(struct il__store *s);

    /*
     * Wait until this op, which was applied, should be repeated, or timeout_ms has passed, or
     * *interrupted is set (IL_CANCELLED). Replaces sleeping on the board for an engine whose server
     * can wait. IL_OK: repeat the op; if the store is unreachable, that will report it. Safe from
     * any thread. NULL: sleep on the board.
     */
    il_status (*wait)(struct il__store *s, const il_op *op, int64_t timeout_ms,
                      const atomic_bool *interrupted);

    /*
     * Send this text to every other process that has the store open (announce.c): a hint, which may
     * be lost. Their engine puts it into the ring of their board (base/ring.h), and records there
     * when some may have been lost. The text fits (il__ring_fits()); NULL: some were lost here. May
     * block; safe from any thread. NULL: all processes share the ring.
     */
    void (*announce)(struct il__store *s, const char *text);

    /*
     * Begin a transaction of the caller's own; see il_tx_begin(). It ends with commit or rollback
     * of *ret. Safe from any thread. NULL: not supported.
     */
    il_status (*tx_begin)(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret,
                          il_error *reterr);

    /*
     * Check the settings of the store and its server, and report what they mean. `table`: check
     * this table of the user instead, which is used as a queue; NULL = none. Safe from any thread.
     * NULL: nothing to report.
     */
    il_status (*report)(struct il__store *s, const char *table, il__report_fn *each, void *cookie,
                        il_error *reterr);

    /*
     * Take one of the server's own advisory locks: that of `key` or, if that is NULL, the one with
     * this id. Safe from any thread. NULL: not supported.
     */
    il_status (*advisory_take)(struct il__store *s, const char *key, int64_t id,
                               struct il__store_advisory **ret, il_error *reterr);

    /* Put a guard on a table, or remove it; change NULL: list them. NULL: not supported. */
    il_status (*guard_table)(struct il__store *s, const struct il__table_guard *change,
                             il__table_guard_fn *each, void *cookie, il_error *reterr);

    /* Send the server behind the store a request that is not an op; see store/request.h. Safe from
     * any thread. NULL: there is no such server. */
    il_status (*request)(struct il__store *s, struct il__request *r, il_error *reterr);
};

/* A held advisory lock. One thread at a time; the store outlives it. */
#define ADVISORY_TTL_MS 30000 /* a holder that was stopped loses the lock this long afterwards */
extern int64_t il__store_advisory_ttl_ms; /* the same; tests shorten it */
struct il__store_advisory {
    il_status (*check)(struct il__store_advisory *a, il_error *reterr); /* IL_OK, or IL_LOST */
    void (*release)(struct il__store_advisory *a);
    int fd; /* readable when it may be lost: check */
};

/* A transaction of the caller's own. One thread at a time; the store outlives it. */
struct il__store_tx {
    /* Execute prepared ops (il__store_tx_takes) in it: all of them, or none on failure. */
    il_status (*apply)(struct il__store_tx *tx, il_op *const *ops, size_t n, il_error *reterr);
    /* Each ends and frees it, whatever is returned. */
    il_status (*commit)(struct il__store_tx *tx, il_error *reterr);
    void (*rollback)(struct il__store_tx *tx);
};

struct il__store {
    const struct il__store_ops *ops;
    struct il__board           *board;  /* the engine's; waiters sleep here */
    const char                 *tenant; /* the only tenant it can access; NULL = any */
};

/* The arguments of every engine's open function. All borrowed for the call, except clock: until
 * free. */
struct il__store_open {
    const char      *url;        /* all of it; may hold a password */
    const char      *scheme;     /* with the colon */
    const char      *query;      /* the part after '?', or NULL; clock=test has been handled */
    const char      *path;       /* the part after the scheme, without the query */
    const il_clock  *clock;      /* never NULL */
    bool             test_clock; /* the URL says clock=test */
    bool             existing;   /* do not create */
    int64_t          timeout_ms; /* give up on a busy store after */
    struct il__ranks ranks;
};

/* Open by URL. IL_INVAL for an unknown scheme or query, otherwise the result of the engine's
 * open. */
il_status il__store_open(const char *url, const il_open_opts *opts, struct il__store **ret,
                         il_error *reterr) MUST_USE;
void      il__store_free(struct il__store *s); /* NULL is fine */

/*
 * Create or upgrade the store of this URL; `check`: only report what would be done. Opening does
 * this for most stores, but a server's tables are upgraded only at the request of their owner.
 */
il_status il__store_migrate(const char *url, const il_open_opts *opts, bool check,
                            struct il__migration *ret, il_error *reterr) MUST_USE;

/* Create the store of this URL for a group, whose members may use it; only SQLite's have one. */
il_status il__store_create_for(const char *url, const il_open_opts *opts, const char *group,
                               il_error *reterr) MUST_USE;

/* The wrappers check before and after the call. `ops` must have passed il__op_prepare() or be
 * refused. */
il_status il__store_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                          il_error *reterr) MUST_USE;
il_status il__store_read(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                         il_error *reterr) MUST_USE;

bool    il__store_overdue(struct il__store *s);
int64_t il__store_attend(struct il__store *s);
void    il__store_announce(struct il__store *s, const char *text);

/* postconditions.c: the postconditions of an executed op. */
void il__store_check_result(const il_op *op);

/* What `interlock doctor` shows. */
il_status il__store_report(struct il__store *s, const char *table, il__report_fn *each,
                           void *cookie, il_error *reterr) MUST_USE;

/* IL_OK, IL_HELD, IL_STORE, or IL_INVAL if the engine has no such locks. */
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
/* SQLite counts the bytes of all its allocations, under a mutex, for a number that we never ask
 * for: turn that off, for the whole process and before SQLite is used. */
void il__store_sqlite_uncounted(void);
/* Create a store that the members of a group may use: a name, or a number. IL_OK too if it is there
 * already, for the same group; IL_INVAL: only for those who may. */
il_status il__store_sqlite_create_for(const char *path, const char *group, il_error *reterr)
    MUST_USE;
/* Is there such a store? Then the name of its group, for messages. */
#define IL__STORE_GROUP_BYTES 40
bool      il__store_sqlite_group(const char *path, char ret_name[IL__STORE_GROUP_BYTES]);
il_status il__store_postgres_open(const struct il__store_open *o, struct il__store **ret,
                                  il_error *reterr) MUST_USE;
il_status il__store_postgres_migrate(const struct il__store_open *o, bool check,
                                     struct il__migration *ret, il_error *reterr) MUST_USE;
il_status il__store_redis_open(const struct il__store_open *o, struct il__store **ret,
                               il_error *reterr) MUST_USE;
il_status il__store_server_open(const struct il__store_open *o, struct il__store **ret,
                                il_error *reterr) MUST_USE;

/* Decorators wrap a store, which they own from then on (only on IL_OK). */

/* Writes every batch as one line to `trace`: ops with arguments, statuses, microseconds. */
il_status il__store_trace_wrap(struct il__store *inner, il_trace_fn *trace, void *cookie,
                               struct il__store **ret, il_error *reterr) MUST_USE;

#endif
