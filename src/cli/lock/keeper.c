/*
 * keeper.c: starts the keeper process of `interlock lock`, and runs as that process.
 *
 * The process that it watches is known by a pidfd, so a pid that is used again is never signalled.
 * The keeper itself is identified by its process name, which ends like the holder's name:
 * `interlock unlock` never signals a process because a text in the store says so.
 */
#include "cli/lock/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "cli/wrap/holder_text.h"
#include "cli/wrap/meta.h"
#include "proc/sys.h"

#define NAME_BYTES 16 /* with a NUL; of a process, in Linux */
#define NAME_END 10   /* bytes of the holder in it */
#define RETRY_MS 200

/* The lowest descriptors of a keeper, behind the standard ones. */
enum {
    REPORT_FD = 3,
    PROCESS_FD,
    KEEPER_FD_END
};

struct keeper {
    const struct keeper_opts *o;
    int                       sig_fd;
    il                       *store;
    il_lease                 *lease;
    struct keeper_report      report;
};

static void
name_of(const char *holder, char out[NAME_BYTES])
{
    size_t n = strlen(holder);

    (void)snprintf(out, NAME_BYTES, "lock-%s", holder + n - MIN(n, (size_t)NAME_END));
}

/* ---- as the keeper --------------------------------------------------------------------------- */

/* Nothing of the caller stays open: who reads its output must see the end of it. */
static bool
let_go_of_caller(int report_fd, int process_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || !il__proc_fd_above(&report_fd, KEEPER_FD_END) ||
        !il__proc_fd_above(&process_fd, KEEPER_FD_END))
        return false;
    return dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
           dup2(null, STDERR_FILENO) >= 0 && dup3(report_fd, REPORT_FD, O_CLOEXEC) >= 0 &&
           dup3(process_fd, PROCESS_FD, O_CLOEXEC) >= 0 &&
           close_range(KEEPER_FD_END, ~0U, 0) == 0 && setsid() >= 0;
}

static bool
open_signals(struct keeper *k)
{
    sigset_t set;

    CHECK(sigemptyset(&set) == 0);
    CHECK(sigaddset(&set, SIGTERM) == 0);
    (void)signal(SIGHUP, SIG_IGN); /* these cannot fail */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    k->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->sig_fd >= 0;
}

/* What one process locks is one unit of work to the deadlock detection: the part before the slash.
 * Within `interlock run` that is the run's. */
