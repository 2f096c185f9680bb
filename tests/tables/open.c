/*
 * open.c: opening the tables of an app: where they are, what is created, which versions are
 * refused, statements on both engines.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/postgres.h"
#include "tables/rig.h"

/* ---- what it creates ------------------------------------------------------------------------- */

R_TEST(tables_are_created_and_found_again)
{
    char     out[4096];
    il_error err;

    T_EQ(t_tables_try(r, &t_toy, true, &err), IL_NOT_FOUND);
    T_HAS(err.message, "tables of toy do not exist yet");
    il_guard *g = t_tables_open(r, &t_toy);
    (void)t_run(g, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), out);
    il_guard_close(g);
    T_EQ(t_tables_try(r, &t_toy, true, &err), IL_OK);
    g = t_tables_open(r, &t_toy);
    T_STREQ(t_run(g, &t_toy_seats, APP_VALUES(il_guard_text("a"), il_guard_text("c")), out), "7");
    il_guard_close(g);
}

R_TEST(each_app_has_its_own)
{
    char      out[4096];
    il_guard *toy   = t_tables_open(r, &t_toy);
    il_guard *other = t_tables_open(r, &t_other);

    (void)t_run(toy, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), out);
    T_STREQ(t_run(other, &t_toy_courses, APP_VALUES(il_guard_text("a")), out), "0");
    T_STREQ(t_run(toy, &t_toy_courses, APP_VALUES(il_guard_text("a")), out), "1");
    il_guard_close(toy);
    il_guard_close(other);
}

R_TEST(a_statement_with_a_text_for_each_engine)
{
    char      out[4096];
    il_guard *g = t_tables_open(r, &t_toy);

    T_HAS(t_run(g, &t_toy_engine, APP_NO_VALUES, out), r->is_postgres ? "PostgreSQL" : "SQLite");
    il_guard_close(g);
}

struct observed {
    unsigned n;
    char     entity[32];
};

static void
observe(void *cookie, const il_guard_event *event)
{
    struct observed *o = cookie;

    o->n++;
    (void)snprintf(o->entity, sizeof o->entity, "%s", event->entity);
}

static il_status
lock(il_guard_tx *tx, const char *entity, const char *key, il_error *err)
{
    il_guard_column columns[] = { { "tenant", il_guard_text("a") },
                                  { strcmp(entity, "course") == 0 ? "code" : "id",
                                    il_guard_text(key) } };
    il_guard_target row       = { .table = entity, .entity = entity, .key = columns, .n_key = 2 };

    return il_guard_lock(tx, &row, NULL, err);
}

R_TEST(ranks_and_observer_are_the_apps)
{
    struct observed    seen = { 0 };
    struct tables_opts o    = { .observe = observe, .cookie = &seen, .conns_max = 2 };
    il_guard          *g    = NULL;
    il_guard_tx       *tx   = NULL;
    char               out[4096];
    il_error           err;

    T_EQ(il__tables_open(&t_toy, r->place, &o, &g, &err), IL_OK);
    (void)t_run(g, &t_toy_course_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("c"), il_guard_int(7)), out);
    (void)t_run(g, &t_toy_booking_add,
                APP_VALUES(il_guard_text("a"), il_guard_text("b"), il_guard_text("c")), out);
    T_EQ(il_guard_begin(g, NULL, &tx, &err), IL_OK);
    T_EQ(lock(tx, "booking", "b", &err), IL_OK);
    T_EQ(lock(tx, "course", "c", &err), IL_ORDER);
    il_guard_rollback(tx);
    T_EQ(seen.n, 1);
    T_STREQ(seen.entity, "booking");
    il_guard_close(g);
}

/* ---- versions -------------------------------------------------------------------------------- */

R_TEST(a_newer_version_is_refused)
{
    il_error err;

    il_guard_close(t_tables_open(r, &t_toy));
    t_set_version(r, "toy", 7, 1);
    T_EQ(t_tables_try(r, &t_toy, false, &err),
         IL_OK); /* version 7 says that version 1 may use it */
    t_set_version(r, "toy", 7, 6);
    T_EQ(t_tables_try(r, &t_toy, false, &err), IL_NEWER);
    T_HAS(err.message, "version 7 of the tables of toy");
    T_HAS(err.message, "supports 1");
    T_EQ(t_tables_try(r, &t_toy_next, false, &err), IL_NEWER);
    T_HAS(err.message, "supports 2");
}

R_TEST(a_negative_version_is_refused)
{
    il_error err;

    il_guard_close(t_tables_open(r, &t_toy));
    t_set_version(r, "toy", -5, 1);
    T_EQ(t_tables_try(r, &t_toy, false, &err), IL_CORRUPT);
    T_HAS(err.message, "-5");
}

