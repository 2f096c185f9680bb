/*
 * postgres_internal.h: declarations shared by the guard's PostgreSQL files.
 */
#ifndef IL_GUARD_POSTGRES_INTERNAL_H
#define IL_GUARD_POSTGRES_INTERNAL_H

#include "guard/guard_internal.h"
#include "store/postgres/conn.h"

struct postgres_guard {
    struct guard_conn base;
    struct pg_url     url;
    struct pg_conn    conn; /* connecting is as the engine's; statements are postgres_wait.c's */
    char              schema[PG_SCHEMA_BYTES_MAX + 1]; /* of the store, if in this database; "" */
    const char      **texts; /* names and values of a row; room for n_texts */
    size_t            n_texts;
    char              sqlstate[PG_SQLSTATE_BYTES]; /* of the last statement; "" = it worked */
};

static inline struct postgres_guard *
il__guard_postgres_from(struct guard_conn *c)
{
    return container_of(c, struct postgres_guard, base);
}

/* One statement: its text, its values, and the row callback. */
struct postgres_statement {
    const char        *sql;
    const char *const *values;
    size_t             n_values;
    guard_row_fn      *each; /* NULL: nobody */
    void              *cookie;
    int64_t            until_ns;   /* timeout; 0 = never */
    bool               to_the_end; /* not interruptible */
    int64_t            n_changed;  /* filled */
    char               tag[16];    /* filled: INSERT, COMMIT, … */
};

/*
 * Execute it. IL_OK; IL_INVAL, IL_STALE, IL_STORE and the like: the server refused it, and
 * g->sqlstate has the reason; IL_CANCELLED or a timeout: the server was asked to cancel, and the
 * connection is closed, which ends its transaction. IL_STORE with g->sqlstate "": the connection is
 * lost.
 */
il_status il__guard_postgres_run(struct postgres_guard *g, struct postgres_statement *s,
                                 il_error *reterr) MUST_USE;
/* The deadline for connecting, and for answers that wait for no lock: within the timeout, and
 * within 15 s. */
int64_t il__guard_postgres_soon(const struct postgres_guard *g);
/* The same for one of our own statements without rows or values that waits for no lock. */
il_status il__guard_postgres_exec(struct postgres_guard *g, const char *sql, il_error *reterr)
    MUST_USE;

/* ---- postgres_store.c ------------------------------------------------------------------------ */

il_status il__guard_postgres_shares(struct guard_conn *c, il *h, const struct guard_shown *f,
                                    bool *ret, il_error *reterr);
il_status il__guard_postgres_shared_show(struct guard_conn *c, const struct guard_shown *f,
                                         il_error *reterr);
il_status il__guard_postgres_shared_check(struct guard_conn *c, const struct guard_shown *f,
                                          il_error *reterr);

#endif
