/*
 * tx.c: transactions: begin, commit, roll back, statements, savepoints, tags.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#define TIMEOUT_MS_MAX (INT64_C(366) * 86400000)

/* ---- state ----------------------------------------------------------------------------------- */

il_status
il__guard_usable(const il_guard_tx *tx, il_error *reterr)
{
    if (tx->failed)
        return il__error_set(reterr, IL_STATE,
                             "a statement failed; roll back the transaction or savepoint");
    return il__guard_check_deadline(tx->c, reterr);
}

bool
il__guard_is_conflict(il_status st, const il_error *err)
{
    if (st == IL_TIMEOUT && err != NULL)
        return strcmp(err->native, "57014") != 0; /* query_canceled: statement_timeout */
    return st == IL_DEADLOCK || st == IL_SERIALIZATION || st == IL_TIMEOUT;
}

il_status
il__guard_fail(il_guard_tx *tx, il_status st, const il_error *err)
{
    CHECK(st != IL_OK);
    tx->failed = true;
    if (tx->first_failure == IL_OK) {
        tx->first_failure = st;
        tx->conflict      = il__guard_is_conflict(st, err);
        if (err != NULL)
            (void)snprintf(tx->constraint, sizeof tx->constraint, "%s", err->constraint);
    }
    return st;
}

/* The outcome that a failure means for observers. */
static il_guard_outcome
outcome_of(il_status st)
{
    switch (st) {
    case IL_STALE:
    case IL_ORDER:
        return IL_GUARD_REFUSED;
    case IL_DEADLOCK:
    case IL_SERIALIZATION:
    case IL_TIMEOUT:
        return IL_GUARD_CONFLICT;
    case IL_UNIQUE:
    case IL_CHECK:
    case IL_FOREIGN_KEY:
        return IL_GUARD_VIOLATION;
    case IL_UNKNOWN:
        return IL_GUARD_UNKNOWN;
    default:
        return IL_GUARD_ROLLED_BACK;
    }
}

const char *
il_guard_outcome_name(il_guard_outcome outcome)
{
    static const char *const names[] = { "committed", "rolled_back", "refused",
                                         "conflict",  "violation",   "unknown" };
    _Static_assert(ARRAY_LEN(names) == IL_GUARD_OUTCOME_COUNT, "a name for each outcome");

    return (unsigned)outcome < IL_GUARD_OUTCOME_COUNT ? names[outcome] : "none";
}

/* Give the connection back, report, and free. */
static void
tx_end(il_guard_tx *tx, il_guard_outcome outcome)
{
    il__guard_tx_remove(tx);
    il__guard_row_let_go(tx, 0);
    if (tx->c != NULL) {
        /* A table or column may have changed its name, or a name its meaning. */
        if (tx->first_failure == IL_INVAL || tx->path_changed)
            il__guard_names_release(tx->c);
        il__guard_conn_give(tx->c);
    }
    il__guard_report(tx, outcome);
    il__arena_free(&tx->mem);
    il__free(tx->rows);
    il__free(tx);
}

/* ---- begin ----------------------------------------------------------------------------------- */

struct guard_limit
il__guard_limit(const il_guard_tx_opts *o)
{
    struct guard_limit limit = { 0 };

    if (o == NULL || o->struct_size != sizeof *o) /* bad options are refused later */
        return limit;
    if (o->timeout_ms > 0)
        limit.until_ns = il__clock_boot_ns() + MIN(o->timeout_ms, TIMEOUT_MS_MAX) * IL__NS_PER_MS;
    limit.stop = o->stop;
    return limit;
}

