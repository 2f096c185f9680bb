/*
 * handle.c: opening and closing: URLs, options, clocks, tenants, metrics, trace.
 */
#include <unistd.h>

#include "harness/suite.h"

static il_status
open_with(const char *url, const il_open_opts *opts, il_error *err)
{
    il       *h  = NULL;
    il_status st = il_open(url, opts, &h, err);

    if (st == IL_OK)
        il_close(h);
    else
        T_TRUE(h == NULL); /* written only on IL_OK */
    return st;
}

T_TEST(bad_urls)
{
    static const char *const urls[] = { "",
                                        "x",
                                        "/tmp/x.db",
                                        "mysql://a:secret@b/c",
                                        "memory",
                                        "memory:?",
                                        "memory:?clock",
                                        "memory:?clock=tes",
                                        "memory:?other=1",
                                        "memory:?clock=test&x=1",
                                        "sqlite:",
                                        "sqlite:?clock=test" };
    il_error                 err;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        T_EQ(open_with(urls[i], NULL, &err), IL_INVAL);
        T_EQ(err.status, IL_INVAL);
        T_TRUE(err.message[0] != '\0');
        T_TRUE(strstr(err.message, "secret") == NULL);
        T_TRUE(strchr(err.message, '\n') == NULL);
    }
    T_EQ(il_open(NULL, NULL, NULL, &err), IL_INVAL);
    T_EQ(il_open(s->url, NULL, NULL, NULL), IL_INVAL);
}

T_TEST(bad_options)
{
    static const char *const with_colon[] = { "a:b" };
    static const char *const empty[]      = { "" };
    il_open_opts             good         = IL_OPEN_OPTS_INIT;
    il_error                 err;

    good.clock       = &s->clock.il;
    good.flags       = IL_OPEN_NO_SWEEP;
    il_open_opts bad = good;
    bad.struct_size  = 1;
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
    bad            = good;
    bad.timeout_ms = -1;
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
    bad        = good;
    bad.tenant = "a\nb";
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
    T_HAS(err.message, "tenant");
    bad         = good;
    bad.ranks   = with_colon;
    bad.n_ranks = 1;
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
    bad.ranks = empty;
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
    bad.ranks = NULL;
    T_EQ(open_with(s->url, &bad, &err), IL_INVAL);
}

T_TEST(the_test_clock_only_where_it_was_declared)
{
    il_open_opts with = IL_OPEN_OPTS_INIT;
    il_error     err;

    with.clock = &s->clock.il;
    T_EQ(open_with(s->url, NULL, &err), IL_INVAL);       /* declared, not given */
    T_EQ(open_with(s->real_url, &with, &err), IL_INVAL); /* given, not declared */
    if (!s->engine->durable)
        return;
    /* A store that was created one way does not open the other. */
    char        url[T_PATH_BYTES];
    const char *option = strstr(s->url, "clock=test");
    const char *rest   = option + strlen("clock=test");
    t_path(url, "%.*s%s", (int)(option - s->url) - (*rest == '\0'), s->url, rest + (*rest == '&'));
    T_TRUE(open_with(url, NULL, &err) != IL_OK);
    T_EQ(open_with(s->real_url, NULL, &err), IL_OK);
    t_path(url, "%s%cclock=test", s->real_url, strchr(s->real_url, '?') != NULL ? '&' : '?');
    T_TRUE(open_with(url, &with, &err) != IL_OK);
}

T_TEST(only_an_existing_store)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err;
    char         url[T_PATH_BYTES];
    il          *h = NULL;

    t_store_absent(s, url);
    opts.flags = IL_OPEN_EXISTING;
    T_EQ(open_with(url, &opts, &err), IL_STORE);
    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    T_EQ(open_with(url, &opts, &err), IL_OK);
    il_close(h);
}

