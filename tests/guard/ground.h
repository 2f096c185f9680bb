/*
 * ground.h: a user's database and a store, new for each test. IL_TEST_GUARD = sqlite (both are
 * files), postgres (a schema; the store is a file), or shared (both are in one PostgreSQL
 * database).
 */
#ifndef T_GROUND_H
#define T_GROUND_H

#include "guard/guard.h"
#include "guard/open.h"
#include "harness/check.h"
#include "harness/cmocka.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define G_KEY "pipeline:p"
#define G_LIMIT_MS 30000

struct t_ground {
    char dir[T_PATH_BYTES];
    char url[T_PATH_BYTES];   /* of the user's database */
    char path[T_PATH_BYTES];  /* of its file, or "" */
    char store[T_PATH_BYTES]; /* URL of the store */
    char schema[64];          /* of the user, or "" */
    char server[T_PATH_BYTES];
    bool is_postgres, is_shared;
};

void t_ground_make(struct t_ground *g);
void t_ground_release(struct t_ground *g);

/* Say something to the database past our code: the first value, "" if there is none. */
const char *t_ground_ask(const struct t_ground *g, const char *sql, char out[4096]);
int64_t     t_ground_count(const struct t_ground *g, const char *sql);

il *t_ground_store(const struct t_ground *g);
/* Open a connection, which must work; 0 = the usual timeout. */
il_guard *t_ground_open(const struct t_ground *g, int64_t timeout_ms);

/* Take the key for `holder`, without renewals; wait for it if it is held. */
uint64_t t_take(il *h, const char *holder, int64_t ttl_ms);
/* Take a lease away at once. */
void t_break(il *h, uint64_t fence);

il_guard_fence t_fence(il *h, uint64_t fence);
/* Begin and run, which must work. */
il_guard_tx *t_begin(il_guard *c, const il_guard_fence *f, bool read_only);
void         t_exec(il_guard_tx *tx, const char *sql);
/* In a transaction of its own, without a fence. */
void t_write(il_guard *c, const char *sql);
/* What a statement ends with; its error in *err. */
il_status t_try(il_guard_tx *tx, const char *sql, il_error *err);

/* A cmocka test `static void name(struct t_ground *g)`. */
#define G_TEST(name)                            \
    static void name(struct t_ground *);        \
    static void name##_run(void **state UNUSED) \
    {                                           \
        struct t_ground g_;                     \
        t_ground_make(&g_);                     \
        name(&g_);                              \
        t_ground_release(&g_);                  \
    }                                           \
    static void name(struct t_ground *g UNUSED)
#define G_ROW(name) cmocka_unit_test(name##_run)

#endif
