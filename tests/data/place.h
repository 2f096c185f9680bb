/*
 * place.h: where a data store under test is: IL_TEST_DATA = memory, sqlite, postgres or
 * postgres-bouncer. A new and empty one for each test.
 */
#ifndef T_PLACE_H
#define T_PLACE_H

#include "data/data.h"
#include "harness/cmocka.h"
#include "harness/check.h"
#include "harness/tmp.h"

struct t_place {
    char url[T_PATH_BYTES];
    char dir[T_PATH_BYTES];    /* of files of the test's own */
    char path[T_PATH_BYTES];   /* of the database, or "" */
    char schema[64];           /* of the tables, or "" */
    char server[T_PATH_BYTES]; /* PostgreSQL itself, past the pooler; or "" */
    bool shared;               /* several processes may use it */
};

void t_place_make(struct t_place *p);
void t_place_release(struct t_place *p);

/* Open it, which must work; with this pepper file (NULL = none). */
struct il__data *t_data_open(const struct t_place *p, const char *pepper_file);
/* Try to: what it ended with, and the error's text. */
il_status t_data_try(const struct il__data_open *o, il_error *err);

/* Say something to the database itself, past our code; what it answers first. */
const char *t_place_ask(const struct t_place *p, const char *sqlite, const char *postgres,
                        char out[4096]);

/* A key of a tenant with this role and nothing else. */
void t_key_make(struct il__data *d, const char *tenant, enum il__data_role role,
                char id[DATA_ID_BYTES], char secret[DATA_KEY_BYTES_MAX]);

/* What was found of a key, copied. */
struct t_key {
    unsigned n; /* how many rows came */
    char     id[DATA_ID_BYTES], tenant[IL_TENANT_BYTES_MAX + 1], name[DATA_NAME_BYTES_MAX + 1];
    char     permissions[DATA_PERMISSIONS_BYTES_MAX + 1], prefix[DATA_PREFIX_BYTES_MAX + 1];
    enum il__data_role role;
    int64_t            created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms;
};
/* cookie: struct t_key, the last one stays */
void      t_key_take(void *cookie, const struct il__data_key *key);
il_status t_key_find(struct il__data *d, const char *secret, struct t_key *ret);

/* A cmocka test `static void name(struct t_place *p, struct il__data *d)`, on a new place. */
#define D_TEST(name)                                       \
    static void name(struct t_place *, struct il__data *); \
    static void name##_run(void **state UNUSED)            \
    {                                                      \
        struct t_place p_;                                 \
        t_place_make(&p_);                                 \
        struct il__data *d_ = t_data_open(&p_, NULL);      \
        name(&p_, d_);                                     \
        il__data_close(d_);                                \
        t_place_release(&p_);                              \
    }                                                      \
    static void name(struct t_place *p UNUSED, struct il__data *d UNUSED)
#define D_ROW(name) cmocka_unit_test(name##_run)

#endif
