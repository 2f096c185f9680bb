/*
 * cache_build.c: how a build ends and what happens to a value: fill, abandon, drop; counting,
 * retention, waking, limits.
 */
#include "base/board.h"
#include "harness/cache.h"
#include "harness/once.h"
#include "harness/suite.h"

static uint64_t
lead(struct t_store *s, const char *key, const char *holder)
{
    return T_IS(t_cache_lookup(s, key, holder, .lease_ms = 5000), IL_LEAD)->out.fence;
}

/* ---- fill ------------------------------------------------------------------------------------ */

T_TEST(fill_replaces_the_value)
{
    uint64_t a = lead(s, "k", "a");

    T_EQU(T_IS(t_cache_fill(s, "k", "a", a, "one", .ttl_ms = 1000, .grace_ms = 9000), IL_OK)
              ->out.fence,
          a);
    t_pass(s, 1000);
    uint64_t b = lead(s, "k", "b");
    (void)T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "one"); /* the old one until the very end */
    (void)T_IS(t_cache_fill(s, "k", "b", b, "two, which is longer", .ttl_ms = 1000), IL_OK);
    T_EQU(T_SHOWS(t_cache_get(s, "k"), IL_HIT, "two, which is longer")->out.fence, b);
    t_pass(s, 1000); /* nothing of the old one is left, its grace neither */
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
}

T_TEST(fill_repeated)
{
    uint64_t a = lead(s, "k", "a");

    (void)T_IS(t_cache_fill(s, "k", "a", a, "v", .code = 3), IL_OK);
    t_pass(s, 7000);
    const il_op *op = T_IS(t_cache_fill(s, "k", "a", a, "v", .code = 3), IL_OK);
    T_EQU(op->out.fence, a);
    T_EQ(op->out.remaining_ms, 3000); /* lives no longer for it */
    (void)T_IS(t_cache_fill(s, "k", "a", a, "w", .code = 3), IL_MISMATCH);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v", .code = 4), IL_MISMATCH);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "", .code = 3), IL_MISMATCH);
    op =
        T_IS(t_cache_fill(s, "k", "a", a, "v", .code = 3, .flags = IL_CACHE_NEGATIVE), IL_MISMATCH);
    T_HAS(op->out.detail, "another value");
    (void)T_SHOWS(t_cache_get(s, "k"), IL_HIT, "v");
    /* Also while the next one is being built. */
    t_pass(s, 3000);
    uint64_t b = lead(s, "k", "b");
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v", .code = 3), IL_OK);
    T_EQU(T_IS(t_cache_fill(s, "k", "a", a + b, "v"), IL_STALE)->out.fence, b);
}

T_TEST(fill_of_somebody_else_is_stale)
{
    (void)T_IS(t_cache_fill(s, "k", "a", 1, "v"), IL_STALE);
    uint64_t a = lead(s, "k", "a");
    T_EQU(T_IS(t_cache_fill(s, "k", "a", a + 1, "v"), IL_STALE)->out.fence, a);
    (void)T_IS(t_cache_fill(s, "k", "b", a, "v"), IL_STALE);
    t_pass(s, 5000); /* the build is dead, though nobody has taken over */
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v"), IL_STALE);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    a = lead(s, "k", "a");
    t_pass(s, 4999);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v"), IL_OK);
    T_EQU(T_IS(t_cache_fill(s, "k", "b", a + 1, "v"), IL_STALE)->out.fence, a);
}

