/*
 * once.c: 32 callers in eight processes make the same request: one effect, one answer for all. If
 * the caller that has begun is killed, another one takes over.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "race/crowd.h"

#define PROCESSES 8
#define CALLERS 4 /* in each */
#define EFFECT "effect\n"

/* What must happen once, after the test has let it. */
static void
have_effect(const struct crowd_caller *caller, il_once *once)
{
    struct crowd_shared *s = caller->crowd->shared;
    char                 answer[32];

    atomic_store(&s->begun_pid, getpid());
    CHECK(sem_post(&s->begun) == 0);
    CHECK(crowd_take(&s->go));
    crowd_log(caller->crowd, EFFECT);
    int n = snprintf(answer, sizeof answer, "by %d", (int)getpid());
    CHECK(il_once_finish(once, 201, answer, (size_t)n, NULL) == IL_OK);
    il_once_free(once);
}

static void *
call(void *arg)
{
    const struct crowd_caller *caller = arg;
    struct crowd_shared       *s      = caller->crowd->shared;
    il_once_opts               opts   = IL_ONCE_OPTS_INIT;
    il_once                   *once   = NULL;
    il_op                      op     = { 0 };

    opts.fingerprint       = "POST /orders";
    opts.fingerprint_bytes = 12;
    opts.lease_ms          = 1000;
    opts.wait_ms           = CROWD_LIMIT_MS;
    CHECK(sem_post(&s->ready) == 0);
    il_status st = il_once_begin(caller->h, "order-1", &opts, &once, &op, NULL);
    if (st == IL_OK) {
        have_effect(caller, once);
    } else {
        CHECK(st == IL_REPLAY && op.out.code == 201 && op.out.value_bytes > 3);
        atomic_fetch_add(&s->n_other, (unsigned)strtoul((const char *)op.out.value + 3, NULL, 10));
        atomic_fetch_add(&s->n_done, 1);
    }
    il_op_release(&op);
    return NULL;
}

static int
callers(struct crowd *c, unsigned i UNUSED)
{
    return crowd_call(c, CALLERS, call);
}

static struct crowd *
begin(void)
{
    return crowd_begun(PROCESSES, PROCESSES * CALLERS, callers);
}

/* One effect; the others were told the answer of the one that had it. */
static void
judge(struct crowd *c, pid_t killed, unsigned n_callers)
{
    CHECK(sem_post(&c->shared->go) == 0);
    crowd_end(c, killed);
    T_EQU(crowd_count(c, EFFECT), 1);
    T_EQU(atomic_load(&c->shared->n_done), n_callers - 1);
    T_EQU(atomic_load(&c->shared->n_other),
          (n_callers - 1) * (unsigned)atomic_load(&c->shared->begun_pid));
    crowd_free(c);
}

U_TEST(one_effect_and_one_answer)
{
    judge(begin(), 0, PROCESSES * CALLERS);
}

U_TEST(the_one_that_has_begun_is_killed)
{
    struct crowd *c      = begin();
    pid_t         killed = atomic_load(&c->shared->begun_pid);

    T_EQ(kill(killed, SIGKILL), 0);
    CROWD_AWAIT(&c->shared->begun, "another one has begun");
    T_TRUE(atomic_load(&c->shared->begun_pid) != killed);
    judge(c, killed, (PROCESSES - 1) * CALLERS);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(one_effect_and_one_answer),
                                               U_ROW(the_one_that_has_begun_is_killed) };

    return cmocka_run_group_tests_name("once", tests, NULL, NULL);
}
