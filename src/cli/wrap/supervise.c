/*
 * supervise.c: the wrapper while the command runs.
 *
 * The reaper does the work (reaper.h). This file passes signals to it, and watches it: if it is
 * stopped it is continued; if it is killed, or does not end the command in time after the lease was
 * lost, the wrapper takes over. That works because the wrapper is a child subreaper as well, so
 * when the reaper dies its descendants become our children.
 */
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/stop.h"
#include "proc/sys.h"

/* How much later than its grace a reaper may be before it counts as hanging. */
#define PATIENCE_NS (INT64_C(1000) * IL__NS_PER_MS)

/* A stopped reaper would neither pass signals on nor notice the command's end: continue it at
 * once. */
static void
check_reaper(struct wrap *r)
{
    int status;

    if (r->reaper.pid <= 0 || waitpid(r->reaper.pid, &status, WNOHANG | WUNTRACED) <= 0)
        return;
    if (WIFSTOPPED(status))
        (void)kill(r->reaper.pid, SIGCONT);
    else
        r->reaper.pid = 0; /* end of file on the socket, perhaps after a report, tells the rest */
}

static void
on_signals(struct wrap *r)
{
    struct signalfd_siginfo info;

    while (read(r->sig_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int sig = (int)info.ssi_signo;
        r->reaper.asked_to_end |= il__proc_signal_ends(sig);
        if (sig == SIGCHLD)
            check_reaper(r);
        else if (sig != SIGTSTP)
            il__reaper_order(&r->reaper, IL__ORDER_SIGNAL, sig);
        else if (!r->opts->quiet)
            il__proc_say("%s: a command under a lease cannot be suspended", r->opts->key);
    }
}

/* Reap our children. True when none is left. */
static bool
reap_all(struct wrap *r, struct il__stop *stop, struct il__reaper_report *report)
{
    int  leader = atomic_load(&r->reaper.shared->leader_pid);
    bool reaped = false;

    for (;;) {
        int   status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0)
            return errno == ECHILD;
        if (pid == 0) {
            if (reaped)
                il__stop_child_reaped(stop);
            return false;
        }
        if (pid == r->reaper.pid)
            r->reaper.pid = 0;
        if (pid == leader)
            report->wait_status = status;
        reaped = true;
    }
}

/*
 * Do the reaper's work: it is gone, or it hangs (`kill_now`) and is killed. The command then gets
 * its parent-death KILL; the other processes are ended here. Recorded pids are not trusted, as the
 * reaper may have reaped the command: only processes found below us are signalled.
 */
static void
take_over(struct wrap *r, int timer_fd, bool kill_now, struct il__reaper_report *report)
{
    int64_t         grace_ns = r->grace_ms * IL__NS_PER_MS;
    int64_t         now_ns   = il__clock_boot_ns();
    struct il__stop stop     = { .began_ns = 0 };

    il__proc_say_never_wait(); /* the work is ours now, and a message must not delay it */
    /* A reaper that has closed its socket is dying: once it is dead, so is the command. A
     * hanging one is not waited for; it is reaped below with the others. */
    if (kill_now)
        il__reaper_kill(&r->reaper);
    else
        il__reaper_reap(&r->reaper);
    il__stop_begin(&stop, 0, now_ns, kill_now ? now_ns : now_ns + grace_ns);
    while (!reap_all(r, &stop, report)) {
        int64_t       latest_ns = il__reaper_kill_by_ns(r->reaper.shared, grace_ns);
        struct pollfd fds[]     = { { r->sig_fd, POLLIN, 0 }, { timer_fd, POLLIN, 0 } };
        il__stop_tick(&stop, il__clock_boot_ns(), latest_ns);
        il__proc_timer_arm(timer_fd, il__stop_next_ns(&stop, latest_ns));
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        il__proc_timer_drain(timer_fd);
        (void)wrap_signals_ending(r); /* already being ended */
    }
    if (report->wait_status < 0) /* not ours to reap: the reaper has done so */
        report->wait_status = atomic_load(&r->reaper.shared->wait_status);
    r->tty.lent = atomic_load(&r->reaper.shared->tty_lent);
    il__proc_tty_take_back(&r->tty, true);
    report->end = atomic_load(&r->lost) ? IL__END_LOST : IL__END_REAPER;
}

/* A report, or the end of the reaper. */
static void
on_ctl(struct wrap *r, int timer_fd, struct il__reaper_report *report)
{
    struct il__reaper_report got;
    ssize_t                  n = recv(r->reaper.ctl, &got, sizeof got, MSG_DONTWAIT);

    if (n == (ssize_t)sizeof got)
        *report = got;
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        take_over(r, timer_fd, false, report);
}

/* The lease is lost. The reaper gets its grace, plus a margin, to end the command. */
static void
on_lease_end(struct wrap *r, int timer_fd)
{
    int64_t patience_ns = r->grace_ms * IL__NS_PER_MS + PATIENCE_NS;

    if (r->hold->goes_on && il_lease_remaining_ms(r->lease) > 0) {
        r->is_void = true;
        /* no other client could take over the work */
        wrap_publish_deadline(r, IL__NEVER_NS);
        return;
    }
    /* Otherwise on_lost has already told the reaper, from the watchdog's thread. */
    if (!r->hold->told)
        wrap_on_lost(r, r->lease, "claim taken over, dropped, or not renewed in time");
    int64_t deadline_ns = atomic_load(&r->reaper.shared->deadline_ns);
    il__proc_timer_arm(timer_fd, MIN(deadline_ns, il__clock_boot_ns() + patience_ns));
}

struct il__reaper_report
wrap_supervise(struct wrap *r)
{
    struct il__reaper_report report   = { .wait_status = -1 };
    AUTO_FD int              timer_fd = il__proc_timer_new();
    int                      lease_fd = il_lease_fd(r->lease);
    /* Without callbacks for renewals, poll for them. */
    int tick_ms = r->hold->told ? -1 : (int)MIN(MAX(r->ttl_ms / 16, 20), 1000);

    if (timer_fd < 0) {
        report.end   = IL__END_FAILED;
        report.error = errno;
        return report;
    }
    r->began_ns = il__clock_boot_ns();
    il__reaper_order(&r->reaper, IL__ORDER_START, 0);
    check_reaper(r); /* stopped while we waited for the key: its SIGCHLD is long gone */
    while (report.end == IL__END_NONE) {
        struct pollfd fds[] = {
            { r->reaper.ctl, POLLIN, 0 },
            { r->sig_fd, POLLIN, 0 },
            { lease_fd, POLLIN, 0 },
            { timer_fd, POLLIN, 0 },
        };
        if (poll(fds, ARRAY_LEN(fds), tick_ms) < 0)
            continue;
        if (tick_ms > 0)
            wrap_publish_deadline(r, il_lease_deadline_ns(r->lease));
        if (fds[2].revents != 0) {
            on_lease_end(r, timer_fd);
            lease_fd = -1; /* it stays readable */
        }
        if (fds[0].revents != 0)
            on_ctl(r, timer_fd, &report);
        else if (fds[3].revents != 0)
            take_over(r, timer_fd, true, &report);
        else if (fds[1].revents != 0)
            on_signals(r);
    }
    r->ended_ns = il__clock_boot_ns();
    return report;
}
