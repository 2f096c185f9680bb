/*
 * cache.c: 200 callers in eight processes look up one missing value: one of them builds it, and all
 * get it. If the builder is killed, another one builds.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "race/crowd.h"

#define PROCESSES 8
#define CALLERS 25 /* in each */
#define BUILT "built\n"

static void
build(const struct crowd_caller *caller, il_build *leading)
{
    struct crowd_shared *s = caller->crowd->shared;

    crowd_log(caller->crowd, BUILT);
    atomic_store(&s->begun_pid, getpid());
    CHECK(sem_post(&s->begun) == 0);
    CHECK(crowd_take(&s->go));
    CHECK(il_build_fill(leading, "the value", 9, 60000, 0, 0, 0, NULL) == IL_OK);
    il_build_free(leading);
}

static void *
call(void *arg)
{
    const struct crowd_caller *caller = arg;
    struct crowd_shared       *s      = caller->crowd->shared;
    il_cache_opts              opts   = IL_CACHE_OPTS_INIT;
    il_build                  *mine   = NULL;
    il_op                      op     = { 0 };

    opts.lease_ms    = 1000;
    opts.wait_ms     = CROWD_LIMIT_MS;
    opts.never_early = 1;
    CHECK(sem_post(&s->ready) == 0);
    il_status st = il_cache_lookup(caller->h, "page", &opts, &mine, &op, NULL);
    if (st == IL_LEAD)
        build(caller, mine);
    else
        CHECK(st == IL_HIT && op.out.value_bytes == 9 && memcmp(op.out.value, "the value", 9) == 0);
    il_op_release(&op);
    atomic_fetch_add(&s->n_done, 1);
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

U_TEST(one_builds_and_all_get_it)
{
    struct crowd *c = begin();

    CHECK(sem_post(&c->shared->go) == 0);
    crowd_end(c, 0);
    T_EQU(atomic_load(&c->shared->n_done), PROCESSES * CALLERS);
    T_EQU(crowd_count(c, BUILT), 1);
    crowd_free(c);
}

U_TEST(the_one_that_builds_is_killed)
{
    struct crowd *c      = begin();
    pid_t         killed = atomic_load(&c->shared->begun_pid);

    T_EQ(kill(killed, SIGKILL), 0);
    CROWD_AWAIT(&c->shared->begun, "the next one builds");
    T_TRUE(atomic_load(&c->shared->begun_pid) != killed);
    CHECK(sem_post(&c->shared->go) == 0);
    crowd_end(c, killed);
    T_EQU(atomic_load(&c->shared->n_done), (PROCESSES - 1) * CALLERS);
    T_EQU(crowd_count(c, BUILT), 2);
    crowd_free(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(one_builds_and_all_get_it),
                                               U_ROW(the_one_that_builds_is_killed) };

    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
