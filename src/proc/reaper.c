/*
 * reaper.c: the process between wrapper and command; reaper.h explains its purpose.
 *
 * A single poll() loop, without threads, signal handlers or sleeps: every signal is blocked and
 * SIGCHLD is read from a descriptor. It hardly matters which event wakes it: it checks the clock
 * after each one.
 */
#include "proc/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/hide.h"
#include "proc/spawn.h"
#include "proc/stop.h"
#include "proc/sys.h"

/*
 * Processes that the command leaves behind may be about to exit: in `cmd > >(tee log)`, tee
 * outlives the shell while it writes the rest. Only those that still run after this time are
 * killed.
 */
#define LINGER_NS (INT64_C(200) * IL__NS_PER_MS)
#define REAP_AT_ONCE 1000
#define TTY_POLL_MS 500 /* there is no event for getting the foreground */

struct reaper {
    const struct il__reaper_opts *opts;
    struct il__reaper_shared     *shared;
    struct proc_tty               tty;
    struct il__stop               stop;
    struct il__reaper_report      report;
    struct il__reaper_wrapper     wrapper;
    int64_t                       timeout_at_ns; /* 0 = none */
    int64_t linger_at_ns; /* the command has ended, but not all descendants; 0 = no */
    int     sig_fd;
    int     timer_fd;
    int     exec_fd; /* open until the command is executed */
    int     spawner_fd;
    pid_t   leader; /* 0 before its start, and after it was reaped */
    bool    started;
    bool    over; /* no descendants are left */
    bool    wants_tty;
    bool    reap_more; /* there may be more to reap */
};

/*
 * When the stop must begin. Always read from the shared page, never cached: the wrapper moves the
 * deadline without a message, so a timer may fire for an outdated deadline.
 */
static int64_t
stop_by_ns(const struct reaper *r)
{
    int64_t deadline_ns = atomic_load(&r->shared->deadline_ns);

    return deadline_ns == 0 ? IL__NEVER_NS : deadline_ns - r->opts->grace_ns;
}

static void
set_end(struct reaper *r, enum il__reaper_end end)
{
    r->report.end = (int32_t)end;
    atomic_store(&r->shared->end, (int)end);
}

/* Stop everything. The first reason counts; a command that has ended by itself keeps that
 * result. */
static void
begin_stop(struct reaper *r, enum il__reaper_end end)
{
    if (r->report.end == IL__END_NONE)
        set_end(r, end);
    if (r->stop.began_ns != 0 || !r->started)
        return;
    int64_t now_ns = il__clock_boot_ns();
    il__stop_begin(&r->stop, r->leader, now_ns, now_ns + r->opts->grace_ns);
}

/* Record that nothing was started; the loop ends. */
static void
fail(struct reaper *r, int error)
{
    set_end(r, IL__END_FAILED);
    r->report.error = error;
    r->over         = true;
}

/* The process that failed to execute the command is reaped like the command. */
static void
exec_failed(struct reaper *r, int error)
{
    set_end(r, IL__END_FAILED);
    r->report.error   = error;
    r->report.is_exec = 1;
}

static void
start_command(struct reaper *r)
{
    const struct il__reaper_opts *o    = r->opts;
    bool                          lend = il__proc_tty_lend_at_start(&r->tty);
    struct proc_spawn             s    = { .path   = o->path,
                                           .argv   = o->argv,
                                           .out_fd = o->out_fd,
                                           .err_fd = o->err_fd,
                                           .tty    = lend ? &r->tty : NULL };

    CHECK(!r->started);
    if (il__clock_boot_ns() >= stop_by_ns(r))
        begin_stop(r, IL__END_DEADLINE); /* the wrapper was suspended since the grant */
    if (r->report.end != IL__END_NONE) {
        r->over = true;
        return;
    }
    if (o->served != NULL) {
        s.env    = o->served->env;
        s.cwd    = o->served->cwd;
        s.limits = o->served->limits;
    } else if (!il__proc_export(o->key, o->holder, atomic_load(&r->shared->fence),
                                atomic_load(&r->shared->deadline_ns))) {
        fail(r, ENOMEM);
        return;
    }
    int   error = 0;
    pid_t pid =
        o->served != NULL ? il__proc_spawn_waiting(&s, &error) : il__proc_spawn(&s, &r->exec_fd);
    if (pid < 0) {
        fail(r, errno);
        return;
    }
    if (error != 0)
        exec_failed(r, error);
    r->leader   = pid;
    r->started  = true;
    r->tty.lent = lend;
    atomic_store(&r->shared->tty_lent, lend);
    atomic_store(&r->shared->leader_pid, pid);
    if (o->timeout_ns > 0)
        r->timeout_at_ns = il__clock_boot_ns() + o->timeout_ns;
    /* End of file must mean that the command and all its descendants have closed their ends. */
    for (int fds[] = { o->out_fd, o->err_fd }, i = 0; i < 2; i++)
        il__proc_fd_close(&fds[i]);
}