/* A relative path is that of the folder in which the store was opened. */
T_TEST(the_process_may_go_elsewhere)
{
    T_NEEDS(s, durable);
    char before[T_PATH_BYTES];
    il  *h = NULL;

    T_TRUE(getcwd(before, sizeof before) != NULL);
    T_EQ(chdir(s->dir), 0);
    T_EQ(il_open("sqlite:relative.db", NULL, &h, NULL), IL_OK);
    il_lease *l = NULL;
    T_EQ(il_acquire(h, "k", NULL, &l, NULL), IL_OK);
    T_EQ(chdir("/"), 0);
    T_EQ(il_check_fence(h, "k", il_lease_fence(l), NULL), IL_OK);
    T_EQ(il_lease_release(l, NULL), IL_OK);
    T_EQ(il_lease_release(l, NULL), IL_OK);
    il_lease_free(l);
    il_close(h);
    T_EQ(chdir(before), 0);
}

/* The lock order of a memory store is one for all who open it. */
T_TEST(a_named_memory_store_has_one_order)
{
    T_NEEDS(s, shared);
    const char *const ranks[] = { "a", "b" };
    il_open_opts      opts    = IL_OPEN_OPTS_INIT;
    il               *h       = NULL;
    il_error          err;

    T_EQ(il_open("memory:one-order", NULL, &h, NULL), IL_OK);
    opts.ranks   = ranks;
    opts.n_ranks = ARRAY_LEN(ranks);
    T_EQ(open_with("memory:one-order", &opts, &err), IL_INVAL);
    T_HAS(err.message, "one-order");
    il_close(h);
    T_EQ(open_with("memory:one-order", &opts, &err), IL_OK);
}

T_TEST(a_tenant_of_the_handle)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;
    il_error     err;

    opts.clock  = &s->clock.il;
    opts.tenant = "mine";
    opts.flags  = IL_OPEN_NO_SWEEP;
    T_EQ(il_open(s->url, &opts, &h, &err), IL_OK);
    il_op op = t_op(IL_OP_ACQUIRE, "k", "a", 0, T_ARGS());
    T_EQ(il_apply(h, &op, 1, &err), IL_OK);
    (void)T_IS(&op, IL_OK);
    il_op_release(&op);
    il_close(h);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    (void)T_IS(t_get(s, "k", .tenant = "mine"), IL_OK);
}

/* All lines, one behind the other: a batch that takes long is told in several. */
struct lines {
    char   text[8192];
    size_t n_bytes;
};

static void
on_trace(void *cookie, const char *line)
{
    struct lines *l = cookie;

    T_TRUE(strchr(line, '\n') == NULL);
    l->n_bytes += (size_t)snprintf(l->text + l->n_bytes, sizeof l->text - l->n_bytes, "%s;", line);
    T_TRUE(l->n_bytes < sizeof l->text);
}

T_TEST(trace_tells_every_batch)
{
    il_open_opts opts  = IL_OPEN_OPTS_INIT;
    struct lines lines = { .n_bytes = 0 };
    il          *h     = NULL;
    il_error     err;

    opts.clock        = &s->clock.il;
    opts.flags        = IL_OPEN_NO_SWEEP;
    opts.trace        = on_trace;
    opts.trace_cookie = &lines;
    T_EQ(il_open(s->url, &opts, &h, &err), IL_OK);
    il_op ops[] = {
        t_op(IL_OP_ACQUIRE, "key1", "alice", 0, T_ARGS(.meta = "a secret")),
        t_op(IL_OP_ACQUIRE, "key1", "bob", 0, T_ARGS()),
    };
    T_EQ(il_apply(h, ops, 2, &err), IL_OK);
    T_HAS(lines.text, "acquire");
    T_HAS(lines.text, "key1");
    T_HAS(lines.text, "alice");
    T_HAS(lines.text, "LOCK_HELD");
    T_TRUE(strstr(lines.text, "secret") == NULL);
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
    T_EQ(il_check_fence(h, "key1", 1, &err), IL_STALE);
    T_HAS(lines.text, "check_fence");
    il_close(h);
}

