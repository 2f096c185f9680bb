/*
 * signals.c: signal handling of the wrapper.
 *
 * Signals are blocked in every thread before the store is opened, and read from a descriptor; there
 * is no handler. While il_acquire() and the like wait, a thread reads them, since only
 * il_interrupt() can end the wait; without --wait there is no such thread.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

/* Passed on to the command. */
static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGALRM, SIGWINCH, SIGCONT };
/* Ours: the reaper's state, and Ctrl-Z. */
static const int own[] = { SIGCHLD, SIGTSTP };
/* Blocked only: caused by our own writes. */
static const int refused[] = { SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU };

static void
add_unless_ignored(sigset_t *set, const int *signals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sigaction action;
        CHECK(sigaction(signals[i], NULL, &action) == 0);
        if (action.sa_handler != SIG_IGN)
            CHECK(sigaddset(set, signals[i]) == 0);
    }
}

bool
wrap_signals_open(struct wrap *r)
{
    sigset_t read;
    sigset_t blocked;

    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, we could not wait for the reaper */
    CHECK(sigemptyset(&read) == 0);
    add_unless_ignored(&read, forwarded, ARRAY_LEN(forwarded));
    add_unless_ignored(&read, own, ARRAY_LEN(own));
    blocked = read;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK(sigaddset(&blocked, refused[i]) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, &r->mask_before) == 0);
    r->sig_fd = signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->sig_fd >= 0;
}

void
wrap_signals_close(struct wrap *r)
{
    if (r->sig_fd < 0)
        return;
    il__proc_fd_close(&r->sig_fd);
    /* Signals caused by our own writes, or meant for a command that has ended meanwhile. */
    sigset_t moot;
    CHECK(sigemptyset(&moot) == 0);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++) {
        if (!il__proc_signal_ends(forwarded[i]))
            CHECK(sigaddset(&moot, forwarded[i]) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK(sigaddset(&moot, refused[i]) == 0);
    il__proc_signals_forget(&moot);
    CHECK(pthread_sigmask(SIG_SETMASK, &r->mask_before, NULL) == 0);
}

/* As wrap_signals_ending(). `waiting`: nothing is held, so Ctrl-Z may have its usual effect. */
static int
read_ending(int sig_fd, bool waiting)
{
    struct signalfd_siginfo info;

    while (read(sig_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (il__proc_signal_ends((int)info.ssi_signo))
            return (int)info.ssi_signo;
        if (info.ssi_signo == SIGTSTP && waiting)
            (void)kill(getpid(), SIGSTOP);
    }
    return 0;
}

int
wrap_signals_ending(struct wrap *r)
{
    return read_ending(r->sig_fd, false);
}

struct watch {
    il         *store;
    int         sig_fd;
    int         quit_fd;
    _Atomic int sig;
};

static void *
watch_main(void *arg)
{
    struct watch *w = arg;

    for (;;) {
        struct pollfd fds[] = { { w->sig_fd, POLLIN, 0 }, { w->quit_fd, POLLIN, 0 } };
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        int sig = fds[0].revents != 0 ? read_ending(w->sig_fd, true) : 0;
        if (sig != 0) {
            atomic_store(&w->sig, sig);
            il_interrupt(w->store);
            return NULL;
        }
        if (fds[1].revents != 0)
            return NULL;
    }
}

il_status
wrap_signals_take(struct wrap *r, bool waits, wrap_take_fn *take, void *cookie, int *ret_sig,
                  il_error *reterr)
{
    struct watch w = { .store = r->store, .sig_fd = r->sig_fd, .quit_fd = -1 };
    pthread_t    thread;

    *ret_sig = 0;
    if (!waits)
        return take(r, cookie, reterr);

    AUTO_FD int quit_fd = eventfd(0, EFD_CLOEXEC);
    w.quit_fd           = quit_fd;
    int rc              = quit_fd < 0 ? errno : pthread_create(&thread, NULL, watch_main, &w);
    if (quit_fd < 0 || rc != 0)
        return il__error_set(reterr, IL_NOMEM,
                             "cannot start the thread that watches for signals: %s", strerror(rc));
    il_status status = take(r, cookie, reterr);
    CHECK(eventfd_write(quit_fd, 1) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    /* The signal and the grant may coincide. Then the lease is held, and the caller, who checks
     * the signal first, gives it back. */
    *ret_sig = atomic_load(&w.sig);
    return status;
}
