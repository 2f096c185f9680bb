/*
 * load.c: workers under load. A log line is "WHAT KEY HOLDER FENCE TIME": H after a grant was acknowledged, r
 * before a release is sent, R after it was acknowledged; TIME is CLOCK_MONOTONIC, one clock for all.
 */
#include "fault/load.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/rng.h"

#define N_KEYS 300
#define TTL_MS (60 * 60 * 1000) /* nothing expires during a test */

void
load_init(struct load *l)
{
    *l = (struct load){ 0 };
    t_tmp_make_on_disk(l->dir);
    t_path(l->db, "%s/x.db", l->dir);
    t_path(l->url, "sqlite:%s", l->db);
}

void
load_release(struct load *l)
{
    t_tmp_remove(l->dir);
}

static void
log_path(const struct load *l, unsigned i, char path[T_PATH_BYTES])
{
    t_path(path, "%s/log-%u", l->dir, i);
}

/* ---- the worker -------------------------------------------------------------------------------------- */

struct shared {
    il      *h;
    int      log_fd;
    unsigned i_log;
};

struct worker_thread {
    struct shared *shared;
    unsigned       i;
};

static int64_t
now_ns(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
note(const struct shared *s, char what, const il_op *op, uint64_t fence)
{
    char line[128];
    int  n = snprintf(line, sizeof line, "%c %s %s %" PRIu64 " %" PRId64 "\n", what, op->key,
                      op->holder, fence, now_ns());

    if (write(s->log_fd, line, (size_t)n) != n)
        abort();
}

/* Give up after a moment: the one that has it may have been killed. */
static bool
acquire(struct shared *s, il_op *op, bool wait)
{
    for (unsigned tries = 0;; tries++) {
        op->in.lock.wait_ms = wait && tries < 3 ? 60000 : 0;
        il_op_release(op);
        if (il_apply(s->h, op, 1, NULL) != IL_OK)
            return false;
        if (op->status != IL_QUEUED)
            return op->status == IL_OK;
        il_status st = il_wait(s->h, op, 20);
        CHECK(st == IL_OK || st == IL_TIMEOUT);
    }
}

static void *
worker_main(void *arg)
{
    const struct worker_thread *t = arg;
    struct shared              *s = t->shared;
    struct t_rng                rng;

    t_rng_init(&rng, s->i_log * 1000 + t->i + 1);
    for (unsigned n = 0;; n++) {
        char  key[32], holder[64];
        il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };
        (void)snprintf(key, sizeof key, "key:%u", t_rng_below(&rng, N_KEYS));
        (void)snprintf(holder, sizeof holder, "w%u-%u-%u", s->i_log, t->i, n);
        op.in.lock.ttl_ms = TTL_MS;
        bool     held     = acquire(s, &op, t_rng_one_in(&rng, 4));
        uint64_t fence    = op.out.fence;
        il_op_release(&op);
        if (!held)
            continue;
        note(s, 'H', &op, fence);
        if (t_rng_one_in(&rng, 3)) {
            il_op renew = { .type = IL_OP_RENEW, .key = key, .holder = holder, .fence = fence };
            CHECK(il_apply(s->h, &renew, 1, NULL) != IL_OK || renew.status == IL_OK);
            il_op_release(&renew);
        }
        note(s, 'r', &op, fence);
        il_op release = { .type = IL_OP_RELEASE, .key = key, .holder = holder, .fence = fence };
        while (il_apply(s->h, &release, 1, NULL) != IL_OK)
            continue; /* busy: unknown, so it is repeated */
        CHECK(release.status == IL_OK);
        il_op_release(&release);
        note(s, 'R', &op, fence);
    }
    return NULL;
}

/* Never returns but by being killed. */
static int
worker_process(void *arg)
{
    const struct load_worker *w = arg;
    struct shared             s = { .i_log = w->i_log };
    char                      path[T_PATH_BYTES];
    il_error                  err = { 0 };
    struct worker_thread      threads[16];
    pthread_t                 ids[16];

    CHECK(w->n_threads <= ARRAY_LEN(threads));
    log_path(w->load, w->i_log, path);
    s.log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (s.log_fd < 0 || il_open(w->load->url, NULL, &s.h, &err) != IL_OK) {
        (void)printf("cannot start: %s\n", err.message);
        return 1;
    }
    for (unsigned i = 0; i < w->n_threads; i++) {
        threads[i] = (struct worker_thread){ &s, i };
        CHECK(pthread_create(&ids[i], NULL, worker_main, &threads[i]) == 0);
    }
    (void)pthread_join(ids[0], NULL);
    return 1;
}

void
load_start(struct load *l, struct load_worker *w, unsigned n_threads)
{
    CHECK(l->n_logs < LOAD_LOGS_MAX);
    w->load      = l;
    w->i_log     = l->n_logs++;
    w->n_threads = n_threads;
    t_proc_fork(&w->proc, worker_process, w);
}

static size_t
log_bytes(const struct load_worker *w)
{
    struct stat st;
    char        path[T_PATH_BYTES];

    log_path(w->load, w->i_log, path);
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

void
load_await(struct load_worker *w, size_t n_bytes, int64_t limit_ms)
{
    size_t  until    = log_bytes(w) + n_bytes;
    int64_t until_ms = t_real_ms() + limit_ms;

    while (log_bytes(w) < until) {
        if (t_proc_end(&w->proc, 0))
            T_FAIL("a worker ended by itself: %s", w->proc.text);
        if (t_real_ms() >= until_ms)
            T_FAIL("%zu bytes of log within %d ms, expected %zu", log_bytes(w), (int)limit_ms, until);
        (void)poll(NULL, 0, 1); /* there is no event for a growing file that is cheaper than looking */
    }
}

void
load_kill(struct load_worker *w)
{
    t_proc_signal(&w->proc, SIGKILL);
    T_EQ(t_proc_exit(&w->proc, 10000), 128 + SIGKILL);
    t_proc_release(&w->proc);
}