/* Ids help to find a fault; what people store is their own business. */
T_TEST(trace_tells_ids_but_no_contents)
{
    il_open_opts opts  = IL_OPEN_OPTS_INIT;
    struct lines lines = { .n_bytes = 0 };
    il          *h     = NULL;
    il_error     err;
    il_op        ops[] = {
               { .type = IL_OP_RUN_START, .key = "k", .holder = "w" },
               { .type = IL_OP_RUN_STAGE, .holder = "w", .fence = 1 },
               { .type = IL_OP_ONCE_BEGIN, .key = "once-1", .holder = "attempt-1" },
               { .type = IL_OP_ONCE_FINISH, .key = "once-1", .holder = "attempt-1", .fence = 1 },
               { .type = IL_OP_JOB_PUSH, .key = "queue-1" },
               { .type = IL_OP_JOB_FAIL, .fence = 1 },
               { .type = IL_OP_CACHE_FILL, .key = "cache-1", .holder = "w", .fence = 1 },
               { .type = IL_OP_CRON_SET, .key = "queue-1" },
               { .type = IL_OP_RUN_GET },
    };

    ops[0].in.run =
        (il_run_in){ .id = "run-1", .meta = "SECRET", .by = "SECRET", .place = "SECRET" };
    ops[1].in.run =
        (il_run_in){ .id = "run-1", .stage = "SECRET", .log = "SECRET", .log_bytes = 6 };
    ops[2].in.once =
        (il_once_in){ .fingerprint = "SECRET", .fingerprint_bytes = 6, .meta = "SECRET" };
    ops[3].in.once  = (il_once_in){ .response = "SECRET", .response_bytes = 6 };
    ops[4].in.job   = (il_job_in){ .id = "job-1", .data = "SECRET", .data_bytes = 6 };
    ops[5].in.job   = (il_job_in){ .id = "job-2", .text = "SECRET" };
    ops[6].in.cache = (il_cache_in){ .value = "SECRET", .value_bytes = 6, .ttl_ms = 1000 };
    ops[7].in.cron =
        (il_cron_in){ .name = "cron-1", .schedule = "@daily", .data = "SECRET", .data_bytes = 6 };
    ops[8].in.run = (il_run_in){ .id = "refused\nSECRET" };

    opts.clock        = &s->clock.il;
    opts.flags        = IL_OPEN_NO_SWEEP;
    opts.trace        = on_trace;
    opts.trace_cookie = &lines;
    T_EQ(il_open(s->url, &opts, &h, &err), IL_OK);
    T_EQ(il_apply(h, ops, sizeof ops / sizeof ops[0], &err), IL_OK);
    T_HAS(lines.text, "[run_start key='k' id='run-1' holder='w'");
    T_HAS(lines.text, "[run_stage id='run-1'");
    T_HAS(lines.text, "[once_finish key='once-1' holder='attempt-1'");
    T_HAS(lines.text, "[push key='queue-1' id='job-1'");
    T_HAS(lines.text, "[job_fail id='job-2'");
    T_HAS(lines.text, "[cache_fill key='cache-1'");
    T_HAS(lines.text, "[cron_set key='queue-1' id='cron-1'");
    T_HAS(lines.text, "[run_get -> BAD_REQUEST");
    T_TRUE(strstr(lines.text, "SECRET") == NULL);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        il_op_release(&ops[i]);
    il_close(h);
}

struct counter {
    const char *name;
    uint64_t    value;
    unsigned    n_named;
    unsigned    n;
};

static void
on_metric(void *cookie, const char *name, const char *help, uint64_t value)
{
    struct counter *c = cookie;

    T_TRUE(strncmp(name, "interlock_", 10) == 0);
    T_TRUE(help != NULL && help[0] != '\0');
    c->n++;
    if (strcmp(name, c->name) == 0) {
        c->value = value;
        c->n_named++;
    }
}

static uint64_t
metric(il *h, const char *name)
{
    struct counter c = { .name = name };

    il_metrics(h, on_metric, &c);
    T_EQ(c.n_named, 1); /* there, and once */
    return c.value;
}

