/*
 * postgres.c: guarded transactions on a PostgreSQL database. Uses no session state, so it works
 * through a pooler in transaction mode.
 */
#include "guard/postgres_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#include "guard_postgres_sql.inc"

#define SHOW_TRIES_MAX 4
#define BEGIN_BYTES_MAX 4096
#define STATEMENT_GRACE_MS 5000 /* for the server to end a statement by itself */

/* ---- settings of a transaction --------------------------------------------------------------- */

static size_t
plain_name_bytes(const char *at)
{
    size_t n = 0;

    if (!isalpha((unsigned char)at[0]) && at[0] != '_' && at[0] != '$')
        return 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '$')
        n++;
    return n;
}

/* "a, b" as "\"a\", \"b\"" into *out (may be NULL). False: not a list of plain names. */
static bool
quote_path(const char *path, struct il__buf *out)
{
    for (bool first = true;; first = false) {
        path += strspn(path, " ");
        size_t n = plain_name_bytes(path);
        if (n == 0)
            return false;
        if (out != NULL)
            il__buf_addf(out, "%s\"%.*s\"", first ? "" : ", ", (int)n, path);
        path += n;
        path += strspn(path, " ");
        if (*path == '\0')
            return true;
        if (*path++ != ',')
            return false;
    }
}

il_status
il__guard_check_path(const char *search_path, il_error *reterr)
{
    if (strlen(search_path) <= IL_GUARD_NAME_BYTES_MAX && quote_path(search_path, NULL))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL,
                         "search_path '%.100s' must be a list of plain names such as a, b",
                         search_path);
}

static void
add_timeout(struct il__buf *out, const char *text, int64_t ms)
{
    char number[24];

    (void)snprintf(number, sizeof number, "%" PRId64, ms);
    il__guard_sql_fill(text, &(struct guard_fill){ "ms", number }, 1, out);
}

