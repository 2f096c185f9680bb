/*
 * tables.c: creates, upgrades and opens the tables of an app, and runs statements on them.
 *
 * core/schema.c decides whether anything is to be done; this file does it through the guard kit, on
 * a handle of its own with longer timeouts, before the handle of the app is opened.
 */
#include "apps/common/tables.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "apps/common/tables_internal.h"
#include "base/error.h"

#include "store/postgres/postgres_strangers.inc"
#include "apps/tables_sql.inc"

#define URL_BYTES_MAX 16384
#define SQLITE "sqlite:"
#define LOCK_MS \
    30000 /* longest wait for another process that creates or upgrades the same tables */
#define STATEMENT_MS 600000 /* longest statement of an upgrade */
#define CLOSED_PATH "pg_catalog, pg_temp"

/* The tables of one app at one place. */
struct app_at {
    const struct app_tables *tables;
    bool                     is_postgres;
    bool                     is_for_group;
    char                    *url;
    char                     schema[64]; /* PostgreSQL */
    char                     what[32];
    char                    *where;
};

static void
at_release(struct app_at *at)
{
    il__free(at->url);
    il__free(at->where);
}

static il_status
at_init(struct app_at *at, const struct app_tables *t, const struct tables_place *p,
        il_error *reterr)
{
    struct il__buf AUTO_BUF url = { 0 }, where = { 0 };

    CHECK(strlen(t->name) <= APP_TABLES_NAME_BYTES_MAX);
    CHECK(t->sqlite->version == t->postgres->version);
    at->tables       = t;
    at->is_postgres  = p->is_postgres;
    at->is_for_group = p->is_for_group;
    il__buf_init(&url, URL_BYTES_MAX);
    il__buf_init(&where, URL_BYTES_MAX);
    il__buf_adds(&url, p->url);
    (void)snprintf(at->what, sizeof at->what, "the tables of %s", t->name);
    if (p->is_postgres) {
        int n = snprintf(at->schema, sizeof at->schema, "%s_%s", p->server.schema, t->name);
        CHECK(n > 0 && (size_t)n < sizeof at->schema);
        il__buf_addf(&where, "%s, schema %s", p->server.shown, at->schema);
    } else {
        il__buf_addf(&url, "-%s.db", t->name);
        il__buf_adds(&where, il__buf_str(&url));
    }
    at->url   = il__buf_take(&url);
    at->where = il__buf_take(&where);
    return at->url != NULL && at->where != NULL
               ? IL_OK
               : il__error_set(reterr, IL_NOMEM, "out of memory for %s", at->what);
}

/* ---- statements ------------------------------------------------------------------------------ */

static il_guard_query
query_of(const il_guard_tx *tx, const struct app_statement *s, const il_guard_value *values,
         size_t n_values, il_guard_row_fn *each, void *cookie)
{
    return (il_guard_query){ .sql      = il__guard_tx_is_postgres(tx) ? s->postgres : s->sqlite,
                             .values   = values,
                             .n_values = n_values,
                             .each     = each,
                             .cookie   = cookie };
}

il_status
il__tables_run(il_guard_tx *tx, const struct app_statement *s, const il_guard_value *values,
               size_t n_values, il_guard_row_fn *each, void *cookie, int64_t *ret_n_changed,
               il_error *reterr)
{
    const il_guard_query q = query_of(tx, s, values, n_values, each, cookie);

    return il_guard_exec(tx, &q, ret_n_changed, reterr);
}

il_status
il__tables_lock_read(il_guard_tx *tx, const il_guard_target *row, const struct app_statement *s,
                     const il_guard_value *values, size_t n_values, il_guard_row_fn *each,
                     void *cookie, il_error *reterr)
{
    const il_guard_query q = query_of(tx, s, values, n_values, each, cookie);

    return il_guard_lock_read(tx, row, &q, reterr);
}

/* The first numbers of a row. */
struct numbers {
    int64_t at[2];
};

static int
take_numbers(void *cookie, const il_guard_row *row)
{
    struct numbers *n = cookie;

    for (size_t i = 0; i < row->n && i < ARRAY_LEN(n->at); i++)
        n->at[i] = row->values[i].integer;
    return 0;
}

/* Creating and upgrading them. */
struct setup {
    const struct app_at *at;
    il_guard            *g;
    il_guard_tx         *tx; /* the one that is open, or NULL */
    bool                 upgrades;
};

