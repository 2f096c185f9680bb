/*
 * postgres_internal.h: declarations shared by the files of the PostgreSQL engine.
 *
 *   libpq.c         loads libpq on demand
 *   url.c           parses the store's URL (conn.h)
 *   conn.c          a connection: runs statements under a deadline, reports their outcome (conn.h)
 *   migrate.c       installs and upgrades the schema
 *   schema_steps.c  the schema versions
 *   owners.c        checks who owns the schema
 *   listen.c        wake-ups from other processes (LISTEN)
 *   advisory.c      PostgreSQL's own advisory locks, beside ours
 *   doctor.c        explains the server's settings
 *   table_guard.c   `interlock guard`
 *   array.c         arrays as parameters and results
 *   lock_many.c     acquires, renewals and releases of many callers in one statement
 *   job_many.c      claims and finishes of jobs, with columns instead of JSON
 *   postgres.c      the transport: batches, opening and freeing
 */
#ifndef IL_STORE_POSTGRES_INTERNAL_H
#define IL_STORE_POSTGRES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mutex.h"
#include "base/ring.h"
#include "store/postgres/conn.h"
#include "store/remote/connections.h"
#include "store/remote/remote.h"

extern const struct il__schema il__pg_schema; /* schema_steps.c */

/* ---- statements ------------------------------------------------------------------------------ */

/* The statements of sql/, except strangers.sql. */
enum pg_stmt {
#define X(name) PG_##name,
#include "postgres_statements.inc"
#undef X
    PG_STMT_COUNT
};

/* ---- listen.c -------------------------------------------------------------------------------- */

#define PG_ID_BYTES 17
#define PG_SAY "say " /* the rest is a message (il__async_announce()), not words to wake */

struct pg_store;

struct pg_listener {
    struct pg_store *store;
    pthread_t        thread;
    int              stop_fd;         /* written when the thread is to end */
    _Atomic int      state;           /* see listen.c */
    _Atomic bool     proven;          /* notifications arrive */
    char             id[PG_ID_BYTES]; /* of this handle: its own board is already up to date */
};

void il__pg_listener_init(struct pg_listener *l, struct pg_store *s);
void il__pg_listener_release(struct pg_listener *l);
/* As il__store_attend(). */
int64_t il__pg_listener_attend(struct pg_listener *l);
/* Wake what a payload names, unless we sent it ourselves. Also for tests. */
void il__pg_listener_wake(struct il__board *b, const char *own_id, const char *payload);

/* ---- the store ------------------------------------------------------------------------------- */

#define PG_WRITERS IL__LANES_MAX

/*
 * What is known about a job that was claimed here, by its token: the fields that cannot change
 * while that token is valid, so that a finish need not read them; and the location of its row,
 * which is a hint: the server uses it only if it finds the token there.
 */
#define PG_HINTS 4096
struct pg_hint {
    uint64_t token; /* 0 = none */
    uint64_t id;    /* a hash, to check that the caller names the right job */
    uint64_t seq;
    uint64_t place; /* block << 16 | offset */
    int64_t  created_ms, run_at_ms, started_ms;
    int32_t  queue, priority;
    uint32_t attempt, max_attempts;
    bool     keyed; /* it has a unique key */
};

struct pg_store {
    struct remote_store remote;
    struct pg_url       url;
    char               *sql[PG_STMT_COUNT];
    int64_t             timeout_ms;
    atomic_bool         begins; /* READ COMMITTED is not the default: each call begins one */
    /* for callers of apply; the first one is also used during opening */
    struct pg_conn         writers[PG_WRITERS];
    struct il__connections connections; /* assigns them; its mutex also protects the next two: */
    struct pg_hint         hints[PG_HINTS];                 /* [token % PG_HINTS] */
    char                   worker[IL_HOLDER_BYTES_MAX + 1]; /* of the last claim */
    _Atomic int      n_failures, n_spared; /* of calls of locks (lock_many.c); below 0 means none */
    struct pg_conn   reader;               /* under read_mutex */
    struct il__mutex read_mutex;
    struct pg_listener listener;
};

static inline struct pg_store *
il__pg_from(struct remote_store *s)
{
    return container_of(s, struct pg_store, remote);
}

/* A connection of the store, not yet connected. */
void il__pg_store_conn_init(const struct pg_store *s, struct pg_conn *c,
                            const PQconninfoOption *where);