/* The statements that begin a transaction; sent as one. */
static char *
begin_text(const il_guard *db, bool read_only)
{
    AUTO_BUF struct il__buf out = { 0 }, names = { 0 };

    il__buf_init(&out, BEGIN_BYTES_MAX);
    il__buf_init(&names, BEGIN_BYTES_MAX);
    il__buf_adds(&out, read_only ? sql_postgres_begin_read : sql_postgres_begin);
    if (!read_only)
        il__buf_adds(&out, sql_postgres_idle);
    add_timeout(&out, sql_postgres_lock_timeout, db->lock_timeout_ms);
    if (db->statement_timeout_ms != IL_FOREVER)
        add_timeout(&out, sql_postgres_statement_timeout, db->statement_timeout_ms);
    if (db->search_path != NULL && quote_path(db->search_path, &names))
        il__guard_sql_fill(sql_postgres_search_path,
                           &(struct guard_fill){ "names", il__buf_str(&names) }, 1, &out);
    return il__buf_take(&out);
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void
postgres_rollback(struct guard_conn *c)
{
    struct postgres_guard *g   = il__guard_postgres_from(c);
    struct guard_statement s   = { .sql = sql_postgres_rollback };
    struct postgres_run    how = { .until_ns = il__guard_postgres_soon(g), .to_the_end = true };

    if (g->conn.pq == NULL)
        return;
    /* After an interrupt do not wait for the server; a transaction that cannot be rolled back
     * explicitly ends with its connection. */
    if ((atomic_load(&c->g->interrupted) && !g->is_borrowed) ||
        il__guard_postgres_run(g, &s, &how, NULL) != IL_OK)
        il__guard_postgres_close(g);
}

/* A statement ends with the transaction's deadline, if that comes first. */
static void
add_deadline(const struct guard_conn *c, struct il__buf *out)
{
    int64_t max_ms  = c->g->statement_timeout_ms;
    int64_t left_ms = MAX((c->limit.until_ns - il__clock_boot_ns()) / IL__NS_PER_MS, 1);

    if (max_ms == IL_FOREVER || left_ms < max_ms)
        add_timeout(out, sql_postgres_statement_timeout, MIN(left_ms, INT32_MAX));
}

static il_status
postgres_begin(struct guard_conn *c, bool read_only, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    if (g->conn.pq != NULL && il__pq->PQtransactionStatus(g->conn.pq) != PQTRANS_IDLE) {
        if (g->is_borrowed)
            return il__error_set(reterr, IL_STATE, "%s: a transaction is open on this connection",
                                 g->url.shown);
        il__guard_postgres_close(g); /* never continue somebody's transaction */
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    }
    const char             *begin = read_only ? g->begin_read : g->begin;
    AUTO_BUF struct il__buf text  = { 0 };
    if (c->limit.until_ns != 0) {
        il__buf_init(&text, BEGIN_BYTES_MAX);
        il__buf_adds(&text, begin);
        add_deadline(c, &text);
        begin = il__buf_str(&text);
    }
    il_status st = il__guard_postgres_exec(g, begin, reterr);
    c->read_only = read_only;
    if (st != IL_OK)
        postgres_rollback(c);
    return st;
}

/* ---- fences ---------------------------------------------------------------------------------- */

static il_status
explain_make(struct postgres_guard *g, il_status st, il_error *reterr)
{
    if (strcmp(g->sqlstate, "42501") == 0 || strcmp(g->sqlstate, "3F000") == 0)
        return il__error_set(reterr, IL_INVAL,
                             "%s: cannot create table interlock_fence as this user; see "
                             "docs/GUARDS.md for its CREATE TABLE",
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
    il_status st = g->base.ops->connect(&g->base, reterr);
    if (st == IL_OK)
        st = postgres_begin(&g->base, false, reterr); /* for its search_path */
    if (st != IL_OK)
        return st;
    st = il__guard_postgres_exec(g, sql_postgres_fence_make, reterr);
    if (st == IL_OK)
        st = il__guard_postgres_exec(g, sql_postgres_commit, reterr);
    if (st != IL_OK && !is_made(g->sqlstate))
        return explain_make(g, st, reterr);
    if (st != IL_OK)
        postgres_rollback(&g->base);
    return postgres_begin(&g->base, false, reterr);
}

/* May wait for transactions of other holders. */
static il_status
ask_fence(struct postgres_guard *g, const char *sql, const struct guard_shown *f, size_t n_values,
          struct guard_number *ret, il_error *reterr)
{
    il_guard_value         values[]   = { il_guard_text(f->tenant), il_guard_text(f->key),
                                          il_guard_text(f->text) };
    struct guard_statement s          = { .sql      = sql,
                                          .values   = values,
                                          .n_values = n_values,
                                          .each     = il__guard_take_number,
                                          .cookie   = ret };
    int64_t                timeout_ms = g->base.g->lock_timeout_ms + STATEMENT_GRACE_MS;
    struct postgres_run    how        = { .until_ns = il__pg_in_ms(timeout_ms) };

    *ret         = (struct guard_number){ 0 };
    il_status st = il__guard_postgres_run(g, &s, &how, reterr);
    if (st == IL_TIMEOUT || (st == IL_STORE && g->sqlstate[0] == '\0'))
        return il__error_set(
            reterr, st == IL_TIMEOUT ? IL_TIMEOUT : IL_STORE,
            "%s: timed out; another transaction may be holding the fence of key '%.200s'",
            g->url.shown, f->key);
    return st;
}

/*
 * The transaction has done nothing yet: end it, record the fences as the highest in a separate
 * transaction, and begin again. Separate, and without the share locks from the previous check, so
 * that others with the same fences who do this at the same time only wait for each other briefly,
 * and never for a whole transaction. The next check tells whether they are the highest.
 */
static il_status
raise_fences(struct postgres_guard *g, const struct guard_shown *const *fences, size_t n,
             il_error *reterr)
{
    struct guard_number taken = { .there = true };

    postgres_rollback(&g->base);
    il_status st = postgres_begin(&g->base, false, reterr);
    for (size_t i = 0; st == IL_OK && taken.there && i < n; i++)
        st = ask_fence(g, sql_postgres_fence_show, fences[i], 3, &taken, reterr);
    if (st != IL_OK) {
        postgres_rollback(&g->base);
        return st;
    }
    st = il__guard_postgres_exec(g, taken.there ? sql_postgres_commit : sql_postgres_rollback,
                                 reterr);
    return st == IL_OK ? postgres_begin(&g->base, false, reterr) : st;
}

/* The highest fence shown for a key, which cannot change until the end: 0 = ours is. */
static il_status
look(struct postgres_guard *g, const struct guard_shown *f, bool *ret_is_ours, il_error *reterr)
{
    struct guard_number seen;

    il_status st = ask_fence(g, sql_postgres_fence_share, f, 2, &seen, reterr);
    if (st == IL_OK && seen.there && (uint64_t)seen.number > f->number)
        return il__guard_stale(f, (uint64_t)seen.number, reterr);
    *ret_is_ours = seen.there && (uint64_t)seen.number == f->number;
    return st;
}

/* A statement of the transaction has tampered with the table. */
static il_status
show_again(struct postgres_guard *g, const struct guard_shown *f, il_error *reterr)
{
    struct guard_number taken;

    il_status st = ask_fence(g, sql_postgres_fence_show, f, 3, &taken, reterr);
    return st == IL_OK && !taken.there ? il__guard_stale(f, 0, reterr) : st;
}

/* Look at all keys once, in their order. *ret_all: our fences are the highest. */
static il_status
look_at_all(struct postgres_guard *g, const struct guard_shown *const *fences, size_t n, bool first,
            bool *ret_all, il_error *reterr)
{
    il_status st = IL_OK;

    *ret_all = true;
    for (size_t i = 0; st == IL_OK && *ret_all && i < n; i++) {
        bool is_ours = false;
        st           = look(g, fences[i], &is_ours, reterr);
        if (st == IL_OK && !is_ours && !first)
            st = show_again(g, fences[i], reterr);
        else if (st == IL_OK)
            *ret_all = is_ours;
    }
    return st;
}

static il_status
postgres_show(struct guard_conn *c, const struct guard_shown *const *fences, size_t n, bool first,
              il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    for (int i = 0; i < SHOW_TRIES_MAX; i++) {
        bool      all = false;
        il_status st  = look_at_all(g, fences, n, first, &all, reterr);
        if (st != IL_OK && first && strcmp(g->sqlstate, "42P01") == 0) /* undefined_table */
            st = make_table(g, reterr);
        else if (st == IL_OK && !all)
            st = raise_fences(g, fences, n, reterr);
        else
            return st;
        if (st != IL_OK)
            return st;
    }
    return il__error_set(
        reterr, IL_STORE,
        "%s: cannot record the fence of key '%.200s': another session keeps deleting it",
        g->url.shown, fences[0]->key);
}

/* ---- commit ---------------------------------------------------------------------------------- */

/* Not interruptible: once it was sent, only the answer tells its outcome. */
static il_status
postgres_commit(struct guard_conn *c, il_error *reterr)
{
    struct postgres_guard *g   = il__guard_postgres_from(c);
    struct guard_statement s   = { .sql = sql_postgres_commit };
    struct postgres_run    how = { .until_ns   = il__pg_in_ms(GUARD_ANSWER_MS_MAX),
                                   .to_the_end = true,
                                   .is_script  = true }; /* a simple query costs the least */

    if (g->conn.pq == NULL) /* nothing was sent: the server rolls it back */
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    il_error  err = { .message = "" };
    il_status st  = il__guard_postgres_run(g, &s, &how, &err);
    if (strcmp(how.tag, "COMMIT") == 0) /* whatever became of the connection after that */
        return IL_OK;
    if (reterr != NULL)
        *reterr = err;
    if (st == IL_OK)
        return il__error_set(reterr, IL_STATE, "%s: the transaction was rolled back", g->url.shown);
    if (g->conn.pq == NULL)
        return il__error_set(reterr, IL_UNKNOWN,
                             "%s: connection lost during the commit; the outcome is unknown",
                             g->url.shown);
    postgres_rollback(c); /* refused before it began: the transaction is still open */
    return st;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* The server ends a statement that takes too long; if it does not answer at all, we give up. */
static int64_t
statement_deadline(const struct postgres_guard *g, int64_t n_statements)
{
    int64_t ms = g->base.g->statement_timeout_ms; /* the server begins anew with each of them */

    return ms == IL_FOREVER ? 0 : il__pg_in_ms(n_statements * ms + STATEMENT_GRACE_MS);
}

static il_status
run(struct postgres_guard *g, struct guard_statement *s, struct postgres_run *how, il_error *reterr)
{
    if (s->is_theirs && il__guard_ends_transaction(s->sql, true))
        return il__error_set(reterr, IL_INVAL, "%s: %s", g->url.shown, GUARD_REFUSE_TEXT);
    il_status st = il__guard_postgres_run(g, s, how, reterr);
    if (st == IL_OK && il__pq->PQtransactionStatus(g->conn.pq) != PQTRANS_INTRANS) {
        /* no statement does that; if one did, nothing may follow it */
        il__guard_postgres_close(g);
        st = il__error_set(reterr, IL_INVAL, "%s: the statement ended the transaction",
                           g->url.shown);
    }
    return st;
}

static il_status
postgres_run(struct guard_conn *c, struct guard_statement *s, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);
    struct postgres_run how  = { .until_ns = statement_deadline(g, 1), .is_script = s->is_script };

    return run(g, s, &how, reterr);
}

static il_status
postgres_run_both(struct guard_conn *c, struct guard_statement *first,
                  struct guard_statement *second, il_error *reterr)
{
    struct postgres_guard *g   = il__guard_postgres_from(c);
    struct postgres_run    how = { .until_ns = statement_deadline(g, 2), .before = first };

    return run(g, second, &how, reterr);
}

/* ---- savepoints ------------------------------------------------------------------------------ */

#define SAVEPOINT_BYTES 64

static void
fill_savepoint(char out[SAVEPOINT_BYTES], const char *text, unsigned depth)
{
    AUTO_BUF struct il__buf sql = { 0 };
    char                    name[32];

    (void)snprintf(name, sizeof name, "il_%u", depth);
    il__buf_init(&sql, SAVEPOINT_BYTES);
    il__guard_sql_fill(text, &(struct guard_fill){ "name", name }, 1, &sql);
    (void)snprintf(out, SAVEPOINT_BYTES, "%s", il__buf_str(&sql));
}

static il_status
postgres_savepoint(struct guard_conn *c, enum guard_savepoint what, unsigned depth,
                   il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);
    char                   first[SAVEPOINT_BYTES], second[SAVEPOINT_BYTES];
    char                   both[2 * SAVEPOINT_BYTES];

    fill_savepoint(first, sql_postgres_savepoint_undo, depth);
    fill_savepoint(second, sql_postgres_savepoint_release, depth);
    if (what == GUARD_SAVEPOINT_SET)
        fill_savepoint(second, sql_postgres_savepoint, depth);
    (void)snprintf(both, sizeof both, "%s%s", what == GUARD_SAVEPOINT_UNDO ? first : "", second);
    return il__guard_postgres_exec(g, both, reterr);
}

static il_status
postgres_run_in_savepoint(struct guard_conn *c, struct guard_statement *s, unsigned depth,
                          il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);
    char                   set[SAVEPOINT_BYTES], release[SAVEPOINT_BYTES];
    char                   sqlstate[PG_SQLSTATE_BYTES];
    struct guard_statement before = { .sql = set }, after = { .sql = release };
    struct postgres_run    how = { .until_ns = statement_deadline(g, 1),
                                   .before   = &before,
                                   .after    = &after };

    fill_savepoint(set, sql_postgres_savepoint, depth);
    fill_savepoint(release, sql_postgres_savepoint_release, depth);
    il_status st = il__guard_postgres_run(g, s, &how, reterr);
    if (st == IL_OK || g->conn.pq == NULL)
        return st;
    memcpy(sqlstate, g->sqlstate, sizeof sqlstate);
    il_status undone = postgres_savepoint(c, GUARD_SAVEPOINT_UNDO, depth, NULL);
    memcpy(g->sqlstate, sqlstate, sizeof sqlstate);
    if (undone == IL_OK || st != IL_UNIQUE)
        return st;
    return il__error_set(reterr, undone, "%s: cannot roll back to a savepoint", g->url.shown);
}