/* Give the command the terminal, if available, and continue it. */
static bool
lend_tty(struct reaper *r)
{
    if (!il__proc_tty_lend(&r->tty, r->leader))
        return false;
    atomic_store(&r->shared->tty_lent, true);
    r->wants_tty = false;
    (void)kill(-r->leader, SIGCONT);
    return true;
}

/*
 * The command was stopped (SIGSTOP and the like). A stopped process must not hold a lease: continue
 * it at once. Unless it was stopped for accessing the terminal, which may belong to another group
 * for now: then it would only be stopped again.
 */
static void
on_leader_stopped(struct reaper *r, int sig)
{
    if (r->tty.fd >= 0 && (sig == SIGTTIN || sig == SIGTTOU)) {
        if (lend_tty(r))
            return;
        if (!r->wants_tty && !r->opts->quiet)
            il__proc_say("%s: the command is waiting for the terminal; bring it to the foreground",
                         r->opts->key);
        r->wants_tty = true;
        return;
    }
    if (!r->tty.lent || !lend_tty(r))
        (void)kill(-r->leader, SIGCONT);
    if (!r->opts->quiet)
        il__proc_say("%s: a command under a lease cannot be suspended; continuing", r->opts->key);
}

/*
 * The command ended. All work under the key must be over before the key is handed over, and that
 * includes background processes of the command: they are stopped before the wrapper is told and can
 * release the key.
 */
static void
on_leader_ended(struct reaper *r, int wait_status)
{
    r->leader             = 0;
    r->wants_tty          = false;
    r->report.wait_status = wait_status;
    atomic_store(&r->shared->wait_status, wait_status);
    il__stop_leader_reaped(&r->stop);
    if (r->report.end == IL__END_NONE)
        set_end(r, IL__END_EXITED);
}

/* Process one state change of a child. False if there is none. */
static bool
reap_one(struct reaper *r, bool *ended)
{
    int   status;
    pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);

    if (pid < 0) {
        CHECK(errno == ECHILD);
        r->over = r->started; /* no child, so no descendants: orphans would be ours */
    }
    if (pid <= 0)
        return false;
    if (!WIFSTOPPED(status))
        *ended = true;
    else if (pid == r->leader && !r->stop.killing) /* else we stopped it ourselves */
        on_leader_stopped(r, WSTOPSIG(status));
    if (pid == r->leader && !WIFSTOPPED(status))
        on_leader_ended(r, status);
    return true;
}

static void
reap(struct reaper *r)
{
    bool ended = false;
    int  n     = 0;

    /* Not all at once: a flood of them must not delay the clock check. */
    while (n < REAP_AT_ONCE && reap_one(r, &ended))
        n++;
    r->reap_more = n == REAP_AT_ONCE;
    if (ended && !r->over)
        il__stop_child_reaped(&r->stop); /* once for all: each walk visits all descendants */
    if (r->started && r->leader == 0 && r->linger_at_ns == 0)
        r->linger_at_ns = il__clock_boot_ns() + MIN(LINGER_NS, r->opts->grace_ns);
}

static void
end_leftovers(struct reaper *r)
{
    begin_stop(r, IL__END_EXITED);
    if (r->stop.n_found > 0 && !r->opts->quiet)
        il__proc_say("%s: stopping %u process%s left behind by the command", r->opts->key,
                     r->stop.n_found, r->stop.n_found == 1 ? "" : "es");
}

static void
on_signal(struct reaper *r)
{
    /* One signal may stand for several deaths; waitpid() tells how many. */
    il__proc_signals_drain(r->sig_fd);
    reap(r);
}

static void
on_exec(struct reaper *r)
{
    int     error;
    ssize_t n = read(r->exec_fd, &error, sizeof error);

    if (n < 0 && errno == EINTR)
        return;
    if (n == (ssize_t)sizeof error)
        exec_failed(r, error);
    il__proc_fd_close(&r->exec_fd);
}

/* The wrapper has died, as seen by its socket or its pidfd; the other will report it, too. */
static void
on_orphaned(struct reaper *r)
{
    bool first = r->started && r->report.end == IL__END_NONE;

#ifdef IL_MUTANT_orphans_go_on
    return;
#endif
    begin_stop(r, IL__END_ORPHANED);
    r->over |= !r->started;
    if (first && !r->opts->quiet)
        il__proc_say("%s: the wrapper process died; stopping the command", r->opts->key);
}

/* An order, or the death of the wrapper. */
static void
on_ctl(struct reaper *r)
{
    struct il__reaper_order order;
    ssize_t                 n = recv(r->wrapper.ctl, &order, sizeof order, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof order) {
        il__proc_fd_close(&r->wrapper.ctl);
        on_orphaned(r);
        return;
    }
    if (order.type == IL__ORDER_START)
        start_command(r);
    if (order.type == IL__ORDER_STOP)
        begin_stop(r, IL__END_LOST);
    /* The leader has not been reaped yet, so its pid is still that of its group. */
    if (order.type == IL__ORDER_SIGNAL && r->leader > 0) {
        (void)kill(-r->leader, order.arg);
        if (r->wants_tty)
            (void)kill(-r->leader, SIGCONT); /* else it sees the signal when it gets the terminal */
    }
}

