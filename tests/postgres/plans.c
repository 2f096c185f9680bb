/*
 * plans.c: the number of rows an op reads does not grow with the amount of data. A plan is created
 * when a connection first uses a function, and cached: so here plans are created while the store is
 * nearly empty, with matching statistics, and used when it is full. Counts rows read, not time.
 */
#include <poll.h>
#include <stdio.h>

#include "harness/clock.h"
#include "harness/job.h"
#include "harness/postgres.h"
#include "harness/unit.h"

#define LIMIT_MS 20000
#define FULL 3000 /* of each: jobs that wait and have ended, leases, runs, answers */
#define AT_ONCE 500
#define ROUNDS 5
/* One round of some 20 ops may read so many, dead ones among them; a plan that goes through a table
 * reads more for a single op. */
#define ROWS_MAX 2500

static struct t_postgres server;

static int
start_server(void **state UNUSED)
{
    static const char *const settings[] = { "autovacuum=off", NULL };

    t_postgres_init(&server, false, false);
    t_postgres_start(&server, settings);
    return 0;
}

static int
stop_server(void **state UNUSED)
{
    t_postgres_release(&server);
    return 0;
}

static void
ask(const char *sql, char out[T_PG_TEXT_BYTES])
{
    (void)t_postgres_ask(server.url, sql, out);
}

static il *
open_store(void)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;
    il_error     err  = { 0 };

    opts.flags = IL_OPEN_NO_SWEEP;
    if (il_open(server.url, &opts, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return h;
}

static unsigned
n_connections(void)
{
    char out[T_PG_TEXT_BYTES];

    ask("SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid "
        "<> pg_backend_pid()",
        out);
    return (unsigned)strtoul(out, NULL, 10);
}

/* Its connections have told what they have read when they are gone, and `n_others` are left. */
static void
close_store(il *h, unsigned n_others)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    il_close(h);
    while (n_connections() != n_others) {
        T_TRUE(t_real_ms() < until_ms);
        (void)poll(NULL, 0, 5);
    }
}

/* The op, which must succeed (or repeat an answer), and its answer until the next one. */
static const il_op *
is_ok(il *h, il_op op)
{
    static il_op done;
    il_error     err = { 0 };

    il_op_release(&done);
    done = op;
    if (il_apply(h, &done, 1, &err) != IL_OK || (done.status != IL_OK && done.status != IL_REPLAY))
        T_FAIL("%s: %s: %s", il_op_name(op.type), il_status_name(done.status),
               err.message[0] != '\0' ? err.message : done.out.detail);
    return &done;
}

/* ---- one of each ----------------------------------------------------------------------------- */

static void
use_jobs(il *h, unsigned i)
{
    char     id[32], parent[32], child[32];
    il_op    list = { .type = IL_OP_JOB_LIST, .key = "full" };
    uint64_t token;

    list.in.list.limit = 3;
    (void)snprintf(id, sizeof id, "job-%u", i);
    (void)snprintf(parent, sizeof parent, "parent-%u", i);
    (void)snprintf(child, sizeof child, "child-%u", i);
    (void)is_ok(h, t_job_op(IL_OP_JOB_PUSH, "q", NULL, id, 0, T_JOB(.data = "x")));
    token = is_ok(h, t_job_op(IL_OP_JOB_CLAIM, "q", "w", NULL, 0, T_JOB(.limit = 1)))->out.fence;
    (void)is_ok(h, t_job_op(IL_OP_JOB_HEARTBEAT, NULL, "w", id, token, T_JOB()));
    (void)is_ok(h, t_job_op(IL_OP_JOB_GET, NULL, NULL, id, 0, T_JOB()));
    (void)is_ok(h, t_job_op(IL_OP_JOB_FINISH, NULL, "w", id, token, T_JOB()));
    (void)is_ok(h, t_job_op(IL_OP_JOB_GET, NULL, NULL, id, 0, T_JOB()));
    /* once more: it is known */
    (void)is_ok(h, t_job_op(IL_OP_JOB_FINISH, NULL, "w", id, token, T_JOB()));
    (void)is_ok(h, t_job_op(IL_OP_JOB_PUSH, "q", NULL, parent, 0,
                            T_JOB(.flags = IL_PUSH_PARENT, .n_children = 1)));
    (void)is_ok(h, t_job_op(IL_OP_JOB_PUSH, "q", NULL, child, 0, T_JOB(.parent = parent)));
    token = is_ok(h, t_job_op(IL_OP_JOB_CLAIM, "q", "w", NULL, 0, T_JOB(.limit = 1)))->out.fence;
    (void)is_ok(h, t_job_op(IL_OP_JOB_FINISH, NULL, "w", child, token, T_JOB()));
    (void)is_ok(h, t_job_op(IL_OP_JOB_GET, NULL, NULL, parent, 0, T_JOB()));
    (void)is_ok(h, list);
}

