/*
 * alloc_core.c: the core under memory shortage: each part runs with the n-th allocation failing, n
 * = 1, 2, ... until none failed. Every failure is reported, leaks nothing, and the call works when
 * repeated.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/cursor.h"
#include "core/deadlock.h"
#include "core/ended.h"
#include "core/op.h"
#include "core/order.h"
#include "fault/alloc_inject.h"
#include "harness/unit.h"

#define N_MAX 100000

/* One run of something under memory that fails; checks what it can while it does. */
typedef void piece_fn(void);

static void
loop(const char *name, piece_fn *piece)
{
    for (int mode = ALLOC_INJECT_ONCE; mode <= ALLOC_INJECT_FROM_ON; mode++) {
        unsigned n = 1;
        for (;; n++) {
            long before = alloc_inject_n_live();
            T_LESS(n, N_MAX);
            alloc_inject_arm(ALLOC_INJECT_OURS, (enum alloc_inject_mode)mode, n);
            piece();
            alloc_inject_disarm();
            if (alloc_inject_n_live() != before)
                T_FAIL("%s: n = %u: %ld allocations leaked", name, n,
                       alloc_inject_n_live() - before);
            if (!alloc_inject_fired())
                break;
        }
        print_message("# %s: %u failures, %s\n", name, n - 1,
                      mode == ALLOC_INJECT_ONCE ? "once" : "from n on");
    }
}

static void
piece_buf(void)
{
    AUTO_BUF struct il__buf b;
    char                    expected[3000] = "";
    size_t                  n              = 0;

    il__buf_init(&b, 100000);
    for (unsigned i = 0; i < 200; i++) {
        il__buf_addf(&b, "%u-", i);
        if (!b.failed)
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%u-", i);
    }
    /* What was there when it failed is still there, and terminated. */
    T_STREQ(il__buf_str(&b), expected);
    char *taken = il__buf_take(&b);
    T_TRUE(b.failed || taken != NULL || alloc_inject_fired());
    il__free(taken);
    alloc_inject_disarm();
    il__buf_release(&b);
    il__buf_adds(&b, "again");
    T_STREQ(il__buf_str(&b), "again");
}

static void
piece_arena(void)
{
    void *chain = NULL;

    for (size_t i = 1; i < 2000; i += 37) {
        char *p = il__arena_alloc(&chain, i);
        T_TRUE(p != NULL || alloc_inject_fired());
        if (p != NULL)
            memset(p, 0x5a, i);
    }
    const char *s = il__arena_strdup(&chain, "text");
    T_TRUE(s == NULL || strcmp(s, "text") == 0);
    il__arena_clear(&chain);
    s = il__arena_strdup(&chain, "text");
    T_TRUE(s == NULL || strcmp(s, "text") == 0);
    alloc_inject_disarm();
    T_STREQ(il__arena_strdup(&chain, "again"), "again");
    il__arena_free(&chain);
}

static void
piece_ended(void)
{
    struct il__ended_log e = { 0 };

    for (uint64_t i = 1; i <= 500; i++) {
        struct il__ended_id id = { i * 7, i * 13 };
        size_t              n  = e.n;
        if (!il__ended_reserve(&e, 1)) {
            T_TRUE(alloc_inject_fired());
            T_EQU(e.n, n); /* nothing was changed */
            alloc_inject_disarm();
            T_TRUE(il__ended_reserve(&e, 1));
        }
        il__ended_add(&e, id, i, IL_LEASE_RELEASED, (int64_t)i);
    }
    for (uint64_t i = 1; i <= 500; i++) {
        const struct il__ended *found =
            il__ended_find(&e, (struct il__ended_id){ i * 7, i * 13 }, 500);
        T_TRUE(found != NULL);
        T_EQU(found->fence, i);
    }
    il__ended_release(&e);
}

