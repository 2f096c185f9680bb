/*
 * batch.c: batches split into commits: their order, what a list between writes sees, and the size
 * limit for the results of one call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/limits.h"
#include "harness/cache.h"
#include "harness/job.h"
#include "harness/suite.h"

enum {
    N_OPS = 3 * IL__COMMIT_OPS + 7 /* more than one commit takes */
};

static il_op *
ops_new(size_t n)
{
    il_op *ops = calloc(n, sizeof *ops);

    T_TRUE(ops != NULL);
    return ops;
}

static void
ops_free(il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
    free(ops);
}

T_TEST(a_batch_of_several_commits_keeps_its_order)
{
    il_op *ops = ops_new(N_OPS);
    char   ids[N_OPS][16];

    for (size_t i = 0; i < N_OPS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "j%05zu", i);
        ops[i]           = (il_op){ .type = IL_OP_JOB_PUSH, .key = "q" };
        ops[i].in.job.id = ids[i];
    }
    t_batch(s, ops, N_OPS);
    for (size_t i = 0; i < N_OPS; i++) {
        T_EQ(ops[i].status, IL_OK);
        T_TRUE(i == 0 || ops[i].out.jobs[0].seq > ops[i - 1].out.jobs[0].seq);
    }
    ops_free(ops, N_OPS);
}

T_TEST(a_list_sees_the_writes_before_it)
{
    enum {
        N = 40
    };
    il_op *ops = ops_new((size_t)2 * N);
    char   keys[N][16];

    for (size_t i = 0; i < N; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%02zu", i);
        ops[2 * i]     = (il_op){ .type = IL_OP_ACQUIRE, .key = keys[i], .holder = "h" };
        ops[2 * i + 1] = (il_op){ .type = IL_OP_LIST };
    }
    t_batch(s, ops, (size_t)2 * N);
    for (size_t i = 0; i < N; i++) {
        T_EQ(ops[2 * i].status, IL_OK);
        T_EQ(ops[2 * i + 1].status, IL_OK);
        T_EQU(ops[2 * i + 1].out.n_items, i + 1);
    }
    ops_free(ops, (size_t)2 * N);
}

/* A value of the largest size. */
static void
fill_value(struct t_store *s, const char *key, char *value)
{
    memset(value, 'v', IL_BLOB_BYTES_MAX);
    value[IL_BLOB_BYTES_MAX] = '\0';
    (void)t_cache_put(s, key, value);
}

T_TEST(results_stop_at_their_limit)
{
    char  *value = malloc(IL_BLOB_BYTES_MAX + 1);
    il_op *ops   = ops_new(N_OPS);
    size_t n_ok  = 0;
    size_t n     = 0;

    T_TRUE(value != NULL);
    fill_value(s, "large", value);
    for (size_t i = 0; i < N_OPS - 1; i++)
        ops[i] = (il_op){ .type = IL_OP_CACHE_GET, .key = "large" };
    ops[N_OPS - 1] = (il_op){ .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };
    t_batch(s, ops, N_OPS);
    for (size_t i = 0; i < N_OPS; i++) {
        n += ops[i].out.value_bytes;
        if (ops[i].status == IL_HIT) {
            T_EQU(n_ok, i); /* the first ones, without a gap */
            n_ok++;
        } else {
            T_EQ(ops[i].status, IL_LIMIT);
            T_TRUE(strstr(ops[i].out.detail, "not applied") != NULL);
        }
    }
    T_TRUE(n_ok >= 6 && n <= IL_RESULT_BYTES_MAX);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD); /* the last one was not carried out */
    ops_free(ops, N_OPS);
    free(value);
}

T_TEST(many_small_values_fit)
{
    il_op *ops = ops_new(N_OPS);

    (void)t_cache_put(s, "small", "v");
    for (size_t i = 0; i < N_OPS; i++)
        ops[i] = (il_op){ .type = IL_OP_CACHE_GET, .key = "small" };
    t_batch(s, ops, N_OPS);
    for (size_t i = 0; i < N_OPS; i++)
        T_EQ(ops[i].status, IL_HIT);
    ops_free(ops, N_OPS);
}

/* What does not fit is not claimed: it stays for others, with its attempts. */
T_TEST(a_claim_stops_before_its_limit)
{
    enum {
        N = 12
    };
    char  *payload = malloc(IL_BLOB_BYTES_MAX + 1);
    char   id[16];
    size_t n_given = 0;

    T_TRUE(payload != NULL);
    memset(payload, 'p', IL_BLOB_BYTES_MAX);
    payload[IL_BLOB_BYTES_MAX] = '\0';
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(id, sizeof id, "j%u", i);
        (void)T_IS(t_push(s, "q", id, .data = payload), IL_OK);
    }
    for (unsigned round = 0; n_given < N; round++) {
        char worker[16];
        (void)snprintf(worker, sizeof worker, "w%u", round);
        const il_op *op = T_IS(t_claim(s, "q", worker, .limit = IL_CLAIM_JOBS_MAX), IL_OK);
        T_TRUE(op->out.n_jobs > 0 && op->out.n_jobs < 8);
        n_given += op->out.n_jobs;
        for (size_t i = 0; i < op->out.n_jobs; i++)
            T_EQ(op->out.jobs[i].attempt, 1);
        T_EQ((op->out.flags & IL_OUT_LIMITED) != 0, n_given < N);
        T_EQU(t_queue(s, "q")->n_running, n_given);
    }
    free(payload);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T_ROW(a_batch_of_several_commits_keeps_its_order),
        T_ROW(a_list_sees_the_writes_before_it),
        T_ROW(results_stop_at_their_limit),
        T_ROW(many_small_values_fit),
        T_ROW(a_claim_stops_before_its_limit),
    };

    return T_SUITE("batch", tests);
}
