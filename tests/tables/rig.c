/*
 * rig.c: places for the tables of apps; see rig.h.
 */
#include "tables/rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "harness/postgres.h"

#include "tables_look_sql.inc"

#define TEXT_BYTES_MAX 65536

void
t_rig_make(struct t_rig *r)
{
    static unsigned n;
    const char     *kind = getenv("IL_TEST_TABLES");
    il_error        err;

    *r = (struct t_rig){ .place = NULL };
    t_tmp_make(r->dir);
    T_EQ(setenv("TMPDIR", r->dir, 1), 0); /* for the folders of memory stores */
    if (kind == NULL || strcmp(kind, "sqlite") == 0) {
        t_path(r->url, "sqlite:%s/x.db", r->dir);
    } else if (strcmp(kind, "memory") == 0) {
        r->is_memory = true;
        t_path(r->url, "memory:");
    } else {
        bool pooled = strcmp(kind, "postgres-bouncer") == 0;
        if (!pooled && strcmp(kind, "postgres") != 0)
            T_FAIL("there is no place '%s'", kind);
        r->is_postgres = true;
        T_EQ(unsetenv("TMPDIR"), 0);
        (void)snprintf(r->schema, sizeof r->schema, "il_tables_%d_%u", (int)getpid(), n++);
        t_path(r->server, "%s", t_postgres_url());
        t_path(r->url, "%s&schema=%s", pooled ? t_bouncer_url() : r->server, r->schema);
    }
    if (il__tables_place_open(r->url, NULL, false, &r->place, &err) != IL_OK)
        T_FAIL("%s: %s", r->url, err.message);
}

void
t_rig_release(struct t_rig *r)
{
    char sql[256], out[T_PG_TEXT_BYTES];

    il__tables_place_close(r->place);
    if (r->is_postgres) {
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s_toy, %s_other, %s_ingest CASCADE",
                       r->schema, r->schema, r->schema);
        (void)t_postgres_ask(r->server, sql, out);
    }
    T_EQ(unsetenv("TMPDIR"), 0);
    t_tmp_remove(r->dir);
}

il_status
t_tables_try(const struct t_rig *r, const struct app_tables *t, bool existing, il_error *err)
{
    struct tables_opts o = { .existing = existing };
    il_guard          *g = NULL;

    *err         = (il_error){ .message = "" };
    il_status st = il__tables_open(t, r->place, &o, &g, err);
    il_guard_close(g);
    return st;
}

il_guard *
t_tables_open(const struct t_rig *r, const struct app_tables *t)
{
    il_guard *g = NULL;
    il_error  err;

    if (il__tables_open(t, r->place, NULL, &g, &err) != IL_OK)
        T_FAIL("%s: %s", r->url, err.message);
    return g;
}

int
t_tables_in_process(const char *url, const struct app_tables *t)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;
    il_error             err;

    il_status st = il__tables_place_open(url, NULL, false, &p, &err);
    if (st == IL_OK)
        st = il__tables_open(t, p, NULL, &g, &err);
    if (st != IL_OK)
        (void)printf("failed: %s\n", err.message);
    il_guard_close(g);
    il__tables_place_close(p);
    return st != IL_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

static int
take_first(void *cookie, const il_guard_row *row)
{
    const il_guard_value *v = &row->values[0];

    if (v->type == IL_GUARD_INT)
        (void)snprintf(cookie, 4096, "%lld", (long long)v->integer);
    else if (v->data != NULL)
        (void)snprintf(cookie, 4096, "%s", (const char *)v->data);
    return 0;
}

static il_status
run(il_guard *g, const struct app_statement *s, const il_guard_value *values, size_t n_values,
    il_guard_row_fn *each, void *cookie, il_error *err)
{
    il_guard_tx *tx = NULL;
    il_status    st = il_guard_begin(g, NULL, &tx, err);

    if (st != IL_OK)
        return st;
    st = il__tables_run(tx, s, values, n_values, each, cookie, NULL, err);
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

const char *
t_run(il_guard *g, const struct app_statement *s, const il_guard_value *values, size_t n_values,
      char out[4096])
{
    il_error err = { .message = "" };

    out[0] = '\0';
    if (run(g, s, values, n_values, take_first, out, &err) != IL_OK)
        T_FAIL("%s: %s", s->sqlite, err.message);
    return out;
}

il_status
t_run_try(il_guard *g, const struct app_statement *s, const il_guard_value *values, size_t n_values,
          il_error *err)
{
    *err = (il_error){ .message = "" };
    return run(g, s, values, n_values, NULL, NULL, err);
}

void
t_set_version(const struct t_rig *r, const char *app, int version, int min_version)
{
    static const struct app_statement set = APP_STATEMENT(set_version);
    struct app_tables                 t   = t_toy;
    char                              out[4096];

    t.name      = app;
    il_guard *g = t_tables_open(r, &t);
    (void)t_run(g, &set, APP_VALUES(il_guard_int(version), il_guard_int(min_version)), out);
    il_guard_close(g);
}

/* ---- the catalogue --------------------------------------------------------------------------- */

static int
add_line(void *cookie, const il_guard_row *row)
{
    il__buf_addf(cookie, "%s\n", (const char *)row->values[0].data);
    return 1;
}

static char *
lines(il_guard *g, const struct app_statement *s)
{
    AUTO_BUF struct il__buf text = { 0 };
    il_error                err;

    il__buf_init(&text, TEXT_BYTES_MAX);
    if (run(g, s, APP_NO_VALUES, add_line, &text, &err) != IL_OK)
        T_FAIL("%s", err.message);
    char *taken = text.n_bytes > 0 ? il__buf_take(&text) : il__strdup("");
    T_TRUE(taken != NULL);
    return taken;
}

char *
t_look_keys(il_guard *g)
{
    static const struct app_statement keys = APP_STATEMENT_EACH(look_keys);

    return lines(g, &keys);
}

char *
t_look_shape(il_guard *g)
{
    static const struct app_statement shape = APP_STATEMENT_EACH(look_shape);

    return lines(g, &shape);
}
