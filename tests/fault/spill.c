/*
 * spill.c: the page cache runs out in the middle of a transaction, so that SQLite writes some pages
 * to the WAL before the commit; then the transaction is rolled back, and another handle commits at
 * the same position of the WAL. Data of the first transaction must never appear, whatever it does
 * next.
 */
#include <sqlite3.h>

#include "fault/integrity.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define N_READERS 100
#define N_MAX 3000

static sqlite3_mem_methods before;
static long                left = -1; /* allocations of pages until they fail; -1 = they do not */
static unsigned            n_failed;

static bool
fails(int n_bytes)
{
    if (left < 0 || n_bytes < 4000)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    n_failed++;
    return true;
}

static void *
page_alloc(int n_bytes)
{
    return fails(n_bytes) ? NULL : before.xMalloc(n_bytes);
}

static il_op
run(il *h, il_op op)
{
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    return op;
}

/* A lease that 100 readers wait for, each with a page of meta: giving it on changes many pages. */
static uint64_t
make_queue(il *h, const char *meta)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "x" };

    op.in.lock.ttl_ms = IL_TTL_MS_MAX;
    op                = run(h, op);
    uint64_t fence    = op.out.fence;
    il_op_release(&op);
    for (unsigned i = 0; i < N_READERS; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "r%u", i);
        op                 = (il_op){ .type = IL_OP_ACQUIRE, .key = "k", .holder = holder };
        op.in.lock.mode    = IL_MODE_SHARED;
        op.in.lock.meta    = meta;
        op.in.lock.wait_ms = IL_FOREVER;
        op                 = run(h, op);
        T_EQ(op.status, IL_QUEUED);
        il_op_release(&op);
    }
    return fence;
}

/* The n-th page finds no memory; false when there was none left to fail. `closes`: A closes instead
 * of going on. */
static bool
play(unsigned n, bool closes)
{
    static char  meta[3000];
    char         dir[T_PATH_BYTES];
    char         url[T_PATH_BYTES];
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *a    = NULL;
    il          *b    = NULL;
    il_lease    *l    = NULL;

    memset(meta, 'm', sizeof meta - 1);
    t_tmp_make(dir);
    t_path(url, "sqlite:%s/x.db", dir);
    opts.flags = IL_OPEN_NO_SWEEP;
    T_EQ(il_open(url, &opts, &a, NULL), IL_OK);
    T_EQ(il_open(url, &opts, &b, NULL), IL_OK);
    uint64_t fence = make_queue(b, meta);

    il_op op     = { .type = IL_OP_RELEASE, .key = "k", .holder = "x", .fence = fence };
    n_failed     = 0;
    left         = n;
    il_status st = il_apply(a, &op, 1, NULL);
    left         = -1;
    il_op_release(&op);
    T_TRUE(st == IL_OK || n_failed > 0);
    T_EQ(il_acquire(b, "b", NULL, &l, NULL), IL_OK);
    fence = il_lease_fence(l);
    il_lease_free(l);
    if (closes) {
        il_close(a);
        a = NULL;
    } else {
        T_EQ(il_acquire(a, "a", NULL, &l, NULL), IL_OK);
        il_lease_free(l);
    }
    T_EQ(il_check_fence(b, "b", fence, NULL), IL_OK);
    il_close(a);
    il_close(b);
    T_TRUE(db_is_whole(url + strlen("sqlite:")));
    T_EQ(il_open(url, &opts, &b, NULL), IL_OK);
    T_EQ(il_check_fence(b, "b", fence, NULL), IL_OK);
    il_close(b);
    t_tmp_remove(dir);
    return n_failed > 0;
}

static void
play_all(bool closes)
{
    unsigned n_runs = 0;

    for (unsigned n = 0; play(n, closes); n += n < 100 ? 1 : 7) {
        T_LESS(n, N_MAX);
        n_runs++;
    }
    print_message("# %u failures\n", n_runs);
    T_LESS(50, n_runs);
}

U_TEST(then_it_goes_on)
{
    play_all(false);
}

U_TEST(then_it_closes)
{
    play_all(true);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(then_it_goes_on), U_ROW(then_it_closes) };
    sqlite3_mem_methods            methods;

    CHECK(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &before) == SQLITE_OK);
    methods         = before;
    methods.xMalloc = page_alloc;
    CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
