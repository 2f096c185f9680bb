/*
 * show.c: get, list and check_fence: what they show, how they page, and that they change nothing.
 */
#include "harness/suite.h"

T_TEST(get_of_a_free_key_is_not_held)
{
    const il_op *op = T_IS(t_get(s, "k"), IL_NOT_HELD);

    T_EQ(op->out.n_items, 0);
    T_EQU(op->out.fence, 0);
}

T_TEST(get_shows_the_lease)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 9000, .meta = "why", .place = "here"), IL_OK)
            ->out.fence;

    t_pass(s, 1500);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_OK);
    t_pass(s, 500);
    const il_op         *op = T_IS(t_get(s, "k"), IL_OK);
    const il_lease_info *it = &op->out.items[0];
    T_EQ(op->out.n_items, 1);
    T_EQU(op->out.fence, fence);
    T_EQ(it->age_ms, 2000);
    T_EQ(it->renewed_ms, 500);
    T_EQ(it->remaining_ms, 8500);
    T_EQ(it->ttl_ms, 9000);
    T_EQ(it->acquired_at_ms, T_WALL_MS_START);
    T_EQ(it->expires_at_ms, T_WALL_MS_START + 10500);
    T_STREQ(it->meta, "why");
    T_STREQ(it->place, "here");
}

T_TEST(missing_meta_and_place_are_empty)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    const il_lease_info *it = t_lease_of(s, "k", "a");
    T_STREQ(it->meta, "");
    T_STREQ(it->place, "");
}

T_TEST(get_orders_by_fence)
{
    static const char *const holders[] = { "z", "m", "a", "q" };

    for (size_t i = 0; i < ARRAY_LEN(holders); i++)
        (void)T_IS(t_acquire(s, "k", holders[i], T_SHARED), IL_OK);
    const il_op *op = T_IS(t_get(s, "k"), IL_OK);
    T_EQ(op->out.n_items, ARRAY_LEN(holders));
    for (size_t i = 0; i < ARRAY_LEN(holders); i++)
        T_STREQ(op->out.items[i].holder, holders[i]);
}

T_TEST(get_shows_at_most_1000)
{
    for (unsigned part = 0; part < 2; part++) {
        il_op ops[600];
        char  holders[600][16];
        for (unsigned i = 0; i < 600; i++) {
            (void)snprintf(holders[i], sizeof holders[i], "h%u-%u", part, i);
            ops[i] = t_op(IL_OP_ACQUIRE, "k", holders[i], 0, T_ARGS(T_SHARED));
        }
        t_batch(s, ops, 600);
        for (unsigned i = 0; i < 600; i++)
            il_op_release(&ops[i]);
    }
    T_EQ(T_IS(t_get(s, "k"), IL_OK)->out.n_items, 1000);
}

T_TEST(check_fence_is_ok_only_for_a_held_lease)
{
    T_EQU(T_IS(t_check(s, "k", 1), IL_STALE)->out.fence, 0);
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;
    T_EQU(T_IS(t_check(s, "k", fence), IL_OK)->out.fence, fence);
    T_EQU(T_IS(t_check(s, "k", fence - 1), IL_STALE)->out.fence, fence);
    T_EQU(T_IS(t_check(s, "k", fence + 1), IL_STALE)->out.fence, fence);
    (void)T_IS(t_check(s, "other", fence), IL_STALE);
    t_pass(s, 4999);
    (void)T_IS(t_check(s, "k", fence), IL_OK);
    t_pass(s, 1);
    T_EQU(T_IS(t_check(s, "k", fence), IL_STALE)->out.fence, 0);
    (void)T_IS(t_check(s, "k", fence), IL_STALE);
}

