/*
 * remote.c: a store behind a server that sends invalid answers: which error each one becomes. The
 * server is a mock transport that returns what the test sets.
 */
#include "store/remote/remote.h"

#include "base/clock.h"
#include "core/op.h"
#include "harness/unit.h"

#define N 3

struct fake {
    struct remote_store remote;
    const char         *replies[N]; /* heads; NULL: a good one */
};

static const struct remote_blob none;

static il_status
fake_call(struct remote_store *s, struct remote_call *c, il_error *reterr UNUSED)
{
    const struct fake *f = container_of(s, struct fake, remote);
    char               good[128];

    for (size_t i = 0; i < c->n; i++) {
        (void)snprintf(good, sizeof good, "{\"status\":0,\"fence\":%zu,\"remaining_ms\":5000}",
                       i + 7);
        const char *text = f->replies[i] != NULL ? f->replies[i] : good;
        if (!il__remote_take_row(c, i, text, strlen(text), none, none))
            T_FAIL("reply %zu was not taken", i);
    }
    return IL_OK;
}

static void
fake_wake(struct remote_store *s UNUSED, const uint32_t *slots UNUSED, size_t n UNUSED)
{
}

static void
fake_free(struct remote_store *s)
{
    il__remote_release(s);
}

static const struct remote_transport fake_transport = { .name           = "fake",
                                                        .n_requests_max = 100,
                                                        .call           = fake_call,
                                                        .wake           = fake_wake,
                                                        .free           = fake_free };

static struct il__store *
open_fake(struct fake *f)
{
    struct il__store_open o = { .clock = il__clock_machine() };

    T_TRUE(il__remote_init(&f->remote, &fake_transport, &o));
    return &f->remote.base;
}

/* Acquire N keys at once. */
static il_status
acquire(struct il__store *s, il_op ops[N], size_t n, il_error *reterr)
{
    static const char *const keys[N] = { "a", "b", "c" };
    il_op                   *ptrs[N];

    for (size_t i = 0; i < n; i++) {
        ops[i]                = (il_op){ .type = IL_OP_ACQUIRE, .key = keys[i], .holder = "me" };
        ops[i].in.lock.ttl_ms = 5000;
        ptrs[i]               = &ops[i];
        T_TRUE(il__op_prepare(&ops[i], "default", strlen("default")));
    }
    size_t n_done;
    return il__store_apply(s, ptrs, n, &n_done, reterr);
}

static void
release(il_op ops[N], size_t n)
{
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
}

static const char *const nonsense[] = {
    "{\"status\":0,\"fen", /* cut */
    "17",
    "{\"status\":99}",
    "{\"status\":0,\"fence\":0,\"remaining_ms\":5000}", /* a grant without a fence */
    "{\"status\":0,\"fence\":9,\"remaining_ms\":5001}", /* for longer than was asked */
    "{\"status\":2,\"ticket\":3,\"position\":1}", /* in a queue, for somebody who does not wait */
    "{\"status\":12,\"fence\":3,\"say\":\"no such words\"}",
    /* A lease in the way that is in no state, or of no mode; a status that is 0 in 32 bits. */
    "{\"status\":1,\"items\":[{\"key\":\"b\",\"holder\":\"h\",\"state\":99}]}",
    "{\"status\":1,\"items\":[{\"key\":\"b\",\"holder\":\"h\",\"state\":3,\"mode\":7}]}",
    "{\"status\":4294967296,\"fence\":9,\"remaining_ms\":5000}",
    ("{\"status\":1,\"remaining_ms\":1e300,\"items\":[{\"key\":\"b\",\"due_ms\":1e300,"
     "\"state\":3}]}"),
    "{\"status\":1,\"runs\":[{\"key\":\"b\",\"state\":2,\"hold_state\":77,\"hold_due_ms\":1}]}",
};

U_TEST(the_others_keep_their_answers)
{
    for (size_t k = 0; k < ARRAY_LEN(nonsense); k++) {
        struct fake       f   = { .replies = { NULL, nonsense[k], NULL } };
        struct il__store *s   = open_fake(&f);
        il_error          err = { 0 };
        il_op             ops[N];

        T_EQ(acquire(s, ops, N, &err), IL_OK);
        T_EQ(ops[0].status, IL_OK);
        T_EQ(ops[0].out.fence, 7);
        T_EQ(ops[1].status, IL_STORE);
        T_HAS(ops[1].out.detail, "unexpected reply to acquire b;");
        T_EQ(ops[1].out.fence, 0);
        T_EQ(ops[2].status, IL_OK);
        T_EQ(ops[2].out.fence, 9);
        release(ops, N);
        il__store_free(s);
    }
}

/* Then nobody else is in the call, and it fails as if the answer had been lost. */
U_TEST(alone_it_is_the_calls_error)
{
    for (size_t k = 0; k < ARRAY_LEN(nonsense); k++) {
        struct fake       f   = { .replies = { nonsense[k] } };
        struct il__store *s   = open_fake(&f);
        il_error          err = { 0 };
        il_op             ops[N];

        T_EQ(acquire(s, ops, 1, &err), IL_STORE);
        T_STREQ(err.message, "fake: unexpected reply to acquire a; the operation may or "
                             "may not have been applied");
        T_EQ(ops[0].out.fence, 0);
        release(ops, 1);
        il__store_free(s);
    }
}

/* What a server says of those who wait is looked at before anybody reckons with it. */
/* Numbers out of range, unknown modes, waits of nobody for nothing. */
static const char damaged_reply[] =
    "{\"status\":0,\"keys\":[\"k\"],\"now_ms\":9223372036854775807,"
    "\"leases\":[[\"h1\",9,0,3,0,-9223372036854775807,0],[\"h2\",0,0,"
    "99,5,5],[\"h3\",2,0,3,1e99,0],"
    "[\"h4\",0,0,3,9223372036854775807,9223372036854775807],[7],{}],"
    "\"waits\":[[0,\"me\",0,0],[-1,\"me\",0,0],[1,\"me\",5,0],[2,"
    "\"me\",2,0],[3,\"me\",0,0],[]]}";

U_TEST(a_search_among_nonsense)
{
    struct fake             f      = { .replies = { damaged_reply } };
    struct il__store       *s      = open_fake(&f);
    const char             *holder = "me";
    uint64_t                victim = 0;
    struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
    struct remote_budget    left   = { .n_asks = 8 };
    bool                    found  = false;
    il_error                err;

    T_EQ(il__remote_search(&f.remote, "default", &holder, 1, &left, &victim, &why, &found, &err),
         IL_OK);
    T_TRUE(!found);
    il__store_free(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(the_others_keep_their_answers),
                                               U_ROW(alone_it_is_the_calls_error),
                                               U_ROW(a_search_among_nonsense) };

    return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
