/*
 * alloc.c: plays a whole history, including open and close, with the n-th allocation failing, n =
 * 1, 2, ... until none failed; only that one, or all from then on. Nothing crashes, nothing leaks,
 * nothing is granted twice, and the next call works. For SQLite the same with its own allocations,
 * of which there are many: every IL_TEST_STRIDE-th (1 = all). Likewise for a store behind a server.
 */
#include "fault/alloc_inject.h"
#include "fault/scenario.h"
#include "harness/rng.h"
#include "harness/suite.h"

#define N_MAX 1000000

struct world {
    struct t_clock clock;
    char           dir[T_PATH_BYTES];
    char           url[T_PATH_BYTES];
    char           real_url[T_PATH_BYTES];
    char           what[64];
};

static const char *const ranks[] = { "a", "b" };

static void
heal(void *cookie UNUSED)
{
    alloc_inject_disarm();
}

static il *
open_it(struct world *w)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err  = { 0 };
    il          *h    = NULL;

    opts.clock   = &w->clock.il;
    opts.ranks   = ranks;
    opts.n_ranks = ARRAY_LEN(ranks);
    opts.flags   = IL_OPEN_NO_SWEEP;
    il_status st = il_open(w->url, &opts, &h, &err);
    if (st != IL_OK) {
        if (st != IL_NOMEM || !alloc_inject_fired())
            T_FAIL("%s: il_open: %s: %s", w->what, il_status_name(st), err.message);
        T_TRUE(h == NULL);
        heal(NULL);
        st = il_open(w->url, &opts, &h, &err);
    }
    if (st != IL_OK)
        T_FAIL("%s: il_open after the failure: %s", w->what, err.message);
    return h;
}

/* The n-th failure of one kind; false when there was none left to inject. */
static bool
play(const struct t_engine *engine, enum alloc_inject_of of, enum alloc_inject_mode mode,
     unsigned n)
{
    struct world    w;
    struct scenario s = { .test_clock = &w.clock, .healed = heal, .what = w.what };
    long            live;

    (void)snprintf(w.what, sizeof w.what, "%s, allocation %u%s",
                   of == ALLOC_INJECT_OURS ? "ours" : "SQLite's", n,
                   mode == ALLOC_INJECT_ONCE ? "" : " and later");
    t_clock_init(&w.clock);
    t_tmp_make(w.dir);
    t_engine_make(engine, w.dir, w.url, w.real_url);
    s.lasting   = mode == ALLOC_INJECT_FROM_ON;
    s.short_one = of == ALLOC_INJECT_SQLITE;
    s.or_store  = engine->server != NULL;
    live        = alloc_inject_n_live();
    alloc_inject_arm(of, mode, n);
    s.h = open_it(&w);
    scenario_play(&s);
    il_close(s.h);
    alloc_inject_disarm();
    if (alloc_inject_n_live() != live)
        T_FAIL("%s: %ld allocations leaked", w.what, alloc_inject_n_live() - live);
    if (engine->durable) { /* and it can be opened again */
        s.h = open_it(&w);
        il_close(s.h);
    }
    t_engine_forget(engine, w.url, w.real_url);
    t_tmp_remove(w.dir);
    return alloc_inject_fired();
}

static void
loop(const struct t_engine *engine, enum alloc_inject_of of, unsigned stride)
{
    for (int mode = ALLOC_INJECT_ONCE; mode <= ALLOC_INJECT_FROM_ON; mode++) {
        unsigned n_runs = 0;
        unsigned n      = 1;
        for (; play(engine, of, (enum alloc_inject_mode)mode, n); n += n < 50 ? 1 : stride) {
            T_LESS(n, N_MAX);
            n_runs++;
        }
        print_message("# %s: %u of %u %s failures\n", of == ALLOC_INJECT_OURS ? "ours" : "SQLite's",
                      n_runs, n - 1, mode == ALLOC_INJECT_ONCE ? "single" : "lasting");
        T_LESS(20, n_runs);
    }
}

T_TEST(our_memory)
{
    t_attend(t_handle(s)); /* its thread is done allocating */
    loop(s->engine, ALLOC_INJECT_OURS, s->engine->server != NULL ? t_stride(11) : 1);
}

T_TEST(memory_of_sqlite)
{
    T_NEEDS_FILE(s);
    loop(s->engine, ALLOC_INJECT_SQLITE, t_stride(89));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { T_ROW(our_memory), T_ROW(memory_of_sqlite) };

    alloc_inject_install();
    return T_SUITE("alloc", tests);
}
