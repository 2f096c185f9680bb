/*
 * postgres.c: fenced transactions on the user's PostgreSQL database. Uses no session state, so it
 * works through a pooler in transaction mode.
 */
#include "guard/postgres_internal.h"

#include "base/clock.h"
#include "base/error.h"

#include "guard_postgres_sql.inc"

#define SHOW_TRIES_MAX 4

/* ---- transactions ---------------------------------------------------------------------------- */

static void
postgres_rollback(struct guard_conn *c)
{
    struct postgres_guard    *g = il__guard_postgres_from(c);
    struct postgres_statement s = { .sql        = sql_postgres_rollback,
                                    .until_ns   = il__guard_postgres_soon(g),
                                    .to_the_end = true };

    if (g->conn.pq == NULL)
        return;
    /* After an interrupt do not wait for the server; a transaction that cannot be rolled back
     * explicitly ends with its connection. */
    if (atomic_load(&c->interrupted) || il__guard_postgres_run(g, &s, NULL) != IL_OK)
        il__pg_conn_close(&g->conn);
}

static il_status
postgres_begin(struct guard_conn *c, bool read_only, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    il_status st = il__guard_postgres_exec(
        g, read_only ? sql_postgres_begin_read : sql_postgres_begin, reterr);
    if (st == IL_OK && !read_only)
        st = il__guard_postgres_exec(g, sql_postgres_idle, reterr);
    c->read_only = read_only;
    if (st != IL_OK)
        postgres_rollback(c);
    return st;
}

static il_status
explain_make(struct postgres_guard *g, il_status st, il_error *reterr)
{
    if (strcmp(g->sqlstate, "42501") == 0 || strcmp(g->sqlstate, "3F000") == 0)
        return il__error_set(reterr, IL_INVAL,
                             "%s: cannot create table interlock_fence as this user; see "
                             "src/guard/README.md for its CREATE TABLE",
                             g->url.shown);
    return st;
}

/* Did it fail because another connection created it at the same time? The error code depends on how
 * far that one was. */
static bool
is_made(const char *sqlstate)
{
    return strcmp(sqlstate, "42P07") == 0 || /* duplicate_table */
           strcmp(sqlstate, "42710") == 0 || /* duplicate_object: its row type */
           strcmp(sqlstate, "23505") == 0;   /* unique_violation, in the catalogue */
}

/* The table does not exist yet: create it in a separate transaction and begin again. */
static il_status
make_table(struct postgres_guard *g, il_error *reterr)
{
    postgres_rollback(&g->base);
    il_status st = il__guard_connect(&g->base, reterr);
    if (st == IL_OK)
        st = il__guard_postgres_exec(g, sql_postgres_fence_make, reterr);
    if (st != IL_OK && !is_made(g->sqlstate))
        return explain_make(g, st, reterr);
    return postgres_begin(&g->base, false, reterr);
}

/* May wait for transactions of other holders. */
static il_status
ask_fence(struct postgres_guard *g, const char *sql, const struct guard_shown *f, size_t n_values,
          struct guard_number *ret, il_error *reterr)
{
    const char               *values[] = { f->tenant, f->key, f->text };
    struct postgres_statement s        = { .sql      = sql,
                                           .values   = values,
                                           .n_values = n_values,
                                           .each     = il__guard_take_number,
                                           .cookie   = ret,
                                           .until_ns = il__pg_in_ms(g->base.timeout_ms) };

    *ret         = (struct guard_number){ 0 };
    il_status st = il__guard_postgres_run(g, &s, reterr);
    if (st == IL_STORE && g->sqlstate[0] == '\0')
        return il__error_set(
            reterr, IL_STORE,
            "%s: timed out; another transaction may be holding the fence of key '%.200s'",
            g->url.shown, f->key);
    return st;
}

/*
 * The transaction has done nothing yet: end it, record the fence as the highest in a separate
 * transaction, and begin again. Separate, and without the share lock from the previous check, so
 * that others with the same fence who do this at the same time only wait for each other briefly,
 * and never for a whole transaction. The next check tells whether it is the highest.
 */
static il_status
raise_fence(struct postgres_guard *g, const struct guard_shown *f, il_error *reterr)
{
    struct guard_number taken = { 0 };

    postgres_rollback(&g->base);
    il_status st = postgres_begin(&g->base, false, reterr);
    if (st == IL_OK)
        st = ask_fence(g, sql_postgres_fence_show, f, 3, &taken, reterr);
    if (st == IL_OK)
        st = il__guard_postgres_exec(g, taken.there ? sql_postgres_commit : sql_postgres_rollback,
                                     reterr);
    return st == IL_OK ? postgres_begin(&g->base, false, reterr) : st;
}

/* Check the key's row once and act on it. *again: check again. */
static il_status
look(struct postgres_guard *g, const struct guard_shown *f, bool first, bool *again,
     il_error *reterr)
{
    struct guard_number seen, taken;

    *again       = false;
    il_status st = ask_fence(g, sql_postgres_fence_share, f, 2, &seen, reterr);
    if (st != IL_OK && first && strcmp(g->sqlstate, "42P01") == 0) { /* undefined_table */
        *again = true;
        return make_table(g, reterr);
    }
    if (st != IL_OK || (seen.there && seen.number == f->number))
        return st;
    if (seen.there && seen.number > f->number)
        return il__guard_stale(f, seen.number, reterr);
    if (first) {
        *again = true;
        return raise_fence(g, f, reterr);
    }
    /* A statement of the transaction has tampered with it. */
    st = ask_fence(g, sql_postgres_fence_show, f, 3, &taken, reterr);
    return st == IL_OK && !taken.there ? il__guard_stale(f, 0, reterr) : st;
}

