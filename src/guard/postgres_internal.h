/*
 * postgres_internal.h: declarations shared by the guard's PostgreSQL files.
 */
#ifndef IL_GUARD_POSTGRES_INTERNAL_H
#define IL_GUARD_POSTGRES_INTERNAL_H

#include "guard/guard_internal.h"
#include "store/postgres/conn.h"

/* The values of a statement as libpq takes them. PostgreSQL infers their types, except for
 * blobs. */
struct postgres_params {
    const char *values[IL_GUARD_VALUES_MAX];
    Oid         types[IL_GUARD_VALUES_MAX];
    int         lengths[IL_GUARD_VALUES_MAX];
    int         formats[IL_GUARD_VALUES_MAX];
    char        numbers[IL_GUARD_VALUES_MAX][GUARD_NUMBER_BYTES];
};

struct postgres_guard {
    struct guard_conn base;
    struct pg_url     url;
    struct pg_conn    conn; /* connecting is as the engine's; statements are postgres_wait.c's */
    bool              is_borrowed;                 /* the caller's own connection */
    char             *begin, *begin_read;          /* with the settings of a transaction */
    void             *row_mem;                     /* arena: blobs of a row */
    char              sqlstate[PG_SQLSTATE_BYTES]; /* of the last statement; "" = it worked */
    struct postgres_params params; /* of the statement that is being sent: large for a stack */
};

static inline struct postgres_guard *
il__guard_postgres_from(struct guard_conn *c)
{
    return container_of(c, struct postgres_guard, base);
}

/* How a statement is run. */
struct postgres_run {
    int64_t                 until_ns;   /* timeout; 0 = never */
    bool                    to_the_end; /* not interruptible */
    struct guard_statement *before;     /* one before it in the same round trip; NULL: none */
    struct guard_statement *after;      /* and one after it; NULL: none */
    bool                    is_script;  /* several statements, without values and rows */
    char                    tag[16];    /* filled: INSERT, COMMIT, … */
};

/*
 * Execute it. IL_OK; IL_INVAL, IL_STALE, IL_UNIQUE and the like: the server refused it, and
 * g->sqlstate has the reason; IL_CANCELLED or a timeout: the server was asked to cancel, and the
 * connection is closed, which ends its transaction. IL_STORE with g->sqlstate "": the connection is
 * lost.
 */
il_status il__guard_postgres_run(struct postgres_guard *g, struct guard_statement *s,
                                 struct postgres_run *how, il_error *reterr) MUST_USE;
/* The deadline for connecting, and for answers that wait for no lock. */
int64_t il__guard_postgres_soon(const struct postgres_guard *g);
/* One of our own statements, or several, without rows or values, that wait for no lock. */
il_status il__guard_postgres_exec(struct postgres_guard *g, const char *sql, il_error *reterr)
    MUST_USE;
/* Close the connection, or leave it to its owner. */
void il__guard_postgres_close(struct postgres_guard *g);

/* ---- postgres_store.c ------------------------------------------------------------------------ */

il_status il__guard_postgres_shares(struct guard_conn *c, il *h, struct guard_shown *f, bool *ret,
                                    il_error *reterr);
il_status il__guard_postgres_shared_show(struct guard_conn *c, const struct guard_shown *f,
                                         il_error *reterr);
il_status il__guard_postgres_shared_check(struct guard_conn *c, const struct guard_shown *f,
                                          il_error *reterr);

#endif
