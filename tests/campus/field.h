/*
 * field.h: a campus for tests: new tables and a store for each test, and processes that call
 * operations at the same moment. IL_TEST_GUARD = sqlite or postgres.
 */
#ifndef T_FIELD_H
#define T_FIELD_H

#include "apps/campus/campus.h"
#include "apps/campus/verify.h"
#include "harness/check.h"
#include "harness/cmocka.h"
#include "harness/tmp.h"

#define F_LIMIT_MS 60000
#define F_TENANT "acme"
#define F_DAY_MS (INT64_C(24) * 3600 * 1000)

struct t_field {
    char                 dir[T_PATH_BYTES];
    char                 store_url[T_PATH_BYTES], data_url[T_PATH_BYTES];
    char                 server[T_PATH_BYTES], schema[64];
    bool                 is_postgres;
    struct tables_place *place;
    il_guard            *db;
    il                  *store;
    int64_t              now_ms;                     /* of calls; 0: the clock */
    void                *mem;                        /* of their answers */
    il_error             err;                        /* of the last call */
    unsigned             n_races[CAMPUS_RACE_COUNT]; /* of all calls */
    il_guard_observe_fn *observe;                    /* of the tables, from the next opening on */
    void                *cookie;
};

void t_field_make(struct t_field *f);
void t_field_release(struct t_field *f);
/* Open and close what a process needs: nothing may be open when it forks. */
void t_field_open(struct t_field *f);
void t_field_close(struct t_field *f);

/* Call an operation with this id (NULL: a new one). Anything but success or a refusal fails the
 * test. */
enum campus_code t_call(struct t_field *f, campus_fn *fn, const char *id,
                        const struct campus_in *in, void *out);
#define T_CALL(f, fn, id, out, ...) t_call(f, fn, id, &(struct campus_in){ __VA_ARGS__ }, out)
/* It must succeed. */
#define T_DO(f, fn, id, out, ...) T_EQ(T_CALL(f, fn, id, out, __VA_ARGS__), CAMPUS_OK)

/* Users u1, u2, … with credits and, if `skills`, licenses l1, l2, …; a tournament in a state. */
void t_users(struct t_field *f, unsigned n, int64_t credits, const char *skills);
void t_tournament(struct t_field *f, const char *id, int64_t max_players, int64_t cost,
                  enum campus_state state);
void t_move(struct t_field *f, const char *tournament, enum campus_state state);
/* A session that starts so many hours from now and takes two. */
void        t_session(struct t_field *f, const char *id, const char *tournament, int64_t capacity,
                      int64_t price, int64_t in_hours);
void        t_enroll(struct t_field *f, const char *tournament, unsigned from, unsigned to);
const char *t_user(unsigned i); /* "u7"; one of the last eight results */

/* What the database says, past our code. */
const char *t_ask(struct t_field *f, const char *sql, char out[4096]);
int64_t     t_count(struct t_field *f, const char *sql);
int64_t     t_credits(struct t_field *f, const char *user);
/* Change rows that a constraint would refuse: CHECKs do not apply (in PostgreSQL they are
 * dropped). Several statements are separated by "; ". */
void t_plant(struct t_field *f, const char *sql);

/* All invariants hold. */
void t_verify(struct t_field *f);

/* ---- processes ------------------------------------------------------------------------------- */

#define F_TASKS_MAX 16
struct t_task {
    campus_fn       *fn;
    struct campus_in in;
    char             id[64];       /* "": a new one */
    char             texts[2][64]; /* room for inputs */
    enum campus_code code;         /* result */
    int64_t          now_ms;
};
/* A process that kills itself at a step of a call: t_count_down() is its campus_call.step. */
struct t_victim {
    struct t_field *f;
    int             at; /* steps that it lives to see */
};
void t_count_down(void *cookie);

/* Each in a process of its own, all at the same moment. */
void     t_at_once(struct t_field *f, struct t_task *tasks, unsigned n);
unsigned t_with_code(const struct t_task *tasks, unsigned n, enum campus_code code);
/* The same call n times, with a new id each. */
void t_n_times(struct t_field *f, struct t_task *tasks, unsigned n, campus_fn *fn,
               const struct campus_in *in);

#define C_TEST(name)                            \
    static void name(struct t_field *);         \
    static void name##_run(void **state UNUSED) \
    {                                           \
        static struct t_field f_;               \
        t_field_make(&f_);                      \
        name(&f_);                              \
        t_field_release(&f_);                   \
    }                                           \
    static void name(struct t_field *f UNUSED)
#define C_ROW(name) cmocka_unit_test(name##_run)

#endif