R_TEST(an_older_version_is_upgraded_by_sqlite_and_by_migrate)
{
    struct il__migration m;
    il_error             err;

    il_guard_close(t_tables_open(r, &t_toy));
    if (r->is_postgres) {
        T_EQ(t_tables_try(r, &t_toy_next, false, &err), IL_STORE);
        T_HAS(err.message, "tables of toy have version 1, but this Interlock needs 2; run "
                           "`interlock migrate`");
        T_EQ(il__tables_migrate(&t_toy_next, r->place, true, &m, &err), IL_OK);
        T_EQ(m.from, 1);
        T_EQ(m.to, 2);
        T_EQ(t_tables_try(r, &t_toy_next, false, &err), IL_STORE); /* it has only looked */
    }
    T_EQ(il__tables_migrate(&t_toy_next, r->place, false, &m, &err), IL_OK);
    T_EQ(m.by_itself, !r->is_postgres);
    T_EQ(t_tables_try(r, &t_toy_next, true, &err), IL_OK);
    T_EQ(t_tables_try(r, &t_toy, false, &err), IL_NEWER);
    T_EQ(il__tables_migrate(&t_toy_next, r->place, true, &m, &err), IL_OK);
    T_EQ(m.from, m.to);
}

R_TEST(migrate_creates_them)
{
    struct il__migration m;
    il_error             err;

    if (!r->is_postgres)
        return;
    T_EQ(il__tables_migrate(&t_toy_next, r->place, true, &m, &err), IL_OK);
    T_EQ(m.from, 0);
    T_EQ(m.to, 2);
    T_EQ(t_tables_try(r, &t_toy_next, true, &err), IL_NOT_FOUND);
    T_EQ(il__tables_migrate(&t_toy_next, r->place, false, &m, &err), IL_OK);
    T_EQ(t_tables_try(r, &t_toy_next, true, &err), IL_OK);
}

/* All or nothing. */
R_TEST(a_step_that_fails_changes_nothing)
{
    struct il__migration m;
    char                *before, *after;
    il_error             err;
    il_status            st;

    T_TRUE(t_tables_try(r, &t_toy_broken, false, &err) != IL_OK);
    T_HAS(err.message, "missing");
    T_EQ(t_tables_try(r, &t_toy, true, &err), IL_NOT_FOUND);
    il_guard *g = t_tables_open(r, &t_toy);
    before      = t_look_shape(g);
    il_guard_close(g);
    st = r->is_postgres ? il__tables_migrate(&t_toy_broken, r->place, false, &m, &err)
                        : t_tables_try(r, &t_toy_broken, false, &err);
    T_TRUE(st != IL_OK);
    g     = t_tables_open(r, &t_toy);
    after = t_look_shape(g);
    T_STREQ(after, before);
    il_guard_close(g);
    il__free(before);
    il__free(after);
}

/* ---- where they are -------------------------------------------------------------------------- */

static void
in_file(const char *store, const char *data, const char *file)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;
    il_error             err;

    T_TRUE(!t_file_exists(file));
    if (il__tables_place_open(store, data, false, &p, &err) != IL_OK ||
        il__tables_open(&t_toy, p, NULL, &g, &err) != IL_OK)
        T_FAIL("%s: %s", store, err.message);
    T_TRUE(t_file_exists(file));
    il_guard_close(g);
    il__tables_place_close(p);
}

static void
refused(const char *store, const char *data, il_status expected, const char *text)
{
    struct tables_place *p = NULL;
    il_error             err;

    T_EQ(il__tables_place_open(store, data, false, &p, &err), expected);
    T_HAS(err.message, text);
    T_TRUE(strstr(err.message, "geheim") == NULL);
}

R_TEST(urls)
{
    char url[T_PATH_BYTES], file[T_PATH_BYTES], folder[T_PATH_BYTES];

    t_path(url, "sqlite:%s/a.db", r->dir);
    t_path(file, "%s/a-toy.db", r->dir);
    in_file(url, NULL, file);
    t_path(url, "sqlite:%s/plain", r->dir);
    t_path(file, "%s/plain-toy.db", r->dir);
    in_file("memory:", url, file);
    t_path(url, "sqlite:%s/clock.db?clock=test", r->dir);
    t_path(file, "%s/clock-toy.db", r->dir);
    in_file(url, NULL, file);
    t_path(folder, "%s/state", r->dir);
    T_EQ(setenv("XDG_STATE_HOME", folder, 1), 0);
    t_path(file, "%s/interlock/data-toy.db", folder);
    in_file("redis://127.0.0.1:1", NULL, file);
    T_EQ(unsetenv("XDG_STATE_HOME"), 0);
    refused("http://127.0.0.1:1", NULL, IL_INVAL, "the store cannot hold tables");
    refused("memory:", "redis://u:geheim@127.0.0.1:1", IL_INVAL, "sqlite:PATH");
    refused("memory:", "sqlite:", IL_INVAL, "sqlite:PATH");
    refused("memory:", "sqlite::memory:", IL_INVAL, "sqlite:PATH");
    refused("memory:", "postgres://u:geheim@127.0.0.1:1/db?schema=A;B", IL_INVAL, "schema");
}

