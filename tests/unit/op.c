/*
 * op.c: results of ops: items, cursors, checks; and that an op can be reused.
 */
#include "core/cursor.h"
#include "core/op.h"

#include "core/limits.h"
#include "harness/rng.h"
#include "harness/unit.h"

U_TEST(items_are_copied)
{
    il_op op = { 0 };

    for (unsigned i = 0; i < 1000; i++) {
        char          holder[32];
        il_lease_info item = {
            .tenant = "t", .key = "k", .holder = holder, .meta = "", .place = "p", .reason = ""
        };
        (void)snprintf(holder, sizeof holder, "h%u", i);
        item.fence = i + 1;
        T_TRUE(il__op_add_item(&op, &item));
    }
    T_EQ(op.out.n_items, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        char holder[32];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        T_STREQ(op.out.items[i].holder, holder);
        T_EQU(op.out.items[i].fence, i + 1);
        T_STREQ(op.out.items[i].place, "p");
    }
    il_op_release(&op);
    T_EQ(op.out.n_items, 0);
    T_TRUE(op.mem == NULL);
    il_op_release(&op);
}

U_TEST(memory_is_aligned)
{
    il_op op = { 0 };

    for (size_t i = 0; i < 200; i++) {
        void *p = il__op_alloc(&op, i * 7 + 1);
        T_EQ((uintptr_t)p % 16, 0);
        memset(p, 0xAA, i * 7 + 1);
    }
    T_TRUE(il__op_alloc(&op, 1000000) != NULL);
    il_op_release(&op);
}

U_TEST(cursors_go_round)
{
    struct t_rng r;
    il_op        op = { 0 };

    t_rng_init(&r, 3);
    for (unsigned i = 0; i < 2000; i++) {
        char        key[64];
        const char *back_key;
        uint64_t    back;
        uint64_t    number = t_rng_next(&r) >> (1 + t_rng_below(&r, 63));
        (void)snprintf(key, sizeof key, "%x:%x", t_rng_below(&r, 1000), t_rng_below(&r, 1000));
        const char *cursor = il__op_cursor(&op, key, number);
        T_TRUE(il__cursor_parse(cursor, &back_key, &back));
        T_STREQ(back_key, key);
        T_EQU(back, number);
    }
    il_op_release(&op);
}

U_TEST(preparing_fills_in_defaults)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };

    T_TRUE(il__op_prepare(&op, "tenant", 6));
    T_STREQ(op.tenant, "tenant");
    T_EQ(op.in.lock.ttl_ms, IL_TTL_MS_DEFAULT);
    T_EQ(op.status, IL_OK);
    op = (il_op){ .type = IL_OP_LIST };
    T_TRUE(il__op_prepare(&op, "tenant", 6));
    T_EQ(op.in.list.limit, IL_PAGE_ITEMS_DEFAULT);
    op = (il_op){ .type = IL_OP_SWEEP };
    T_TRUE(il__op_prepare(&op, "tenant", 6));
    T_EQ(op.in.list.limit, IL__SWEEP_ITEMS);
    op = (il_op){ .type = IL_OP_RENEW, .key = "k", .holder = "h", .fence = 1 };
    T_TRUE(il__op_prepare(&op, "tenant", 6));
    T_EQ(op.in.lock.ttl_ms, 0); /* as granted */
}

U_TEST(a_refused_op_can_be_used_again)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = "", .holder = "h" };

    T_TRUE(!il__op_prepare(&op, "t", 1));
    T_EQ(op.status, IL_INVAL);
    T_TRUE(il__op_refused(&op));
    T_TRUE(op.out.detail != NULL);
    op.key = "k";
    T_TRUE(il__op_prepare(&op, "t", 1));
    T_TRUE(!il__op_refused(&op));
    T_TRUE(op.out.detail == NULL);
    il_op_release(&op);
}

U_TEST(what_writes)
{
#define X(name, num, wire, writes, text) T_EQ(il__op_writes(IL_OP_##name), writes);
    IL_OP_MAP(X)
#undef X
    T_EQ(il__op_writes(IL_OP_NONE), false);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(items_are_copied),
        U_ROW(memory_is_aligned),
        U_ROW(cursors_go_round),
        U_ROW(preparing_fills_in_defaults),
        U_ROW(a_refused_op_can_be_used_again),
        U_ROW(what_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
