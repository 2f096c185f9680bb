/*
 * conn.h: a PostgreSQL server by its URL, and connections to it: statements under a deadline, and what became of them. For the engine, and for whoever
 * keeps something beside the store in the same database (src/data).
 */
#ifndef IL_STORE_POSTGRES_CONN_H
#define IL_STORE_POSTGRES_CONN_H

#include "store/postgres/libpq.h"

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

/* ---- conn.c ----------------------------------------------------------------------------------------------------- */

/* What became of the last statement. */
enum pg_outcome {
    PG_DONE,     /* it was carried out, and committed unless a transaction is open */
    PG_NOT_SENT, /* the server was never told */
    PG_UNDONE,   /* the server refused it, and nothing of it happened */
    PG_UNKNOWN,  /* the connection was lost, or time was up, after it was sent */
};

#define PG_SQLSTATE_BYTES 6
#define PG_PARAMS_MAX 20

struct pg_conn {
    const PQconninfoOption *where;
    const char             *shown;
    int                     stop_fd;      /* give up when it can be read; -1 = none */
    bool                    primary;      /* no standby, unless the URL says so */
    PGconn                 *pq;           /* NULL: not connected */
    bool                    pending;      /* answers of il__pg_send_only() are still to be read */
    bool                    unreplicated; /* a commit was no longer waited for on the standbys */
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

/* Read what is pending: only then it was sent and, by a pooler, passed on. */
void il__pg_conn_drain(struct pg_conn *c, int64_t until_ns);
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
/* False, and the last statement, whose answer makes no sense, has failed because of `what`. */
bool il__pg_misunderstood(struct pg_conn *c, const char *what);
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

#endif