static il_status
ask(struct setup *s, const struct app_statement *text, struct numbers *ret, il_error *reterr)
{
    il_guard_value schema = il_guard_text(s->at->schema);

    *ret = (struct numbers){ { 0 } };
    return il__tables_run(s->tx, text, &schema, s->at->is_postgres ? 1 : 0, take_numbers, ret, NULL,
                          reterr);
}

/* ---- who owns a schema ----------------------------------------------------------------------- */

struct stranger {
    char kind[32], name[64], owner[64];
};

static int
take_stranger(void *cookie, const il_guard_row *row)
{
    struct stranger *s = cookie;

    CHECK(row->n == 3);
    (void)snprintf(s->kind, sizeof s->kind, "%s", (const char *)row->values[0].data);
    (void)snprintf(s->name, sizeof s->name, "%s", (const char *)row->values[1].data);
    (void)snprintf(s->owner, sizeof s->owner, "%s", (const char *)row->values[2].data);
    return 0;
}

/* Nothing in a schema is read before the catalogue has confirmed that roles we trust have created
 * it; see the store's owners.c. An upgrade runs the code in there, so it trusts only ourselves and
 * superusers. */
static il_status
check_owners(struct setup *s, il_error *reterr)
{
    static const struct app_statement strangers = { .postgres = sql_strangers };
    struct stranger                   found     = { .kind = "" };

    il_status st = il__tables_run(
        s->tx, &strangers,
        APP_VALUES(il_guard_text(s->at->schema), il_guard_text(s->upgrades ? "t" : "f")),
        take_stranger, &found, NULL, reterr);
    if (st == IL_OK && found.kind[0] != '\0')
        st = il__error_set(reterr, IL_STORE,
                           "%s: %s %s is owned by role %s, which is neither this user nor a "
                           "superuser",
                           s->at->where, found.kind, found.name, found.owner);
    return st;
}

/* ---- creating and upgrading: struct il__schema_ops ------------------------------------------- */

/* PostgreSQL finds nothing in a schema that the role may not use, and would report its tables as
 * missing. */
static il_status
check_usage(struct setup *s, il_error *reterr)
{
    static const struct app_statement closed = { .postgres = sql_tables_schema_closed };
    struct numbers                    n;

    il_status st = ask(s, &closed, &n, reterr);
    if (st != IL_OK || n.at[0] == 0)
        return st;
    st = il__error_set(reterr, IL_STORE,
                       "cannot use %s: this user has no USAGE privilege on schema %s", s->at->what,
                       s->at->schema);
    (void)snprintf(reterr->native, sizeof reterr->native, "%s", TABLES_NO_PRIVILEGE);
    return st;
}

static il_status
look_in_tx(struct setup *s, int64_t *ret_version, int64_t *ret_min_version, il_error *reterr)
{
    static const struct app_statement there   = APP_STATEMENT_EACH(tables_there);
    static const struct app_statement path    = { .postgres = sql_tables_path };
    static const struct app_statement version = APP_STATEMENT(tables_version);
    struct numbers                    n;

    *ret_version = *ret_min_version = 0;
    il_status st                    = s->at->is_postgres ? check_owners(s, reterr) : IL_OK;
    if (st == IL_OK)
        st = ask(s, &there, &n, reterr);
    if (st != IL_OK || n.at[0] == 0)
        return st;
    if (s->at->is_postgres)
        st = check_usage(s, reterr);
    if (st == IL_OK && s->at->is_postgres)
        st = ask(s, &path, &n, reterr);
    if (st == IL_OK)
        st = il__tables_run(s->tx, &version, APP_NO_VALUES, take_numbers, &n, NULL, reterr);
    if (st == IL_OK) {
        *ret_version     = n.at[0];
        *ret_min_version = n.at[1];
    }
    return st;
}

static il_status
look(void *db, int64_t *ret_version, int64_t *ret_min_version, il_error *reterr)
{
    struct setup    *s    = db;
    il_guard_tx_opts opts = IL_GUARD_TX_OPTS_INIT;

    if (s->tx != NULL)
        return look_in_tx(s, ret_version, ret_min_version, reterr);
    opts.flags   = IL_GUARD_READ_ONLY;
    il_status st = il_guard_begin(s->g, &opts, &s->tx, reterr);
    if (st != IL_OK)
        return st;
    st = look_in_tx(s, ret_version, ret_min_version, reterr);
    il_guard_rollback(TAKE(s->tx));
    return st;
}

