/*
 * pages.c: the cost of a listing or a count depends on its page, not on the amount of data; and a
 * page that ends early can be continued.
 *
 * Work is counted, not timed: SQLite VM steps, Redis key lookups, rows read by PostgreSQL. The
 * memory engine has nothing to count: there CPU time is compared, with a generous margin.
 */
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "harness/cache.h"
#include "harness/job.h"
#include "harness/once.h"
#include "harness/postgres.h"
#include "harness/redis.h"
#include "harness/run.h"
#include "harness/suite.h"

#define FEW 50
#define MANY 1500 /* 30 times as much: that is what a walk over all of it would cost */
#define RATIO 5
#define AT_ONCE 500
#define PAGE 10

/* ---- what is stored -------------------------------------------------------------------------- */

static char  names[AT_ONCE][32];
static il_op ops[AT_ONCE];

static void
apply_all(struct t_store *s, unsigned n, il_status status)
{
    il_error err = { 0 };

    if (il_apply(t_handle(s), ops, n, &err) != IL_OK)
        T_FAIL("%s", err.message);
    for (unsigned i = 0; i < n; i++)
        T_EQ(ops[i].status, status);
}

static void
release_all(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        il_op_release(&ops[i]);
}

static void
name_all(const char *what, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(names[i], sizeof names[i], "%s%u", what, first + i);
}

static void
add_values(struct t_store *s, unsigned first, unsigned n)
{
    name_all("v:", first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = t_cache_op(IL_OP_CACHE_LOOKUP, names[i], "h", 0, NULL, T_CACHE_ARGS());
    apply_all(s, n, IL_LEAD);
    for (unsigned i = 0; i < n; i++) {
        uint64_t token = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i] =
            (il_op){ .type = IL_OP_CACHE_FILL, .key = names[i], .holder = "h", .fence = token };
        ops[i].in.cache = (il_cache_in){ .value = "x", .value_bytes = 1, .ttl_ms = 600000 };
    }
    apply_all(s, n, IL_OK);
    release_all(n);
}

