/*
 * waiters.c: waiting wrappers: first come, first served across processes; a stopped or killed one
 * does not block the others. Also prints how long a handover takes, for information.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "race/race.h"

#define WAITERS 8
#define LIMIT_MS 30000
#define TURNS 150 /* hand-overs of each of the two */

struct scene {
    struct race   r;
    il           *h;
    struct t_proc holder;
    struct t_proc waiters[WAITERS];
    size_t        n;
};

/* Somebody holds the key, and n wrappers wait for it, in this order. */
static struct scene *
scene_new(size_t n)
{
    struct scene *s = calloc(1, sizeof *s);
    char          script[T_PATH_BYTES + 64];

    CHECK(s != NULL);
    s->n = n;
    race_init(&s->r);
    RACE_WORKER(&s->r, &s->holder, "hold", s->r.url, "queue");
    T_LINE(&s->holder, "held ", LIMIT_MS, NULL);
    s->h = race_open(&s->r);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(script, sizeof script, "echo %zu >>'%s'", i, s->r.log);
        t_proc_start(&s->waiters[i],
                     (const char *const[]){ s->r.bin, "run", "--wait", "60s", "queue", "--", "sh",
                                            "-c", script, NULL },
                     NULL);
        race_await_count(s->h, "queue", IL_LIST_WAITERS, i + 1, LIMIT_MS);
    }
    return s;
}

static void
let_go(struct scene *s)
{
    t_proc_say(&s->holder, "release");
    T_LINE(&s->holder, "release OK", LIMIT_MS, NULL);
    T_EQ(t_proc_exit(&s->holder, LIMIT_MS), 0);
}

static void
scene_free(struct scene *s)
{
    for (size_t i = 0; i < s->n; i++)
        t_proc_release(&s->waiters[i]);
    t_proc_release(&s->holder);
    il_close(s->h);
    race_release(&s->r);
    free(s);
}

U_TEST(first_come_first_served)
{
    struct scene *s = scene_new(WAITERS);

    let_go(s);
    for (size_t i = 0; i < s->n; i++)
        T_EQ(t_proc_exit(&s->waiters[i], LIMIT_MS), 0);
    char *log = t_file_read(s->r.log, NULL);
    T_STREQ(log, "0\n1\n2\n3\n4\n5\n6\n7\n");
    free(log);
    scene_free(s);
}

U_TEST(told_to_stop_while_waiting)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
    struct scene    *s         = scene_new(ARRAY_LEN(signals));

    for (size_t i = 0; i < s->n; i++) {
        t_proc_signal(&s->waiters[i], signals[i]);
        T_EQ(t_proc_exit(&s->waiters[i], LIMIT_MS), 128 + signals[i]);
        /* It has left the queue by the time it has ended, not some time later. */
        race_await_count(s->h, "queue", IL_LIST_WAITERS, s->n - i - 1, 0);
    }
    let_go(s);
    T_TRUE(!t_file_exists(s->r.log)); /* nothing was run */
    race_await_count(s->h, "queue", 0, 0, LIMIT_MS);
    scene_free(s);
}

/* A killed waiter cannot leave the queue; its turn passes when it does not take it. */
U_TEST(killed_while_waiting)
{
    struct scene *s = scene_new(4);

    t_proc_signal(&s->waiters[0], SIGKILL);
    t_proc_signal(&s->waiters[2], SIGKILL);
    T_EQ(t_proc_exit(&s->waiters[0], LIMIT_MS), 128 + SIGKILL);
    T_EQ(t_proc_exit(&s->waiters[2], LIMIT_MS), 128 + SIGKILL);
    let_go(s);
    T_EQ(t_proc_exit(&s->waiters[1], LIMIT_MS), 0);
    T_EQ(t_proc_exit(&s->waiters[3], LIMIT_MS), 0);
    char *log = t_file_read(s->r.log, NULL);
    T_STREQ(log, "1\n3\n");
    free(log);
    scene_free(s);
}

U_TEST(a_wait_that_runs_out)
{
    struct scene *s = scene_new(0);
    struct t_proc p;

    int64_t began = t_real_ms();
    t_proc_start(&p,
                 (const char *const[]){ s->r.bin, "run", "--wait", "300ms", "queue", "--", "touch",
                                        s->r.log, NULL },
                 NULL);
    T_EQ(t_proc_exit(&p, LIMIT_MS), 75);
    T_TRUE(t_real_ms() - began >= 300);
    T_HAS(p.text, "is held by");
    t_proc_release(&p);
    T_TRUE(!t_file_exists(s->r.log));
    race_await_count(s->h, "queue", IL_LIST_WAITERS, 0, 0);
    let_go(s);
    scene_free(s);
}

/* ---- latency --------------------------------------------------------------------------------- */

struct turn {
    uint64_t fence;
    int64_t  granted_ns;
    int64_t  release_ns;
    unsigned who;
};

static int
by_fence(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;

    return (x->fence > y->fence) - (x->fence < y->fence);
}

static int
by_size(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* Both wait before the first turn: so the key changes hands at least once, however late a process
 * is started. */
U_TEST(how_long_a_hand_over_takes)
{
    struct scene  *s     = scene_new(0);
    struct t_proc *procs = calloc(2, sizeof *procs);
    struct turn    turns[2 * TURNS];
    int64_t        ns[2 * TURNS];
    size_t         n = 0, n_ns = 0;
    char           count[16], line[T_PROC_LINE_BYTES];

    (void)snprintf(count, sizeof count, "%d", TURNS);
    for (unsigned i = 0; i < 2; i++)
        RACE_WORKER(&s->r, &procs[i], "handover", s->r.url, "queue", count);
    race_await_count(s->h, "queue", IL_LIST_WAITERS, 2, LIMIT_MS);
    let_go(s);
    for (unsigned i = 0; i < 2; i++) {
        T_EQ(t_proc_exit(&procs[i], LIMIT_MS), 0);
        while (t_proc_line(&procs[i], "turn ", 0, line)) {
            struct turn *t = &turns[n++];
            t->who         = i;
            T_EQ(sscanf(line, "turn %" SCNu64 " %" SCNd64 " %" SCNd64, &t->fence, &t->granted_ns,
                        &t->release_ns),
                 3);
        }
        t_proc_release(&procs[i]);
    }
    T_EQU(n, 2 * TURNS);
    qsort(turns, n, sizeof *turns, by_fence);
    for (size_t i = 1; i < n; i++) {
        T_LESS(turns[i - 1].release_ns, turns[i].granted_ns); /* one after the other */
        if (turns[i].who != turns[i - 1].who)
            ns[n_ns++] = turns[i].granted_ns - turns[i - 1].release_ns;
    }
    T_LESS(0, n_ns);
    qsort(ns, n_ns, sizeof *ns, by_size);
    print_message("# %zu hand-overs: p50 %d us, p99 %d us, max %d us\n", n_ns,
                  (int)(ns[n_ns / 2] / 1000), (int)(ns[n_ns * 99 / 100] / 1000),
                  (int)(ns[n_ns - 1] / 1000));
    free(procs);
    scene_free(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(first_come_first_served),    U_ROW(told_to_stop_while_waiting),
        U_ROW(killed_while_waiting),       U_ROW(a_wait_that_runs_out),
        U_ROW(how_long_a_hand_over_takes),
    };

    return cmocka_run_group_tests_name("waiters", tests, NULL, NULL);
}