static il_status
check_options(const il_guard_tx_opts *o, bool may_be_once, il_error *reterr)
{
    const char *const names[] = { o->pipeline, o->caller };

    if (o->struct_size != sizeof *o)
        return il__error_set(reterr, IL_INVAL,
                             "il_guard_tx_opts was not initialized with IL_GUARD_TX_OPTS_INIT");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i] != NULL && strlen(names[i]) > IL_GUARD_NAME_BYTES_MAX)
            return il__error_set(reterr, IL_INVAL, "a pipeline or caller has at most %d bytes",
                                 IL_GUARD_NAME_BYTES_MAX);
    }
    if (o->n_fences > 0 && o->fences == NULL)
        return il__error_set(reterr, IL_INVAL, "no fences given");
    if ((o->flags & ~(uint32_t)IL_GUARD_READ_ONLY) != 0)
        return il__error_set(reterr, IL_INVAL, "unknown flags 0x%x", (unsigned)o->flags);
    if (o->tries_max > IL_GUARD_TRIES_MAX)
        return il__error_set(reterr, IL_INVAL, "tries_max is %u; the limit is %d",
                             (unsigned)o->tries_max, IL_GUARD_TRIES_MAX);
    if (o->timeout_ms < 0)
        return il__error_set(reterr, IL_INVAL, "timeout_ms must not be negative");
    if (o->once_key == NULL)
        return IL_OK;
    if (!may_be_once || (o->flags & IL_GUARD_READ_ONLY) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "once_key needs il_guard_transact() and a read-write transaction");
    if (o->once_key[0] == '\0' || strlen(o->once_key) > IL_ONCE_KEY_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "once_key must have 1 to %d bytes",
                             IL_ONCE_KEY_BYTES_MAX);
    return IL_OK;
}

