/*
 * wait_for_tx.c: an op that has to wait for a caller's own transaction does not delay the leases of
 * its process.
 */
#include <pthread.h>
#include <stdio.h>

#include "harness/event.h"
#include "harness/job.h"
#include "harness/postgres.h"
#include "harness/proc.h"
#include "harness/unit.h"

#define LIMIT_MS 20000
#define RENEWALS 10

static struct t_postgres server;

static int
start_server(void **state UNUSED)
{
    t_postgres_init(&server, false, false);
    t_postgres_start(&server, NULL);
    return 0;
}

static int
stop_server(void **state UNUSED)
{
    t_postgres_release(&server);
    return 0;
}

struct pusher {
    il            *h;
    struct t_event begins, done;
    il_status      status;
    il_op          op;
    il_error       err;
};

static void *
push(void *arg)
{
    struct pusher *p = arg;

    t_event_add(&p->begins);
    p->status = il_apply(p->h, &p->op, 1, &p->err);
    t_event_add(&p->done);
    return NULL;
}

/* A session that pushes in a transaction, and leaves it open. */
static void
open_transaction(struct t_proc *p)
{
    const char *const psql[] = { "psql",     "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                                 server.url, NULL };

    t_proc_start(p, psql, NULL);
    t_proc_say(
        p, "BEGIN; SELECT 'pushed ' || status FROM interlock.push('q', 'x', unique_key => 'u');");
    T_LINE(p, "pushed OK", LIMIT_MS, NULL);
}

/* The pusher waits in the server for a lock. */
static void
await_a_wait(struct pusher *p)
{
    char out[T_PG_TEXT_BYTES];

    do {
        T_EQ(t_event_count(&p->done), 0);
        (void)t_postgres_ask(
            server.url,
            "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock'", out);
    } while (strcmp(out, "0") == 0);
}

U_TEST(renewals_are_not_behind_a_push)
{
    il_open_opts  opts = IL_OPEN_OPTS_INIT;
    struct pusher p    = { .op = t_job_op(IL_OP_JOB_PUSH, "q", NULL, "j", 0,
                                          T_JOB(.data = "y", .unique_key = "u")) };
    struct t_proc other;
    pthread_t     thread;
    il_error      err = { 0 };
    il_op         op  = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };

    opts.timeout_ms = LIMIT_MS;
    if (il_open(server.url, &opts, &p.h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(il_apply(p.h, &op, 1, &err), IL_OK);
    T_EQ(op.status, IL_OK);
    open_transaction(&other);
    t_event_init(&p.begins);
    t_event_init(&p.done);
    T_EQ(pthread_create(&thread, NULL, push, &p), 0);
    await_a_wait(&p);
    op.fence = op.out.fence;
    op.type  = IL_OP_RENEW;
    for (unsigned i = 0; i < RENEWALS; i++) {
        T_EQ(il_apply(p.h, &op, 1, &err), IL_OK);
        T_EQ(op.status, IL_OK);
    }
    T_EQ(t_event_count(&p.done), 0); /* it still stands */
    t_proc_say(&other, "COMMIT;");
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(p.status, IL_OK);
    T_EQ(p.op.status, IL_DUPLICATE);
    il_op_release(&p.op);
    il_op_release(&op);
    il_close(p.h);
    t_proc_release(&other);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(renewals_are_not_behind_a_push) };

    return cmocka_run_group_tests_name("postgres-wait_for_tx", tests, start_server, stop_server);
}