static bool
postgres_is_lost(const struct guard_conn *c)
{
    return const_container_of(c, struct postgres_guard, base)->conn.pq == NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
postgres_free(struct guard_conn *c)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    il__guard_postgres_close(g);
    il__pg_url_release(&g->url);
    il__arena_free(&g->row_mem);
    il__free(g->begin);
    il__free(g->begin_read);
    il__guard_release_room(&g->base);
    il__free(g);
}

static il_status
postgres_connect(struct guard_conn *c, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    if (g->is_borrowed) {
        if (g->conn.pq != NULL && il__pq->PQstatus(g->conn.pq) == CONNECTION_OK)
            return IL_OK;
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    }
    bool    was_connected = g->conn.pq != NULL;
    int64_t until_ns      = il__guard_postgres_soon(g);
    if (c->limit.until_ns != 0)
        until_ns = MIN(until_ns, c->limit.until_ns);
    g->conn.stop_fd     = il__guard_stop_fd(c->g, c->limit);
    g->conn.retry_at_ns = 0; /* the caller waits before it retries */
    if (il__pg_conn_ready(&g->conn, until_ns)) {
        if (!was_connected)
            il__guard_names_release(c); /* it may be another server by now */
        return IL_OK;
    }
    il_status st = il__guard_check_deadline(c, reterr);
    return st != IL_OK ? st : il__pg_error(&g->conn, reterr);
}