/* Also when the newest are over: more of them than an engine reads at once. */
T_TEST(the_newest_that_lives_among_many)
{
    uint64_t newest = 0, first = 0, over = 0;
    char     holder[16];

    for (unsigned i = 0; i < 330; i++) {
        bool lasts = i < 120;
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint64_t fence =
            T_IS(t_acquire(s, "k", holder, T_SHARED, .ttl_ms = lasts ? 50000 : 20000), IL_OK)
                ->out.fence;
        first  = i == 0 ? fence : first;
        newest = lasts ? fence : newest;
        over   = fence;
    }
    T_EQU(T_IS(t_check(s, "k", first), IL_OK)->out.fence, over);
    T_EQU(T_IS(t_get(s, "k"), IL_OK)->out.fence, over);
    t_pass(s, 20000);
    T_EQU(T_IS(t_check(s, "k", first), IL_OK)->out.fence, newest);
    T_EQU(T_IS(t_check(s, "k", over), IL_STALE)->out.fence, newest);
    const il_op *op = T_IS(t_get(s, "k"), IL_OK);
    T_EQU(op->out.fence, newest);
    T_EQU(op->out.n_items, 120);
    t_pass(s, 30000);
    T_EQU(T_IS(t_check(s, "k", first), IL_STALE)->out.fence, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
}

T_TEST(check_fence_knows_every_shared_lease)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED), IL_OK)->out.fence;
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_SHARED), IL_OK)->out.fence;

    (void)T_IS(t_check(s, "k", a), IL_OK);
    (void)T_IS(t_check(s, "k", b), IL_OK);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    (void)T_IS(t_check(s, "k", a), IL_STALE);
    (void)T_IS(t_check(s, "k", b), IL_OK);
}

T_TEST(reads_change_nothing_even_when_overdue)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 1000);
    for (unsigned i = 0; i < 3; i++) {
        (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
        (void)T_IS(t_check(s, "k", fence), IL_STALE);
        T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 0);
        T_EQ(t_count(s, "k", IL_LIST_WAITERS), 1); /* nobody was offered anything */
    }
    /* The sweep finds it all as it was. */
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_expired, 1);
    T_EQ(sum.n_offered, 1);
}

static const char *const keys[] = { "",    "a",  "a:", "a:1",      "a:10",
                                    "a:2", "ab", "b",  "\xc3\xa9", "\xf0\x9f\x98\x80" };

T_TEST(list_is_ordered_by_key_bytes)
{
    for (size_t i = ARRAY_LEN(keys); i-- > 1;)
        (void)T_IS(t_acquire(s, keys[i], "h"), IL_OK);
    const il_op *op = T_IS(t_list(s, NULL), IL_OK);
    T_EQ(op->out.n_items, ARRAY_LEN(keys) - 1);
    for (size_t i = 1; i < ARRAY_LEN(keys); i++)
        T_STREQ(op->out.items[i - 1].key, keys[i]);
    T_STREQ(op->out.next, NULL);
}

T_TEST(list_by_prefix)
{
    for (size_t i = 1; i < ARRAY_LEN(keys); i++)
        (void)T_IS(t_acquire(s, keys[i], "h"), IL_OK);
    T_EQ(T_IS(t_list(s, ""), IL_OK)->out.n_items, 9);
    T_EQ(T_IS(t_list(s, "a"), IL_OK)->out.n_items, 6);
    T_EQ(T_IS(t_list(s, "a:"), IL_OK)->out.n_items, 4);
    T_EQ(T_IS(t_list(s, "a:1"), IL_OK)->out.n_items, 2);
    T_EQ(T_IS(t_list(s, "a:10"), IL_OK)->out.n_items, 1);
    T_EQ(T_IS(t_list(s, "c"), IL_OK)->out.n_items, 0);
    T_EQ(T_IS(t_list(s, "\xc3\xa9"), IL_OK)->out.n_items, 1);
    T_EQ(T_IS(t_list(s, "\xf0\x9f\x98\x80"), IL_OK)->out.n_items, 1);
    /* What other languages of patterns mean by it is nothing here. */
    T_EQ(T_IS(t_list(s, "%"), IL_OK)->out.n_items, 0);
    T_EQ(T_IS(t_list(s, "_"), IL_OK)->out.n_items, 0);
    T_EQ(T_IS(t_list(s, "a*"), IL_OK)->out.n_items, 0);
}