T_TEST(values_are_kept_byte_for_byte)
{
    static const char with_nul[] = "a\0b\0\0\xff\x80\n";
    char             *most       = calloc(1, IL_BLOB_BYTES_MAX + 1);
    uint64_t          token      = lead(s, "nul", "a");

    CHECK(most != NULL);
    (void)T_IS(t_cache_fill(s, "nul", "a", token, with_nul, .bytes = sizeof with_nul), IL_OK);
    const il_op *op = T_IS(t_cache_get(s, "nul"), IL_HIT);
    T_EQ(op->out.value_bytes, sizeof with_nul);
    T_TRUE(memcmp(op->out.value, with_nul, sizeof with_nul) == 0);
    (void)T_IS(t_cache_fill(s, "nul", "a", token, with_nul, .bytes = 4), IL_MISMATCH);
    token = lead(s, "empty", "a");
    (void)T_IS(t_cache_fill(s, "empty", "a", token, NULL), IL_OK);
    (void)T_SHOWS(t_cache_get(s, "empty"), IL_HIT, "");

    for (size_t i = 0; i < IL_BLOB_BYTES_MAX; i++)
        most[i] = (char)(i * 31);
    token = lead(s, "most", "a");
    (void)T_IS(t_cache_fill(s, "most", "a", token, most, .bytes = IL_BLOB_BYTES_MAX, .ttl_ms = 1000,
                            .grace_ms = 9000),
               IL_OK);
    t_pass(s, 1000);
    lead(s, "most", "b"); /* renewing a build does not touch it */
    (void)T_IS(t_cache_lookup(s, "most", "b"), IL_LEAD);
    op = T_IS(t_cache_get(s, "most"), IL_STALE_HIT);
    T_EQ(op->out.value_bytes, IL_BLOB_BYTES_MAX);
    T_TRUE(memcmp(op->out.value, most, IL_BLOB_BYTES_MAX + 1) == 0); /* and the NUL behind it */
    token = lead(s, "over", "a");
    op = T_IS(t_cache_fill(s, "over", "a", token, most, .bytes = IL_BLOB_BYTES_MAX + 1), IL_INVAL);
    T_HAS(op->out.detail, "1048577");
    T_HAS(op->out.detail, "1048576");
    (void)T_IS(t_cache_lookup(s, "over", "b"), IL_WAIT);
    free(most);
}

/* ---- abandon --------------------------------------------------------------------------------- */

/* The source failed: the old value stays, the next one may try. */
T_TEST(abandon_keeps_the_old_value)
{
    (void)t_cache_put(s, "k", "old", .ttl_ms = 1000, .grace_ms = 60000);
    t_pass(s, 1000);
    uint64_t a = lead(s, "k", "a");
    (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_OK);
    T_EQU(T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "old")->out.fence, 0);
    (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_OK); /* repeated */
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v"), IL_STALE);
    uint64_t b = lead(s, "k", "b");
    T_LESS(a, b);
    T_EQU(T_IS(t_cache_abandon(s, "k", "a", a), IL_STALE)->out.fence, b);
    (void)T_IS(t_cache_abandon(s, "k", "b", b + 1), IL_STALE);
    t_pass(s, 5000);
    (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_OK); /* nobody builds: that one is dead */
    (void)T_IS(t_cache_abandon(s, "k", "b", b), IL_OK); /* one's own, dead or not */
}

T_TEST(abandon_without_a_value)
{
    (void)T_IS(t_cache_abandon(s, "k", "a", 1), IL_OK);
    uint64_t a = lead(s, "k", "a");
    (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_OK);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    T_EQU(T_IS(t_cache_stats(s, NULL), IL_OK)->out.cache.n_building, 0);
}

/* ---- drop ------------------------------------------------------------------------------------ */

T_TEST(drop_takes_the_value)
{
    (void)T_IS(t_cache_drop(s, "k"), IL_OK); /* also when there is nothing */
    uint64_t v = t_cache_put(s, "k", "v", .grace_ms = 1000);
    (void)T_IS(t_cache_drop(s, "k"), IL_OK);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_cache_get(s, "k", .fence = v), IL_NOT_FOUND);
    (void)T_IS(t_cache_fill(s, "k", "builder", v, "v"), IL_STALE);
    (void)T_IS(t_cache_drop(s, "k"), IL_OK); /* repeated */
    (void)T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, NULL);
}