static void
use_once(il *h, unsigned i)
{
    char  key[32];
    il_op op  = { .type = IL_OP_ONCE_BEGIN, .key = key, .holder = "h" };
    il_op get = { .type = IL_OP_ONCE_GET, .key = key };

    (void)snprintf(key, sizeof key, "once-%u", i);
    uint64_t token = is_ok(h, op)->out.fence;
    op.type        = IL_OP_ONCE_FINISH;
    op.fence       = token;
    op.in.once     = (il_once_in){ .response = "x", .response_bytes = 1 };
    (void)is_ok(h, op);
    (void)is_ok(h, get);
}

static void
use_runs(il *h, unsigned i)
{
    char  id[32], key[32];
    il_op op  = { .type = IL_OP_RUN_START, .key = key, .holder = "h" };
    il_op get = { .type = IL_OP_RUN_GET };

    (void)snprintf(id, sizeof id, "run-%u", i);
    (void)snprintf(key, sizeof key, "runs:%u", i);
    op.in.run      = (il_run_in){ .id = id, .live_max = 10, .day_max = 100000 };
    get.in.run.id  = id;
    uint64_t fence = is_ok(h, op)->out.fence;
    op.type        = IL_OP_RUN_FINISH;
    op.fence       = fence;
    op.in.run      = (il_run_in){ .id = id, .state = IL_RUN_COMPLETED, .progress = -1 };
    (void)is_ok(h, get);
    (void)is_ok(h, op);
    (void)is_ok(h, get);
}

static void
use_locks(il *h, unsigned i)
{
    char  key[32];
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = "h" };

    (void)snprintf(key, sizeof key, "lock:%u", i);
    op.fence = is_ok(h, op)->out.fence;
    op.type  = IL_OP_RENEW;
    (void)is_ok(h, op);
    op.type = IL_OP_RELEASE;
    (void)is_ok(h, op);
}

static void
use(il *h, unsigned i)
{
    use_jobs(h, i);
    use_once(h, i);
    use_runs(h, i);
    use_locks(h, i);
}

/* ---- many of each ---------------------------------------------------------------------------- */

static void
apply_all(il *h, il_op *ops, size_t n)
{
    il_error err = { 0 };

    if (il_apply(h, ops, n, &err) != IL_OK)
        T_FAIL("%s", err.message);
    for (size_t i = 0; i < n; i++)
        T_EQ(ops[i].status, IL_OK);
}

static void
release_all(il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
}

/* Of the queue that is listed, half wait and half have ended; of `q` all have. */
static void
fill_jobs(il *h, const char *queue, unsigned first, bool end)
{
    static char names[AT_ONCE][32];
    il_op       ops[AT_ONCE];

    for (unsigned i = 0; i < AT_ONCE; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s-%u", queue, first + i);
        ops[i] = t_job_op(IL_OP_JOB_PUSH, queue, NULL, names[i], 0, T_JOB(.data = "x"));
    }
    apply_all(h, ops, AT_ONCE);
    release_all(ops, AT_ONCE);
    if (!end)
        return;
    il_op claim = t_job_op(IL_OP_JOB_CLAIM, queue, "w", NULL, 0, T_JOB(.limit = AT_ONCE));
    apply_all(h, &claim, 1);
    T_EQU(claim.out.n_jobs, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE; i++)
        ops[i] = t_job_op(IL_OP_JOB_FINISH, NULL, "w", claim.out.jobs[i].id,
                          claim.out.jobs[i].token, T_JOB());
    apply_all(h, ops, AT_ONCE);
    release_all(ops, AT_ONCE);
    il_op_release(&claim);
}

/* Each of a unit of work of its own. */
static void
fill_others(il *h, unsigned first)
{
    static char names[AT_ONCE][32];
    il_op       ops[AT_ONCE];

    for (unsigned i = 0; i < AT_ONCE; i++) {
        (void)snprintf(names[i], sizeof names[i], "other:%u", first + i);
        ops[i]           = (il_op){ .type = IL_OP_RUN_START, .key = names[i], .holder = names[i] };
        ops[i].in.run.id = names[i];
    }
    apply_all(h, ops, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE / 2; i++) { /* half of them end */
        uint64_t fence = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i] = (il_op){
            .type = IL_OP_RUN_FINISH, .key = names[i], .holder = names[i], .fence = fence
        };
        ops[i].in.run = (il_run_in){ .id = names[i], .state = IL_RUN_COMPLETED, .progress = -1 };
    }
    apply_all(h, ops, AT_ONCE / 2);
    release_all(ops, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE; i++)
        ops[i] = (il_op){ .type = IL_OP_ONCE_BEGIN, .key = names[i], .holder = names[i] };
    apply_all(h, ops, AT_ONCE);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        uint64_t token = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i] = (il_op){
            .type = IL_OP_ONCE_FINISH, .key = names[i], .holder = names[i], .fence = token
        };
        ops[i].in.once = (il_once_in){ .response = "x", .response_bytes = 1 };
    }
    apply_all(h, ops, AT_ONCE);
    release_all(ops, AT_ONCE);
}

