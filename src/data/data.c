/*
 * data.c: opens a data store and gives access to its engine: one statement, or a transaction of
 * several. Concurrent callers take turns.
 */
#include "base/error.h"
#include "base/hash.h"
#include "data/data_internal.h"
#include "store/store.h"

#define TIMEOUT_MS_DEFAULT 5000
#define URL_BYTES_MAX 16384
#define PAGE_DEFAULT 100

/* ---- the engine ------------------------------------------------------------------------------ */

il_status
il__data_run(struct il__data *d, enum data_stmt stmt, const struct data_param *params, size_t n,
             data_row_fn *each, void *cookie, il_error *reterr)
{
    CHECK(il__mutex_held(&d->mutex));
    return d->engine->ops->run(d->engine, stmt, params, n, each, cookie, reterr);
}

il_status
il__data_read(struct il__data *d, enum data_stmt stmt, const struct data_param *params, size_t n,
              data_row_fn *each, void *cookie, il_error *reterr)
{
    il__mutex_lock(&d->mutex);
    il_status st = il__data_run(d, stmt, params, n, each, cookie, reterr);
    il__mutex_unlock(&d->mutex);
    return st;
}

/* The mutex is held. */
static il_status
transaction(struct il__data *d, data_tx_fn *fn, void *cookie, bool upgrade, il_error *reterr)
{
    const struct data_engine_ops *ops = d->engine->ops;

    il_status st = upgrade ? ops->begin_upgrade(d->engine, reterr) : ops->begin(d->engine, reterr);
    if (st != IL_OK)
        return st;
    st = fn(d, cookie, reterr);
    if (st == IL_OK)
        return ops->commit(d->engine, reterr);
    ops->rollback(d->engine);
    return st;
}

il_status
il__data_transaction(struct il__data *d, data_tx_fn *fn, void *cookie, il_error *reterr)
{
    il__mutex_lock(&d->mutex);
    il_status st = transaction(d, fn, cookie, false, reterr);
    il__mutex_unlock(&d->mutex);
    return st;
}

struct write {
    enum data_stmt           stmt;
    const struct data_param *params;
    size_t                   n;
    data_row_fn             *each;
    void                    *cookie;
};

static il_status
write_one(struct il__data *d, void *cookie, il_error *reterr)
{
    const struct write *w = cookie;

    return il__data_run(d, w->stmt, w->params, w->n, w->each, w->cookie, reterr);
}

il_status
il__data_write(struct il__data *d, enum data_stmt stmt, const struct data_param *params, size_t n,
               data_row_fn *each, void *cookie, il_error *reterr)
{
    struct write w = { stmt, params, n, each, cookie };

    return il__data_transaction(d, write_one, &w, reterr);
}

void
il__data_count_row(void *cookie, const struct data_row *row UNUSED)
{
    ++*(uint64_t *)cookie;
}

int64_t
il__data_page(uint32_t limit)
{
    return limit != 0 ? MIN(limit, DATA_PAGE_MAX) : PAGE_DEFAULT;
}

/* ---- tables of the right version ------------------------------------------------------------- */

static il_status
look(void *db, int64_t *ret_version, int64_t *ret_min_version, il_error *reterr)
{
    struct il__data *d = db;

    return d->engine->ops->look(d->engine, ret_version, ret_min_version, reterr);
}

struct upgrade {
    il__schema_fn *fn;
    void          *cookie;
};

static il_status
upgrade(struct il__data *d UNUSED, void *cookie, il_error *reterr)
{
    const struct upgrade *u = cookie;

    return u->fn(u->cookie, reterr);
}

static il_status
transact(void *db, il__schema_fn *fn, void *cookie, il_error *reterr)
{
    return transaction(db, upgrade, &(struct upgrade){ fn, cookie }, true, reterr);
}

static il_status
step(void *db, int version, il_error *reterr)
{
    struct il__data *d = db;

    return d->engine->ops->upgrade(d->engine, version, reterr);
}

static il_status
record(void *db, int version, int min_version, il_error *reterr)
{
    const struct data_param now[] = { DATA_NUMBER(version), DATA_NUMBER(min_version) };

    return il__data_run(db, DATA_meta_set, now, ARRAY_LEN(now), NULL, NULL, reterr);
}

static il_status
prepare_tables(struct il__data *d, bool existing, il_error *reterr)
{
    static const struct il__schema_ops ops = {
        .look = look, .transact = transact, .step = step, .record = record
    };
    struct il__schema_tables tables = { .schema = d->engine->ops->schema,
                                        .ops    = &ops,
                                        .db     = d,
                                        .what   = "the data tables",
                                        .where  = d->engine->where };
    struct il__migration     m;

    return il__schema_prepare(
        &tables, IL__SCHEMA_UPGRADE | (existing ? 0U : (unsigned)IL__SCHEMA_CREATE), &m, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

il_status
il__data_refuse_group(const char *url, const char *what, il_error *reterr)
{
    static const char sqlite[] = "sqlite:";
    const char       *path     = url + strlen(sqlite);
    char              group[IL__STORE_GROUP_BYTES];

    if (strncmp(url, sqlite, strlen(sqlite)) != 0 || !il__store_sqlite_group(path, group))
        return IL_OK;
#ifdef IL_MUTANT_keys_in_a_group_store
    return IL_OK;
#endif
    return il__error_set(reterr, IL_INVAL,
                         "%.200s is shared with group %s, whose members could read %s; use a "
                         "private data store, --data sqlite:PATH",
                         path, group, what);
}

static il_status
open_engine(struct il__data *d, const struct il__data_open *o, il_error *reterr)
{
    struct il__buf AUTO_BUF url = { 0 };

    il__buf_init(&url, URL_BYTES_MAX);
    il_status st = il__data_url(o, &url, reterr);
    if (st == IL_OK && !o->no_keys)
        st = il__data_refuse_group(il__buf_str(&url), "the API keys and their pepper", reterr);
    if (st != IL_OK)
        return st;
    struct data_engine_open e = {
        .url        = il__buf_str(&url),
        .timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : TIMEOUT_MS_DEFAULT,
        .existing   = o->existing,
    };
    if (strncmp(e.url, "postgres", strlen("postgres")) == 0)
        return il__data_postgres_open(&e, &d->engine, reterr);
    return il__data_sqlite_open(&e, &d->engine, reterr);
}

il_status
il__data_open(const struct il__data_open *o, struct il__data **ret, il_error *reterr)
{
    struct il__data *d = il__calloc(1, sizeof *d);

    if (d == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    il__mutex_init(&d->mutex, IL__MUTEX_data);
    il_status st = open_engine(d, o, reterr);
    if (st == IL_OK) {
        il__mutex_lock(&d->mutex);
        st = prepare_tables(d, o->existing, reterr);
        il__mutex_unlock(&d->mutex);
    }
    if (st == IL_OK && !o->no_keys)
        st = il__data_pepper_open(d, o->pepper_file, reterr);
    if (st != IL_OK) {
        il__data_close(d);
        return st;
    }
    *ret = d;
    return IL_OK;
}

void
il__data_close(struct il__data *d)
{
    if (d == NULL)
        return;
    if (d->engine != NULL)
        d->engine->ops->free(d->engine);
    il__data_pepper_close(d);
    il__mutex_destroy(&d->mutex);
    il__free(d);
}

const char *
il__data_where(const struct il__data *d)
{
    return d->engine->where;
}

il_status
il__data_ping(struct il__data *d, il_error *reterr)
{
    return il__data_read(d, DATA_meta, NULL, 0, NULL, NULL, reterr);
}
