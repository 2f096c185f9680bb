/*
 * store.c: a store whose n-th call fails, before or after its effect, n = 1, 2, ... until none
 * failed. The outcome is unknown to the caller, which repeats the call: it takes effect once,
 * whatever had happened.
 */
#include "fault/scenario.h"
#include "harness/fault_store.h"
#include "harness/suite.h"
#include "runtime/handle.h"
#include "store/store.h"

#define N_MAX 10000

static const char *const ranks[] = { "a", "b" };

static void
no_heal(void *cookie UNUSED)
{
}

/* A handle over a fault store over a new store of the engine. */
static il *
open_faulty(const char *url, const il_open_opts *opts, unsigned n, enum t_fault_kind kind,
            struct il__store **ret_fault)
{
    struct il__store *inner = NULL;
    il               *h     = NULL;
    il_error          err   = { 0 };

    if (il__store_open(url, opts, &inner, &err) != IL_OK)
        T_FAIL("%s: %s", url, err.message);
    T_EQ(t_fault_wrap(inner, n, kind, ret_fault, &err), IL_OK);
    T_EQ(il__handle_new(*ret_fault, opts, &h, &err), IL_OK);
    return h;
}

static bool
play(const struct t_engine *engine, enum t_fault_kind kind, unsigned n)
{
    struct t_clock    clock;
    char              dir[T_PATH_BYTES];
    char              url[T_PATH_BYTES];
    char              real_url[T_PATH_BYTES];
    char              what[64];
    il_open_opts      opts  = IL_OPEN_OPTS_INIT;
    struct il__store *fault = NULL;
    struct scenario   s     = {
              .test_clock = &clock, .unknown_is_store = true, .healed = no_heal, .what = what
    };

    (void)snprintf(what, sizeof what, "fault %s call %u",
                   kind == T_FAULT_BEFORE ? "before" : "after", n);
    t_clock_init(&clock);
    t_tmp_make(dir);
    t_engine_make(engine, dir, url, real_url);
    opts.clock   = &clock.il;
    opts.ranks   = ranks;
    opts.n_ranks = ARRAY_LEN(ranks);
    opts.flags   = IL_OPEN_NO_SWEEP;
    s.h          = open_faulty(url, &opts, n, kind, &fault);
    scenario_play(&s);
    bool fired = t_fault_fired(fault);
    il_close(s.h);
    t_engine_forget(engine, url, real_url);
    t_tmp_remove(dir);
    return fired;
}

static void
loop(const struct t_engine *engine, enum t_fault_kind kind)
{
    unsigned n = 1;

    while (play(engine, kind, n)) {
        n++;
        T_LESS(n, N_MAX);
    }
    T_LESS(50, n);
    print_message("# %u faults %s their effect\n", n - 1,
                  kind == T_FAULT_BEFORE ? "before" : "after");
}

T_TEST(before_the_effect)
{
    loop(s->engine, T_FAULT_BEFORE);
}

T_TEST(after_the_effect)
{
    loop(s->engine, T_FAULT_AFTER);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { T_ROW(before_the_effect), T_ROW(after_the_effect) };

    return T_SUITE("store", tests);
}
