/*
 * rig.h: a store, the tables of usage and sources for tests of the usage cache. IL_TEST_USAGE =
 * sqlite (store and tables are files), postgres (both are in one database) or redis (the tables are
 * a file).
 */
#ifndef T_USAGE_RIG_H
#define T_USAGE_RIG_H

#include <semaphore.h>

#include "apps/usage/source_internal.h"
#include "apps/usage/usage.h"
#include "harness/proc.h"
#include "harness/store.h"
#include "harness/unit.h"

#define RIG_LIMIT_MS 20000
#define RIG_LEASE_MS 1000
#define RIG_WAIT_MS 15000
/* A call that must work. */
#define T_OK(call, err)                              \
    do {                                             \
        if ((call) != IL_OK)                         \
            T_FAIL("%s: %s", #call, (err)->message); \
    } while (0)
#define MINUTES(n) ((n)*INT64_C(60000))

/* Where everything is: before any handle is open, so that processes can be forked. */
struct rig {
    char dir[T_PATH_BYTES], url[T_PATH_BYTES], other[T_PATH_BYTES], data[T_PATH_BYTES + 16];
    const struct t_engine *engine;
    bool                   is_postgres;
};
void rig_make(struct rig *r);
void rig_release(struct rig *r);

/* One process that shares the cache. Fields may be set between node_init() and node_open(). */
struct node {
    const struct rig        *rig;
    struct usage_source_opts from;
    struct usage_opts        opts;
    il                      *h;
    struct tables_place     *place;
    il_guard                *tables;
    struct usage_source     *source;
    struct usage            *usage;
    atomic_int_fast64_t      now_ms;
    /* The thread that reaches stop_at posts `reached` and waits for `go`. */
    atomic_int           stop_at; /* enum usage_phase; -1 = none */
    sem_t                reached, go;
    atomic_uint_fast64_t notes[USAGE_EVENT_COUNT];
};
void node_init(struct node *n, const struct rig *r);
void node_open(struct node *n);
void node_close(struct node *n);
void node_set_time(struct node *n, const char *time); /* RFC 3339 */
/* A wait with a limit. */
void rig_take(sem_t *s);

/* A call that waits for a day. */
struct asking {
    struct usage_waiter waiter;
    struct usage_result result;
    sem_t               done;
};
void asking_begin(struct asking *a, struct node *n, const char *tenant, const char *date,
                  enum usage_way way);
/* Wait for it. The result is the caller's (rig_drop()). */
struct usage_result asking_end(struct asking *a);
/* Both. */
struct usage_result node_ask(struct node *n, const char *tenant, const char *date,
                             enum usage_way way);
void                rig_drop(struct usage_result *r);
/* The same; it must be there. Returns when it was updated. */
int64_t             node_must(struct node *n, const char *date, enum usage_way way, bool hit);
struct usage_counts node_counts(const struct node *n);
/* The stored row; false: none. Its figures are released. */
bool       node_row(struct node *n, const char *tenant, const char *date, struct usage_row *ret);
usage_date rig_date(const char *text);
/* Run a statement on the tables; tenant (may be NULL) is $1. The first column of its first row,
 * or "". */
void node_sql(struct node *n, const char *sql, const char *tenant, char *out, size_t size);
/* Is the lease of the day held? */
bool node_is_locked(struct node *n, const char *date);
/* Until check(n) is true. */
void node_until(struct node *n, bool (*check)(struct node *n), const char *what);

#define R_TEST(name)                            \
    static void name(struct rig *);             \
    static void name##_run(void **state UNUSED) \
    {                                           \
        struct rig r_;                          \
        rig_make(&r_);                          \
        name(&r_);                              \
        rig_release(&r_);                       \
    }                                           \
    static void name(struct rig *r)
#define R_ROW(name) cmocka_unit_test(name##_run)

#endif