static il_status
postgres_show(struct guard_conn *c, const struct guard_shown *f, il_error *reterr)
{
    struct postgres_guard *g     = il__guard_postgres_from(c);
    bool                   first = c->tx == NULL; /* the transaction has done nothing else */
    bool                   again = true;
    il_status              st    = IL_OK;

    for (int i = 0; st == IL_OK && again && i < SHOW_TRIES_MAX; i++)
        st = look(g, f, first, &again, reterr);
    if (st == IL_OK && again)
        st = il__error_set(reterr, IL_STORE, "%s: the fence of key '%.200s' keeps being removed",
                           g->url.shown, f->key);
    return st;
}

/* Not interruptible: once it was sent, only the answer tells its outcome. */
static il_status
postgres_commit(struct guard_conn *c, il_error *reterr)
{
    struct postgres_guard    *g = il__guard_postgres_from(c);
    struct postgres_statement s = { .sql        = sql_postgres_commit,
                                    .until_ns   = il__guard_postgres_soon(g),
                                    .to_the_end = true };

    if (g->conn.pq == NULL) /* nothing was sent: the server rolls it back */
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    il_status st = il__guard_postgres_run(g, &s, reterr);
    if (st == IL_OK && strcmp(s.tag, "COMMIT") != 0)
        return il__error_set(reterr, IL_STATE, "%s: the transaction was rolled back", g->url.shown);
    if (st != IL_OK && g->sqlstate[0] == '\0') {
        il__pg_conn_close(&g->conn);
        il__error_set(reterr, IL_STORE,
                      "%s: connection lost during the commit; the outcome is unknown",
                      g->url.shown);
        if (reterr != NULL)
            (void)snprintf(reterr->native, sizeof reterr->native, "%s", GUARD_UNKNOWN);
    }
    return st;
}

/* ---- statements ------------------------------------------------------------------------------ */

static il_status
postgres_exec(struct guard_conn *c, const char *sql, const char *const *values, size_t n,
              guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    struct postgres_guard    *g = il__guard_postgres_from(c);
    struct postgres_statement s = {
        .sql = sql, .values = values, .n_values = n, .each = each, .cookie = cookie
    };

    if (il__guard_ends_transaction(sql))
        return il__error_set(reterr, IL_INVAL, "%s: %s", g->url.shown, GUARD_REFUSE_TEXT);
    il_status st = il__guard_postgres_run(g, &s, reterr);
    if (st == IL_OK && il__pq->PQtransactionStatus(g->conn.pq) != PQTRANS_INTRANS) {
        /* no statement does that; if one did, nothing may follow it */
        il__pg_conn_close(&g->conn);
        st = il__error_set(reterr, IL_INVAL, "%s: the statement ended the transaction",
                           g->url.shown);
    }
    *ret_n_changed = s.n_changed;
    return st;
}

static il_status
postgres_ask(struct guard_conn *c, enum guard_question what, const char *const *values, size_t n,
             guard_row_fn *each, void *cookie, il_error *reterr)
{
    static const char *const texts[] = {
        [GUARD_TABLE] = sql_postgres_table, [GUARD_COLUMN] = sql_postgres_column
    };
    struct postgres_statement s = {
        .sql = texts[what], .values = values, .n_values = n, .each = each, .cookie = cookie
    };

    return il__guard_postgres_run(il__guard_postgres_from(c), &s, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
postgres_free(struct guard_conn *c)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    il__pg_conn_close(&g->conn);
    il__pg_url_release(&g->url);
    il__guard_release(c);
    il__free(g->texts);
    il__free(g);
}

static il_status
postgres_connect(struct guard_conn *c, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    g->conn.retry_at_ns = 0; /* the caller waits before it retries */
    if (il__pg_conn_ready(&g->conn, il__guard_postgres_soon(g)))
        return IL_OK;
    if (atomic_load(&c->interrupted))
        return il__guard_cancelled(reterr);
    return il__pg_error(&g->conn, reterr);
}

static const struct guard_ops postgres_ops = {
    .free         = postgres_free,
    .connect      = postgres_connect,
    .begin        = postgres_begin,
    .show         = postgres_show,
    .commit       = postgres_commit,
    .rollback     = postgres_rollback,
    .exec         = postgres_exec,
    .ask          = postgres_ask,
    .shares       = il__guard_postgres_shares,
    .shared_show  = il__guard_postgres_shared_show,
    .shared_check = il__guard_postgres_shared_check,
};

il_status
il__guard_postgres_new(const char *url, int64_t timeout_ms, struct guard_conn **ret,
                       il_error *reterr)
{
    static const char prefix[] = "store URL: ";
    il_status         st       = il__pg_libpq_load(reterr);
    il_error          why      = { .message = "" };

    if (st != IL_OK)
        return st;
    struct postgres_guard *g = il__calloc(1, sizeof *g);
    if (g == NULL || !il__guard_init(&g->base, &postgres_ops, timeout_ms)) {
        il__free(g);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    st = il__pg_url_parse(&g->url, url, &why);
    if (st != IL_OK) {
        const char *text = why.message;
        if (strncmp(text, prefix, sizeof prefix - 1) == 0)
            text += sizeof prefix - 1;
        il__error_set(reterr, st, "connection URL: %s", text);
        postgres_free(&g->base);
        return st;
    }
    il__pg_conn_init(&g->conn, g->url.server, g->url.shown);
    g->conn.stop_fd = g->base.stop_fd;
    *ret            = &g->base;
    return IL_OK;
}