static il_status
name_holder(struct keeper *k, il_error *reterr)
{
    const char *parent                    = getenv("INTERLOCK_HOLDER");
    char        host[HOST_NAME_MAX + 1]   = "";
    char        root[IL_HOLDER_BYTES_MAX] = "";
    char        uuid[37];

    if (il_uuid(uuid) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes for the holder name");
    if (parent != NULL && il_check_holder(parent, NULL) == IL_OK)
        (void)snprintf(root, sizeof root, "%.*s", (int)strcspn(parent, "/"), parent);
    if (root[0] == '\0' || strlen(root) + sizeof uuid > IL_HOLDER_BYTES_MAX) {
        IGNORE(gethostname(host, sizeof host - 1) != 0);
        wrap_make_fit(host, sizeof host - 1);
        (void)snprintf(root, sizeof root, "%.150s:%d", host, (int)k->o->pid);
    }
    (void)snprintf(k->report.holder, sizeof k->report.holder, "%.210s/%s", root, uuid);
    return IL_OK;
}

struct watch {
    struct keeper *k;
    int            quit_fd;
};

/* While the keeper waits for the key: does anybody still want it? */
static void *
watch_main(void *arg)
{
    const struct watch *w     = arg;
    struct pollfd       fds[] = { { REPORT_FD, POLLIN, 0 },
                                  { PROCESS_FD, POLLIN, 0 },
                                  { w->k->sig_fd, POLLIN, 0 },
                                  { w->quit_fd, POLLIN, 0 } };

    while (poll(fds, ARRAY_LEN(fds), -1) < 0)
        continue;
    if (fds[3].revents == 0)
        il_interrupt(w->k->store);
    return NULL;
}

static il_status
acquire(struct keeper *k, const char *meta, il_error *reterr)
{
    const struct keeper_opts *o       = k->o;
    il_acquire_opts           a       = IL_ACQUIRE_OPTS_INIT;
    AUTO_FD int               quit_fd = eventfd(0, EFD_CLOEXEC);
    struct watch              w       = { k, quit_fd };
    pthread_t                 thread;

    a.holder  = k->report.holder;
    a.ttl_ms  = o->ttl_ms;
    a.wait_ms = o->wait_ms;
    a.stop_ms = o->stop_ms;
    a.mode    = o->mode;
    a.permits = o->permits;
    a.meta    = meta;
    a.place   = "interlock lock";
    int rc    = quit_fd < 0 ? errno : il__thread_start(&thread, watch_main, &w);
    if (quit_fd < 0 || rc != 0)
        return il__error_set(reterr, IL_NOMEM,
                             "cannot start the thread that watches the script: %s", strerror(rc));
    il_status st = il_acquire(k->store, o->key, &a, &k->lease, reterr);
    CHECK(eventfd_write(quit_fd, 1) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return st;
}

/* A script that waits for what it holds itself would wait forever: no other unit of work is
 * involved that could let go. */
static il_status
check_own(const struct keeper *k, il_error *reterr)
{
    const struct keeper_opts *o  = k->o;
    il_op                     op = { .type = IL_OP_NONE };
    il_status                 st = IL_OK;

    if (o->wait_ms == 0 || il_get(k->store, o->key, &op, NULL) != IL_OK) {
        il_op_release(&op);
        return IL_OK;
    }
    for (size_t i = 0; st == IL_OK && i < op.out.n_items; i++) {
        const il_lease_info *info  = &op.out.items[i];
        bool                 alone = info->mode != o->mode || o->mode == IL_MODE_EXCLUSIVE;
        if (alone && wrap_meta_keeper(info->meta, o->pid) != 0)
            st = il__error_set(reterr, IL_DEADLOCK, "deadlock: process %d already holds '%s'",
                               (int)o->pid, o->key);
    }
    il_op_release(&op);
    return st;
}

static il_status
take(struct keeper *k, il_error *reterr)
{
    char meta[IL_META_BYTES_MAX + 1];
    char name[NAME_BYTES];

    name_of(k->report.holder, name);
    CHECK(prctl(PR_SET_NAME, name) == 0);
    wrap_meta_kept(k->o->pid, getpid(), meta);
    il_status st = il_open(k->o->store_url, k->o->open_opts, &k->store, reterr);
    if (st == IL_OK)
        st = check_own(k, reterr);
    if (st == IL_OK)
        st = acquire(k, meta, reterr);
    if (st == IL_OK)
        k->report.fence = il_lease_fence(k->lease);
    return st;
}

/* If the store does not answer in time, the lease ends by itself. */
static void
release(struct keeper *k)
{
    struct timespec pause = { 0, RETRY_MS * 1000000L };

    while (il_lease_release(k->lease, NULL) == IL_STORE && il_lease_remaining_ms(k->lease) > 0)
        (void)nanosleep(&pause, NULL);
}

/* Until the process ends, `interlock unlock` asks, or the lease is lost. */
static void
keep(struct keeper *k)
{
    struct pollfd fds[] = { { PROCESS_FD, POLLIN, 0 },
                            { k->sig_fd, POLLIN, 0 },
                            { il_lease_fd(k->lease), POLLIN, 0 } };

    while (poll(fds, ARRAY_LEN(fds), -1) < 0)
        continue;
    bool is_lost = fds[0].revents == 0 && fds[1].revents == 0;
#ifdef IL_MUTANT_lost_lock_untold
    is_lost = false;
#endif
    if (is_lost) {
        (void)il__proc_pidfd_kill(PROCESS_FD, SIGTERM); /* fails if it has just ended */
        /* A broken key stays closed until it has let go: not before the process has ended. */
        (void)poll(fds, 2, (int)il_lease_remaining_ms(k->lease));
    }
    release(k);
}

/* Tell the caller, and wait for its answer: it may be gone, or unable to pass the fence on. */
static bool
tell(const struct keeper *k)
{
    char answer;

    return il__proc_write_all(REPORT_FD, &k->report, sizeof k->report) &&
           k->report.status == IL_OK && read(REPORT_FD, &answer, 1) == 1;
}

_Noreturn static void
keeper_main(const struct keeper_opts *o, int report_fd)
{
    static struct keeper k;
    il_error             err = { 0 };

    k = (struct keeper){ .o = o, .report = { .keeper = getpid() } };
    if (!let_go_of_caller(report_fd, o->pidfd))
        _exit(1);
    k.report.status = name_holder(&k, &err);
    if (k.report.status == IL_OK && !open_signals(&k))
        k.report.status =
            il__error_set(&err, IL_NOMEM, "cannot start the keeper: %s", strerror(errno));
    if (k.report.status == IL_OK)
        k.report.status = take(&k, &err);
    if (k.report.status == IL_HELD)
        wrap_holder_text(k.store, o->key, &err, k.report.message, sizeof k.report.message);
    else if (k.report.status != IL_OK)
        (void)snprintf(k.report.message, sizeof k.report.message, "%s", err.message);
    bool wanted = tell(&k);
    IGNORE(close(REPORT_FD) != 0);
    if (wanted) {
        IGNORE(chdir("/") != 0); /* the store is open */
        keep(&k);
    } else if (k.lease != NULL) {
        release(&k);
    }
    il_lease_free(k.lease);
    il_close(k.store);
    _exit(0);
}

/* ---- as the caller --------------------------------------------------------------------------- */

static bool
read_all(int fd, void *data, size_t n_bytes)
{
    char *p = data;

    while (n_bytes > 0) {
        ssize_t n = read(fd, p, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

il_status
keeper_start(const struct keeper_opts *o, struct keeper_report *ret, int *ret_fd, il_error *reterr)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start a keeper: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[0]);
        keeper_main(o, fds[1]);
    }
    int err = errno;
    (void)close(fds[1]);
    if (pid > 0 && read_all(fds[0], ret, sizeof *ret)) {
        *ret_fd = fds[0];
        return IL_OK;
    }
    (void)close(fds[0]);
    if (pid < 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start a keeper: %s", strerror(err));
    return il__error_set(reterr, IL_STORE, "the keeper process died before it acquired the key");
}

bool
keeper_confirm(int fd)
{
    return il__proc_write_all(fd, "k", 1);
}

int
keeper_open_pidfd(pid_t keeper, const char *holder)
{
    char path[64], is[NAME_BYTES + 1], should[NAME_BYTES];
    int  pidfd = il__proc_pidfd_open(keeper);

    if (pidfd < 0)
        return -1;
    name_of(holder, should);
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)keeper);
    (void)il__read_small(path, is, sizeof is);
    is[strcspn(is, "\n")] = '\0';
    if (strcmp(is, should) == 0)
        return pidfd;
    (void)close(pidfd);
    return -1;
}