static il_status
tx_new(il_guard *g, const il_guard_tx_opts *o, unsigned n_attempt, il_guard_tx **ret,
       il_error *reterr)
{
    il_guard_tx *tx = il__calloc(1, sizeof *tx);

    if (tx == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    tx->g         = g;
    tx->read_only = (o->flags & IL_GUARD_READ_ONLY) != 0;
    tx->n_attempt = n_attempt;
    tx->pipeline  = il__arena_strdup(&tx->mem, o->pipeline != NULL ? o->pipeline : "");
    tx->caller    = il__arena_strdup(&tx->mem, o->caller != NULL ? o->caller : "");
    il_status st  = tx->pipeline != NULL && tx->caller != NULL
                        ? il__guard_fences_take(tx, o->fences, o->n_fences, reterr)
                        : il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    if (st == IL_OK)
        *ret = tx;
    else
        tx_end(tx, IL_GUARD_ROLLED_BACK);
    return st;
}

il_status
il__guard_begin_attempt(il_guard *g, const il_guard_tx_opts *opts, unsigned n_attempt,
                        struct guard_limit limit, il_guard_tx **ret, il_error *reterr)
{
    static const il_guard_tx_opts defaults = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx                  *tx       = NULL;

    if (opts == NULL)
        opts = &defaults;
    if (g == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    il_status st = check_options(opts, n_attempt > 0, reterr);
    if (st == IL_OK && limit.stop != NULL && limit.stop->g != g)
        st = il__error_set(reterr, IL_INVAL, "the stop switch belongs to another handle");
    if (st == IL_OK)
        st = tx_new(g, opts, MAX(n_attempt, 1), &tx, reterr);
    if (st != IL_OK)
        return st;
    CHECK(tx != NULL);
    st = il__guard_conn_take(g, limit, &tx->c, reterr);
    if (st == IL_OK) {
        CHECK(tx->c != NULL);
        int64_t began_ns = il__clock_boot_ns();
        st               = il__guard_fences_begin(tx, reterr);
        if (!tx->c->ops->is_postgres)
            tx->begin_wait_ns = il__clock_boot_ns() - began_ns;
    }
    if (st != IL_OK) {
        tx_end(tx, IL_GUARD_ROLLED_BACK);
        return st;
    }
    il__guard_tx_add(tx);
    *ret = tx;
    return IL_OK;
}

il_status
il_guard_begin(il_guard *g, const il_guard_tx_opts *opts, il_guard_tx **ret, il_error *reterr)
{
    return il__guard_begin_attempt(g, opts, 0, il__guard_limit(opts), ret, reterr);
}

/* ---- end ------------------------------------------------------------------------------------- */

static il_status
check(il_guard_tx *tx, il_error *reterr)
{
    if (tx->failed)
        return il__error_set(reterr, IL_STATE, "cannot commit: a statement failed; rolled back");
    if (tx->depth > 0)
        return il__error_set(reterr, IL_STATE, "cannot commit: a savepoint is open; rolled back");
    il_status st = il__guard_check_deadline(tx->c, reterr);
    return st == IL_OK ? il__guard_fences_check(tx, reterr) : st;
}

il_status
il_guard_commit(il_guard_tx *tx, il_error *reterr)
{
    if (tx == NULL)
        return il__error_set(reterr, IL_INVAL, "no transaction given");
    struct guard_conn *c  = tx->c;
    il_status          st = check(tx, reterr);

    if (st == IL_OK && !tx->read_only)
        st = c->ops->commit(c, reterr);
    else
        c->ops->rollback(c);
    if (st == IL_OK) {
        tx_end(tx, IL_GUARD_COMMITTED);
    } else {
        (void)il__guard_fail(tx, st, reterr); /* names a deferred constraint */
        tx_end(tx, outcome_of(tx->first_failure));
    }
    return st;
}

void
il__guard_abort(il_guard_tx *tx, il_status st)
{
    tx->c->ops->rollback(tx->c);
    tx_end(tx, outcome_of(tx->first_failure != IL_OK ? tx->first_failure : st));
}

void
il_guard_rollback(il_guard_tx *tx)
{
    if (tx != NULL)
        il__guard_abort(tx, IL_OK);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* first NULL: alone. */
static il_status
run(il_guard_tx *tx, struct guard_statement *first, struct guard_statement *s, il_error *reterr)
{
    il_error  own = { .message = "" };
    il_error *err = reterr != NULL ? reterr : &own;

    il_status st = il__guard_usable(tx, err);
    if (st == IL_CANCELLED)
        return il__guard_fail(tx, st, err);
    if (st != IL_OK)
        return st;
    tx->n_queries++;
    st =
        first != NULL ? tx->c->ops->run_both(tx->c, first, s, err) : tx->c->ops->run(tx->c, s, err);
    return st == IL_OK ? IL_OK : il__guard_fail(tx, st, err);
}

il_status
il__guard_run(il_guard_tx *tx, struct guard_statement *s, il_error *reterr)
{
    return run(tx, NULL, s, reterr);
}

il_status
il__guard_run_both(il_guard_tx *tx, struct guard_statement *first, struct guard_statement *second,
                   il_error *reterr)
{
    return run(tx, first, second, reterr);
}

il_status
il__guard_query(il_guard_tx *tx, const il_guard_query *query, struct guard_statement *ret,
                il_error *reterr)
{
    if (tx == NULL || query == NULL || query->sql == NULL ||
        (query->values == NULL && query->n_values > 0))
        return il__error_set(reterr, IL_INVAL, "tx, statement and values must be given");
    if (query->n_values > IL_GUARD_VALUES_MAX)
        return il__guard_fail(tx,
                              il__error_set(reterr, IL_INVAL,
                                            "%zu values for one statement; the limit is %d",
                                            query->n_values, IL_GUARD_VALUES_MAX),
                              NULL);
    for (size_t i = 0; i < query->n_values; i++) {
        if (!il__guard_value_is_valid(&query->values[i]))
            return il__guard_fail(
                tx, il__error_set(reterr, IL_INVAL, "value %zu is not initialized", i + 1), NULL);
    }
    *ret = (struct guard_statement){
        .sql       = query->sql,
        .values    = query->values,
        .n_values  = query->n_values,
        .each      = query->each,
        .cookie    = query->cookie,
        .as_text   = (query->flags & IL_GUARD_AS_TEXT) != 0,
        .is_theirs = true,
    };
    return IL_OK;
}

il_status
il_guard_exec(il_guard_tx *tx, const il_guard_query *query, int64_t *ret_n_changed,
              il_error *reterr)
{
    struct guard_statement s;

    il_status st = il__guard_query(tx, query, &s, reterr);
    if (st != IL_OK)
        return st;
    st = il__guard_run(tx, &s, reterr);
    if (tx->c->ops->is_postgres && il__guard_sets_path(query->sql)) {
        tx->path_changed = true;
        il__guard_names_outdate(tx->c);
    }
    if (st == IL_OK && ret_n_changed != NULL)
        *ret_n_changed = s.n_changed;
    return st;
}

il_status
il__guard_script(il_guard_tx *tx, const char *sql, il_error *reterr)
{
    il_status st =
        il__guard_run(tx, &(struct guard_statement){ .sql = sql, .is_script = true }, reterr);

    il__guard_names_outdate(tx->c);
    return st;
}

bool
il__guard_tx_is_postgres(const il_guard_tx *tx)
{
    return tx->c->ops->is_postgres;
}

/* ---- savepoints ------------------------------------------------------------------------------ */

il_status
il_guard_try(il_guard_tx *tx, il_guard_fn *fn, void *cookie, il_error *reterr)
{
    if (tx == NULL || fn == NULL)
        return il__error_set(reterr, IL_INVAL, "no transaction or no function given");
    il_status st = il__guard_usable(tx, reterr);
    if (st != IL_OK)
        return st;
    size_t                  n_rows = tx->n_rows;
    const struct guard_ops *ops    = tx->c->ops;
    st = ops->savepoint(tx->c, GUARD_SAVEPOINT_SET, tx->depth + 1, reterr);
    if (st != IL_OK)
        return il__guard_fail(tx, st, reterr);
    tx->depth++;
    st = fn(cookie, tx, reterr);
    if (st == IL_OK && tx->failed) /* it has hidden a failure */
        st = il__error_set(reterr, tx->first_failure, "a statement in the savepoint failed");
    tx->depth--;
    if (st == IL_OK) {
        st = ops->savepoint(tx->c, GUARD_SAVEPOINT_RELEASE, tx->depth + 1, reterr);
        return st == IL_OK ? IL_OK : il__guard_fail(tx, st, reterr);
    }
    /* What failed may be why it cannot be undone; that failure is the one to report. */
    if (ops->is_lost(tx->c) ||
        ops->savepoint(tx->c, GUARD_SAVEPOINT_UNDO, tx->depth + 1, NULL) != IL_OK) {
        tx->failed = true;
        return st;
    }
    il__guard_row_let_go(tx, n_rows); /* the database has released them */
    tx->failed        = false;
    tx->first_failure = IL_OK;
    tx->constraint[0] = '\0';
    return st;
}

/* ---- tags ------------------------------------------------------------------------------------ */

il_status
il_guard_tag(il_guard_tx *tx, const char *name, il_guard_value value, il_error *reterr)
{
    if (tx == NULL || name == NULL || name[0] == '\0' || strlen(name) > IL_GUARD_NAME_BYTES_MAX ||
        !il__guard_value_is_valid(&value))
        return il__error_set(reterr, IL_INVAL, "a tag needs a name of 1 to %d bytes and a value",
                             IL_GUARD_NAME_BYTES_MAX);
    if (tx->n_tags == IL_GUARD_TAGS_MAX)
        return il__error_set(reterr, IL_LIMIT, "too many tags in one transaction (maximum %d)",
                             IL_GUARD_TAGS_MAX);
    il_guard_column *tag = &tx->tags[tx->n_tags];
    tag->name            = il__arena_strdup(&tx->mem, name);
    if (tag->name == NULL || !il__guard_value_copy(&tx->mem, &value, &tag->value))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a tag");
    tx->n_tags++;
    return IL_OK;
}
