/*
 * promote.c: a replica is promoted under load. Replication is asynchronous, so the new master does
 * not know the last grants of the old one. Fences must still not repeat or decrease; and since
 * nothing is granted for max_ttl, no two holders are sure of one key at once. How many were is
 * counted and printed.
 *
 * The test forces the worst case: the old master keeps granting for a while after the replica was
 * promoted, and is then killed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/clock.h"
#include "harness/redis.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define N_WORKERS 4
#define N_KEYS 12
#define ROUNDS 8U
#define TTL_MS 1000
#define LIMIT_MS 30000
#define GRANTS_MAX 200000

struct worker {
    struct t_proc proc;
    const char   *url;
    const char   *log;
    unsigned      i;
};

/* ---- the worker: takes a key, keeps it for a moment, gives it back --------------------------- */

/* "KEY FENCE CALLED ACKNOWLEDGED CERTAIN": the holder was certain of it from ACKNOWLEDGED to
 * CERTAIN. */
static void
take_one(il *h, struct t_rng *rng, const struct worker *w, unsigned n, int log_fd)
{
    char  key[16], holder[32], line[128];
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };

    unsigned i_key = t_rng_below(rng, N_KEYS);
    (void)snprintf(key, sizeof key, "key:%u", i_key);
    (void)snprintf(holder, sizeof holder, "w%u-%d-%u", w->i, (int)getpid(), n);
    op.in.lock.ttl_ms = TTL_MS;
    int64_t   called  = il__clock_boot_ns();
    il_status st      = il_apply(h, &op, 1, NULL);
    int64_t   got     = il__clock_boot_ns();
    bool      held    = st == IL_OK && op.status == IL_OK;
    op.type           = IL_OP_RELEASE;
    op.fence          = op.out.fence;
    il_op_release(&op);
    if (!held) {
        (void)poll(NULL, 0, 1);
        return;
    }
    if (t_rng_one_in(rng, 8))
        (void)poll(NULL, 0, 20);
    int64_t certain = MIN(il__clock_boot_ns(), called + TTL_MS * IL__NS_PER_MS);
    IGNORE(il_apply(h, &op, 1, NULL) != IL_OK); /* then it expires */
    il_op_release(&op);
    int len = snprintf(line, sizeof line, "%u %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                       i_key, op.fence, called, got, certain);
    CHECK(write(log_fd, line, (size_t)len) == len);
}

static int
worker_main(void *arg)
{
    const struct worker *w = arg;
    struct t_rng         rng;
    il                  *h   = NULL;
    il_error             err = { 0 };
    int                  fd  = open(w->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    t_rng_init(&rng, w->i + 1);
    if (il_open(w->url, NULL, &h, &err) != IL_OK) {
        (void)printf("cannot open: %s\n", err.message);
        return 1;
    }
    for (unsigned n = 0;; n++)
        take_one(h, &rng, w, n, fd);
}

/* ---- the judge ------------------------------------------------------------------------------- */

struct grant {
    unsigned key;
    uint64_t fence;
    int64_t  called, got, certain;
};

static struct grant grants[GRANTS_MAX];

static size_t
read_grants(const char *log)
{
    char  *text = t_file_read(log, NULL);
    size_t n    = 0;

    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL && n < GRANTS_MAX;
         line       = end + 1) {
        struct grant *g = &grants[n++];
        *end            = '\0';
        T_EQ(sscanf(line, "%u %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &g->key, &g->fence,
                    &g->called, &g->got, &g->certain),
             5);
    }
    free(text);
    return n;
}

static int
by_fence(const void *a, const void *b)
{
    const struct grant *x = a;
    const struct grant *y = b;

    return (x->fence > y->fence) - (x->fence < y->fence);
}

/* Of one key: who was granted later has the greater fence. Returns how many were certain of it at
 * once. */
static unsigned
judge_key(unsigned key, size_t n)
{
    const struct grant *last       = NULL;
    unsigned            n_overlaps = 0;

    for (size_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        if (g->key != key)
            continue;
        /* `last` has the smaller fence, so it may not have been asked for after this one was
         * acknowledged. */
        if (last != NULL && last->called > g->got)
            T_FAIL("key %u: fence %" PRIu64 " fell to %" PRIu64, key, g->fence, last->fence);
        n_overlaps += last != NULL && last->certain > g->got && g->certain > last->got;
        last = g;
    }
    return n_overlaps;
}

static void
judge(const char *log)
{
    size_t   n          = read_grants(log);
    unsigned n_overlaps = 0;

    qsort(grants, n, sizeof grants[0], by_fence);
    for (size_t i = 1; i < n; i++) {
        if (grants[i].fence == grants[i - 1].fence)
            T_FAIL("fence %" PRIu64 " was granted twice", grants[i].fence);
    }
    for (unsigned key = 0; key < N_KEYS; key++)
        n_overlaps += judge_key(key, n);
    print_message("# %u promotions, %zu acknowledged grants, %u overlaps\n", ROUNDS, n, n_overlaps);
    T_LESS(1000, n);
    T_EQ(n_overlaps, 0);
}

/* ---- the servers ----------------------------------------------------------------------------- */

static const char *const in_memory[] = {
    "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", NULL
};

static void
await_growth(const char *log, size_t n_bytes)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;
    char   *text     = t_file_read(log, NULL);
    size_t  before   = strlen(text);
    size_t  now      = before;

    free(text);
    while (now < before + n_bytes) {
        T_TRUE(t_real_ms() < until_ms);
        (void)poll(NULL, 0, 20);
        text = t_file_read(log, NULL);
        now  = strlen(text);
        free(text);
    }
}

U_TEST(a_replica_is_promoted_under_load)
{
    static struct t_redis servers[2];
    static struct worker  workers[N_WORKERS];
    char                  url[T_PATH_BYTES], log[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    for (unsigned i = 0; i < 2; i++) {
        t_redis_init(&servers[i], false, true);
        t_redis_start(&servers[i], in_memory);
    }
    t_redis_follow(&servers[1], &servers[0]);
    t_path(url, "redis://127.0.0.1:%d,127.0.0.1:%d/0?max_ttl=1", servers[0].port, servers[1].port);
    t_path(log, "%s/grants", servers[0].dir);
    t_file_write(log, "", 0);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        workers[i] = (struct worker){ .url = url, .log = log, .i = i };
        t_proc_fork(&workers[i].proc, worker_main, &workers[i]);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct t_redis *old = &servers[round % 2], *new = &servers[1 - round % 2];
        await_growth(log, 20000);
        T_STREQ(T_REDIS(new, reply, "REPLICAOF", "NO", "ONE"), "OK");
        await_growth(log, 2000); /* of which the new one knows nothing */
        t_redis_kill(old);
        await_growth(log, 2000); /* they go on by themselves */
        t_redis_start(old, in_memory);
        t_redis_follow(old, new);
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        t_proc_release(&workers[i].proc);
    judge(log);
    for (unsigned i = 0; i < 2; i++)
        t_redis_release(&servers[i]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(a_replica_is_promoted_under_load) };

    return cmocka_run_group_tests_name("redis-promote", tests, NULL, NULL);
}