/* What a role without the right to create tables can do about it. */
static il_status
explain(const struct setup *s, il_status st, il_error *reterr)
{
    il_error was;

    if (st == IL_OK || reterr == NULL || strcmp(reterr->native, TABLES_NO_PRIVILEGE) != 0)
        return st;
    was = *reterr;
    il__error_set(
        reterr, IL_STORE,
        "cannot create %s as this user; run `interlock migrate` as a user who may (%.200s)",
        s->at->what, was.message);
    (void)snprintf(reterr->native, sizeof reterr->native, "%s", TABLES_NO_PRIVILEGE);
    return IL_STORE;
}

static il_status
transact(void *db, il__schema_fn *fn, void *cookie, il_error *reterr)
{
    static const struct app_statement lock = { .postgres = sql_tables_lock };
    struct setup                     *s    = db;
    struct numbers                    n;

    il_status st = il_guard_begin(s->g, NULL, &s->tx, reterr);
    if (st != IL_OK)
        return st;
    s->upgrades = true;
    if (s->at->is_postgres)
        st = ask(s, &lock, &n, reterr);
    if (st == IL_OK)
        st = fn(cookie, reterr);
    if (st == IL_OK)
        st = il_guard_commit(TAKE(s->tx), reterr);
    else
        il_guard_rollback(TAKE(s->tx));
    return explain(s, st, reterr);
}

/* The schema in PostgreSQL, and the table with the version. */
static il_status
make_schema(struct setup *s, il_error *reterr)
{
    static const struct app_statement there = { .postgres = sql_tables_schema_there };
    static const struct app_statement store = { .postgres = sql_tables_store_there };
    static const struct app_statement path  = { .postgres = sql_tables_path };
    struct il__buf AUTO_BUF           sql   = { 0 };
    struct numbers                    n;
    il_status                         st = IL_OK;

    if (s->at->is_postgres) {
        il__buf_init(&sql, 256);
        il__buf_addf(&sql, "%s \"%s\"", sql_tables_make_schema, s->at->schema);
        st = ask(s, &store, &n, reterr);
        if (st == IL_OK && n.at[0] != 0)
            st = il__error_set(
                reterr, IL_INVAL,
                "%s: schema %s, needed for the tables of %s, contains a store; choose another "
                "schema (?schema=)",
                s->at->where, s->at->schema, s->at->tables->name);
        if (st == IL_OK)
            st = ask(s, &there, &n, reterr);
        if (st == IL_OK && n.at[0] == 0)
            st = sql.failed ? il__error_set(reterr, IL_NOMEM, "out of memory for %s", s->at->what)
                            : il__guard_script(s->tx, il__buf_str(&sql), reterr);
        if (st == IL_OK)
            st = ask(s, &path, &n, reterr);
    }
    return st == IL_OK ? il__guard_script(s->tx, sql_tables_make, reterr) : st;
}

static const struct il__schema *
schema_of(const struct app_at *at)
{
    return at->is_postgres ? at->tables->postgres : at->tables->sqlite;
}

static il_status
step(void *db, int version, il_error *reterr)
{
    struct setup *s  = db;
    il_status     st = version == 0 ? make_schema(s, reterr) : IL_OK;

    return st == IL_OK ? il__guard_script(s->tx, schema_of(s->at)->steps[version], reterr) : st;
}

static il_status
record(void *db, int version, int min_version, il_error *reterr)
{
    static const struct app_statement text = APP_STATEMENT(tables_record);
    struct setup                     *s    = db;