static void
piece_order(void)
{
    struct il__order o = { 0 };
    char             name[32];

    for (unsigned i = 0; i < 60; i++) {
        struct il__order_seen e = { "t", "first:1", name, "here", "there", false };
        size_t                n = o.n;
        (void)snprintf(name, sizeof name, "class%u", i);
        if (!il__order_add(&o, &e)) {
            T_TRUE(alloc_inject_fired());
            T_EQU(o.n, n);
            alloc_inject_disarm();
            T_TRUE(il__order_add(&o, &e));
        }
    }
    T_EQU(o.n, 60);
    AUTO_BUF struct il__buf why;
    struct il__order_hold   hold = { "class7:1", "p" };
    il__buf_init(&why, 4096);
    T_EQ(il__order_judge(&o, "t", &hold, "first:1", "q", &why),
         IL__ORDER_AGAINST | IL__ORDER_LEARN);
    il__order_release(&o);
}

/* Ten units of work, each waits for the next one's key: a ring. */
#define RING 10

static unsigned
number_of(const char *name)
{
    return (unsigned)strtoul(name + 1, NULL, 10);
}

static bool
waits_of(void *cookie UNUSED, const char *root, size_t root_bytes UNUSED, struct il__deadlock *d)
{
    char key[16];

    (void)snprintf(key, sizeof key, "k%u", (number_of(root) + 1) % RING);
    il__deadlock_add_wanted(d, key);
    return true;
}

static bool
queue_of(void *cookie UNUSED, const char *key, struct il__deadlock *d)
{
    unsigned i = number_of(key);
    char     name[16];

    (void)snprintf(name, sizeof name, "u%u", i);
    il__deadlock_add_lease(d, name, IL_MODE_EXCLUSIVE, 0);
    (void)snprintf(name, sizeof name, "u%u", (i + RING - 1) % RING);
    il__deadlock_add_wait(d, 100 + i, name, IL_MODE_EXCLUSIVE, 0);
    return true;
}

static void
piece_deadlock(void)
{
    struct il__deadlock_source source = { waits_of, queue_of, NULL, NULL };
    uint64_t                   ticket = 0;
    AUTO_BUF struct il__buf    why;

    il__buf_init(&why, 4096);
    const char *holder = "u3";
    il_status   st     = il__deadlock_find(&source, &holder, 1, &ticket, &why);
    if (st != IL_DEADLOCK) { /* not found for lack of memory must not be "there is none" */
        T_EQ(st, IL_NOMEM);
        T_TRUE(alloc_inject_fired());
        alloc_inject_disarm();
        il__buf_release(&why);
        T_EQ(il__deadlock_find(&source, &holder, 1, &ticket, &why), IL_DEADLOCK);
    }
    T_EQU(ticket, 100 + RING - 1);
}

static void
piece_op(void)
{
    il_lease_info item = {
        .tenant = "t", .key = "k", .holder = "h", .meta = "m", .place = "p", .reason = ""
    };
    il_op  op      = { .type = IL_OP_LIST };
    size_t n_added = 0;

    for (unsigned i = 0; i < 100; i++) {
        item.fence = i + 1;
        n_added += il__op_add_item(&op, &item) ? 1U : 0U;
        T_EQU(op.out.n_items, n_added);
    }
    for (size_t i = 0; i < n_added; i++)
        T_STREQ(op.out.items[i].holder, "h");
    T_TRUE(n_added == 100 || alloc_inject_fired());
    const char *cursor = il__op_cursor(&op, "key:with:colons", 77);
    T_TRUE(cursor != NULL || alloc_inject_fired());
    (void)il__op_end(&op, IL_HELD, "a detail"); /* left out when there is no memory for it */
    T_EQ(op.status, IL_HELD);
    T_TRUE(op.out.detail == NULL || strcmp(op.out.detail, "a detail") == 0);
    il_op_release(&op);
}

U_TEST(every_piece_survives)
{
    loop("buf", piece_buf);
    loop("arena", piece_arena);
    loop("ended", piece_ended);
    loop("order", piece_order);
    loop("deadlock", piece_deadlock);
    loop("op", piece_op);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(every_piece_survives) };

    alloc_inject_install();
    return cmocka_run_group_tests_name("alloc_core", tests, NULL, NULL);
}