static void
push_all(struct t_store *s, const char *queue, unsigned first, unsigned n, int64_t delay_ms)
{
    char what[16];

    (void)snprintf(what, sizeof what, "%s-", queue);
    name_all(what, first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = t_job_op(IL_OP_JOB_PUSH, queue, NULL, names[i], 0, T_JOB(.delay_ms = delay_ms));
    apply_all(s, n, IL_OK);
    release_all(n);
}

/* Some RUNNING and SCHEDULED ones, pushed first; then what has ended grows. */
static void
add_history(struct t_store *s, unsigned first, unsigned n)
{
    if (first == 0) {
        push_all(s, "old", 1000000, 3, 0);
        (void)T_IS(t_claim(s, "old", "w", .limit = 3), IL_OK);
        push_all(s, "old", 2000000, 3, 600000);
    }
    push_all(s, "old", first, n, 0);
    const il_op *claim = T_IS(t_claim(s, "old", "w", .limit = n), IL_OK);
    T_EQU(claim->out.n_jobs, n);
    name_all("old-", first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] =
            t_job_op(IL_OP_JOB_FINISH, NULL, NULL, names[i], claim->out.jobs[i].token, T_JOB());
    apply_all(s, n, IL_OK);
    release_all(n);
}

static void
add_jobs(struct t_store *s, unsigned first, unsigned n)
{
    add_history(s, first, n);
    push_all(s, "ready", first, n, 0);
    push_all(s, "later", first, n, 600000);
    push_all(s, "runs", first, n, 0);
    (void)T_IS(t_claim(s, "runs", "w", .limit = n), IL_OK);
}

/* Half of the runs end; the leases of the others stay. */
static void
add_runs(struct t_store *s, unsigned first, unsigned n)
{
    name_all("r:", first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = (il_op){ .type   = IL_OP_RUN_START,
                          .key    = names[i],
                          .holder = names[i],
                          .in.run = { .id = names[i], .ttl_ms = 600000 } };
    apply_all(s, n, IL_OK);
    for (unsigned i = 0; i < n / 2; i++) {
        uint64_t fence = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i] = (il_op){ .type   = IL_OP_RUN_FINISH,
                          .holder = names[i],
                          .fence  = fence,
                          .in.run = { .id = names[i], .state = IL_RUN_COMPLETED, .progress = -1 } };
    }
    apply_all(s, n / 2, IL_OK);
    release_all(n);
}

static void
add_waiters(struct t_store *s, unsigned first, unsigned n)
{
    (void)t_acquire(s, "hot", "first", .ttl_ms = 600000);
    name_all("w", first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = (il_op){ .type    = IL_OP_ACQUIRE,
                          .key     = "hot",
                          .holder  = names[i],
                          .in.lock = { .ttl_ms = 30000, .wait_ms = 600000 } };
    apply_all(s, n, IL_QUEUED);
    release_all(n);
}

static void
add_crons(struct t_store *s, unsigned first, unsigned n)
{
    name_all("c", first, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = (il_op){ .type    = IL_OP_CRON_SET,
                          .key     = "ticks",
                          .in.cron = { .name = names[i], .schedule = "@yearly" } };
    apply_all(s, n, IL_OK);
    release_all(n);
}

static void
add(struct t_store *s, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i += AT_ONCE) {
        unsigned k = MIN(n - i, AT_ONCE);
        add_values(s, first + i, k);
        add_jobs(s, first + i, k);
        add_runs(s, first + i, k);
        add_crons(s, first + i, k);
        if (first + i < 500)
            add_waiters(s, first + i, k);
    }
}

/* ---- work ------------------------------------------------------------------------------------ */

static _Atomic uint64_t steps;

static int
count_steps(void *cookie UNUSED)
{
    atomic_fetch_add(&steps, 1);
    return 0;
}

/* Every database that this process opens from now on counts its steps. */
static int
count_in(sqlite3 *db, char **error UNUSED, const struct sqlite3_api_routines *api UNUSED)
{
    sqlite3_progress_handler(db, 1, count_steps, NULL);
    return SQLITE_OK;
}

static uint64_t
redis_number(const char *url, const char *name)
{
    static char out[T_REDIS_REPLY_BYTES];
    char        socket[T_PATH_BYTES];

    T_EQ(sscanf(url, "redis+unix://%511[^?]", socket), 1);
    const char *at =
        strstr(t_redis_ask(socket, out, (const char *const[]){ "INFO", "stats", NULL }), name);
    T_TRUE(at != NULL);
    return strtoull(at + strlen(name), NULL, 10);
}

static uint64_t
cpu_ns(void)
{
    struct timespec t;

    T_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static const il_op *
run(struct t_store *s, const il_op *op)
{
    const il_op *done = t_op_run(s, NULL, *op);

    return T_IS(done, IL_OK);
}

/* Rows that the verb reads, told by the transaction itself. */
static uint64_t
postgres_work(const struct t_store *s, const il_op *op)
{
    static const char *const verbs[IL_OP_COUNT] = {
        [IL_OP_LIST] = "list",           [IL_OP_RUN_LIST] = "run_list",
        [IL_OP_JOB_LIST] = "job_list",   [IL_OP_QUEUE_LIST] = "queue_list",
        [IL_OP_CRON_LIST] = "cron_list", [IL_OP_CACHE_STATS] = "cache_stats",
        [IL_OP_USAGE] = "usage",
    };
    char        sql[2048], o[512], schema[64] = "interlock", key[64] = "", out[T_PG_TEXT_BYTES];
    const char *at = strstr(s->url, "schema=");

    if (at != NULL)
        T_EQ(sscanf(at, "schema=%60[^&]", schema), 1);
    if (op->key != NULL)
        (void)snprintf(key, sizeof key, ",\"key\":\"%s\"", op->key);
    if (op->in.list.cursor != NULL) /* of a usage: its kind, and a name */
        (void)snprintf(key, sizeof key, ",\"kind\":%c,\"after_key\":\"~\"", op->in.list.cursor[0]);
    (void)snprintf(
        o, sizeof o, "{\"tenant\":\"default\",\"limit\":%u,\"flags\":%u,\"prefix\":\"%s\"%s%s%.0u}",
        op->in.list.limit, op->flags, op->in.list.prefix != NULL ? op->in.list.prefix : "", key,
        op->in.list.states != 0 ? ",\"states\":" : "", op->in.list.states);
    (void)snprintf(sql, sizeof sql,
                   "SELECT w.n::text FROM (SELECT set_config('search_path', '%s', true) AS p) z,"
                   " LATERAL (SELECT count(*) AS c FROM %s.v_%s(CASE WHEN z.p <> '' THEN "
                   "'%s'::jsonb END, NULL, %lld, %lld)) a,"
                   " LATERAL (SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) + 0 * a.c AS n"
                   " FROM pg_catalog.pg_stat_xact_user_tables WHERE schemaname = '%s') w",
                   schema, schema, verbs[op->type], o, (long long)s->clock.boot_ms,
                   (long long)s->clock.wall_ms, schema);
    (void)t_postgres_ask(t_postgres_url(), sql, out);
    T_TRUE(out[0] != '\0');
    return strtoull(out, NULL, 10);
}

/*
 * What an op costs, in what the engine counts: the least of some tries, until it is no more than
 * `enough`. A Redis server counts what other tests do meanwhile, too.
 */
static uint64_t
work_of(struct t_store *s, const il_op *op, uint64_t enough)
{
    bool     redis = strncmp(s->engine->name, "redis", 5) == 0;
    bool     file  = strncmp(s->engine->name, "sqlite", 6) == 0;
    uint64_t least = UINT64_MAX;

    if (strncmp(s->engine->name, "postgres", 8) == 0)
        return postgres_work(s, op);
    for (unsigned i = 0; i < 5 || (i < 200 && least > enough); i++) {
        uint64_t before = redis ? redis_number(s->url, "keyspace_hits:") +
                                      redis_number(s->url, "keyspace_misses:")
                          : file ? atomic_load(&steps)
                                 : cpu_ns();
        (void)run(s, op);
        uint64_t after = redis ? redis_number(s->url, "keyspace_hits:") +
                                     redis_number(s->url, "keyspace_misses:")
                         : file ? atomic_load(&steps)
                                : cpu_ns();
        least          = MIN(least, after - before);
    }
    return least;
}

/* What may be added whatever is stored: a few more rows to look at, a page that was not full. */
static uint64_t
slack_of(const struct t_store *s)
{
    return strcmp(s->engine->name, "memory") == 0       ? 100000
           : strncmp(s->engine->name, "sqlite", 6) == 0 ? 3000
                                                        : 100;
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define LISTING(t, ...)                                       \
    {                                                         \
        .type = (t), .in.list = {.limit = PAGE, __VA_ARGS__ } \
    }
#define JOBS(k, ...)                                                                 \
    {                                                                                \
        .type = IL_OP_JOB_LIST, .key = (k), .in.list = {.limit = PAGE, __VA_ARGS__ } \
    }

static const il_op listings[] = {
    LISTING(IL_OP_CACHE_STATS, .prefix = "v:"),
    LISTING(IL_OP_USAGE, .cursor = NULL),
    LISTING(IL_OP_USAGE, .cursor = "100000000000000:~"), /* jobs: behind the last idempotency key */
    LISTING(IL_OP_USAGE, .cursor = "200000000000000:~"), /* runs */
    LISTING(IL_OP_QUEUE_LIST, .prefix = NULL),
    JOBS("ready", .states = 1U << IL_JOB_READY),
    JOBS("later", .states = 1U << IL_JOB_SCHEDULED),
    JOBS("runs", .states = 1U << IL_JOB_RUNNING),
    JOBS("runs", .states = 1U << IL_JOB_SCHEDULED), /* none */
    JOBS("later", .states = 1U << IL_JOB_RUNNING),  /* none */
    JOBS("ready", .states = 1U << IL_JOB_FAILED),   /* none */
    JOBS("old", .states = 1U << IL_JOB_RUNNING),
    JOBS("old", .states = 1U << IL_JOB_SCHEDULED),
    JOBS("old", .states = 1U << IL_JOB_SCHEDULED | 1U << IL_JOB_RUNNING),
    JOBS("old", .states = 1U << IL_JOB_READY), /* none */
    JOBS(NULL, .states = 1U << IL_JOB_SCHEDULED),
    JOBS(NULL, .states = 1U << IL_JOB_SCHEDULED | 1U << IL_JOB_RUNNING),
    JOBS(NULL, .states = 1U << IL_JOB_FAILED), /* none */
    JOBS(NULL, .states = 1U << IL_JOB_RUNNING),
    JOBS(NULL, .states = 0),
    LISTING(IL_OP_RUN_LIST, .states = 1U << IL_RUN_COMPLETED),
    { .type = IL_OP_RUN_LIST, .key = "r:1", .in.list = { .limit = PAGE } },
    LISTING(IL_OP_LIST, .prefix = "r:"),
    LISTING(IL_OP_LIST, .prefix = "none"),
    { .type    = IL_OP_LIST,
      .flags   = IL_LIST_WAITERS,
      .in.list = { .limit = PAGE, .prefix = "none" } },
    LISTING(IL_OP_CRON_LIST, .prefix = "c"),
    LISTING(IL_OP_CRON_LIST, .prefix = "none"),
    { .type = IL_OP_CRON_LIST, .key = "ready", .in.list = { .limit = PAGE } }, /* none */
};

T_TEST(work_depends_on_the_page)
{
    uint64_t few[ARRAY_LEN(listings)];
    bool     memory = strcmp(s->engine->name, "memory") == 0;

    add(s, 0, FEW);
    for (size_t i = 0; i < ARRAY_LEN(listings); i++)
        few[i] = work_of(s, &listings[i], UINT64_MAX);
    add(s, FEW, MANY - FEW);
    for (size_t i = 0; i < ARRAY_LEN(listings); i++) {
        uint64_t enough = RATIO * few[i] + slack_of(s);
        uint64_t many   = work_of(s, &listings[i], enough);
        print_message("# %s %s: %llu, then %llu\n", il_op_name(listings[i].type),
                      listings[i].key != NULL ? listings[i].key : "", (unsigned long long)few[i],
                      (unsigned long long)many);
        if (memory && listings[i].type == IL_OP_LIST)
            continue; /* looks at all keys: an order of them would cost every acquire */
        if (many > enough)
            T_FAIL("%s %zu costs %llu, and %llu when 30 times as much is stored",
                   il_op_name(listings[i].type), i, (unsigned long long)few[i],
                   (unsigned long long)many);
    }
}

/* The pages of a count add up, whatever their size. */
T_TEST(pages_of_a_count_add_up)
{
    char     cursor[IL_KEY_BYTES_MAX + 32] = "";
    uint64_t n = 0, n_building = 0;
    unsigned n_pages = 0;

    add_values(s, 0, 25);
    (void)T_IS(t_cache_lookup(s, "v:0", "b"), IL_HIT);
    (void)T_IS(t_cache_lookup(s, "v:none", "b"), IL_LEAD);
    (void)T_IS(t_cache_lookup(s, "other", "b"), IL_LEAD);
    do {
        const char  *from = n_pages > 0 ? cursor : NULL;
        il_op        op   = { .type    = IL_OP_CACHE_STATS,
                              .in.list = { .prefix = "v:", .limit = 7, .cursor = from } };
        const il_op *done = run(s, &op);
        T_TRUE(done->out.cache.n_entries + done->out.cache.n_building <= 8);
        n += done->out.cache.n_entries;
        n_building += done->out.cache.n_building;
        (void)snprintf(cursor, sizeof cursor, "%s", done->out.next != NULL ? done->out.next : "");
        n_pages++;
    } while (cursor[0] != '\0');
    T_EQU(n, 25);
    T_EQU(n_building, 1);
    T_EQU(n_pages, 4); /* of 26 keys */
}

#define CARRIED 5000

/* All pages of a usage; each has at most `limit` rows. */
static il_usage_info
usage_of(struct t_store *s, const char *tenant, uint32_t limit)
{
    il_usage_info sum = { 0 };
    char          cursor[IL_KEY_BYTES_MAX + 32];
    bool          more = false;

    do {
        il_op        op   = { .type    = IL_OP_USAGE,
                              .tenant  = tenant,
                              .in.list = { .limit = limit, .cursor = more ? cursor : NULL } };
        const il_op *done = run(s, &op);
        T_TRUE(done->out.usage.n_rows <= limit);
        sum.n_rows += done->out.usage.n_rows;
        sum.n_bytes += done->out.usage.n_bytes;
        more = done->out.next != NULL;
        if (more)
            (void)snprintf(cursor, sizeof cursor, "%s", done->out.next);
    } while (more);
    return sum;
}

/* Values, answers, payloads, results, logs and schedules are added up, of one tenant. */
T_TEST(usage_adds_up)
{
    static char data[CARRIED + 1];
    uint64_t    token;

    memset(data, 'x', CARRIED);
    add_values(s, 0, 12);
    push_all(s, "ready", 0, 9, 0);
    push_all(s, "later", 0, 8, 600000);
    add_runs(s, 0, 10);
    il_usage_info before = usage_of(s, NULL, 7);
    T_EQU(before.n_rows, 12 + 9 + 8 + 10);

    token = T_IS(t_cache_lookup(s, "large", "h"), IL_LEAD)->out.fence;
    (void)T_IS(t_cache_fill(s, "large", "h", token, data, .ttl_ms = 600000), IL_OK);
    token = T_IS(t_once_begin(s, "large", "h"), IL_OK)->out.fence;
    (void)T_IS(t_once_finish(s, "large", "h", token, data), IL_OK);
    (void)T_IS(t_once_begin(s, "claimed", "h"), IL_OK);
    (void)T_IS(t_push(s, "large", "large", .data = data), IL_OK);
    token = t_claim_is(s, "large", "w", "large");
    (void)T_IS(t_finish(s, "large", token, .data = data), IL_OK);
    token = T_IS(t_run_start(s, "large", "h", "large"), IL_OK)->out.fence;
    (void)T_IS(t_run_stage(s, "large", "h", token, .log = data, .log_bytes = CARRIED), IL_OK);
    for (int i = 0; i < 2; i++) /* the second replaces the first */
        (void)T_IS(t_cron_set(s, "large", .name = "large", .schedule = "@yearly", .data = data,
                              .data_bytes = CARRIED),
                   IL_OK);
    (void)T_IS(t_cron_set(s, "large", .name = "small", .schedule = "@yearly"), IL_OK);
    for (uint32_t limit = 1; limit <= IL_PAGE_ITEMS_MAX; limit *= 10) {
        il_usage_info after = usage_of(s, NULL, limit);
        T_EQU(after.n_rows, before.n_rows + 7);
        T_TRUE(after.n_bytes >= before.n_bytes + (uint64_t)6 * CARRIED);
        T_TRUE(after.n_bytes <= before.n_bytes + (uint64_t)6 * CARRIED + (uint64_t)7 * 500);
    }
    T_EQU(usage_of(s, "other", 7).n_rows, 0);
    /* What is gone does not count. */
    token = T_IS(t_once_begin(s, "claimed", "h"), IL_OK)->out.fence;
    (void)T_IS(t_once_abandon(s, "claimed", "h", token), IL_OK);
    (void)T_IS(t_cache_drop(s, "large"), IL_OK);
    (void)T_IS(t_cron_remove(s, "large"), IL_OK);
    T_EQU(usage_of(s, NULL, 100).n_rows, before.n_rows + 4);
}

/* Jobs that came due are not SCHEDULED any more, though no claim has looked: a page passes over
 * some of them, and the next goes on. */
T_TEST(a_short_page_goes_on)
{
    char     cursor[128] = "";
    unsigned n = 0, n_pages = 0;

    (void)T_IS(t_push(s, "q", "first", .delay_ms = 600000), IL_OK);
    t_push_many(s, "q", "due", 1500, T_JOB(.delay_ms = 1000));
    (void)T_IS(t_push(s, "q", "last", .delay_ms = 600000), IL_OK);
    t_pass(s, 2000);
    do {
        const il_op *op = T_IS(t_job_list(s, "q", .states = T_STATE(SCHEDULED), .limit = PAGE,
                                          .cursor = n_pages > 0 ? cursor : NULL),
                               IL_OK);
        for (size_t i = 0; i < op->out.n_jobs; i++)
            T_STREQ(op->out.jobs[i].id, n++ == 0 ? "last" : "first");
        (void)snprintf(cursor, sizeof cursor, "%s", op->out.next != NULL ? op->out.next : "");
        n_pages++;
    } while (cursor[0] != '\0');
    T_EQU(n, 2);
    T_EQU(n_pages, 2);
}

/* The same of runs with another key than is meant. */
T_TEST(a_page_of_runs_goes_on)
{
    char     cursor[128] = "";
    unsigned n = 0, n_pages = 0;

    (void)T_IS(t_run_start(s, "mine:1", "h", "mine"), IL_OK);
    for (unsigned i = 0; i < 1500; i += AT_ONCE)
        add_runs(s, i, AT_ONCE);
    do {
        il_op op = {
            .type    = IL_OP_RUN_LIST,
            .in.list = { .prefix = "mine:", .limit = PAGE, .cursor = n_pages > 0 ? cursor : NULL }
        };
        const il_op *done = run(s, &op);
        n += (unsigned)done->out.n_runs;
        (void)snprintf(cursor, sizeof cursor, "%s", done->out.next != NULL ? done->out.next : "");
        n_pages++;
    } while (cursor[0] != '\0');
    T_EQU(n, 1);
    T_TRUE(n_pages <= 2);
}

/* n children of a parent; the claim of all of them, or NULL. */
static const il_op *
add_family(struct t_store *s, const char *parent, unsigned n, bool claimed)
{
    (void)T_IS(t_push(s, parent, parent, .flags = IL_PUSH_PARENT, .n_children = n), IL_OK);
    name_all(parent, 0, n);
    for (unsigned i = 0; i < n; i++)
        ops[i] = t_job_op(IL_OP_JOB_PUSH, parent, NULL, names[i], 0, T_JOB(.parent = parent));
    apply_all(s, n, IL_OK);
    release_all(n);
    return claimed ? T_IS(t_claim(s, parent, "w", .limit = n), IL_OK) : NULL;
}

static uint64_t
looked_up(const struct t_store *s)
{
    return redis_number(s->url, "keyspace_hits:") + redis_number(s->url, "keyspace_misses:");
}

/* What the cancel of a parent with n children costs, and the end of its last child. */
static void
work_of_family(struct t_store *s, unsigned n, unsigned i_try, uint64_t ret[2])
{
    char parent[2][24];

    (void)snprintf(parent[0], sizeof parent[0], "cancel%u-%u-", n, i_try);
    (void)snprintf(parent[1], sizeof parent[1], "end%u-%u-", n, i_try);
    (void)add_family(s, parent[0], n, false);
    uint64_t before = looked_up(s);
    (void)T_IS(t_cancel(s, parent[0]), IL_OK);
    ret[0]             = looked_up(s) - before;
    const il_op *claim = add_family(s, parent[1], n, true);
    for (unsigned i = 0; i < n; i++)
        ops[i] =
            t_job_op(IL_OP_JOB_FINISH, NULL, NULL, names[i], claim->out.jobs[i].token, T_JOB());
    uint64_t token = claim->out.jobs[n - 1].token;
    apply_all(s, n - 1, IL_OK);
    release_all(n - 1);
    before = looked_up(s);
    (void)T_IS(t_finish(s, names[n - 1], token), IL_OK);
    ret[1] = looked_up(s) - before;
    (void)t_job_is(s, parent[1], IL_JOB_COMPLETED);
}

/*
 * Redis carries out one call at a time: none of them walks over all children of a parent, of whom
 * each would be one more key at least. Others may use the server: the least of some tries counts.
 */
T_TEST(a_parent_is_left_in_steps)
{
    uint64_t few[2] = { 0 }, many[2] = { UINT64_MAX, UINT64_MAX };
    bool     ok = strncmp(s->engine->name, "redis", 5) != 0;

    for (unsigned i = 0; !ok && i < 5; i++) {
        uint64_t got[2];
        work_of_family(s, 100, i, got);
        for (unsigned k = 0; k < 2; k++)
            few[k] = i == 0 ? got[k] : MIN(few[k], got[k]);
        work_of_family(s, 400, i, got);
        for (unsigned k = 0; k < 2; k++)
            many[k] = MIN(many[k], got[k]);
        ok = many[0] < few[0] + 300 && many[1] < few[1] + 300;
    }
    print_message("# cancel %llu, then %llu; end %llu, then %llu\n", (unsigned long long)few[0],
                  (unsigned long long)many[0], (unsigned long long)few[1],
                  (unsigned long long)many[1]);
    T_TRUE(ok);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(work_depends_on_the_page),  T_ROW(pages_of_a_count_add_up),
        T_ROW(a_short_page_goes_on),      T_ROW(a_page_of_runs_goes_on),
        T_ROW(a_parent_is_left_in_steps), T_ROW(usage_adds_up),
    };

    (void)sqlite3_auto_extension((void (*)(void))count_in);
    return T_SUITE("pages", tests);
}
