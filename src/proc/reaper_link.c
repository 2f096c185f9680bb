/*
 * reaper_link.c: the link between wrapper and reaper: start, orders, and shutdown.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "proc/reaper.h"
#include "proc/sys.h"

#define KILL_AHEAD_NS (INT64_C(20) * IL__NS_PER_MS)
/* for a live wrapper to answer a report */
#define ANSWER_NS (INT64_C(200) * IL__NS_PER_MS)

int64_t
il__reaper_kill_by_ns(const struct il__reaper_shared *shared, int64_t grace_ns)
{
    int64_t deadline_ns = atomic_load(&shared->deadline_ns);

    return deadline_ns == 0 ? IL__NEVER_NS : deadline_ns - MIN(KILL_AHEAD_NS, grace_ns / 2);
}

/*
 * Everything has ended and the wrapper has been told. It dismisses us at once, unless it is stopped
 * (or hangs): then the lease runs to its deadline, and the wrapper is killed rather than left to
 * wake up much later and continue as if nothing had happened.
 */
void
il__reaper_await_dismissal(const struct il__reaper_wrapper *w,
                           const struct il__reaper_shared *shared, int timer_fd)
{
    int64_t answer_by_ns = il__clock_boot_ns() + ANSWER_NS;

    for (;;) {
        struct pollfd fds[] = {
            { w->ctl, POLLIN, 0 },
            { w->pidfd, POLLIN, 0 },
            { timer_fd, POLLIN, 0 },
        };
        int64_t deadline_ns = atomic_load(&shared->deadline_ns);
        int64_t kill_at_ns  = deadline_ns != 0 ? MAX(deadline_ns, answer_by_ns) : IL__NEVER_NS;
        il__proc_timer_arm(timer_fd, kill_at_ns);
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents != 0)
            return;
        struct il__reaper_order order;
        if (fds[0].revents != 0 && recv(w->ctl, &order, sizeof order, MSG_DONTWAIT) == 0)
            return;
        il__proc_timer_drain(timer_fd);
        /* Renewed meanwhile: then it is alive. */
        if (il__clock_boot_ns() < kill_at_ns || atomic_load(&shared->deadline_ns) != deadline_ns)
            continue;
        if (w->pidfd >= 0)
            (void)il__proc_pidfd_kill(w->pidfd, SIGKILL); /* it may just have ended */
        else if (getppid() == w->pid)
            (void)kill(w->pid, SIGKILL);
        return;
    }
}

il_status
il__reaper_start(const struct il__reaper_opts *opts, struct il__reaper *ret, il_error *reterr)
{
    int ctl[2];

    struct il__reaper_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the supervisor process: %s",
                             strerror(errno));
    atomic_init(&shared->wait_status, -1);
    /* Our own pidfd, before the fork: later our pid might belong to another process. */
    AUTO_FD int               pidfd   = il__proc_pidfd_open(getpid());
    struct il__reaper_wrapper wrapper = { .pid = getpid(), .pidfd = pidfd, .ctl = ctl[1] };
    pid_t                     pid     = fork();
    if (pid == 0) {
        il__proc_fd_close(&ctl[0]); /* only the wrapper has it now: end of file means it died */
        for (size_t i = 0; i < ARRAY_LEN(opts->wrapper_fds); i++) {
            int fd = opts->wrapper_fds[i];
            il__proc_fd_close(&fd);
        }
        il__reaper_main(opts, shared, &wrapper);
    }
    il__proc_fd_close(&ctl[1]);
    if (pid < 0) {
        il__proc_fd_close(&ctl[0]);
        return il__error_set(reterr, IL_NOMEM, "cannot start the supervisor process: %s",
                             strerror(errno));
    }
    (void)setpgid(pid, pid); /* both sides do it */
    *ret = (struct il__reaper){ .shared = shared, .pid = pid, .ctl = ctl[0] };
    return IL_OK;
}

void
il__reaper_order(const struct il__reaper *r, enum il__reaper_order_type type, int arg)
{
    struct il__reaper_order order = { (int32_t)type, arg };

    /* Orders that a dead or stopped reaper does not receive are handled at its end or at the
     * deadline. */
    (void)send(r->ctl, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
il__reaper_dismiss(struct il__reaper *r)
{
    /*
     * Not closed: the watchdog thread may be about to send an order, and the number could be
     * reused.
     */
    if (r->ctl >= 0)
        (void)shutdown(r->ctl, SHUT_RDWR); /* at worst it is shut down already */
}

void
il__reaper_kill(struct il__reaper *r)
{
    il__reaper_dismiss(r);
    if (r->pid > 0)
        (void)kill(r->pid, SIGKILL); /* our child and not yet reaped: the pid is valid */
}

void
il__reaper_reap(struct il__reaper *r)
{
    /* Once dismissed it exits by itself, unless it has been stopped. */
    il__reaper_kill(r);
    while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    r->pid = 0;
}

void
il__reaper_finish(struct il__reaper *r)
{
    il__reaper_reap(r);
    il__proc_fd_close(&r->ctl);
}
