/*
 * store.c: opens a store by its URL, and wraps an engine's callbacks with checks of what all
 * engines must guarantee, before and after each call.
 */
#include "store/store.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/limits.h"
#include "core/op.h"

#define TIMEOUT_MS_DEFAULT 5000

static const struct engine {
    const char *scheme;
    il_status (*open)(const struct il__store_open *o, struct il__store **ret, il_error *reterr);
    bool has_options; /* it parses the query of the URL itself; only clock=test is handled here */
    /* NULL: opening does it. */
    il_status (*migrate)(const struct il__store_open *o, bool check, struct il__migration *ret,
                         il_error *reterr);
} engines[] = {
    { "memory:", il__store_memory_open, false, NULL },
    { "sqlite:", il__store_sqlite_open, false, NULL },
    { "postgres:", il__store_postgres_open, true, il__store_postgres_migrate },
    { "postgresql:", il__store_postgres_open, true, il__store_postgres_migrate },
    { "redis:", il__store_redis_open, true, NULL },
    { "rediss:", il__store_redis_open, true, NULL },
    { "redis+unix:", il__store_redis_open, true, NULL },
    { "http:", il__store_server_open, true, NULL },
    { "https:", il__store_server_open, true, NULL },
    { "http+unix:", il__store_server_open, true, NULL },
};

static const struct engine *
engine_of(const char *url)
{
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (strncmp(url, engines[i].scheme, strlen(engines[i].scheme)) == 0)
            return &engines[i];
    }
    return NULL;
}

/* The part of a URL that is safe to show: the scheme. What follows may hold a password. */
static il_status
refuse_scheme(const char *url, il_error *reterr)
{
    size_t n = strcspn(url, ":/?@");

    if (url[n] != ':')
        return il__error_set(
            reterr, IL_INVAL,
            "the store must be a URL such as sqlite:PATH or memory:; this one has no scheme");
    return il__error_set(
        reterr, IL_INVAL,
        "unknown engine '%.*s:' (known: memory:, sqlite:, postgres:, redis:, http:)",
        (int)MIN(n, 32), url);
}

/* Is this one of the options of a query? */
static bool
has_option(const char *query, const char *option)
{
    size_t n = strlen(option);

    for (const char *at = query; at != NULL; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, option, n) == 0 && (at[n] == '\0' || at[n] == '&'))
            return true;
    }
    return false;
}

/* The query: only clock=test is known, unless the engine knows more. */
static il_status
parse_query(const struct engine *engine, const char *query, struct il__store_open *o,
            il_error *reterr)
{
    if (query == NULL)
        return IL_OK;
    o->test_clock = has_option(query, "clock=test");
    if (!engine->has_options && strcmp(query, "clock=test") != 0)
        return il__error_set(reterr, IL_INVAL, "unknown option in the store URL after '?'");
    return IL_OK;
}

static il_status
check_clock(const struct il__store_open *o, const il_open_opts *opts, il_error *reterr)
{
    bool given = opts != NULL && opts->clock != NULL;

    if (given && !o->test_clock)
        return il__error_set(reterr, IL_INVAL,
                             "a clock can only be used with a store created with ?clock=test");
    if (!given && o->test_clock)
        return il__error_set(reterr, IL_INVAL, "a store with ?clock=test needs a clock");
    return IL_OK;
}

