/*
 * ground.c: users' databases and stores for tests; see ground.h.
 */
#include "guard/ground.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/postgres.h"

void
t_ground_make(struct t_ground *g)
{
    static unsigned n;
    const char     *kind = getenv("IL_TEST_GUARD");
    char            sql[128], out[T_PG_TEXT_BYTES];

    if (kind == NULL)
        kind = "sqlite";
    *g = (struct t_ground){ .is_postgres = strcmp(kind, "sqlite") != 0,
                            .is_shared   = strcmp(kind, "shared") == 0 };
    t_tmp_make(g->dir);
    t_path(g->store, "sqlite:%s/store.db", g->dir);
    if (!g->is_postgres) {
        t_path(g->path, "%s/user.db", g->dir);
        t_path(g->url, "sqlite:%s", g->path);
        return;
    }
    t_path(g->server, "%s", t_postgres_url());
    (void)snprintf(g->schema, sizeof g->schema, "user_%d_%u", (int)getpid(), n++);
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s", g->schema);
    (void)t_postgres_ask(g->server, sql, out);
    t_path(g->url, "%s&options=-csearch_path%%3D%s", g->server, g->schema);
    if (g->is_shared)
        t_path(g->store, "%s&schema=il_%s", g->server, g->schema);
}

void
t_ground_release(struct t_ground *g)
{
    char sql[256], out[T_PG_TEXT_BYTES];

    if (g->is_postgres) {
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA %s CASCADE", g->schema);
        (void)t_postgres_ask(g->server, sql, out);
    }
    if (g->is_shared) {
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS il_%s CASCADE", g->schema);
        (void)t_postgres_ask(g->server, sql, out);
    }
    t_tmp_remove(g->dir);
}

static int
take_first(void *cookie, int n, char **values, char **names UNUSED)
{
    if (n > 0 && ((char *)cookie)[0] == '\0')
        (void)snprintf(cookie, 4096, "%s", values[0] != NULL ? values[0] : "");
    return 0;
}

const char *
t_ground_ask(const struct t_ground *g, const char *sql, char out[4096])
{
    sqlite3 *db  = NULL;
    char    *why = NULL;

    out[0] = '\0';
    if (g->is_postgres)
        return t_postgres_ask(g->url, sql, out);
    T_EQ(sqlite3_open(g->path, &db), SQLITE_OK);
    T_EQ(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    if (sqlite3_exec(db, sql, take_first, out, &why) != SQLITE_OK)
        T_FAIL("%s: %s", sql, why);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return out;
}

int64_t
t_ground_count(const struct t_ground *g, const char *sql)
{
    char out[4096], text[1024];

    (void)snprintf(text, sizeof text, "SELECT CAST((%s) AS text)", sql);
    (void)t_ground_ask(g, text, out);
    if (out[0] == '\0')
        T_FAIL("%s: no answer", sql);
    return strtoll(out, NULL, 10);
}

il *
t_ground_store(const struct t_ground *g)
{
    il      *h = NULL;
    il_error err;

    if (il_open(g->store, NULL, &h, &err) != IL_OK)
        T_FAIL("%s: %s", g->store, err.message);
    return h;
}

il_guard *
t_ground_open(const struct t_ground *g, int64_t timeout_ms)
{
    il_guard *c = NULL;
    il_error  err;

    if (t_guard_open(g->url, timeout_ms, &c, &err) != IL_OK)
        T_FAIL("%s: %s", g->url, err.message);
    return c;
}

uint64_t
t_take(il *h, const char *holder, int64_t ttl_ms)
{
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;
    il_error        err;

    o.holder  = holder;
    o.ttl_ms  = ttl_ms;
    o.wait_ms = G_LIMIT_MS;
    if (il_acquire(h, G_KEY, &o, &lease, &err) != IL_OK)
        T_FAIL("%s: %s", holder, err.message);
    uint64_t fence = il_lease_fence(lease);
    il_lease_free(lease); /* it goes on until it runs out */
    return fence;
}

void
t_break(il *h, uint64_t fence)
{
    il_error err;

    if (il_break(h, G_KEY, fence, "a test", IL_BREAK_NOW, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

il_guard_fence
t_fence(il *h, uint64_t fence)
{
    return (il_guard_fence){ .h = h, .key = G_KEY, .fence = fence };
}

il_guard_tx *
t_begin(il_guard *c, const il_guard_fence *f, bool read_only)
{
    il_guard_tx *tx = NULL;
    il_error     err;

    if (t_guard_begin(c, f, read_only, &tx, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return tx;
}

void
t_exec(il_guard_tx *tx, const char *sql)
{
    il_error err;

    if (t_guard_exec(tx, sql, NULL, 0, NULL, NULL, NULL, &err) != IL_OK)
        T_FAIL("%s: %s", sql, err.message);
}

void
t_write(il_guard *c, const char *sql)
{
    il_guard_tx *tx = t_begin(c, NULL, false);
    il_error     err;

    t_exec(tx, sql);
    if (il_guard_commit(tx, &err) != IL_OK)
        T_FAIL("%s: %s", sql, err.message);
}

il_status
t_try(il_guard_tx *tx, const char *sql, il_error *err)
{
    *err = (il_error){ .message = "" };
    return t_guard_exec(tx, sql, NULL, 0, NULL, NULL, NULL, err);
}