R_TEST(a_server_that_is_down)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;
    il_error             err;

    if (!r->is_postgres)
        return;
    T_EQ(il__tables_place_open("postgres://u:geheim@127.0.0.1:1/db", NULL, false, &p, &err), IL_OK);
    T_EQ(il__tables_open(&t_toy, p, NULL, &g, &err), IL_STORE);
    T_TRUE(strstr(err.message, "geheim") == NULL);
    il__tables_place_close(p);
}

R_TEST(files_are_private)
{
    char        path[T_PATH_BYTES];
    struct stat st;

    if (r->is_postgres || r->is_memory)
        return;
    mode_t mask = umask(0);
    il_guard_close(t_tables_open(r, &t_toy));
    (void)umask(mask);
    t_path(path, "%s/x-toy.db", r->dir);
    T_EQ(stat(path, &st), 0);
    T_EQ(st.st_mode & 0777, 0600);
}

R_TEST(a_folder_that_does_not_exist)
{
    struct tables_place *p = NULL;
    il_guard            *g = NULL;
    char                 url[T_PATH_BYTES];
    il_error             err;

    t_path(url, "sqlite:%s/nowhere/x.db", r->dir);
    T_EQ(il__tables_place_open(url, NULL, false, &p, &err), IL_OK);
    T_EQ(il__tables_open(&t_toy, p, NULL, &g, &err), IL_STORE);
    T_HAS(err.message, "No such file");
    il__tables_place_close(p);
}

/* ---- PostgreSQL: schemas --------------------------------------------------------------------- */

static void
ask(const struct t_rig *r, const char *format, char out[T_PG_TEXT_BYTES])
{
    char   sql[1024];
    size_t n = 0;

    for (const char *at = format; *at != '\0'; at++) /* $ is the schema of the store */
        n += (size_t)(*at == '$' ? snprintf(sql + n, sizeof sql - n, "%s", r->schema)
                                 : snprintf(sql + n, sizeof sql - n, "%c", *at));
    (void)t_postgres_ask(r->server, sql, out);
}

R_TEST(the_schema_is_named_after_the_stores)
{
    char out[T_PG_TEXT_BYTES];

    if (!r->is_postgres)
        return;
    il_guard_close(t_tables_open(r, &t_toy));
    ask(r, "SELECT count(*)::text FROM $_toy.course", out);
    T_STREQ(out, "0");
}

R_TEST(an_empty_schema_is_used)
{
    char out[T_PG_TEXT_BYTES];

    if (!r->is_postgres)
        return;
    ask(r, "CREATE SCHEMA $_toy", out);
    il_guard_close(t_tables_open(r, &t_toy));
}

R_TEST(objects_of_other_roles_are_refused)
{
    struct il__migration m;
    char                 out[T_PG_TEXT_BYTES];
    il_error             err;

    if (!r->is_postgres)
        return;
    ask(r, "CREATE ROLE stranger_$", out);
    ask(r, "CREATE SCHEMA $_toy AUTHORIZATION stranger_$", out);
    T_EQ(t_tables_try(r, &t_toy, false, &err), IL_STORE);
    T_HAS(err.message, "owned by role stranger_");
    T_EQ(il__tables_migrate(&t_toy, r->place, false, &m, &err), IL_STORE);
    ask(r, "DROP SCHEMA $_toy", out);
    ask(r, "DROP ROLE stranger_$", out);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        R_ROW(tables_are_created_and_found_again),
        R_ROW(each_app_has_its_own),
        R_ROW(a_statement_with_a_text_for_each_engine),
        R_ROW(ranks_and_observer_are_the_apps),
        R_ROW(a_newer_version_is_refused),
        R_ROW(a_negative_version_is_refused),
        R_ROW(an_older_version_is_upgraded_by_sqlite_and_by_migrate),
        R_ROW(migrate_creates_them),
        R_ROW(a_step_that_fails_changes_nothing),
        R_ROW(urls),
        R_ROW(a_server_that_is_down),
        R_ROW(files_are_private),
        R_ROW(a_folder_that_does_not_exist),
        R_ROW(the_schema_is_named_after_the_stores),
        R_ROW(an_empty_schema_is_used),
        R_ROW(objects_of_other_roles_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