static const char *const postgres_texts[GUARD_TEXT_COUNT] = {
    [GUARD_TEXT_TABLE]       = sql_postgres_table,
    [GUARD_TEXT_COLUMN]      = sql_postgres_column,
    [GUARD_TEXT_PRIMARY_KEY] = sql_postgres_primary_key,
    [GUARD_TEXT_CONSTRAINT]  = sql_postgres_constraint,
    [GUARD_TEXT_LOCK]        = sql_postgres_lock,
    [GUARD_TEXT_LOCK_MANY]   = sql_postgres_lock_many,
    [GUARD_TEXT_DONE_MAKE]   = sql_postgres_done_make,
    [GUARD_TEXT_DONE_ADD]    = sql_postgres_done_add,
};

static const struct guard_ops postgres_ops = {
    .texts            = postgres_texts,
    .free             = postgres_free,
    .connect          = postgres_connect,
    .begin            = postgres_begin,
    .show             = postgres_show,
    .commit           = postgres_commit,
    .rollback         = postgres_rollback,
    .run              = postgres_run,
    .run_both         = postgres_run_both,
    .savepoint        = postgres_savepoint,
    .run_in_savepoint = postgres_run_in_savepoint,
    .is_lost          = postgres_is_lost,
    .shares           = il__guard_postgres_shares,
    .shared_show      = il__guard_postgres_shared_show,
    .shared_check     = il__guard_postgres_shared_check,
    .is_postgres      = true,
};