/* What was built from before the drop must not come back. */
T_TEST(drop_voids_the_build)
{
    static const uint32_t flags[] = { 0, IL_DROP_STALE };

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        uint64_t a = lead(s, "k", "a");
        (void)T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT);
        (void)T_IS(t_cache_drop(s, "k", .flags = flags[i]), IL_OK);
        (void)T_IS(t_cache_fill(s, "k", "a", a, "v"), IL_STALE);
        (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
        uint64_t b = T_IS(t_cache_lookup(s, "k", "b", .fence = a), IL_LEAD)->out.fence;
        T_LESS(a, b);
        (void)T_IS(t_cache_fill(s, "k", "a", a, "v"), IL_STALE);
        (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_STALE);
        (void)T_IS(t_cache_abandon(s, "k", "b", b), IL_OK);
    }
}

T_TEST(drop_can_leave_a_stale_value)
{
    (void)t_cache_put(s, "k", "v", .ttl_ms = 60000, .grace_ms = 5000);
    t_pass(s, 1000);
    (void)T_IS(t_cache_drop(s, "k", .flags = IL_DROP_STALE), IL_OK);
    const il_op *op = T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "v");
    T_EQ(op->out.remaining_ms, 5000);
    T_EQ(op->out.age_ms, 1000);
    t_pass(s, 2000);
    /* repeated: it is stale already */
    (void)T_IS(t_cache_drop(s, "k", .flags = IL_DROP_STALE), IL_OK);
    T_EQ(T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "v")->out.remaining_ms, 3000);
    uint64_t a = T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, "v")->out.fence;
    (void)T_SHOWS(t_cache_lookup(s, "k", "b"), IL_STALE_HIT, "v");
    (void)T_IS(t_cache_drop(s, "k", .flags = IL_DROP_STALE), IL_OK);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "w"), IL_STALE);
    (void)T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "v");
    t_pass(s, 3000);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    /* Without grace nothing is left to use. */
    (void)t_cache_put(s, "none", "v");
    (void)T_IS(t_cache_drop(s, "none", .flags = IL_DROP_STALE), IL_OK);
    (void)T_IS(t_cache_get(s, "none"), IL_NOT_FOUND);
}

/* ---- counting and retention ------------------------------------------------------------------ */

static void
counts(const il_op *op, uint64_t entries, uint64_t bytes, uint64_t fresh, uint64_t negative,
       uint64_t building)
{
    const il_cache_info *info = &T_IS(op, IL_OK)->out.cache;

    T_EQU(info->n_entries, entries);
    T_EQU(info->n_bytes, bytes);
    T_EQU(info->n_fresh, fresh);
    T_EQU(info->n_stale, entries - fresh);
    T_EQU(info->n_negative, negative);
    T_EQU(info->n_building, building);
}

T_TEST(stats)
{
    counts(t_cache_stats(s, NULL), 0, 0, 0, 0, 0);
    (void)t_cache_put(s, "day:1", "four", .ttl_ms = 1000, .grace_ms = 1000);
    (void)t_cache_put(s, "day:2", "sixsix", .flags = IL_CACHE_NEGATIVE);
    (void)t_cache_put(s, "dax", "x");
    (void)t_cache_put(s, "day:1", "elsewhere", .tenant = "other");
    (void)lead(s, "day:3", "a");
    (void)lead(s, "e", "a");
    counts(t_cache_stats(s, NULL), 3, 11, 3, 1, 2);
    counts(t_cache_stats(s, ""), 3, 11, 3, 1, 2);
    counts(t_cache_stats(s, "day:"), 2, 10, 2, 1, 1);
    counts(t_cache_stats(s, "day:1"), 1, 4, 1, 0, 0);
    counts(t_cache_stats(s, "day:1x"), 0, 0, 0, 0, 0);
    counts(t_cache_stats(s, NULL, .tenant = "other"), 1, 9, 1, 0, 0);
    t_pass(s, 1000);
    (void)lead(s, "day:1", "a"); /* stale, and being built */
    counts(t_cache_stats(s, "day:"), 2, 10, 1, 1, 2);
    t_pass(s, 1000);
    counts(t_cache_stats(s, "day:"), 1, 6, 1, 1, 2); /* what may not be used does not count */
    t_pass(s, 4000);
    counts(t_cache_stats(s, NULL), 2, 7, 2, 1, 0);
}