/* Page through with `limit`; returns the number of items and checks the order. */
static size_t
page_through(struct t_store *s, uint32_t limit, uint32_t flags)
{
    char     cursor[IL_KEY_BYTES_MAX + 64]  = "";
    char     last_key[IL_KEY_BYTES_MAX + 1] = "";
    uint64_t last_number                    = 0;
    size_t   n                              = 0;

    for (unsigned pages = 0;; pages++) {
        const il_op *op = T_IS(t_list(s, NULL, .limit = limit, .flags = flags,
                                      .cursor = cursor[0] != '\0' ? cursor : NULL),
                               IL_OK);
        T_TRUE(op->out.n_items <= limit);
        for (size_t i = 0; i < op->out.n_items; i++) {
            const il_lease_info *it     = &op->out.items[i];
            uint64_t             number = flags != 0 ? it->ticket : it->fence;
            int                  order  = strcmp(last_key, it->key);
            T_TRUE(order < 0 || (order == 0 && last_number < number));
            (void)snprintf(last_key, sizeof last_key, "%s", it->key);
            last_number = number;
        }
        n += op->out.n_items;
        if (op->out.next == NULL)
            return n;
        T_EQ(op->out.n_items, limit); /* a page with a next one is full */
        (void)snprintf(cursor, sizeof cursor, "%s", op->out.next);
        T_TRUE(pages < 1000);
    }
}

T_TEST(list_pages)
{
    for (unsigned i = 0; i < 30; i++) {
        char key[16];
        char holder[16];
        (void)snprintf(key, sizeof key, "k%u", i % 7);
        (void)snprintf(holder, sizeof holder, "h%u", i);
        (void)T_IS(t_acquire(s, key, holder, T_SHARED), IL_OK);
    }
    for (unsigned i = 0; i < 30; i++) {
        char key[16];
        char holder[16];
        (void)snprintf(key, sizeof key, "k%u", i % 7);
        (void)snprintf(holder, sizeof holder, "w%u", i);
        (void)T_IS(t_acquire(s, key, holder, .wait_ms = 60000), IL_QUEUED);
    }
    static const uint32_t limits[] = { 1, 2, 3, 7, 29, 30, 31, 1000 };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        T_EQ(page_through(s, limits[i], 0), 30);
        T_EQ(page_through(s, limits[i], IL_LIST_WAITERS), 30);
    }
}

T_TEST(list_default_page_is_100)
{
    for (unsigned i = 0; i < 101; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%03u", i);
        (void)T_IS(t_acquire(s, key, "h"), IL_OK);
    }
    const il_op *op = T_IS(t_list(s, NULL), IL_OK);
    T_EQ(op->out.n_items, IL_PAGE_ITEMS_DEFAULT);
    T_TRUE(op->out.next != NULL);
    T_EQ(T_IS(t_list(s, NULL, .cursor = op->out.next), IL_OK)->out.n_items, 1);
}

/* What is there from the first page to the last is listed once, whatever comes and goes between. */
T_TEST(list_pages_while_things_change)
{
    uint64_t fences[40];

    for (unsigned i = 0; i < 40; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%02u", i);
        fences[i] = T_IS(t_acquire(s, key, "h", .ttl_ms = 3600000), IL_OK)->out.fence;
    }
    char     cursor[64] = "";
    unsigned seen[40]   = { 0 };
    for (unsigned round = 0;; round++) {
        const il_op *op =
            T_IS(t_list(s, "k", .limit = 5, .cursor = round > 0 ? cursor : NULL), IL_OK);
        for (size_t i = 0; i < op->out.n_items; i++) {
            unsigned n = (unsigned)strtoul(op->out.items[i].key + 1, NULL, 10);
            if (strcmp(op->out.items[i].holder, "h") == 0)
                seen[n]++;
        }
        if (op->out.next == NULL)
            break;
        (void)snprintf(cursor, sizeof cursor, "%s", op->out.next);
        /* Odd ones go, one before and one after the cursor; new ones appear. */
        char key[16];
        for (unsigned i = round * 2 + 1; i < 40; i += 20) {
            (void)snprintf(key, sizeof key, "k%02u", i);
            (void)T_IS(t_release(s, key, "h", fences[i]), IL_OK);
            (void)T_IS(t_acquire(s, key, "new"), IL_OK);
        }
        t_pass(s, 10);
    }
    for (unsigned i = 0; i < 40; i += 2)
        T_EQ(seen[i], 1);
}