/* Parse the URL and the options; the caller il__free()s *ret_path. */
static il_status
prepare(const char *url, const il_open_opts *opts, const struct engine **ret_engine,
        char **ret_path, struct il__store_open *o, il_error *reterr)
{
    *o = (struct il__store_open){ .url        = url,
                                  .clock      = il__clock_machine(),
                                  .timeout_ms = TIMEOUT_MS_DEFAULT };

    il__hash_init();
    const struct engine *engine = engine_of(url);
    if (engine == NULL)
        return refuse_scheme(url, reterr);
    char *path = il__strdup(url + strlen(engine->scheme));
    if (path == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    *ret_engine = engine;
    *ret_path   = path;
    char *query = strchr(path, '?');
    if (query != NULL)
        *query++ = '\0';
    o->scheme = engine->scheme;
    o->path   = path;
    o->query  = query;
    if (parse_query(engine, query, o, reterr) != IL_OK || check_clock(o, opts, reterr) != IL_OK)
        return IL_INVAL;
    if (opts != NULL) {
        o->existing = (opts->flags & IL_OPEN_EXISTING) != 0;
        o->ranks    = (struct il__ranks){ .classes = opts->ranks, .n = opts->n_ranks };
        if (opts->clock != NULL)
            o->clock = opts->clock;
        if (opts->timeout_ms != 0)
            o->timeout_ms = MIN(opts->timeout_ms, IL__WAIT_MS_MAX);
    }
    return IL_OK;
}

il_status
il__store_open(const char *url, const il_open_opts *opts, struct il__store **ret, il_error *reterr)
{
    AUTO_FREE char       *path   = NULL;
    const struct engine  *engine = NULL;
    struct il__store_open o;
    il_status             st = prepare(url, opts, &engine, &path, &o, reterr);

    if (st != IL_OK)
        return st;
    CHECK(engine != NULL);
    return engine->open(&o, ret, reterr);
}

il_status
il__store_migrate(const char *url, const il_open_opts *opts, bool check, struct il__migration *ret,
                  il_error *reterr)
{
    AUTO_FREE char       *path   = NULL;
    const struct engine  *engine = NULL;
    struct il__store     *store  = NULL;
    struct il__store_open o;
    il_status             st = prepare(url, opts, &engine, &path, &o, reterr);

    if (st != IL_OK)
        return st;
    CHECK(engine != NULL);
    *ret = (struct il__migration){ .by_itself = engine->migrate == NULL };
    if (engine->migrate != NULL)
        return engine->migrate(&o, check, ret, reterr);
    if (check)
        return IL_OK;
    st = engine->open(&o, &store, reterr);
    if (st == IL_OK)
        il__store_free(store);
    return st;
}

il_status
il__store_create_for(const char *url, const il_open_opts *opts, const char *group, il_error *reterr)
{
    AUTO_FREE char       *path   = NULL;
    const struct engine  *engine = NULL;
    struct il__store     *store  = NULL;
    struct il__store_open o;
    il_status             st = prepare(url, opts, &engine, &path, &o, reterr);

    if (st != IL_OK)
        return st;
    CHECK(engine != NULL);
    if (engine->open != il__store_sqlite_open)
        return il__error_set(reterr, IL_INVAL, "--group needs a sqlite: store");
    st = il__store_sqlite_create_for(path, group, reterr);
    if (st == IL_OK)
        st = engine->open(&o, &store, reterr);
    if (st == IL_OK)
        il__store_free(store);
    return st;
}

void
il__store_free(struct il__store *s)
{
    if (s != NULL)
        s->ops->free(s);
}

static void
check_before(il_op *const *ops, size_t n)
{
    CHECK(n > 0 && n <= IL_BATCH_OPS_MAX);
    for (size_t i = 0; i < n; i++) {
        CHECK(ops[i]->tenant != NULL);
        CHECK(il__op_refused(ops[i]) || ops[i]->type != IL_OP_NONE);
    }
}

static void
check_after(il_op *const *ops, size_t n, size_t n_done)
{
    CHECK(n_done > 0 && n_done <= n);
    for (size_t i = 0; i < n_done; i++)
        il__store_check_result(ops[i]);
}

il_status
il__store_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
                il_error *reterr)
{
    check_before(ops, n);
    il_status st = s->ops->apply(s, ops, n, ret_done, reterr);
    if (st == IL_OK)
        check_after(ops, n, *ret_done);
    return st;
}

il_status
il__store_read(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    if (s->ops->read == NULL)
        return il__store_apply(s, ops, n, ret_done, reterr);
    check_before(ops, n);
    for (size_t i = 0; i < n; i++)
        CHECK(il__op_refused(ops[i]) || !il__op_writes(ops[i]->type));
    il_status st = s->ops->read(s, ops, n, ret_done, reterr);
    if (st == IL_OK)
        check_after(ops, n, *ret_done);
    return st;
}

bool
il__store_overdue(struct il__store *s)
{
    return s->ops->overdue == NULL || s->ops->overdue(s);
}

int64_t
il__store_attend(struct il__store *s)
{
    return s->ops->attend != NULL ? s->ops->attend(s) : 0;
}

void
il__store_announce(struct il__store *s, const char *text)
{
    if (s->ops->announce != NULL)
        s->ops->announce(s, text);
}

il_status
il__store_tx_begin(struct il__store *s, struct sqlite3 *db, struct il__store_tx **ret,
                   il_error *reterr)
{
    if (s->ops->tx_begin == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "your own transactions need a sqlite: store, not %s:", s->ops->name);
    return s->ops->tx_begin(s, db, ret, reterr);
}

il_status
il__store_report(struct il__store *s, const char *table, il__report_fn *each, void *cookie,
                 il_error *reterr)
{
    if (s->ops->report != NULL)
        return s->ops->report(s, table, each, cookie, reterr);
    if (table != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "a %s: store has no user tables to check; use --connection",
                             s->ops->name);
    return IL_OK;
}

il_status
il__store_request(struct il__store *s, struct il__request *r, il_error *reterr)
{
    if (s->ops->request == NULL)
        return il__error_set(reterr, IL_INVAL, "this request needs a server; use --server");
    return s->ops->request(s, r, reterr);
}

il_status
il__store_guard_table(struct il__store *s, const struct il__table_guard *change,
                      il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    if (s->ops->guard_table == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "table guards need a postgres: store in the database of the tables");
    return s->ops->guard_table(s, change, each, cookie, reterr);
}

il_status
il__store_advisory_take(struct il__store *s, const char *key, int64_t id,
                        struct il__store_advisory **ret, il_error *reterr)
{
    if (s->ops->advisory_take == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "advisory locks need a postgres: store, not %s:", s->ops->name);
    return s->ops->advisory_take(s, key, id, ret, reterr);
}

bool
il__store_tx_takes(il_op_type type)
{
    return type == IL_OP_JOB_PUSH || type == IL_OP_JOB_FINISH || type == IL_OP_CHECK_FENCE;
}
