/*
 * oom.c: each allocation fails in turn, ours and SQLite's: an error, no crash and no leak; and a
 * key that was shown is stored.
 */
#include <stdio.h>

#include "base/arena.h"
#include "data/history.h"
#include "data/place.h"
#include "fault/alloc_inject.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define CLASS "pipeline"
#define N_MAX 40000

static void
ignore_key(void *cookie UNUSED, const struct il__data_key *key UNUSED)
{
}

static void
ignore_action(void *cookie UNUSED, const struct il__data_action *action UNUSED)
{
}

static void
ignore_step(void *cookie UNUSED, const struct il__data_step *step UNUSED)
{
}

static il_status
use_history(struct il__data *d, il_error *err)
{
    struct il__data_detail detail = { .tenant = "t", .run = "r", .pipeline = "p", .node = "\xff" };
    struct il__data_step   step   = {
            .tenant = "t", .run = "r", .step = "s", .out = "\xff", .err = "x"
    };
    struct il__data_join join = { .tenant = "t", .run = "q", .by = "\xff" };
    uint64_t             n    = 0;

    il_status st = il__data_history_write(d, CLASS, &detail, 1, &step, 1, &join, 1, err);
    if (st == IL_OK)
        st = il__data_history_steps(d, "t", "r", true, ignore_step, NULL, err);
    return st == IL_OK ? il__data_history_purge(d, CLASS, INT64_MAX, &n, err) : st;
}

static il_status
use_tenants(struct il__data *d, il_error *err)
{
    void        *mem = NULL;
    const char **ids;
    size_t       n;
    il_status    st = il__data_tenant_ids(d, 10, &mem, &ids, &n, err);

    il__arena_free(&mem);
    return st;
}

static il_status
use(struct il__data *d, char secret[DATA_KEY_BYTES_MAX], il_error *err)
{
    struct il__data_key key = {
        .tenant = "t", .role = DATA_ROLE_WRITE, .name = "n", .permissions = "a b"
    };
    struct il__data_action action = { .tenant = "t", .action = "x", .reason = "\xff" };
    char                   id[DATA_ID_BYTES], made[DATA_KEY_BYTES_MAX];
    unsigned char          hash[DATA_HASH_BYTES];

    il_status st = il__data_key_create(d, &key, true, id, made, err);
    if (st != IL_OK)
        return st;
    memcpy(secret, made, sizeof made);
    il__data_key_hash(d, secret, strlen(secret), hash);
    if ((st = il__data_key_find(d, hash, ignore_key, NULL, err)) != IL_OK ||
        (st = il__data_key_list(d, NULL, NULL, 10, ignore_key, NULL, err)) != IL_OK ||
        (st = il__data_key_used(d, id, 1800000000000, err)) != IL_OK ||
        (st = il__data_key_revoke(d, "t", id, true, err)) != IL_OK ||
        (st = il__data_audit_add(d, &action, 1, err)) != IL_OK ||
        (st = use_tenants(d, err)) != IL_OK)
        return st;
    st = il__data_audit_list(d, "t", NULL, 0, 10, ignore_action, NULL, err);
    return st == IL_OK ? use_history(d, err) : st;
}

/* One try with the n-th allocation failing. False: none was left to fail. */
static bool
try_once(const struct t_place *p, enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned n)
{
    struct il__data_open o                          = { .store_url = p->url };
    struct il__data     *d                          = NULL;
    char                 secret[DATA_KEY_BYTES_MAX] = "";
    struct t_key         k;
    il_error             err    = { .message = "" };
    long                 n_live = alloc_inject_n_live();

    alloc_inject_arm(of, mode, n);
    il_status st = il__data_open(&o, &d, &err);
    if (st == IL_OK)
        st = use(d, secret, &err);
    bool fired = alloc_inject_fired();
    alloc_inject_disarm();
    /* SQLite can do without some of its memory. */
    if (st != IL_OK && (!fired || st != IL_NOMEM))
        T_FAIL("allocation %u: status %d, %s", n, (int)st, err.message);
    if (d != NULL && secret[0] != '\0')
        T_EQ(t_key_find(d, secret, &k), IL_OK);
    il__data_close(d);
    if (!p->shared || secret[0] == '\0') {
        T_EQ(alloc_inject_n_live(), n_live);
        return fired;
    }
    d = t_data_open(p, NULL);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    il__data_close(d);
    T_EQ(alloc_inject_n_live(), n_live);
    return fired;
}

static void
try_all(enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned step)
{
    unsigned n = 1;

    for (bool fired = true; fired; n += step) {
        struct t_place p;
        t_place_make(&p);
        fired = try_once(&p, of, mode, n);
        t_place_release(&p);
        T_TRUE(n < N_MAX);
    }
    print_message("# %u allocations\n", n);
}

U_TEST(ours)
{
    try_all(ALLOC_INJECT_OURS, ALLOC_INJECT_ONCE, 1);
    try_all(ALLOC_INJECT_OURS, ALLOC_INJECT_FROM_ON, 1);
}

/* A new file needs many thousands of them, most of the same kind. */
U_TEST(sqlites)
{
    const char *kind = getenv("IL_TEST_DATA");
    unsigned    step = kind != NULL && strcmp(kind, "memory") == 0 ? t_stride(1) : t_stride(29);

    try_all(ALLOC_INJECT_SQLITE, ALLOC_INJECT_ONCE, step);
    try_all(ALLOC_INJECT_SQLITE, ALLOC_INJECT_FROM_ON, step);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(ours), U_ROW(sqlites) };

    alloc_inject_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