/* Rows read since the numbers were reset; the indexes through which most were are named for
 * people. */
static unsigned
rows_read(void)
{
    char out[T_PG_TEXT_BYTES];

    ask("SELECT string_agg(x.t, ', ') FROM (SELECT concat(indexrelname, ' ', idx_tup_read) AS t "
        "FROM pg_stat_user_indexes"
        " ORDER BY idx_tup_read DESC LIMIT 4) AS x",
        out);
    print_message("# %s\n", out);
    ask("SELECT (sum(seq_tup_read) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes))::text "
        "FROM pg_stat_user_tables",
        out);
    return (unsigned)strtoul(out, NULL, 10);
}

U_TEST(plans_of_a_small_store)
{
    char out[T_PG_TEXT_BYTES];
    il  *first = open_store();

    use(first, 0);
    close_store(first, 0);
    ask("VACUUM ANALYZE", out);
    il *old = open_store();
    use(old, 1);
    unsigned n_old = n_connections();
    il      *h     = open_store();
    for (unsigned i = 0; i < FULL; i += AT_ONCE) {
        fill_jobs(h, "q", i, true);
        fill_jobs(h, "full", i, i < FULL / 2);
        fill_others(h, i);
    }
    close_store(h, n_old);
    ask("SELECT pg_stat_reset()::text", out);
    for (unsigned i = 0; i < ROUNDS; i++)
        use(old, 2 + i);
    close_store(old, 0);
    unsigned n = rows_read() / ROUNDS;
    print_message("# %u rows a round\n", n);
    T_LESS(n, ROWS_MAX);
}

/* Somebody who holds something joins a long queue: those ahead of him, who wait for nothing else,
 * are not asked for one by one. */
U_TEST(a_search_along_a_long_queue)
{
    static char names[AT_ONCE][32];
    il_op       ops[AT_ONCE];
    il_error    err = { 0 };
    char        out[T_PG_TEXT_BYTES];
    il         *h = open_store();

    (void)is_ok(h, (il_op){ .type = IL_OP_ACQUIRE, .key = "hot", .holder = "first" });
    (void)is_ok(h, (il_op){ .type = IL_OP_ACQUIRE, .key = "mine", .holder = "me" });
    for (unsigned i = 0; i < AT_ONCE; i++) {
        (void)snprintf(names[i], sizeof names[i], "waits-%u", i);
        ops[i]                 = (il_op){ .type = IL_OP_ACQUIRE, .key = "hot", .holder = names[i] };
        ops[i].in.lock.wait_ms = 600000;
    }
    T_EQ(il_apply(h, ops, AT_ONCE, &err), IL_OK);
    release_all(ops, AT_ONCE);
    close_store(h, 0);
    ask("SELECT pg_stat_reset()::text", out);
    h                      = open_store();
    il_op joins            = { .type = IL_OP_ACQUIRE, .key = "hot", .holder = "me" };
    joins.in.lock.wait_ms  = 600000;
    il_op closes           = { .type = IL_OP_ACQUIRE, .key = "mine", .holder = "first" };
    closes.in.lock.wait_ms = 600000;
    T_EQ(il_apply(h, &joins, 1, &err), IL_OK);
    T_EQ(joins.status, IL_QUEUED);
    T_EQ(il_apply(h, &closes, 1, &err), IL_OK);
    T_EQ(closes.status, IL_DEADLOCK); /* and nobody is overlooked */
    il_op_release(&joins);
    il_op_release(&closes);
    close_store(h, 0);
    ask("SELECT xact_commit::text FROM pg_stat_database WHERE datname = current_database()", out);
    print_message("# %s transactions\n", out);
    T_LESS(strtoul(out, NULL, 10), AT_ONCE / 4);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(plans_of_a_small_store),
                                               U_ROW(a_search_along_a_long_queue) };

    return cmocka_run_group_tests_name("plans", tests, start_server, stop_server);
}
