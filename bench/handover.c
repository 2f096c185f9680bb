/*
 * handover.c: time from the release of a lease until the next holder's wait returns: two processes
 * on one SQLite file, and two threads on one memory store.
 *
 * A, the main thread, takes the key and tells B to do the same. When the store shows that B waits,
 * A records the time and releases; B records the time when it gets the key and sends it back. So
 * the measured time covers A's commit, the wake-up, and the commit with which B confirms.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define KEY "bench:handover"
#define WAIT_MS INT64_C(20000) /* longer means something is broken */
#define N_ROUNDS 500
#define N_ROUNDS_QUICK 5

extern char **environ;

static void
nap(int64_t us)
{
    struct timespec ts = { .tv_nsec = us * 1000 };

    (void)nanosleep(&ts, NULL); /* shorter is fine */
}

static il_lease *
take(il *h)
{
    il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;
    il_error        err   = { 0 };
    il_lease       *lease = NULL;

    opts.wait_ms = WAIT_MS;
    must(il_acquire(h, KEY, &opts, &lease, &err), KEY, &err);
    return lease;
}

static void
give_back(il_lease *lease)
{
    il_error err = { 0 };

    must(il_lease_release(lease, &err), KEY, &err);
    il_lease_free(lease);
}

/* ---- B --------------------------------------------------------------------------------------- */

/* For each byte received: take the key, release it, and report when we got it. */
static void
serve(il *h, int fd)
{
    char go;

    while (read(fd, &go, 1) == 1) {
        il_lease *lease  = take(h);
        int64_t   now_ns = il__clock_boot_ns();
        give_back(lease);
        if (write(fd, &now_ns, sizeof now_ns) != (ssize_t)sizeof now_ns)
            break; /* A is gone */
    }
}

int
bench_handover_waiter(const char *url)
{
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* A has removed the store by then */
    il *h = store_open(url, NULL);
    serve(h, STDIN_FILENO);
    il_close(h);
    return 0;
}

struct waiter {
    il       *h;
    int       fd;
    pthread_t thread;
};

static void *
waiter_main(void *cookie)
{
    struct waiter *w = cookie;

    serve(w->h, w->fd);
    return NULL;
}

/* ---- A --------------------------------------------------------------------------------------- */

/* Wait until the store shows that B is queued, and a little more, so that it sleeps. */
static void
see_waiter(il *h)
{
    int64_t until_ns = il__clock_boot_ns() + WAIT_MS * IL__NS_PER_MS;

    for (bool queued = false; !queued;) {
        il_op    op  = { 0 };
        il_error err = { 0 };
        must(il_list(h, KEY, NULL, 1, IL_LIST_WAITERS, &op, &err), "list", &err);
        queued = op.out.n_items > 0;
        il_op_release(&op);
        nap(queued ? 1000 : 100);
        if (il__clock_boot_ns() > until_ns)
            die("hand-over: the other one does not wait");
    }
}

static int64_t
hand_over(il *h, int fd)
{
    int64_t   got_ns;
    il_lease *lease = take(h);

    if (write(fd, "g", 1) != 1)
        die("hand-over: the other one has ended");
    see_waiter(h);
    int64_t released_ns = il__clock_boot_ns();
    give_back(lease);
    if (read(fd, &got_ns, sizeof got_ns) != (ssize_t)sizeof got_ns)
        die("hand-over: the other one has ended");
    return got_ns - released_ns;
}

static void
measure(struct bench *b, struct result *r, il *h, int fd)
{
    struct samples s = { 0 };
    unsigned       n = b->quick ? N_ROUNDS_QUICK : N_ROUNDS;

    (void)hand_over(h, fd); /* starts threads, opens connections */
    for (unsigned i = 0; i < n; i++)
        samples_add(&s, hand_over(h, fd));
    r->ours_latency = samples_quantiles(&s);
    r->n_rounds     = 1;
    r->ours[0]      = (double)r->ours_latency.p99_ns;
    samples_release(&s);
}

/* This program again, as B, with `fd` as its standard input. */
static pid_t
start_waiter(const char *url, int fd)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attr;
    sigset_t                   none;
    pid_t                      pid;
    char                       name[] = "interlock-bench", role[] = "--waiter";
    char                       place[BENCH_PATH_BYTES + 16];

    (void)snprintf(place, sizeof place, "%s", url);
    CHECK(posix_spawn_file_actions_init(&files) == 0 && posix_spawnattr_init(&attr) == 0);
    CHECK(posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO) == 0);
    CHECK(sigemptyset(&none) == 0 && posix_spawnattr_setsigmask(&attr, &none) == 0);
    CHECK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK) == 0);
    int rc = posix_spawn(&pid, "/proc/self/exe", &files, &attr,
                         (char *[]){ name, role, place, NULL }, environ);
    if (rc != 0)
        die("cannot start the other process: %s", strerror(rc));
    CHECK(posix_spawn_file_actions_destroy(&files) == 0 && posix_spawnattr_destroy(&attr) == 0);
    return pid;
}

static void
between_processes(struct bench *b, struct result *r, const int fds[2])
{
    char path[BENCH_PATH_BYTES];
    char url[BENCH_PATH_BYTES + 16];
    int  status;

    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "handover.db", path));
    il   *h   = store_open(url, NULL);
    pid_t pid = start_waiter(url, fds[1]);
    (void)close(fds[1]); /* so that its exit is noticed */
    measure(b, r, h, fds[0]);
    (void)close(fds[0]); /* tells it to end */
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("hand-over: the other process failed");
    il_close(h);
    temp_remove_database(path);
}

static void
between_threads(struct bench *b, struct result *r, const int fds[2])
{
    struct waiter w = { .h = store_open("memory:", NULL), .fd = fds[1] };

    if (pthread_create(&w.thread, NULL, waiter_main, &w) != 0)
        die("cannot start a thread");
    measure(b, r, w.h, fds[0]);
    (void)close(fds[0]); /* tells it to end */
    CHECK(pthread_join(w.thread, NULL) == 0);
    (void)close(fds[1]);
    il_close(w.h);
}

void
bench_handover(struct bench *b, unsigned engine)
{
    bool          sqlite = engine == ENGINE_SQLITE;
    int           fds[2];
    struct result r = { .name         = sqlite ? "handover-sqlite" : "handover-memory",
                        .what         = sqlite ? "p99 from release to the next process that waits"
                                               : "p99 from release to the next thread that waits",
                        .durability   = sqlite ? BENCH_FULL : BENCH_MEMORY,
                        .unit         = UNIT_NS,
                        .wanted       = WANTED_P99_AT_MOST,
                        .wanted_value = 5e6 };

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        die("no socket pair: %s", strerror(errno));
    if (sqlite)
        between_processes(b, &r, fds);
    else
        between_threads(b, &r, fds);
    report_add(&b->report, &r);
}