static il_status
postgres_new(il_guard *db, struct postgres_guard **ret, il_error *reterr)
{
    il_status st = il__pg_libpq_load(reterr);

    if (st != IL_OK)
        return st;
    struct postgres_guard *g = il__calloc(1, sizeof *g);
    if (g == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    g->base.ops   = &postgres_ops;
    g->base.g     = db;
    g->begin      = begin_text(db, false);
    g->begin_read = begin_text(db, true);
    if (g->begin == NULL || g->begin_read == NULL) {
        postgres_free(&g->base);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    *ret = g;
    return IL_OK;
}

/* As the store's URL, with the name that it has here. */
static il_status
parse_url(struct pg_url *u, const char *url, il_error *reterr)
{
    static const char prefix[] = "store URL: ";
    il_error          why      = { .message = "" };
    const char       *text     = why.message;

    il_status st = il__pg_url_parse(u, url, &why);
    if (st == IL_OK)
        return IL_OK;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    return il__error_set(reterr, st, "database URL: %s", text);
}

il_status
il__guard_url_parse(const char *url, struct il__guard_url *ret, il_error *reterr)
{
    struct pg_url u  = { 0 };
    il_status     st = il__pg_libpq_load(reterr);

    if (st != IL_OK)
        return st;
    st = parse_url(&u, url, reterr);
    if (st == IL_OK) {
        _Static_assert(sizeof ret->schema >= sizeof u.schema, "any schema fits");
        _Static_assert(sizeof ret->shown >= sizeof u.shown, "any server fits");
        (void)snprintf(ret->schema, sizeof ret->schema, "%s", u.schema);
        (void)snprintf(ret->shown, sizeof ret->shown, "%s", u.shown);
    }
    il__pg_url_release(&u);
    return st;
}

il_status
il__guard_postgres_new(il_guard *db, const char *url, struct guard_conn **ret, il_error *reterr)
{
    struct postgres_guard *g = NULL;

    il_status st = postgres_new(db, &g, reterr);
    if (st != IL_OK)
        return st;
    CHECK(g != NULL);
    st = parse_url(&g->url, url, reterr);
    if (st != IL_OK) {
        postgres_free(&g->base);
        return st;
    }
    il__pg_conn_init(&g->conn, g->url.server, g->url.shown);
    *ret = &g->base;
    return IL_OK;
}

il_status
il__guard_postgres_borrow(il_guard *db, struct pg_conn *pq, struct guard_conn **ret,
                          il_error *reterr)
{
    struct postgres_guard *g = NULL;

    il_status st = postgres_new(db, &g, reterr);
    if (st != IL_OK)
        return st;
    CHECK(g != NULL);
    (void)snprintf(g->url.shown, sizeof g->url.shown, "postgres connection");
    g->is_borrowed  = true;
    g->conn.pq      = pq;
    g->conn.stop_fd = -1;
    *ret            = &g->base;
    return IL_OK;
}
