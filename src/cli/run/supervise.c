/*
 * supervise.c: the wrapper while the command runs.
 *
 * The reaper does the work (reaper.h). Here signals are passed to it, and it is watched in turn: if
 * it is stopped it is told to go on; if it is killed, or does not end the command in time after the
 * lease was lost, the wrapper takes its place. That works because the wrapper is a child subreaper
 * too, so that with the reaper's end everything below it comes to us.
 */
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run/run_state.h"
#include "proc/stop.h"
#include "proc/sys.h"

/*
 * How long a reaper that was told to stop may be later than its grace before it counts as hanging.
 */
#define PATIENCE_NS (INT64_C(1000) * IL__NS_PER_MS)

/* A stopped reaper would not pass signals on or see the command's end: it is continued at once. */
static void
check_reaper(struct il__run_state *r)
{
    int status;

    if (r->reaper.pid <= 0 || waitpid(r->reaper.pid, &status, WNOHANG | WUNTRACED) <= 0)
        return;
    if (WIFSTOPPED(status))
        (void)kill(r->reaper.pid, SIGCONT);
    else
        r->reaper.pid = 0; /* the end of the socket, perhaps behind a report, says the rest */
}

static void
on_signals(struct il__run_state *r)
{
    struct signalfd_siginfo info;

    while (read(r->sig_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int sig = (int)info.ssi_signo;
        r->reaper.asked_to_end |= il__run_signal_ends(sig);
        if (sig == SIGCHLD)
            check_reaper(r);
        else if (sig != SIGTSTP)
            il__reaper_order(&r->reaper, IL__ORDER_SIGNAL, sig);
        else if (!r->opts->quiet)
            il__run_say("%s: a command under a lease cannot be suspended", r->opts->key);
    }
}

/* Reap what has come to us. True when nothing is left. */
static bool
reap_all(struct il__run_state *r, struct il__stop *stop, struct il__reaper_report *report)
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
 * Do the reaper's work: it is gone, or it hangs (`kill_now`) and is killed. The command's process
 * gets its parent-death KILL with that; the others are ended here. Numbers of processes are not
 * trusted, as the reaper may have reaped the command: only what is found below us is signalled.
 */
static void
take_over(struct il__run_state *r, int timer_fd, bool kill_now, struct il__reaper_report *report)
{
    int64_t         grace_ns = r->grace_ms * IL__NS_PER_MS;
    int64_t         now_ns   = il__clock_boot_ns();
    struct il__stop stop     = { .began_ns = 0 };

    il__run_say_never_wait(); /* the work is ours now, and a message must not hold it up */
    /*
     * One that has closed its socket is dying: when it is dead, the command is, too. One that hangs
     * is not waited for; it is reaped below with the others.
     */
    if (kill_now)
        il__reaper_kill(&r->reaper);
    else
        il__reaper_reap(&r->reaper);
    il__stop_begin(&stop, 0, now_ns, kill_now ? now_ns : now_ns + grace_ns);
    while (!reap_all(r, &stop, report)) {
        int64_t       latest_ns = il__reaper_kill_by_ns(r->reaper.shared, grace_ns);
        struct pollfd fds[]     = { { r->sig_fd, POLLIN, 0 }, { timer_fd, POLLIN, 0 } };
        il__stop_tick(&stop, il__clock_boot_ns(), latest_ns);
        il__run_timer_arm(timer_fd, il__stop_next_ns(&stop, latest_ns));
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        il__run_timer_drain(timer_fd);
        (void)il__run_signals_ending(r); /* it is being ended already */
    }
    if (report->wait_status < 0) /* not ours to reap: the reaper had done so */
        report->wait_status = atomic_load(&r->reaper.shared->wait_status);
    r->tty.lent = atomic_load(&r->reaper.shared->tty_lent);
    il__run_tty_take_back(&r->tty, true);
    report->end = atomic_load(&r->lost) ? IL__END_LOST : IL__END_REAPER;
}

/* A report, or the end of the reaper. */
static void
on_ctl(struct il__run_state *r, int timer_fd, struct il__reaper_report *report)
{
    struct il__reaper_report got;
    ssize_t                  n = recv(r->reaper.ctl, &got, sizeof got, MSG_DONTWAIT);

    if (n == (ssize_t)sizeof got)
        *report = got;
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        take_over(r, timer_fd, false, report);
}

struct il__reaper_report
il__run_supervise(struct il__run_state *r)
{
    struct il__reaper_report report   = { .wait_status = -1 };
    AUTO_FD int              timer_fd = il__run_timer_new();
    int                      lease_fd = il_lease_fd(r->lease);
    /* Nobody tells of renewals: then they are looked for. */
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
            il__run_publish_deadline(r, il_lease_deadline_ns(r->lease));
        if (fds[2].revents != 0) {
            /* Else on_lost has told the reaper already, from the watchdog's thread. */
            if (!r->hold->told)
                il__run_lost(r, "it was taken over or dropped, or was not renewed in time");
            int64_t deadline_ns = atomic_load(&r->reaper.shared->deadline_ns);
            int64_t patience_ns = r->grace_ms * IL__NS_PER_MS + PATIENCE_NS;
            il__run_timer_arm(timer_fd, MIN(deadline_ns, il__clock_boot_ns() + patience_ns));
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
