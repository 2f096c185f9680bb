/*
 * upgrade.c: data stores of earlier versions are brought up to date when they are opened: with all that they had, and then as if made anew, however many open them at once.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "data/history.h"
#include "data/place.h"
#include "harness/postgres.h"
#include "harness/proc.h"
#include "harness/unit.h"

#define N_PROCESSES 6
#define LIMIT_MS 60000
#define SQL_BYTES 32768

/* ---- version 1 -------------------------------------------------------------------------------------------------------------------- */

/* What a server of version 1 had written; $ is the schema and a dot, or il_. */
static const char version_1[] =
    "INSERT INTO $data_meta (@version, min_version) VALUES (@1, 1);"
    "INSERT INTO $tenant (id, name, requests_per_second, burst, waiters, streams, locks, jobs, "
    "created_at_ms)"
    " VALUES ('acme', 'Acme', 1, 2, 3, 4, 5, 6, 7);"
    "INSERT INTO $api_key (id, tenant, name, role, permissions, prefix, hash, created_at_ms, "
    "expires_at_ms)"
    " VALUES ('k', 'acme', 'n', 'read', '', '', 'abc', 8, 0);"
    "INSERT INTO $audit (at_ms, tenant, who, act, what, reason, outcome, details)"
    " VALUES (9, 'acme', 'cli:x', 'key.create', 'k', '', 'OK', '');";

/* A new tenant, as version 1 makes one. */
static const char tenant_1[] =
    "INSERT INTO $tenant (id, name, requests_per_second, burst, waiters, streams, locks, jobs, "
    "created_at_ms)"
    " VALUES ('late', '', 0, 0, 0, 0, 0, 0, 1) ON CONFLICT (id) DO NOTHING";

/* Text with $ and @ filled in. SQLite's il_data_meta has a column more. */
static void
add_filled(const struct t_place *p, const char *text, char sql[SQL_BYTES])
{
    size_t n       = strlen(sql);
    bool   sqlite  = p->path[0] != '\0';
    bool   columns = true; /* the first @ stands before names, the second before values */

    for (; *text != '\0'; text++) {
        if (*text == '$' && sqlite)
            n += (size_t)snprintf(sql + n, SQL_BYTES - n, "il_");
        else if (*text == '$')
            n += (size_t)snprintf(sql + n, SQL_BYTES - n, "%s.", p->schema);
        else if (*text == '@' && sqlite)
            n += (size_t)snprintf(sql + n, SQL_BYTES - n, columns ? "one, " : "1, ");
        else if (*text != '@')
            n += (size_t)snprintf(sql + n, SQL_BYTES - n, "%c", *text);
        columns = columns && *text != '@';
        T_TRUE(n < SQL_BYTES);
    }
}