T_TEST(sweeps_are_bounded)
{
    char key[16];

    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        (void)t_cache_put(s, key, "v", .ttl_ms = 60000, .grace_ms = 60000);
    }
    (void)t_cache_put(s, "stays", "v", .ttl_ms = 120001);
    for (unsigned i = 0; i < 7; i++) {
        (void)snprintf(key, sizeof key, "b%u", i);
        (void)lead(s, key, "a");
    }
    (void)T_IS(t_sweep(s), IL_OK);
    t_pass(s, 5000);
    /* dead builds are no loss: not counted */
    const il_op *op = T_IS(t_sweep(s, .limit = 6), IL_OK);
    T_EQ(op->out.sweep.n_purged, 0);
    T_EQ(op->out.flags, IL_OUT_MORE);
    T_EQ(T_IS(t_sweep(s, .limit = 6), IL_OK)->out.flags, 0);
    t_pass(s, 114999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    op = T_IS(t_sweep(s, .limit = 15), IL_OK);
    T_EQ(op->out.sweep.n_purged, 15);
    T_EQ(op->out.flags, IL_OUT_MORE);
    op = T_IS(t_sweep(s, .limit = 5), IL_OK);
    T_EQ(op->out.sweep.n_purged, 5);
    T_EQ(op->out.flags, 0);
    (void)T_IS(t_cache_get(s, "stays"), IL_HIT);
}

/* What was filled or built anew is not what the sweep knew of it. */
T_TEST(sweeps_spare_what_lives_again)
{
    (void)t_cache_put(s, "k", "old", .ttl_ms = 60000);
    (void)t_cache_put(s, "gone", "v", .ttl_ms = 60000);
    t_pass(s, 59000);
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a", .chance = 1), IL_HIT)->out.fence;
    T_LESS(0, a);
    t_pass(s, 1000);
    a = lead(s, "k", "a");
    t_pass(s, 4000);
    (void)T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 5000), IL_LEAD);
    t_pass(s, 4000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 2); /* the values; the build was renewed */
    (void)T_IS(t_cache_fill(s, "k", "a", a, "new"), IL_OK);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)T_SHOWS(t_cache_get(s, "k"), IL_HIT, "new");
    (void)T_IS(t_cache_drop(s, "k", .flags = IL_DROP_STALE), IL_OK);
    t_pass(s, 59999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
}

/* ---- waking ---------------------------------------------------------------------------------- */

T_TEST(whoever_waits_is_woken)
{
    uint64_t token = lead(s, "k", "a");
    uint32_t word  = t_word(s, "k", IL__WAKE_CACHE);

    (void)T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT);
    (void)T_IS(t_cache_get(s, "k"), IL_WAIT);
    (void)T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD);
    (void)T_IS(t_cache_fill(s, "k", "b", token, "v"), IL_STALE);
    (void)T_IS(t_cache_abandon(s, "k", "b", token), IL_STALE);
    T_WORD_IS(s, "k", IL__WAKE_CACHE, word);
    (void)T_IS(t_cache_abandon(s, "k", "a", token), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_CACHE, word + 1);
    token = lead(s, "k", "a");
    (void)T_IS(t_cache_fill(s, "k", "a", token, "v", .ttl_ms = 1000), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_CACHE, word + 2);
    (void)T_IS(t_cache_fill(s, "k", "a", token, "v"), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_CACHE, word + 2);
    t_pass(s, 1000);
    (void)lead(s, "k", "a");
    (void)T_IS(t_cache_drop(s, "k"), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_CACHE, word + 3);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void
