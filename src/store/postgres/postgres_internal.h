/*
 * postgres_internal.h: what the files of the PostgreSQL engine share.
 *
 *   libpq.c     libpq, loaded when it is needed
 *   url.c       the store's URL
 *   conn.c      a connection: statements under a deadline, and what became of them
 *   migrate.c   installing and upgrading the schema
 *   listen.c    wake-ups of other processes (LISTEN)
 *   advisory.c  PostgreSQL's own locks, beside ours
 *   report.c    what the server's settings mean
 *   rows.c      claims and finishes of jobs, whose requests and answers have columns instead of JSON
 *   postgres.c  the transport: batches, opening and freeing
 */
#ifndef IL_STORE_POSTGRES_INTERNAL_H
#define IL_STORE_POSTGRES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mutex.h"
#include "store/postgres/libpq.h"
#include "store/remote/remote.h"

#define PG_SCHEMA_VERSION 1     /* the newest migration leads here */
#define PG_SCHEMA_MIN_VERSION 1 /* the oldest code that can use what we install */
#define PG_SERVER_VERSION_MIN 130000

/* ---- url.c ----------------------------------------------------------------------------------------------------- */

#define PG_SCHEMA_BYTES_MAX 48
#define PG_CHANNEL_BYTES (PG_SCHEMA_BYTES_MAX + 16)
#define PG_SHOWN_BYTES 160

struct pg_url {
    PQconninfoOption *server; /* what libpq is told, our own options taken out */
    PQconninfoOption *listen; /* the same for the listener; NULL: as server */
    bool              no_listen;
    char              schema[PG_SCHEMA_BYTES_MAX + 1];
    char              channel[PG_CHANNEL_BYTES];
    char              shown[PG_SHOWN_BYTES]; /* for messages: nothing secret */
};

/* libpq is loaded. Release it whatever is returned. */
il_status il__pg_url_parse(struct pg_url *u, const char *url, il_error *reterr) MUST_USE;
void      il__pg_url_release(struct pg_url *u);

/* ---- statements ------------------------------------------------------------------------------------------------- */

enum pg_stmt {
#define X(name) PG_##name,
#include "store/postgres/statements.def"
#undef X
    PG_STMT_COUNT
};

/* ---- conn.c ----------------------------------------------------------------------------------------------------- */

/* What became of the last statement. */
enum pg_outcome {
    PG_DONE,     /* it was carried out, and committed unless a transaction is open */
    PG_NOT_SENT, /* the server was never told */
    PG_UNDONE,   /* the server refused it, and nothing of it happened */
    PG_UNKNOWN,  /* the connection was lost, or time was up, after it was sent */
};

#define PG_SQLSTATE_BYTES 6
#define PG_PARAMS_MAX 9

struct pg_conn {
    const PQconninfoOption *where;
    const char             *shown;
    int                     stop_fd;     /* give up when it can be read; -1 = none */
    PGconn                 *pq;          /* NULL: not connected */
    bool                    pending;     /* answers of il__pg_send_only() are still to be read */
    unsigned                n_failures;  /* to connect, in a row */
    int64_t                 retry_at_ns; /* not before; 0 = at once */
    enum pg_outcome         outcome;
    char                    sqlstate[PG_SQLSTATE_BYTES]; /* of the last error, or "" */
    char                    why[200];                    /* and what the server or libpq said */
};

/* A statement with parameters; the result is binary. */
struct pg_query {
    const char *sql;
    int         n_params;
    Oid         types[PG_PARAMS_MAX];
    const char *values[PG_PARAMS_MAX]; /* NULL is NULL */
    int         lengths[PG_PARAMS_MAX];
    int         formats[PG_PARAMS_MAX]; /* 1 = binary */
};

#define PG_BOOL 16
#define PG_BYTEA 17
#define PG_INT8 20
#define PG_INT4 23
#define PG_TEXT 25
#define PG_TID 27
#define PG_BYTEA_ARRAY 1001
#define PG_TEXT_ARRAY 1009
#define PG_TID_ARRAY 1010
#define PG_INT8_ARRAY 1016
#define PG_JSONB 3802

void il__pg_conn_init(struct pg_conn *c, const PQconninfoOption *where, const char *shown);
void il__pg_conn_close(struct pg_conn *c);

/* Connect if it is not connected, and read what is pending. False: c->outcome is NOT_SENT. */
bool il__pg_conn_ready(struct pg_conn *c, int64_t until_ns) MUST_USE;
/* The result, which the caller clears; NULL: c->outcome says what became of it, c->sqlstate and c->why why. */
PGresult *il__pg_query(struct pg_conn *c, const struct pg_query *q, int64_t until_ns) MUST_USE;
/* Statements without parameters or rows, separated by ';'. False as above. */
bool il__pg_exec(struct pg_conn *c, const char *sql, int64_t until_ns) MUST_USE;
/* Send and do not wait; whether it fails is never known. The connection is ready. */
void il__pg_send_only(struct pg_conn *c, const struct pg_query *q);
/* Sleep until the socket or `fd` can be read, or until_ns. */
void il__pg_wait_for_input(const struct pg_conn *c, int fd, int64_t until_ns);
/* The failure of the last statement as an error. */
il_status il__pg_error(const struct pg_conn *c, il_error *reterr);
/* Status of an SQLSTATE. */
il_status il__pg_map(const char *sqlstate);