    return il__tables_run(s->tx, &text,
                          APP_VALUES(il_guard_int(version), il_guard_int(min_version)), NULL, NULL,
                          NULL, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* check: only look. may: enum il__schema_may. */
static il_status
set_up(const struct app_at *at, unsigned may, bool check, struct il__migration *ret,
       il_error *reterr)
{
    static const struct il__schema_ops ops = {
        .look = look, .transact = transact, .step = step, .record = record
    };
    struct setup             s      = { .at = at };
    struct il__schema_tables tables = {
        .schema = schema_of(at), .ops = &ops, .db = &s, .what = at->what, .where = at->where
    };
    il_guard_opts opts = IL_GUARD_OPTS_INIT;

    opts.lock_timeout_ms      = LOCK_MS;
    opts.statement_timeout_ms = STATEMENT_MS;
    opts.conns_max            = 1;
    opts.flags                = at->is_postgres ? 0 : IL_GUARD_OWN_FILE;
    opts.search_path          = at->is_postgres ? CLOSED_PATH : NULL;
    il_status st              = il_guard_open(at->url, &opts, &s.g, reterr);
    if (st == IL_OK)
        st = check ? il__schema_look(&tables, ret, reterr)
                   : il__schema_prepare(&tables, may, ret, reterr);
    il_guard_close(s.g);
    return st;
}

/* Only for this user, whatever the umask allows. mknod() and not open(): closing another descriptor
 * of a file that this process has open would end SQLite's locks on it. */
static il_status
make_file(const struct app_at *at, bool existing, il_error *reterr)
{
    const char *path = at->url + strlen(SQLITE);
    struct stat st;

    if (existing && stat(path, &st) != 0 && errno == ENOENT)
        return il__error_set(reterr, IL_NOT_FOUND, "%s: %s do not exist yet", at->where, at->what);
    if (!existing && at->is_for_group && stat(path, &st) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "cannot create %s beside the store of a group; use a private data "
                             "store, --data sqlite:PATH",
                             at->what);
    if (!existing && mknod(path, S_IFREG | 0600, 0) != 0 && errno != EEXIST)
        return il__error_set(reterr, IL_STORE, "cannot create %s: %s", path, strerror(errno));
    return IL_OK;
}

static il_status
open_handle(const struct app_at *at, const struct tables_opts *o, il_guard **ret, il_error *reterr)
{
    il_guard_opts opts = IL_GUARD_OPTS_INIT;
    char          path[sizeof at->schema + sizeof ", pg_temp"];

    (void)snprintf(path, sizeof path, "%s, pg_temp", at->schema);
    opts.ranks           = at->tables->ranks;
    opts.n_ranks         = at->tables->n_ranks;
    opts.lock_timeout_ms = o->timeout_ms;
    opts.conns_max       = o->conns_max;
    opts.observe         = o->observe;
    opts.cookie          = o->cookie;
    opts.flags           = at->is_postgres ? 0 : IL_GUARD_OWN_FILE;
    opts.search_path     = at->is_postgres ? path : NULL;
    return il_guard_open(at->url, &opts, ret, reterr);
}

il_status
il__tables_open(const struct app_tables *t, const struct tables_place *p,
                const struct tables_opts *opts, il_guard **ret, il_error *reterr)
{
    static const struct tables_opts defaults = { 0 };
    AUTO(at_release) struct app_at  at       = { 0 };
    il_error                        own      = { .message = "" };
    il_error                       *err      = reterr != NULL ? reterr : &own;
    struct il__migration            m;
    unsigned                        may = IL__SCHEMA_CREATE;

    if (opts == NULL)
        opts = &defaults;
    if (opts->existing)
        may = 0;
    if (!p->is_postgres)
        may |= IL__SCHEMA_UPGRADE;
    il_status st = at_init(&at, t, p, err);
    if (st == IL_OK && !p->is_postgres)
        st = make_file(&at, opts->existing, err);
    if (st == IL_OK)
        st = set_up(&at, may, false, &m, err);
    return st == IL_OK ? open_handle(&at, opts, ret, err) : st;
}

il_status
il__tables_exist(const struct app_tables *t, const char *store_url, const char *data_url, bool *ret,
                 il_error *reterr)
{
    struct tables_opts   o  = { .conns_max = 1, .existing = true };
    struct tables_place *p  = NULL;
    il_guard            *g  = NULL;
    il_status            st = il__tables_place_share(store_url, data_url, true, &p, reterr);

    if (st == IL_OK)
        st = il__tables_open(t, p, &o, &g, reterr);
    il_guard_close(g);
    il__tables_place_unshare(p);
    if (st != IL_OK && st != IL_NOT_FOUND)
        return st;
    *ret = st == IL_OK;
    return IL_OK;
}

il_status
il__tables_migrate(const struct app_tables *t, const struct tables_place *p, bool check,
                   struct il__migration *ret, il_error *reterr)
{
    AUTO(at_release) struct app_at at  = { 0 };
    il_error                       own = { .message = "" };
    il_error                      *err = reterr != NULL ? reterr : &own;

    if (!p->is_postgres) {
        *ret = (struct il__migration){ .by_itself = true };
        return IL_OK;
    }
    il_status st = at_init(&at, t, p, err);
    return st == IL_OK ? set_up(&at, IL__SCHEMA_CREATE | IL__SCHEMA_UPGRADE, check, ret, err) : st;
}