static void
tell_sqlite(const struct t_place *p, const char *sql)
{
    sqlite3 *db    = NULL;
    char    *error = NULL;

    T_EQ(sqlite3_open_v2(p->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    T_EQ(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        T_FAIL("%s: %s", sql, error);
    T_EQ(sqlite3_close(db), SQLITE_OK);
}

/* Several statements; a query has only one, which executes them. */
static void
tell_postgres(const struct t_place *p, const char *sql)
{
    char   out[T_PG_TEXT_BYTES];
    size_t n    = strlen(sql) + 64;
    char  *text = calloc(1, n);

    T_TRUE(text != NULL);
    (void)snprintf(text, n, "DO $do$ BEGIN EXECUTE $il$%s$il$; END $do$", sql);
    (void)t_postgres_ask(p->server, text, out);
    free(text);
}

static void
tell(const struct t_place *p, const char *sql)
{
    if (p->path[0] != '\0')
        tell_sqlite(p, sql);
    else
        tell_postgres(p, sql);
}

/* The tables of version 1, as their migration makes them, and what is in them. */
static void
make_version_1(const struct t_place *p)
{
    char        file[T_PATH_BYTES];
    const char *source = getenv("IL_TEST_SOURCE");
    char       *sql    = calloc(1, SQL_BYTES);
    size_t      n;

    T_TRUE(source != NULL && sql != NULL);
    if (p->path[0] != '\0') {
        il      *h = NULL;
        il_error err;
        T_EQ(il_open(p->url, NULL, &h, &err), IL_OK);
        il_close(h);
    } else {
        (void)snprintf(sql, SQL_BYTES, "CREATE SCHEMA %s; SET search_path = %s;", p->schema, p->schema);
    }
    t_path(file, "%s/src/data/%s/migrations/0000--0001.sql", source,
           p->path[0] != '\0' ? "sqlite" : "postgres");
    char *migration = t_file_read(file, &n);
    T_TRUE(n + strlen(sql) + sizeof version_1 < SQL_BYTES / 2);
    memcpy(sql + strlen(sql), migration, n);
    free(migration);
    add_filled(p, version_1, sql);
    tell(p, sql);
    free(sql);
}

/* ---- what is there -------------------------------------------------------------------------------------------------------------------- */

/* All tables, columns and indexes of a place as one text, which the caller frees. Names of schemas are left out. */
static char *
catalogue_of(const struct t_place *p)
{
    char out[T_PG_TEXT_BYTES] = "", sql[2048];

    if (p->path[0] == '\0') {
        (void)snprintf(
            sql, sizeof sql,
            "SELECT md5(string_agg(line, E'\\n' ORDER BY line)) || ' of ' || count(*) FROM ("
            "SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, "
            "is_nullable, column_default, collation_name)"
            " AS line FROM information_schema.columns WHERE table_schema = '%s'"
            " UNION ALL SELECT replace(indexdef, '%s', '') FROM pg_indexes WHERE schemaname = '%s'"
            " UNION ALL SELECT conname || replace(pg_get_constraintdef(oid), '%s', '') FROM "
            "pg_constraint WHERE "
            "connamespace = '%s'::regnamespace) AS all_",
            p->schema, p->schema, p->schema, p->schema, p->schema);
        return strdup(t_postgres_ask(p->server, sql, out));
    }
    sqlite3      *db  = NULL;
    sqlite3_stmt *row = NULL;
    char         *all = NULL;
    T_EQ(sqlite3_open_v2(p->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    T_EQ(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    T_EQ(sqlite3_prepare_v2(db,
                            "SELECT group_concat(line, char(10)) FROM"
                            " (SELECT type || ' ' || name || ' ' || ifnull(sql, '') AS line FROM "
                            "sqlite_schema ORDER BY type, name)",
                            -1, &row, NULL),
         SQLITE_OK);
    T_EQ(sqlite3_step(row), SQLITE_ROW);
    all = strdup((const char *)sqlite3_column_text(row, 0));
    T_EQ(sqlite3_finalize(row), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return all;
}

static void
is_as_a_new_one(const struct t_place *p)
{
    struct t_place fresh;

    t_place_make(&fresh);
    il__data_close(t_data_open(&fresh, NULL));
    char *a = catalogue_of(p);
    char *b = catalogue_of(&fresh);
    T_STREQ(a, b);
    free(a);
    free(b);
    t_place_release(&fresh);
}

static void
take_tenant(void *cookie, const struct il__data_tenant *t)
{
    *(struct il__data_limits *)cookie = t->limits;
}

static void
count_act(void *cookie, const struct il__data_act *act UNUSED)
{
    ++*(unsigned *)cookie;
}

/* What version 1 had, and what is new of it. */
static void
is_all_there(struct il__data *d)
{
    const struct il__data_limits expected = { 1, 2, 3, 4, 5, 6, 0, 0, 0, 0 };
    struct il__data_limits       limits   = { 0 };
    struct t_key                 k        = { 0 };
    unsigned                     n_acts   = 0;
    il_error                     err;

    T_EQ(il__data_tenant_get(d, "acme", take_tenant, &limits, &err), IL_OK);
    T_TRUE(memcmp(&limits, &expected, sizeof limits) == 0);
    T_EQ(il__data_key_list(d, "acme", NULL, 10, t_key_take, &k, &err), IL_OK);
    T_EQ(k.n, 1);
    T_STREQ(k.name, "n");
    T_EQ(il__data_audit_list(d, "acme", NULL, 0, 10, count_act, &n_acts, &err), IL_OK);
    T_EQ(n_acts, 1);
}

/* ---- upgrades ------------------------------------------------------------------------------------------------------------------------- */

U_TEST(from_version_1)
{
    struct t_place         p;
    struct il__data_detail det = { .tenant = "acme", .run = "r", .pipeline = "x", .created_at_ms = 1 };
    struct il__data_tenant tenant = { .id = "acme", .limits = { .runs = 5, .runs_per_day = 100 } };
    struct il__data_limits limits = { 0 };
    char                   out[4096], sql[SQL_BYTES] = "";
    il_error               err;

    t_place_make(&p);
    if (!p.shared) {
        t_place_release(&p);
        return;
    }
    make_version_1(&p);
    /* Also by those who make nothing. */
    struct il__data_open o = { .store_url = p.url, .existing = true, .no_keys = true };
    struct il__data     *d = NULL;
    if (il__data_open(&o, &d, &err) != IL_OK)
        T_FAIL("%s", err.message);
    is_all_there(d);
    T_EQ(il__data_history_write(d, &det, 1, NULL, 0, NULL, 0, &err), IL_OK);
    T_EQ(il__data_tenant_set(d, &tenant, &err), IL_OK);
    T_EQ(il__data_tenant_get(d, "acme", take_tenant, &limits, &err), IL_OK);
    T_EQ(limits.runs, 5);
    T_EQ(limits.runs_per_day, 100);
    T_STREQ(t_place_ask(&p, "SELECT version || ' ' || min_version FROM il_data_meta",
                        "SELECT version || ' ' || min_version FROM $.data_meta", out),
            "2 1");
    /* A server of version 1 that is still there goes on with its statements. */
    add_filled(&p, tenant_1, sql);
    tell(&p, sql);
    T_EQ(il__data_tenant_get(d, "late", take_tenant, &limits, &err), IL_OK);
    T_EQ(limits.runs, 0);
    il__data_close(d);
    is_as_a_new_one(&p);
    t_place_release(&p);
}

static int
open_it(void *arg)
{
    struct il__data *d = NULL;
    char             line[16];
    il_error         err;

    (void)printf("ready\n");
    (void)fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    if (il__data_open(&(struct il__data_open){ .store_url = arg }, &d, &err) != IL_OK) {
        (void)printf("%s\n", err.message);
        return 1;
    }
    is_all_there(d);
    il__data_close(d);
    return 0;
}

U_TEST(several_upgrades_at_once)
{
    static struct t_proc procs[N_PROCESSES];

    for (unsigned round = 0; round < 3; round++) {
        struct t_place p;
        t_place_make(&p);
        if (!p.shared) {
            t_place_release(&p);
            return;
        }
        make_version_1(&p);
        for (unsigned i = 0; i < N_PROCESSES; i++)
            t_proc_fork(&procs[i], open_it, p.url);
        for (unsigned i = 0; i < N_PROCESSES; i++)
            T_LINE(&procs[i], "ready", LIMIT_MS, NULL);
        for (unsigned i = 0; i < N_PROCESSES; i++)
            t_proc_say(&procs[i], "go");
        for (unsigned i = 0; i < N_PROCESSES; i++) {
            if (t_proc_exit(&procs[i], LIMIT_MS) != 0)
                T_FAIL("%s", procs[i].text);
            t_proc_release(&procs[i]);
        }
        is_as_a_new_one(&p);
        t_place_release(&p);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(from_version_1), U_ROW(several_upgrades_at_once) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