/* The point in time that is `ms` from now. */
int64_t il__pg_in_ms(int64_t ms);

/* Values of a binary result. */
bool    il__pg_bool(const PGresult *r, int row, int column);
int32_t il__pg_int4(const PGresult *r, int row, int column);
int64_t il__pg_int8(const PGresult *r, int row, int column);
/* NULL and 0 bytes if it is NULL; else it ends with a NUL behind its bytes. */
struct remote_blob il__pg_bytes(const PGresult *r, int row, int column);

/* ---- listen.c --------------------------------------------------------------------------------------------------- */

#define PG_ID_BYTES 17

struct pg_store;

struct pg_listener {
    struct pg_store *store;
    pthread_t        thread;
    int              stop_fd;         /* written when the thread is to end */
    _Atomic int      state;           /* see listen.c */
    _Atomic bool     proven;          /* notifications arrive */
    char             id[PG_ID_BYTES]; /* of this handle: its own board knows already */
};

void il__pg_listener_init(struct pg_listener *l, struct pg_store *s);
void il__pg_listener_release(struct pg_listener *l);
/* As il__store_attend(). */
int64_t il__pg_listener_attend(struct pg_listener *l);
/* Wake what a payload names, unless it came from ourselves. For tests too. */
void il__pg_listener_take(struct il__board *b, const char *own_id, const char *payload);

/* ---- the store -------------------------------------------------------------------------------------------------- */

#define PG_LANES 4

/*
 * What is known of a job that was claimed here, by its token: what never changes of it while that token counts, so that a finish need not read it; and where its
 * row was, which is a hint: the server takes it only if it finds the token there.
 */
#define PG_HINTS 4096
struct pg_hint {
    uint64_t token; /* 0 = none */
    uint64_t id;    /* a hash: does the caller name the right job? */
    uint64_t seq;
    uint64_t place; /* block << 16 | offset */
    int64_t  created_ms, run_at_ms;
    int32_t  queue, priority;
    uint32_t max_attempts;
    bool     keyed; /* it has a unique key */
};

struct pg_store {
    struct remote_store remote;
    struct pg_url       url;
    char               *sql[PG_STMT_COUNT];
    int64_t             timeout_ms;
    struct pg_conn writers[PG_LANES]; /* of those who apply; the first one is also used while it is opened */
    struct il__mutex lanes_mutex;          /* protects what follows */
    unsigned free_lanes[PG_LANES], n_free; /* a stack: the one that was used last is used next */
    struct pg_hint     hints[PG_HINTS];    /* [token % PG_HINTS] */
    pthread_cond_t     lane_freed;
    struct pg_conn     reader; /* under read_mutex */
    struct il__mutex   read_mutex;
    struct pg_listener listener;
};

static inline struct pg_store *
il__pg_from(struct remote_store *s)
{
    return container_of(s, struct pg_store, remote);
}

/* ---- rows.c ----------------------------------------------------------------------------------------------------- */

/* Can these be sent as one statement of their own? As remote_transport.takes_ops. */
bool il__pg_takes_ops(struct remote_store *s, il_op *const *ops, size_t n);

/* The parameters of a call; `query` points into them. The time is there when they are made. */
struct pg_params {
    struct il__buf bufs[3];
    char           now[24], wall[24], queue[12];
    struct pg_hint *hints; /* of finishes, for their answer: one for each, empty if nothing is known */
    struct pg_query query;
};

/* Finishes of a call without JSON, as arrays. False: no memory. Release it in any case. */
bool il__pg_finish_params(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
    MUST_USE;
void il__pg_params_release(struct pg_params *p);
#define AUTO_PARAMS AUTO(il__pg_params_release)
/* Blobs of the requests as a binary bytea[]; empty when there are none. */
void il__pg_add_blobs(struct il__buf *b, const struct remote_call *c);

/* The jobs that a claim gave, once its other rows were taken; those that were finished, of a call with these parameters. False: c->failed. */
bool il__pg_take_claimed(struct pg_store *s, struct remote_call *c, const PGresult *r);
bool il__pg_take_finished(struct remote_call *c, const struct pg_params *p, const PGresult *r);

/* ---- migrate.c -------------------------------------------------------------------------------------------------- */

/* Look at the schema: IL_OK if it can be used. Absent: it is installed, unless `existing`. */
il_status il__pg_schema_prepare(struct pg_store *s, bool existing, il_error *reterr) MUST_USE;
/* As il__store_migrate(). */
il_status il__pg_schema_migrate(struct pg_store *s, bool check, struct il__migration *ret,
                                il_error *reterr) MUST_USE;
/* Of everything that a fresh install makes. */
uint64_t il__pg_fingerprint(void);

/* ---- report.c --------------------------------------------------------------------------------------------------- */

il_status il__pg_report(struct remote_store *s, const char *table, il__report_fn *each,
                        void *cookie, il_error *reterr);

/* ---- advisory.c ------------------------------------------------------------------------------------------------- */

il_status il__pg_advisory_take(struct remote_store *base, const char *key, int64_t id,
                               struct il__store_advisory **ret, il_error *reterr);

/* ---- table_guard.c ---------------------------------------------------------------------------------------------- */

il_status il__pg_guard_table(struct remote_store *s, const struct il__table_guard *change,
                             il__table_guard_fn *each, void *cookie, il_error *reterr);

#endif
