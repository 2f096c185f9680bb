/*
 * rig.h: a place for the tables of apps, new for each test: IL_TEST_TABLES = sqlite, postgres,
 * postgres-bouncer or memory.
 */
#ifndef T_TABLES_RIG_H
#define T_TABLES_RIG_H

#include "app/apps/toy/tables.h"
#include "apps/common/tables.h"
#include "harness/check.h"
#include "harness/cmocka.h"
#include "harness/tmp.h"

#define R_LIMIT_MS 60000

struct t_rig {
    char                 url[T_PATH_BYTES];    /* of the store */
    char                 dir[T_PATH_BYTES];    /* of files of the test's own */
    char                 schema[64];           /* of the store, or "" */
    char                 server[T_PATH_BYTES]; /* PostgreSQL itself, past the pooler; or "" */
    bool                 is_postgres, is_memory;
    struct tables_place *place;
};

void t_rig_make(struct t_rig *r);
void t_rig_release(struct t_rig *r);

/* Open tables, which must work; `existing` must not create them. */
il_guard *t_tables_open(const struct t_rig *r, const struct app_tables *t);
il_status t_tables_try(const struct t_rig *r, const struct app_tables *t, bool existing,
                       il_error *err);
/* Open them from nothing, in a process of its own. */
int t_tables_in_process(const char *url, const struct app_tables *t);

/* Run one statement in a transaction, which must work: the first value of the first row as text, ""
 * if there is none. */
const char *t_run(il_guard *g, const struct app_statement *s, const il_guard_value *values,
                  size_t n_values, char out[4096]);
/* The same; its status. */
il_status t_run_try(il_guard *g, const struct app_statement *s, const il_guard_value *values,
                    size_t n_values, il_error *err);
/* Change the version that is recorded. */
void t_set_version(const struct t_rig *r, const char *app, int version, int min_version);

/* What the catalogue says about tables (look.sql), lines of text; the caller frees. */
char *t_look_keys(il_guard *g);
char *t_look_shape(il_guard *g);

/* A cmocka test `static void name(struct t_rig *r)`. */
#define R_TEST(name)                            \
    static void name(struct t_rig *);           \
    static void name##_run(void **state UNUSED) \
    {                                           \
        struct t_rig r_;                        \
        t_rig_make(&r_);                        \
        name(&r_);                              \
        t_rig_release(&r_);                     \
    }                                           \
    static void name(struct t_rig *r)
#define R_ROW(name) cmocka_unit_test(name##_run)

#endif