/* ---- calls ----------------------------------------------------------------------------------- */

/* per transaction: each may hold mutexes, and the server's lock table is limited */
#define PG_REQUESTS_MAX 256
#define PG_PARAM_BUFS 9

/* The parameters of a call; `query` points into them. The time is set when they are created. */
struct pg_params {
    struct il__buf bufs[PG_PARAM_BUFS];
    char           now[24], wall[24], queue[12];
    char           worker[IL_HOLDER_BYTES_MAX + 1]; /* the presumed worker of the finished jobs */
    /* of finishes, for their reply: one each, empty if nothing is known */
    struct pg_hint *hints;
    size_t          n_finishes;
    uint16_t        picked[PG_REQUESTS_MAX]; /* the requests that lock_many.c sends */
    size_t          n_picked;
    struct pg_query query;
};

/* ---- array.c --------------------------------------------------------------------------------- */

/* A parameter: begin, then n elements. */
void il__pg_array_begin(struct il__buf *b, Oid type, size_t n, bool nulls);
void il__pg_array_add(struct il__buf *b, const void *data, size_t n_bytes);
void il__pg_array_add_null(struct il__buf *b);
void il__pg_array_add_text(struct il__buf *b, const char *text);
void il__pg_array_add_int4(struct il__buf *b, int32_t v);
void il__pg_array_add_int8(struct il__buf *b, uint64_t v);
void il__pg_array_add_tid(struct il__buf *b, uint64_t place); /* block << 16 | offset */

/* A column of the first row: int8[] without NULLs; NULL is an empty one. False: a different
 * type. */
struct pg_int8s {
    const char *at;
    size_t      n;
};
bool    il__pg_array_open(const PGresult *r, int column, struct pg_int8s *ret) MUST_USE;
int64_t il__pg_array_next(struct pg_int8s *a); /* n times */

/* ---- lock_many.c ----------------------------------------------------------------------------- */

/* Are these acquires, renewals and releases of which most can run together in one statement? */
bool il__pg_locks_many_fit(struct pg_store *s, il_op *const *ops, size_t n);
/* Were they? */
bool il__pg_is_locks_many(const struct remote_call *c);
/* Then build the parameters of the statement `locks`. False: no memory. */
bool il__pg_locks_many_params(struct pg_params *p, const struct remote_call *c) MUST_USE;
/* Its answer. False: it makes no sense. */
bool il__pg_take_locks_many(struct pg_store *s, struct remote_call *c, const struct pg_params *p,
                            const PGresult *r) MUST_USE;

/* ---- job_many.c ------------------------------------------------------------------------------ */

/* Are these finishes of jobs, perhaps followed by a claim, that one statement can execute? */
bool il__pg_jobs_many_fit(struct pg_store *s, il_op *const *ops, size_t n);
/* Were they, or is it a single claim? */
bool il__pg_is_jobs_many(const struct remote_call *c);
/* Then build the parameters of the statement `work`. False: no memory. */
bool il__pg_jobs_many_params(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
    MUST_USE;
/* Read its reply. False: it makes no sense, or there is no memory. */
bool il__pg_take_jobs_many(struct pg_store *s, struct remote_call *c, const struct pg_params *p,
                           const PGresult *r) MUST_USE;

/* ---- migrate.c ------------------------------------------------------------------------------- */

/* Check the schema: IL_OK if it can be used. A missing one is installed, unless `existing`. */
il_status il__pg_schema_prepare(struct pg_store *s, bool existing, il_error *reterr) MUST_USE;
/* As il__store_migrate(). */
il_status il__pg_schema_migrate(struct pg_store *s, bool check, struct il__migration *ret,
                                il_error *reterr) MUST_USE;

/* ---- doctor.c -------------------------------------------------------------------------------- */

il_status il__pg_report(struct remote_store *s, const char *table, il__report_fn *each,
                        void *cookie, il_error *reterr);

/* ---- advisory.c ------------------------------------------------------------------------------ */

il_status il__pg_advisory_take(struct remote_store *base, const char *key, int64_t id,
                               struct il__store_advisory **ret, il_error *reterr);

/* ---- table_guard.c --------------------------------------------------------------------------- */

il_status il__pg_guard_table(struct remote_store *s, const struct il__table_guard *change,
                             il__table_guard_fn *each, void *cookie, il_error *reterr);

#endif
