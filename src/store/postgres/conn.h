/*
 * conn.h: a PostgreSQL server, given by its URL, and connections to it, which run statements under
 * a deadline and report their outcome. Also used outside the engine, by code that keeps its own
 * tables in the same database (src/data, src/guard).
 */
#ifndef IL_STORE_POSTGRES_CONN_H
#define IL_STORE_POSTGRES_CONN_H

#include "store/postgres/libpq.h"

#define PG_SERVER_VERSION_MIN 130000

/* ---- url.c ----------------------------------------------------------------------------------- */

#define PG_SCHEMA_BYTES_MAX 48
#define PG_ADMIN "_admin" /* SCHEMA_admin is the server's own data: tenants, keys, audit */
#define PG_ADMIN_BYTES (sizeof PG_ADMIN - 1)
#define PG_CHANNEL_BYTES (PG_SCHEMA_BYTES_MAX + 16)
#define PG_SHOWN_BYTES 160

struct pg_url {
    PQconninfoOption *server; /* the URL for libpq, without our own options */
    PQconninfoOption *listen; /* the same for the listener; NULL: as server */
    bool              no_listen;
    char              schema[PG_SCHEMA_BYTES_MAX + 1];
    char              channel[PG_CHANNEL_BYTES];
    char              shown[PG_SHOWN_BYTES]; /* for messages: nothing secret */
};

/* Requires libpq to be loaded. Release *ret whatever is returned. */
il_status il__pg_url_parse(struct pg_url *u, const char *url, il_error *reterr) MUST_USE;
void      il__pg_url_release(struct pg_url *u);

/* ---- conn.c ---------------------------------------------------------------------------------- */

/* What became of the last statement. */
enum pg_outcome {
    PG_DONE,     /* executed, and committed unless a transaction is open */
    PG_NOT_SENT, /* it was never sent to the server */
    PG_UNDONE,   /* refused by the server, without effect */
    PG_UNKNOWN,  /* connection lost or time up after it was sent */
};

#define PG_SQLSTATE_BYTES 6
#define PG_ISOLATION "25000" /* our functions refuse other levels than READ COMMITTED */
#define PG_PARAMS_MAX 20

struct pg_conn {
    const PQconninfoOption *where;
    const char             *shown;
    int                     stop_fd;      /* give up when it can be read; -1 = none */
    bool                    primary;      /* no standby, unless the URL says so */
    PGconn                 *pq;           /* NULL: not connected */
    bool                    pending;      /* replies to il__pg_send_only() are unread */
    bool                    unreplicated; /* a commit was not confirmed by the standbys */
    unsigned                n_failures;   /* to connect, in a row */
    int64_t                 retry_at_ns;  /* not before; 0 = at once */
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
#define PG_INT4_ARRAY 1007
#define PG_TEXT_ARRAY 1009
#define PG_TID_ARRAY 1010
#define PG_INT8_ARRAY 1016
#define PG_JSONB 3802

void il__pg_conn_init(struct pg_conn *c, const PQconninfoOption *where, const char *shown);
void il__pg_conn_close(struct pg_conn *c);

/* Read pending replies: only then was it sent and, by a pooler, forwarded. */
void il__pg_conn_drain(struct pg_conn *c, int64_t until_ns);
/* Connect if necessary, and read pending replies. False: c->outcome is NOT_SENT. */
bool il__pg_conn_ready(struct pg_conn *c, int64_t until_ns) MUST_USE;
/* Returns the result, which the caller clears. NULL: c->outcome is the outcome, c->sqlstate and
 * c->why the reason. */
PGresult *il__pg_query(struct pg_conn *c, const struct pg_query *q, int64_t until_ns) MUST_USE;
/* Statements without parameters or rows, separated by ';'. False as above. */
bool il__pg_exec(struct pg_conn *c, const char *sql, int64_t until_ns) MUST_USE;
/* Send without waiting; a failure goes unnoticed. The connection must be ready. */
void il__pg_send_only(struct pg_conn *c, const struct pg_query *q);
/* Sleep until the socket or `fd` is readable, or until_ns. */
void il__pg_wait_for_input(const struct pg_conn *c, int fd, int64_t until_ns);
/* The failure of the last statement as an error. */
il_status il__pg_error(const struct pg_conn *c, il_error *reterr);
/* Returns false, and marks the last statement, whose reply makes no sense, as failed because of
 * `what`. */
bool il__pg_misunderstood(struct pg_conn *c, const char *what);
/*
 * IL_OK if everything in this schema belongs to us or a superuser, or the schema does not exist;
 * otherwise an error that names the foreign object. `strict`: not even its owner is trusted
 * (sql/strangers.sql). The owner of the schema, and roles that may create in it, decide what runs
 * with our rights; so call this before reading anything else there.
 */
il_status il__pg_owners_check(struct pg_conn *c, const char *schema, bool strict, int64_t until_ns,
                              il_error *reterr) MUST_USE;
/* Status of an SQLSTATE. */
il_status il__pg_map(const char *sqlstate);

/* The point in time that is `ms` from now. */
int64_t il__pg_in_ms(int64_t ms);

/* Values of a binary result. */
bool    il__pg_bool(const PGresult *r, int row, int column);
int32_t il__pg_int4(const PGresult *r, int row, int column);
int64_t il__pg_int8(const PGresult *r, int row, int column);
/* NULL and 0 bytes if it is NULL; otherwise a NUL follows its bytes. */
struct remote_blob il__pg_bytes(const PGresult *r, int row, int column);

/* ---- advisory.c ------------------------------------------------------------------------------ */

struct il__store_advisory;
/* As il__store_advisory_take(), in the database at `url`, which need not have a store. */
il_status il__pg_advisory_take_at(const char *url, int64_t timeout_ms, const char *key, int64_t id,
                                  struct il__store_advisory **ret, il_error *reterr) MUST_USE;

#endif