T_TEST(list_cursor_of_a_vanished_item)
{
    uint64_t fence = 0;

    (void)T_IS(t_acquire(s, "k1", "h"), IL_OK);
    fence = T_IS(t_acquire(s, "k2", "h"), IL_OK)->out.fence;
    (void)T_IS(t_acquire(s, "k3", "h"), IL_OK);
    const il_op *op = T_IS(t_list(s, NULL, .limit = 2), IL_OK);
    (void)T_IS(t_release(s, "k2", "h", fence), IL_OK);
    op = T_IS(t_list(s, NULL, .limit = 2, .cursor = op->out.next), IL_OK);
    T_EQ(op->out.n_items, 1);
    T_STREQ(op->out.items[0].key, "k3");
}

T_TEST(list_does_not_show_the_dead)
{
    (void)T_IS(t_acquire(s, "a", "h", .ttl_ms = 1000), IL_OK);
    (void)T_IS(t_acquire(s, "b", "h", .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_acquire(s, "b", "w", .wait_ms = 1000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "b", "x", .wait_ms = 5000), IL_QUEUED);
    t_pass(s, 1000);
    const il_op *op = T_IS(t_list(s, NULL), IL_OK);
    T_EQ(op->out.n_items, 1);
    T_STREQ(op->out.items[0].key, "b");
    T_EQ(op->out.items[0].n_waiters, 1);
    op = T_IS(t_list(s, NULL, .flags = IL_LIST_WAITERS), IL_OK);
    T_EQ(op->out.n_items, 1);
    T_STREQ(op->out.items[0].holder, "x");
}

T_TEST(single_calls)
{
    il      *h   = t_handle(s);
    il_error err = { 0 };
    il_op    op  = { 0 };

    T_EQ(il_check_fence(h, "k", 7, &err), IL_STALE);
    T_EQ(err.status, IL_STALE);
    T_EQU(err.fence, 0);
    T_EQ(il_get(h, "k", &op, &err), IL_NOT_HELD);
    il_op_release(&op);
    T_EQ(il_break(h, "k", 7, "r", 0, &err), IL_NOT_HELD);
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    T_EQ(il_check_fence(h, "k", fence, &err), IL_OK);
    T_EQ(il_check_fence(h, "k", fence + 1, &err), IL_STALE);
    T_EQU(err.fence, fence);
    T_EQ(il_get(h, "k", &op, &err), IL_OK);
    T_STREQ(op.out.items[0].holder, "a");
    il_op_release(&op);
    T_EQ(il_list(h, "k", NULL, 0, 0, &op, &err), IL_OK);
    T_EQ(op.out.n_items, 1);
    il_op_release(&op);
    T_EQ(il_break(h, "k", fence + 1, "r", 0, &err), IL_STALE);
    T_EQU(err.fence, fence);
    T_EQ(il_break(h, "k", fence, "r", IL_BREAK_NOW, &err), IL_OK);
    T_EQ(il_check_fence(h, "k", fence, NULL), IL_STALE);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(get_of_a_free_key_is_not_held),
        T_ROW(get_shows_the_lease),
        T_ROW(missing_meta_and_place_are_empty),
        T_ROW(get_orders_by_fence),
        T_ROW(get_shows_at_most_1000),
        T_ROW(check_fence_is_ok_only_for_a_held_lease),
        T_ROW(check_fence_knows_every_shared_lease),
        T_ROW(the_newest_that_lives_among_many),
        T_ROW(reads_change_nothing_even_when_overdue),
        T_ROW(list_is_ordered_by_key_bytes),
        T_ROW(list_by_prefix),
        T_ROW(list_pages),
        T_ROW(list_default_page_is_100),
        T_ROW(list_pages_while_things_change),
        T_ROW(list_cursor_of_a_vanished_item),
        T_ROW(list_does_not_show_the_dead),
        T_ROW(single_calls),
    };

    return T_SUITE("show", tests);
}
