/*
 * pause.c: a process with three leases is stopped in the middle of a guarded transfer, before its
 * commit. One of the leases runs out and passes on; its next holder commits a transfer of its own.
 * When the first process goes on, it is refused, whichever of the three it was, and nothing of it
 * remains. Its other two leases are as good as before.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "guard/bank.h"
#include "harness/event.h"
#include "harness/proc.h"

#define KEYS 3
#define SHORT_MS 2000 /* of the lease that runs out; it is renewed until the process is stopped */
#define LONG_MS 600000

static const char *const keys[KEYS] = { "pause:a", "pause:b", "pause:c" };

static il_guard_fence
take(il *h, const char *key, int64_t ttl_ms, il_lease **ret)
{
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;
    il_error        err;

    o.ttl_ms  = ttl_ms;
    o.wait_ms = 2 * (int64_t)G_LIMIT_MS;
    if (il_acquire(h, key, &o, ret, &err) != IL_OK)
        T_FAIL("%s: %s", key, err.message);
    return (il_guard_fence){ .h = h, .key = key, .fence = il_lease_fence(*ret) };
}

static il_guard *
open_bank(const struct t_ground *g)
{
    il_guard *c = NULL;
    il_error  err;

    T_EQ(bank_open(g->url, NULL, 2 * (int64_t)G_LIMIT_MS, 0, &c, &err), IL_OK);
    return c;
}

static il_status
move(il_guard *c, const char *key, const il_guard_fence *fences, size_t n_fences,
     void (*step)(void *), il_error *err)
{
    struct bank_transfer t = { .from = 1, .to = 2, .amount = 1, .step = step };
    il_guard_tx_opts     o = IL_GUARD_TX_OPTS_INIT;

    (void)snprintf(t.key, sizeof t.key, "%s", key);
    o.fences   = fences;
    o.n_fences = n_fences;
    return il_guard_transact(c, &o, bank_move, &t, NULL, err);
}

/* ---- the process that is stopped ------------------------------------------------------------- */

struct pause {
    const struct t_ground *g;
    size_t                 lost; /* which of the keys */
};

static bool is_ready;

/* After the last call before the commit: begin, locks, two rows, two balances. */
static void
wait_for_word(void *cookie UNUSED)
{
    static unsigned n_steps;
    char            line[64];

    if (++n_steps != 6)
        return;
    is_ready = true;
    (void)printf("ready\n");
    (void)fflush(stdout);
    T_TRUE(fgets(line, sizeof line, stdin) != NULL);
}

static int
holder_main(void *arg)
{
    const struct pause *p = arg;
    il                 *h = t_ground_store(p->g);
    il_guard           *c = open_bank(p->g);
    il_lease           *leases[KEYS];
    il_guard_fence      fences[KEYS], kept[KEYS - 1];
    size_t              n_kept = 0;
    il_error            err    = { .message = "" };

    for (size_t i = 0; i < KEYS; i++) {
        fences[i] = take(h, keys[i], i == p->lost ? SHORT_MS : LONG_MS, &leases[i]);
        if (i != p->lost)
            kept[n_kept++] = fences[i];
    }
    il_status st = move(c, "first", fences, KEYS, wait_for_word, &err);
    while (st == IL_STALE && !is_ready) { /* a busy machine, and the lease has run out too soon */
        il_lease_free(leases[p->lost]);
        fences[p->lost] = take(h, keys[p->lost], SHORT_MS, &leases[p->lost]);
        st              = move(c, "first", fences, KEYS, wait_for_word, &err);
    }
    (void)printf("result %s %s\n", il_status_name(st), err.message);
    st = move(c, "again", fences, KEYS, NULL, &err);
    (void)printf("again %s\n", il_status_name(st));
    st = move(c, "kept", kept, n_kept, NULL, &err);
    (void)printf("kept %s\n", il_status_name(st));
    (void)fflush(stdout);
    for (size_t i = 0; i < KEYS; i++)
        il_lease_free(leases[i]);
    il_guard_close(c);
    il_close(h);
    return 0;
}

/* ---- the next holder ------------------------------------------------------------------------- */

struct next {
    const struct t_ground *g;
    il_guard_fence         fence;
    struct t_event         begins, done;
    il_status              status;
    il_error               err;
};

static void *
next_main(void *arg)
{
    struct next *n = arg;
    il_guard    *c = NULL;

    n->status = bank_open(n->g->url, NULL, 2 * (int64_t)G_LIMIT_MS, 0, &c, &n->err);
    t_event_add(&n->begins);
    if (n->status == IL_OK)
        n->status = move(c, "next", &n->fence, 1, NULL, &n->err);
    il_guard_close(c);
    t_event_add(&n->done);
    return NULL;
}

static void
pass_on(const struct t_ground *g, size_t lost)
{
    struct pause  p    = { .g = g, .lost = lost };
    struct next   next = { .g = g };
    struct t_proc first;
    pthread_t     thread;
    il_lease     *lease = NULL;
    char          line[T_PROC_LINE_BYTES];

    bank_make(g);
    t_proc_fork(&first, holder_main, &p);
    T_LINE(&first, "ready", G_LIMIT_MS, NULL);
    t_proc_stop_outside(&first, g->store, G_LIMIT_MS);
    t_event_init(&next.begins);
    t_event_init(&next.done);
    il *h      = t_ground_store(g);
    next.fence = take(h, keys[lost], LONG_MS, &lease); /* once the other's has run out */
    T_EQ(pthread_create(&thread, NULL, next_main, &next), 0);
    T_WAIT(&next.begins, 1, G_LIMIT_MS);
    t_proc_signal(&first, SIGCONT);
    t_proc_say(&first, "go");
    T_LINE(&first, "result", G_LIMIT_MS, line);
    T_HAS(line, "result FENCE_STALE");
    T_HAS(line, keys[lost]);
    T_WAIT(&next.done, 1, 2 * (int64_t)G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    if (next.status != IL_OK)
        T_FAIL("%s", next.err.message);
    T_LINE(&first, "again", G_LIMIT_MS, line);
    T_STREQ(line, "again FENCE_STALE");
    T_LINE(&first, "kept", G_LIMIT_MS, line);
    T_STREQ(line, "kept OK");
    T_EQ(t_proc_exit(&first, G_LIMIT_MS), 0);
    t_proc_release(&first);
    T_EQ(bank_rows(g, "first"), 0);
    T_EQ(bank_rows(g, "again"), 0);
    T_EQ(bank_rows(g, "next"), 2);
    T_EQ(bank_rows(g, "kept"), 2);
    bank_check(g);
    il_lease_free(lease);
    il_close(h);
    t_event_release(&next.begins);
    t_event_release(&next.done);
}

G_TEST(the_first_lease_passes_on)
{
    pass_on(g, 0);
}

G_TEST(the_second_lease_passes_on)
{
    pass_on(g, 1);
}

G_TEST(the_third_lease_passes_on)
{
    pass_on(g, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(the_first_lease_passes_on),
        G_ROW(the_second_lease_passes_on),
        G_ROW(the_third_lease_passes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
