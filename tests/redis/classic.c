/*
 * classic.c: a mixed fleet: classic lock clients, in another language, on the same keys; each side
 * blocks the other. The client is classic.py, with python3-redis.
 */
#include <poll.h>
#include <stdio.h>

#include "base/buf.h"
#include "harness/clock.h"
#include "harness/proxy.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define KEY "pipeline:daily"
#define STRING "pipeline_lock:default:daily"
#define LIMIT_MS 15000

struct fleet {
    struct t_redis r;
    struct t_proc  python;
    char           url[T_PATH_BYTES];
    il            *h;
};

static void
fleet_start(struct fleet *f)
{
    static const char *const plain[] = { "--save", "", "--appendonly", "no", NULL };
    const char              *source  = getenv("IL_TEST_SOURCE");
    char                     script[T_PATH_BYTES];
    il_error                 err = { 0 };

    T_TRUE(source != NULL);
    t_redis_init(&f->r, false, false);
    t_redis_start(&f->r, plain);
    t_path(f->url, "redis+unix://%s?classic=yes", f->r.socket);
    t_path(script, "%s/tests/redis/classic.py", source);
    t_proc_start(&f->python, (const char *const[]){ "/usr/bin/python3", script, f->r.socket, NULL },
                 NULL);
    T_LINE(&f->python, "ready", LIMIT_MS, NULL);
    if (il_open(f->url, NULL, &f->h, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

static void
fleet_stop(struct fleet *f)
{
    il_close(f->h);
    t_proc_release(&f->python);
    t_redis_release(&f->r);
}

static void
ask(struct fleet *f, const char *command)
{
    t_proc_say(&f->python, command);
}

static void
hears(struct fleet *f, const char *expected)
{
    char line[T_PROC_LINE_BYTES];

    T_LINE(&f->python, "answer ", LIMIT_MS, line);
    T_STREQ(line + strlen("answer "), expected);
}

static void
says(struct fleet *f, const char *command, const char *expected)
{
    ask(f, command);
    hears(f, expected);
}

static il_status
try_acquire(struct fleet *f, int64_t wait_ms, il_lease **ret, il_error *err)
{
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;

    o.wait_ms = wait_ms;
    return il_acquire(f->h, KEY, &o, ret, err);
}

U_TEST(theirs_blocks_us)
{
    static struct fleet f;
    il_lease           *l = NULL;
    il_error            err;

    fleet_start(&f);
    says(&f, "take " STRING " their-run 30", "yes");
    T_EQ(try_acquire(&f, 0, &l, &err), IL_HELD);
    T_STREQ(err.holder, "their-run");
    il_op get = { .type = IL_OP_GET, .key = KEY };
    T_EQ(il_apply(f.h, &get, 1, NULL), IL_OK);
    T_EQ(get.out.n_items, 1);
    T_STREQ(get.out.items[0].holder, "their-run");
    T_TRUE(get.out.items[0].remaining_ms > 20000 && get.out.items[0].remaining_ms <= 30000);
    il_op_release(&get);
    says(&f, "give " STRING " their-run", "yes");
    T_EQ(try_acquire(&f, 0, &l, &err), IL_OK);
    il_lease_free(l);
    fleet_stop(&f);
}

/* The key is theirs, and shown so; what stands beside it in a batch is not harmed. */
static void
shows(struct fleet *f, const char *expected)
{
    il_op ops[] = { { .type = IL_OP_GET, .key = KEY },
                    { .type = IL_OP_ACQUIRE, .key = KEY, .holder = "us" },
                    { .type = IL_OP_ACQUIRE, .key = "other", .holder = "us" } };

    T_EQ(il_apply(f->h, ops, ARRAY_LEN(ops), NULL), IL_OK);
    T_EQ(ops[0].out.n_items, 1);
    T_STREQ(ops[0].out.items[0].holder, expected);
    T_EQ(ops[1].status, IL_HELD);
    T_EQ(ops[2].status, IL_OK);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        il_op_release(&ops[i]);
}

/* A client may write what it likes. What cannot be shown is shown as hex. */
U_TEST(theirs_may_be_any_bytes)
{
    static const char *const rows[][2] = {
        { "6a6f622d37", "job-7" },
        /* UTF-8 of 2, 3 and 4 bytes */
        { "c3a9e282acf09f9880", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
        /* uuid4().bytes */
        { "fc8f1c3b2a0147d0a4f2b3c1d2e3f405", "0xfc8f1c3b2a0147d0a4f2b3c1d2e3f405" },
        { "610062", "0x610062" },
        { "610a62", "0x610a62" },
        { "7f", "0x7f" },
        { "c285", "0xc285" },         /* a control character beyond ASCII */
        { "c0af", "0xc0af" },         /* longer than need be */
        { "eda080", "0xeda080" },     /* a surrogate */
        { "f4908080", "0xf4908080" }, /* beyond Unicode */
        { "c361a9", "0xc361a9" },
        { "e282", "0xe282" },
    };
    static struct fleet f;
    char                command[256];

    fleet_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)snprintf(command, sizeof command, "take-bytes " STRING " %s", rows[i][0]);
        says(&f, command, "yes");
        shows(&f, rows[i][1]);
        (void)snprintf(command, sizeof command, "give-bytes " STRING " %s", rows[i][0]);
        says(&f, command, "yes");
    }
    says(&f, "hash " STRING, "yes"); /* no lock of theirs, but in the way of one */
    shows(&f, "unknown (not a string)");
    says(&f, "delete " STRING, "yes");
    fleet_stop(&f);
}

/* A long one is cut, between two characters. */
U_TEST(theirs_may_be_long)
{
    static struct fleet     f;
    AUTO_BUF struct il__buf command  = { 0 };
    AUTO_BUF struct il__buf expected = { 0 };

    il__buf_init(&command, 4096);
    il__buf_init(&expected, 4096);
    il__buf_adds(&command, "take-bytes " STRING " 61");
    il__buf_adds(&expected, "a");
    for (unsigned i = 0; i < 200; i++)
        il__buf_adds(&command, "c3a9");
    for (unsigned i = 0; i < 127; i++)
        il__buf_adds(&expected, "\xc3\xa9");
    fleet_start(&f);
    says(&f, il__buf_str(&command), "yes");
    shows(&f, il__buf_str(&expected));
    says(&f, "delete " STRING, "yes");
    il__buf_adds(&command, "ff"); /* not in what is shown */
    says(&f, il__buf_str(&command), "yes");
    shows(&f, il__buf_str(&expected));
    fleet_stop(&f);
}

/* Nobody tells us: their release is noticed within seconds. */
U_TEST(we_wait_for_theirs)
{
    static struct fleet f;
    il_lease           *l = NULL;
    il_error            err;

    fleet_start(&f);
    says(&f, "lock " STRING " 2", "yes"); /* it expires */
    int64_t began_ms = t_real_ms();
    T_EQ(try_acquire(&f, LIMIT_MS, &l, &err), IL_OK);
    T_TRUE(t_real_ms() - began_ms >= 1500 && t_real_ms() - began_ms < 9000);
    says(&f, "unlock", "no");
    says(&f, "lock " STRING " 2", "no");
    T_EQ(il_check_fence(f.h, KEY, il_lease_fence(l), NULL), IL_OK);
    T_EQ(il_lease_release(l, NULL), IL_OK);
    il_lease_free(l);
    says(&f, "lock " STRING " 2", "yes");
    says(&f, "unlock", "yes");
    fleet_stop(&f);
}

U_TEST(ours_blocks_them)
{
    static struct fleet f;
    il_lease           *l = NULL;
    il_error            err;

    fleet_start(&f);
    T_EQ(try_acquire(&f, 0, &l, &err), IL_OK);
    says(&f, "take " STRING " their-run 30", "no");
    says(&f, "lock " STRING " 30", "no");
    says(&f, "value " STRING, il_lease_holder(l));
    says(&f, "give " STRING " their-run", "no"); /* not theirs to give */
    T_EQ(il_check_fence(f.h, KEY, il_lease_fence(l), NULL), IL_OK);
    ask(&f, "await " STRING " 30");
    T_EQ(il_lease_release(l, NULL), IL_OK);
    il_lease_free(l);
    hears(&f, "yes");
    l = NULL;
    T_EQ(try_acquire(&f, 0, &l, &err), IL_HELD);
    says(&f, "unlock", "yes");
    fleet_stop(&f);
}

/* Of a run they see the id, as they would write it themselves. */
U_TEST(our_run_blocks_them)
{
    static struct fleet f;
    il_op               start  = { .type = IL_OP_RUN_START, .key = KEY, .holder = "us" };
    il_op               finish = { .type = IL_OP_RUN_FINISH, .holder = "us" };

    fleet_start(&f);
    start.in.run.id = finish.in.run.id = "run-7";
    finish.in.run.state                = IL_RUN_COMPLETED;
    T_EQ(il_apply(f.h, &start, 1, NULL), IL_OK);
    T_EQ(start.status, IL_OK);
    says(&f, "take " STRING " their-run 30", "no");
    says(&f, "value " STRING, "run-7");
    finish.fence = start.out.fence;
    T_EQ(il_apply(f.h, &finish, 1, NULL), IL_OK);
    T_EQ(finish.status, IL_OK);
    says(&f, "value " STRING, "-");
    says(&f, "take " STRING " their-run 30", "yes");
    il_op_release(&start);
    start.in.run.id = "run-8";
    start.holder    = "us-8";
    T_EQ(il_apply(f.h, &start, 1, NULL), IL_OK);
    T_TRUE(start.status == IL_HELD || start.status == IL_DUPLICATE);
    il_op_release(&start);
    il_op_release(&finish);
    fleet_stop(&f);
}

/* A crash of ours frees the key for them with the lease. */
U_TEST(ours_expires_for_them)
{
    static struct fleet f;
    il_op               op = { .type = IL_OP_ACQUIRE, .key = KEY, .holder = "us" };

    fleet_start(&f);
    op.in.lock.ttl_ms = 1000;
    T_EQ(il_apply(f.h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    says(&f, "take " STRING " their-run 30", "no");
    int64_t began_ms = t_real_ms();
    says(&f, "await " STRING " 30", "yes");
    T_TRUE(t_real_ms() - began_ms < 3000);
    op.holder = "us-too";
    T_EQ(il_apply(f.h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_HELD);
    il_op_release(&op);
    fleet_stop(&f);
}

static uint64_t
take(struct fleet *f, const char *holder, il_mode mode, uint32_t permits)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = KEY, .holder = holder };

    op.in.lock.mode    = mode;
    op.in.lock.permits = permits;
    T_EQ(il_apply(f->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

static il_status
end(struct fleet *f, il_op_type type, const char *holder, uint64_t fence, uint32_t flags)
{
    il_op op = { .type = type, .key = KEY, .holder = holder, .fence = fence, .flags = flags };

    op.in.lock.reason = type == IL_OP_BREAK ? "test" : NULL;
    T_EQ(il_apply(f->h, &op, 1, NULL), IL_OK);
    il_status st = op.status;
    il_op_release(&op);
    return st;
}

/* Until the last of several lets go, whichever that is. */
U_TEST(our_many_block_them)
{
    static const struct {
        il_mode     mode;
        uint32_t    permits;
        const char *value;
    } rows[] = { { IL_MODE_SHARED, 0, "interlock:shared" },
                 { IL_MODE_PERMIT, 2, "interlock:permits" } };
    static struct fleet f;

    fleet_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t a = take(&f, i == 0 ? "a" : "a2", rows[i].mode, rows[i].permits);
        uint64_t b = take(&f, i == 0 ? "b" : "b2", rows[i].mode, rows[i].permits);
        says(&f, "take " STRING " their-run 30", "no");
        says(&f, "value " STRING, rows[i].value);
        T_EQ(end(&f, IL_OP_RELEASE, i == 0 ? "a" : "a2", a, 0), IL_OK);
        says(&f, "take " STRING " their-run 30", "no");
        T_EQ(end(&f, IL_OP_RENEW, i == 0 ? "b" : "b2", b, 0), IL_OK);
        T_EQ(end(&f, IL_OP_RELEASE, i == 0 ? "b" : "b2", b, 0), IL_OK);
        says(&f, "take " STRING " their-run 30", "yes");
        says(&f, "give " STRING " their-run", "yes");
    }
    fleet_stop(&f);
}

/* An operator deletes our string, and a classic client comes: ours must stop. */
U_TEST(our_many_are_overtaken)
{
    static struct fleet f;

    fleet_start(&f);
    uint64_t a = take(&f, "a", IL_MODE_SHARED, 0);
    uint64_t b = take(&f, "b", IL_MODE_SHARED, 0);
    says(&f, "delete " STRING, "yes");
    says(&f, "take " STRING " their-run 30", "yes");
    T_EQ(end(&f, IL_OP_RENEW, "a", a, 0), IL_LOST);
    T_EQ(end(&f, IL_OP_RENEW, "b", b, 0), IL_LOST);
    says(&f, "value " STRING, "their-run");
    fleet_stop(&f);
}

/* The keys of a listing, page by page, as "key=holder key=holder ". */
static void
lists(struct fleet *f, const char *tenant, const char *prefix, uint32_t limit, const char *expected)
{
    AUTO_BUF struct il__buf got      = { 0 };
    char                    at[1024] = "";

    il__buf_init(&got, 4096);
    do {
        il_op op          = { .type = IL_OP_LIST, .tenant = tenant };
        op.in.list.prefix = prefix;
        op.in.list.limit  = limit;
        op.in.list.cursor = at[0] != '\0' ? at : NULL;
        T_EQ(il_apply(f->h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        T_TRUE(op.out.n_items <= limit);
        for (size_t i = 0; i < op.out.n_items; i++)
            il__buf_addf(&got, "%s=%s ", op.out.items[i].key, op.out.items[i].holder);
        (void)snprintf(at, sizeof at, "%s", op.out.next != NULL ? op.out.next : "");
        il_op_release(&op);
    } while (at[0] != '\0');
    T_STREQ(il__buf_str(&got), expected);
}

/* In the order of keys, among ours, each once, on pages of any length; and only a tenant's own. */
U_TEST(theirs_are_listed)
{
    static const char ours[] = "pipeline:b=a pipeline:daily=a z=a ";
    static const char all[] =
        "pipeline:a=r1 pipeline:b=a pipeline:c:d=r2 pipeline:daily=a pipeline:e=r3 z=a ";
    static const char *const keys[] = { "pipeline:b", KEY, "z" };
    static struct fleet      f;

    fleet_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        il_op op = { .type = IL_OP_ACQUIRE, .key = keys[i], .holder = "a" };
        T_EQ(il_apply(f.h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        il_op_release(&op);
    }
    lists(&f, NULL, NULL, 100, ours);
    says(&f, "take pipeline_lock:default:a r1 30", "yes");
    says(&f, "take pipeline_lock:default:c:d r2 30", "yes");
    says(&f, "take pipeline_lock:default:e r3 30", "yes");
    says(&f, "take pipeline_lock:default2:a other 30", "yes");
    says(&f, "take pipeline_lock:defaul:a other 30", "yes");
    says(&f, "take pipeline_lock:default other 30", "yes"); /* of no pipeline */
    for (uint32_t limit = 1; limit < 8; limit++)
        lists(&f, NULL, NULL, limit, all);
    lists(&f, NULL, "pipeline:c", 1, "pipeline:c:d=r2 ");
    lists(&f, NULL, "z", 1, "z=a ");
    lists(&f, "default2", NULL, 1, "pipeline:a=other ");
    says(&f, "give pipeline_lock:default:c:d r2", "yes");
    lists(&f, NULL, "pipeline:c", 1, "");
    fleet_stop(&f);
}

static unsigned
scans(struct fleet *f)
{
    char line[T_PROC_LINE_BYTES];

    ask(f, "scans");
    T_LINE(&f->python, "answer ", LIMIT_MS, line);
    return (unsigned)strtoul(line + strlen("answer "), NULL, 10);
}

/* How many locks a listing shows; -1: the store was too busy. */
static int
count_listed(il *h)
{
    il_op op = { .type = IL_OP_LIST, .in.list = { .prefix = "pipeline:", .limit = 100 } };

    int n = il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK ? (int)op.out.n_items : -1;
    il_op_release(&op);
    return n;
}

/* A listing does not wait for a slow server to go through all keys; a later one goes on there. */
U_TEST(a_look_has_an_end)
{
    enum {
        KEYS   = 100000,
        SCANS  = KEYS / 500, /* that a whole look needs at least: two seconds */
        THEIRS = 20
    };
    static struct fleet f;
    il_open_opts        o = IL_OPEN_OPTS_INIT;
    il                 *h;
    char                text[T_PATH_BYTES];
    unsigned            before;

    fleet_start(&f);
    struct t_proxy *slow = t_proxy_to_store(f.url, text);
    o.timeout_ms         = 400;
    T_EQ(il_open(text, &o, &h, NULL), IL_OK);
    says(&f, "fill 100000", "yes");
    for (unsigned i = 0; i < THEIRS; i++) {
        (void)snprintf(text, sizeof text, "take pipeline_lock:default:%u run 600", i);
        says(&f, text, "yes");
    }
    t_proxy_delay(slow, 10);
    do
        before = scans(&f);
    while (count_listed(h) < 0);
    T_TRUE(scans(&f) - before < SCANS);
    t_proxy_delay(slow, 0);
    says(&f, "give pipeline_lock:default:0 run", "yes");
    while (count_listed(h) != THEIRS - 1)
        (void)poll(NULL, 0, 20);
    il_close(h);
    t_proxy_free(slow);
    fleet_stop(&f);
}

/* A tenant with a colon in its name would meet another tenant's locks. */
U_TEST(tenants_do_not_meet)
{
    static struct fleet f;
    il_op start = { .type = IL_OP_RUN_START, .tenant = "a:b", .key = "pipeline:c", .holder = "us" };
    il_op get   = { .type = IL_OP_GET, .tenant = "a:b", .key = "pipeline:c" };
    il_op acquires[] = {
        { .type = IL_OP_ACQUIRE, .tenant = "a:b", .key = "pipeline:c", .holder = "us" },
        { .type = IL_OP_ACQUIRE, .tenant = "a:b", .key = "other:c", .holder = "us" },
        { .type = IL_OP_ACQUIRE, .tenant = "a", .key = "pipeline:b:c", .holder = "us" },
    };

    fleet_start(&f);
    start.in.run.id = "r";
    says(&f, "take pipeline_lock:a:b:c their-run 30", "yes");
    T_EQ(il_apply(f.h, acquires, 3, NULL), IL_OK);
    T_EQ(acquires[0].status, IL_INVAL);
    T_EQ(acquires[1].status, IL_OK);
    T_EQ(acquires[2].status, IL_HELD);
    T_EQ(il_apply(f.h, &start, 1, NULL), IL_OK);
    T_EQ(start.status, IL_INVAL);
    T_EQ(il_apply(f.h, &get, 1, NULL), IL_OK);
    T_EQ(get.status, IL_NOT_HELD);
    lists(&f, "a:b", NULL, 10, "other:c=us ");
    lists(&f, "a", NULL, 10, "pipeline:b:c=their-run ");
    for (size_t i = 0; i < ARRAY_LEN(acquires); i++)
        il_op_release(&acquires[i]);
    il_op_release(&start);
    il_op_release(&get);
    fleet_stop(&f);
}

/* Theirs has no fence: it is broken by its holder's name, and only deleted. */
U_TEST(theirs_is_broken)
{
    static struct fleet f;

    fleet_start(&f);
    T_EQ(end(&f, IL_OP_BREAK, "their-run", 0, IL_BREAK_NOW), IL_NOT_HELD);
    says(&f, "take " STRING " their-run 30", "yes");
    T_EQ(end(&f, IL_OP_BREAK, NULL, 0, IL_BREAK_NOW), IL_INVAL);
    T_EQ(end(&f, IL_OP_BREAK, "another", 0, IL_BREAK_NOW), IL_STALE);
    T_EQ(end(&f, IL_OP_BREAK, "their-run", 0, 0), IL_STATE);
    says(&f, "value " STRING, "their-run");
    T_EQ(end(&f, IL_OP_BREAK, "their-run", 0, IL_BREAK_NOW), IL_OK);
    says(&f, "value " STRING, "-");
    fleet_stop(&f);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(theirs_blocks_us),    U_ROW(we_wait_for_theirs),    U_ROW(ours_blocks_them),
        U_ROW(our_run_blocks_them), U_ROW(ours_expires_for_them), U_ROW(theirs_may_be_any_bytes),
        U_ROW(theirs_may_be_long),  U_ROW(our_many_block_them),   U_ROW(our_many_are_overtaken),
        U_ROW(theirs_are_listed),   U_ROW(tenants_do_not_meet),   U_ROW(theirs_is_broken),
        U_ROW(a_look_has_an_end),
    };

    return cmocka_run_group_tests_name("redis-classic", tests, NULL, NULL);
}
