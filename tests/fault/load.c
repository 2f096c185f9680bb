/*
 * load.c: workers under load. A log line is "WHAT KEY HOLDER FENCE TIME": H after a grant was
 * acknowledged, r before a release is sent, R after it was acknowledged; TIME is CLOCK_MONOTONIC,
 * one clock for all. Everything other than locks is in load_work.c.
 */
#include "fault/load_internal.h"

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

#define N_KEYS 300

void
load_init(struct load *l)
{
    *l = (struct load){ 0 };
    t_tmp_make_on_disk(l->dir);
    t_path(l->db, "%s/x.db", l->dir);
    t_path(l->url, "sqlite:%s", l->db);
}

void
load_init_at(struct load *l, const char *url)
{
    *l = (struct load){ 0 };
    t_tmp_make(l->dir);
    t_path(l->url, "%s", url);
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

/* ---- the worker ------------------------------------------------------------------------------ */

static int64_t
now_ns(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void
load_note(const struct load_thread *t, char what, const char *name, const char *holder,
          uint64_t number)
{
    char line[160];
    int  n = snprintf(line, sizeof line, "%c %s %s %" PRIu64 " %" PRId64 "\n", what, name, holder,
                      number, now_ns());

    if (write(t->log_fd, line, (size_t)n) != n)
        abort();
}

void
load_expect(const il_op *op, bool as_expected)
{
    if (as_expected)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", il_op_name(op->type), il_status_name(op->status),
                  op->out.detail != NULL ? op->out.detail : "");
    abort();
}

void
load_apply(const struct load_thread *t, il_op *op)
{
    while (il_apply(t->h, op, 1, NULL) != IL_OK)
        (void)poll(NULL, 0, 1); /* busy, or the server is down: unknown, so it is repeated */
}

/* Give up after a moment: the one that has it may have been killed. */
static bool
acquire(const struct load_thread *t, il_op *op, bool wait)
{
    for (unsigned tries = 0;; tries++) {
        op->in.lock.wait_ms = wait && tries < 3 ? 60000 : 0;
        il_op_release(op);
        if (il_apply(t->h, op, 1, NULL) != IL_OK)
            return false;
        if (op->status != IL_QUEUED)
            return op->status == IL_OK;
        il_status st = il_wait(t->h, op, 20);
        CHECK(st == IL_OK || st == IL_TIMEOUT);
    }
}

static void
take_and_give_back(struct load_thread *t)
{
    char  key[32], holder[64];
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };

    (void)snprintf(key, sizeof key, "key:%u", t_rng_below(&t->rng, N_KEYS));
    (void)snprintf(holder, sizeof holder, "w%u-%u-%u", t->i_log, t->i, t->n);
    op.in.lock.ttl_ms = LOAD_TTL_MS;
    bool     held     = acquire(t, &op, t_rng_one_in(&t->rng, 4));
    uint64_t fence    = op.out.fence;
    il_op_release(&op);
    if (!held)
        return;
    load_note(t, 'H', key, holder, fence);
    if (t_rng_one_in(&t->rng, 3)) {
        il_op renew = { .type = IL_OP_RENEW, .key = key, .holder = holder, .fence = fence };
        CHECK(il_apply(t->h, &renew, 1, NULL) != IL_OK || renew.status == IL_OK);
        il_op_release(&renew);
    }
    load_note(t, 'r', key, holder, fence);
    il_op release = { .type = IL_OP_RELEASE, .key = key, .holder = holder, .fence = fence };
    load_apply(t, &release);
    load_expect(&release, release.status == IL_OK);
    il_op_release(&release);
    load_note(t, 'R', key, holder, fence);
}

static void *
worker_main(void *arg)
{
    struct load_thread *t = arg;

    t_rng_init(&t->rng, t->i_log * 1000 + t->i + 1);
    for (;; t->n++) {
        switch (t_rng_below(&t->rng, 6)) {
        case 0:
            load_job(t);
            break;
        case 1:
            load_run(t);
            break;
        case 2:
            load_once(t);
            break;
        default:
            take_and_give_back(t);
        }
    }
    return NULL;
}

/* Never returns but by being killed. */
static int
worker_process(void *arg)
{
    const struct load_worker *w     = arg;
    struct load_thread        first = { .i_log = w->i_log };
    char                      path[T_PATH_BYTES];
    il_error                  err = { 0 };
    struct load_thread        threads[16];
    pthread_t                 ids[16];

    CHECK(w->n_threads <= ARRAY_LEN(threads));
    log_path(w->load, w->i_log, path);
    first.log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (first.log_fd < 0 || il_open(w->load->url, NULL, &first.h, &err) != IL_OK) {
        (void)printf("cannot start: %s\n", err.message);
        return 1;
    }
    for (unsigned i = 0; i < w->n_threads; i++) {
        threads[i]   = first;
        threads[i].i = i;
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
            T_FAIL("%zu bytes of log within %d ms, expected %zu", log_bytes(w), (int)limit_ms,
                   until);
        /* there is no event for a growing file that is cheaper than looking */
        (void)poll(NULL, 0, 1);
    }
}

void
load_kill(struct load_worker *w)
{
    t_proc_signal(&w->proc, SIGKILL);
    T_EQ(t_proc_exit(&w->proc, 10000), 128 + SIGKILL);
    t_proc_release(&w->proc);
}
