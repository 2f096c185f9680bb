/*
 * lossy_network.c: a server behind a lossy network: the n-th request is lost before the server gets
 * it, or the n-th response after it was sent, n = 1, 2, … until none was lost. The outcome is
 * unknown to the caller, which repeats the call: it takes effect once, whatever had happened. And a
 * network that drops everything: the call ends with its timeout.
 */
#include <stdio.h>

#include "fault/scenario.h"
#include "harness/postgres.h"
#include "harness/proxy.h"
#include "harness/suite.h"

#define N_MAX 10000
#define STEP_DEFAULT 19 /* every so many of them are lost in a short run; IL_TEST_CUTS=all: each */
#define TIMEOUT_MS 1500

static const char *const ranks[] = { "a", "b" };

static void
no_heal(void *cookie UNUSED)
{
}

struct link {
    struct t_proxy *proxy;
    il             *h;
};

static struct link
open_link(struct t_store *s, int64_t timeout_ms)
{
    struct link  l;
    char         through[T_PATH_BYTES];
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err  = { 0 };

    l.proxy         = t_proxy_to_store(s->url, through);
    opts.clock      = &s->clock.il;
    opts.ranks      = ranks;
    opts.n_ranks    = ARRAY_LEN(ranks);
    opts.timeout_ms = timeout_ms;
    opts.flags      = IL_OPEN_NO_SWEEP;
    if (il_open(through, &opts, &l.h, &err) != IL_OK)
        T_FAIL("%s: %s", through, err.message);
    return l;
}

static void
close_link(struct link *l)
{
    il_close(l->h);
    t_proxy_free(l->proxy);
}

/* The history with the n-th of them lost. False: there were not so many. */
static bool
play(const struct t_engine *engine, enum t_proxy_loss loss, unsigned n)
{
    struct t_store *store = t_store_new(engine);
    struct link     l     = open_link(store, 10000);
    char            what[64];
    struct scenario s = { .h                = l.h,
                          .test_clock       = &store->clock,
                          .unknown_is_store = true,
                          .short_one        = true,
                          .healed           = no_heal,
                          .what             = what };

    (void)snprintf(what, sizeof what, "%s %u lost", loss == T_PROXY_REQUEST ? "request" : "answer",
                   n);
    t_proxy_lose(l.proxy, loss, n);
    scenario_play(&s);
    bool lost = t_proxy_lost(l.proxy);
    close_link(&l);
    t_store_free(store);
    return lost;
}

static void
loop(const struct t_engine *engine, enum t_proxy_loss loss)
{
    const char *all    = getenv("IL_TEST_CUTS");
    unsigned    step   = all != NULL && strcmp(all, "all") == 0 ? 1 : STEP_DEFAULT;
    unsigned    n      = 1;
    unsigned    n_lost = 0;

    while (play(engine, loss, n)) {
        n_lost++;
        n += step;
        T_LESS(n, N_MAX);
    }
    T_LESS(150 / step, n_lost); /* the history has more than 200 of each */
    print_message("# %u %s lost\n", n_lost, loss == T_PROXY_REQUEST ? "requests" : "answers");
}

T_TEST(requests_are_lost)
{
    loop(s->engine, T_PROXY_REQUEST);
}

T_TEST(answers_are_lost)
{
    loop(s->engine, T_PROXY_ANSWER);
}

/* Nothing comes and nothing goes: never a hang. When the network is back, so is the store. */
T_TEST(silence)
{
    struct link l   = open_link(s, TIMEOUT_MS);
    il_op       op  = t_op(IL_OP_ACQUIRE, "k", "h", 0, T_ARGS(.ttl_ms = 30000));
    il_error    err = { 0 };

    t_proxy_cut(l.proxy, true);
    int64_t began = t_real_ms();
    T_EQ(il_apply(l.h, &op, 1, &err), IL_STORE);
    int64_t took = t_real_ms() - began;
    T_LESS(took, 10 * TIMEOUT_MS);
    T_EQ(il_apply(l.h, &op, 1, &err), IL_STORE);
    t_proxy_cut(l.proxy, false);
    int64_t until = t_real_ms() + 30000;
    while (il_apply(l.h, &op, 1, &err) != IL_OK)
        T_LESS(t_real_ms(), until);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    close_link(&l);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { T_ROW(requests_are_lost), T_ROW(answers_are_lost),
                                               T_ROW(silence) };

    return T_SUITE("lossy_network", tests);
}