T_TEST(metrics_count)
{
    il      *h     = s->handles[0];
    uint64_t fence = 0;

    fence = T_IS(t_op_run(s, h, t_op(IL_OP_ACQUIRE, "k", "a", 0, T_ARGS())), IL_OK)->out.fence;
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS())), IL_HELD);
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS(.wait_ms = 9000))),
               IL_QUEUED);
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_RENEW, "k", "a", fence, T_ARGS())), IL_OK);
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_RELEASE, "k", "a", fence, T_ARGS())), IL_OK);
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_RENEW, "k", "a", fence, T_ARGS())), IL_LOST);
    T_EQ(metric(h, "interlock_lock_acquired_total"), 1);
    T_EQ(metric(h, "interlock_lock_held_total"), 1);
    T_EQ(metric(h, "interlock_lock_queued_total"), 1);
    T_EQ(metric(h, "interlock_lock_renewed_total"), 1);
    T_EQ(metric(h, "interlock_lock_released_total"), 1);
    T_EQ(metric(h, "interlock_lock_lost_total"), 1);
    il_metrics(NULL, on_metric, NULL);
    il_metrics(h, NULL, NULL);
}

T_TEST(null_is_harmless)
{
    il_error err;
    il_op    op = { 0 };

    il_close(NULL);
    il_interrupt(NULL);
    il_op_release(NULL);
    il_op_release(&op);
    il_lease_free(NULL);
    T_EQ(il_apply(NULL, &op, 1, &err), IL_INVAL);
    assert_string_equal(err.message, "h must not be NULL");
    T_EQ(il_wait(NULL, &op, 0), IL_INVAL);
    T_EQ(il_wait(t_handle(s), NULL, 0), IL_INVAL);
    T_EQ(il_wait(t_handle(s), &op, 0), IL_INVAL); /* not a queued acquire */
    T_EQ(il_acquire(NULL, "k", NULL, NULL, &err), IL_INVAL);
    T_EQ(il_acquire(t_handle(s), "k", NULL, NULL, &err), IL_INVAL);
    T_EQ(il_lease_renew(NULL, &err), IL_INVAL);
    T_EQ(il_lease_release(NULL, &err), IL_INVAL);
    T_EQ(il_get(t_handle(s), "k", NULL, &err), IL_INVAL);
    T_EQ(il_list(t_handle(s), NULL, NULL, 0, 0, NULL, &err), IL_INVAL);
    T_EQ(il_check_key(NULL, NULL), IL_INVAL);
    T_EQ(il_parse_duration(NULL, NULL, NULL), IL_INVAL);
}

T_TEST(wait_says_whether_to_repeat)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    il      *h     = s->handles[0];

    t_attend(h); /* when it begins to listen, everything wakes */
    const il_op *op =
        T_IS(t_op_run(s, h, t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS(.wait_ms = 60000))), IL_QUEUED);
    T_EQ(il_wait(h, op, 0), IL_TIMEOUT);
    T_EQ(il_wait(h, op, 1), IL_TIMEOUT);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    /* Woken before it slept: not lost. Behind a server the news of another handle comes a moment
     * later. */
    T_EQ(il_wait(h, op, s->engine->server != NULL ? 10000 : 0), IL_OK);
    T_EQ(il_wait(h, op, IL_FOREVER), IL_OK);
    il_interrupt(h);
    T_EQ(il_wait(h, op, 0), IL_CANCELLED);
    T_EQ(il_wait(h, op, IL_FOREVER), IL_CANCELLED);
    /* Other calls go on working. */
    (void)T_IS(t_op_run(s, h, t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS())), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(bad_urls),
        T_ROW(bad_options),
        T_ROW(the_test_clock_only_where_it_was_declared),
        T_ROW(only_an_existing_store),
        T_ROW(the_process_may_go_elsewhere),
        T_ROW(a_named_memory_store_has_one_order),
        T_ROW(a_tenant_of_the_handle),
        T_ROW(trace_tells_every_batch),
        T_ROW(trace_tells_ids_but_no_contents),
        T_ROW(metrics_count),
        T_ROW(null_is_harmless),
        T_ROW(wait_says_whether_to_repeat),
    };

    return T_SUITE("handle", tests);
}