/* Check the clock, whatever has woken us. */
static void
on_time(struct reaper *r)
{
    int64_t now_ns = il__clock_boot_ns();

    if (r->started && now_ns >= stop_by_ns(r))
        begin_stop(r, IL__END_DEADLINE);
    if (r->started && r->timeout_at_ns != 0 && now_ns >= r->timeout_at_ns)
        begin_stop(r, IL__END_TIMEOUT);
    if (r->linger_at_ns != 0 && now_ns >= r->linger_at_ns && r->stop.began_ns == 0)
        end_leftovers(r);
    il__stop_tick(&r->stop, now_ns, il__reaper_kill_by_ns(r->shared, r->opts->grace_ns));
    if (r->wants_tty)
        (void)lend_tty(r); /* not yet: tried again in the next iteration */
}

static int64_t
next_ns(const struct reaper *r)
{
    if (!r->started)
        return IL__NEVER_NS;
    if (r->stop.began_ns != 0)
        return il__stop_next_ns(&r->stop, il__reaper_kill_by_ns(r->shared, r->opts->grace_ns));
    int64_t at_ns = stop_by_ns(r);
    if (r->timeout_at_ns != 0)
        at_ns = MIN(at_ns, r->timeout_at_ns);
    return r->linger_at_ns != 0 ? MIN(at_ns, r->linger_at_ns) : at_ns;
}

/* Sleep until an event, and handle it. */
static void
turn(struct reaper *r)
{
    struct pollfd fds[] = {
        { r->sig_fd, POLLIN, 0 },        { r->timer_fd, POLLIN, 0 },
        { r->exec_fd, POLLIN, 0 },       { r->wrapper.ctl, POLLIN, 0 },
        { r->wrapper.pidfd, POLLIN, 0 }, { r->spawner_fd, POLLIN, 0 },
    };

    int timeout_ms = r->reap_more ? 0 : r->wants_tty ? TTY_POLL_MS : -1;
    il__proc_timer_arm(r->timer_fd, next_ns(r));
    if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0) {
        CHECK(errno == EINTR);
        return;
    }
    if (fds[1].revents != 0)
        il__proc_timer_drain(r->timer_fd);
    if (fds[2].revents != 0)
        on_exec(r); /* before reaping, so that a failed exec is not taken for an exit */
    if (fds[3].revents != 0)
        on_ctl(r);
    if (fds[4].revents != 0) {
        il__proc_fd_close(&r->wrapper.pidfd);
        on_orphaned(r);
    }
    if (fds[5].revents != 0) {
        /* Processes that we could not stop would be orphaned: do not continue. */
        il__proc_fd_close(&r->spawner_fd);
        begin_stop(r, IL__END_REAPER);
    }
    if (fds[0].revents != 0 || r->reap_more)
        on_signal(r);
    if (!r->over)
        on_time(r);
}

void
il__reaper_prepare(struct il__reaper_ready *ret)
{
    sigset_t all;
    sigset_t child;

    CHECK(sigfillset(&all) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    CHECK(sigemptyset(&child) == 0);
    CHECK(sigaddset(&child, SIGCHLD) == 0);
    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would hide how the command ended */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, IL__REAPER_NAME);
    il__proc_hide_memory();
    ret->sig_fd   = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    ret->timer_fd = il__proc_timer_new();
    ret->error    = 0;
    if (ret->sig_fd < 0 || ret->timer_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        ret->error = errno;
}

_Noreturn void
il__reaper_main(const struct il__reaper_opts *opts, struct il__reaper_shared *shared,
                const struct il__reaper_wrapper *wrapper)
{
    struct reaper state = {
        .opts       = opts,
        .shared     = shared,
        .tty        = *opts->tty,
        .wrapper    = *wrapper,
        .report     = { .wait_status = -1 },
        .exec_fd    = -1,
        .spawner_fd = opts->served != NULL ? opts->served->spawner_fd : -1,
    };
    struct reaper          *r = &state;
    struct il__reaper_ready ready;

    if (opts->served != NULL) {
        ready = *opts->served->ready;
    } else {
        il__reaper_prepare(&ready);
        il__proc_say_never_wait(); /* if blocked, we would stop nothing while the key moves on */
    }
    r->sig_fd   = ready.sig_fd;
    r->timer_fd = ready.timer_fd;
    if (ready.error != 0)
        fail(r, ready.error);
    else if (opts->served != NULL)
        start_command(r);
    while (!r->over)
        turn(r);

    int ended = r->report.wait_status;
    il__proc_tty_take_back(&r->tty, ended >= 0 && WIFSIGNALED(ended));
    if (r->wrapper.ctl >= 0 &&
        send(r->wrapper.ctl, &r->report, sizeof r->report, MSG_NOSIGNAL) > 0 && r->timer_fd >= 0 &&
        opts->served == NULL)
        il__reaper_await_dismissal(&r->wrapper, r->shared, r->timer_fd);
    _exit(0);
}