is_refused(const il_op *op, const char *names)
{
    (void)T_IS(op, IL_INVAL);
    T_HAS(op->out.detail, names);
}

T_TEST(limits)
{
    static char text[1024];
    char       *cut = text + sizeof text - 1;

    memset(text, 'x', sizeof text - 1);
    uint64_t token = T_IS(t_cache_lookup(s, cut - 512, cut - 256), IL_LEAD)->out.fence;
    (void)T_IS(t_cache_fill(s, cut - 512, cut - 256, token, "v", .ttl_ms = IL_DELAY_MS_MAX,
                            .grace_ms = IL_DELAY_MS_MAX),
               IL_OK);
    T_EQ(T_IS(t_cache_get(s, cut - 512), IL_HIT)->out.remaining_ms, IL_DELAY_MS_MAX);
    T_EQU(T_IS(t_cache_stats(s, cut - 512), IL_OK)->out.cache.n_entries, 1);
    is_refused(t_cache_stats(s, cut - 513), "prefix");
    is_refused(t_cache_stats(s, "a\nb"), "prefix");
    is_refused(t_cache_lookup(s, cut - 513, "a"), "key");
    is_refused(t_cache_get(s, NULL), "key");
    is_refused(t_cache_drop(s, ""), "key");
    is_refused(t_cache_fill(s, "a\tb", "a", 1, "v"), "key");
    is_refused(t_cache_lookup(s, "k", NULL), "holder");
    is_refused(t_cache_lookup(s, "k", cut - 257), "holder");
    is_refused(t_cache_abandon(s, "k", "", 1), "holder");
    is_refused(t_cache_lookup(s, "k", "a", .lease_ms = 999), "build");
    is_refused(t_cache_lookup(s, "k", "a", .lease_ms = IL_TTL_MS_MAX + 1), "build");
    is_refused(t_cache_lookup(s, "k", "a", .fence = UINT64_MAX), "fence");
    is_refused(t_cache_get(s, "k", .fence = UINT64_MAX), "fence");
    is_refused(t_cache_fill(s, "k", "a", 0, "v"), "fence");
    is_refused(t_cache_abandon(s, "k", "a", 0), "fence");
    is_refused(t_cache_fill(s, "k", "a", 1, "v", .ttl_ms = -1), "TTL");
    is_refused(t_cache_fill(s, "k", "a", 1, "v", .ttl_ms = IL_DELAY_MS_MAX + 1), "TTL");
    is_refused(t_cache_fill(s, "k", "a", 1, "v", .grace_ms = -1), "grace");
    is_refused(t_cache_fill(s, "k", "a", 1, "v", .grace_ms = IL_DELAY_MS_MAX + 1), "grace");
    is_refused(t_cache_fill(s, "k", "a", 1, NULL, .bytes = 1), "value");
    il_op op           = t_cache_op(IL_OP_CACHE_FILL, "k", "a", 1, "v", T_CACHE_ARGS());
    op.in.cache.ttl_ms = 0;
    is_refused(t_op_run(s, NULL, op), "TTL");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(fill_replaces_the_value),
        T_ROW(fill_repeated),
        T_ROW(fill_of_somebody_else_is_stale),
        T_ROW(values_are_kept_byte_for_byte),
        T_ROW(abandon_keeps_the_old_value),
        T_ROW(abandon_without_a_value),
        T_ROW(drop_takes_the_value),
        T_ROW(drop_voids_the_build),
        T_ROW(drop_can_leave_a_stale_value),
        T_ROW(stats),
        T_ROW(sweeps_are_bounded),
        T_ROW(sweeps_spare_what_lives_again),
        T_ROW(whoever_waits_is_woken),
        T_ROW(limits),
    };

    return T_SUITE("cache_build", tests);
}
