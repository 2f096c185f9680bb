/*
 * sys.c: system call helpers; the contract is in sys.h.
 */
#include "proc/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How il__proc_say() writes: see il__proc_say_never_wait(). */
enum manner {
    PATIENTLY,
    TO_SOCKET,
    TO_OPENED,
    IF_ROOM,
};
static enum manner say_manner;
static int         say_fd = -1; /* TO_OPENED: our own open file description, non-blocking */

int
il__proc_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
il__proc_pidfd_kill(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int
il__proc_timer_new(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void
il__proc_timer_arm(int timer_fd, int64_t at_ns)
{
    struct itimerspec when = { { 0, 0 }, { 0, 0 } };

    if (at_ns != IL__NEVER_NS) {
        at_ns                 = MAX(at_ns, 1); /* all zero would disarm; the past fires at once */
        when.it_value.tv_sec  = (time_t)(at_ns / 1000000000);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000);
    }
    CHECK(timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

void
il__proc_timer_drain(int timer_fd)
{
    uint64_t n_expired;

    /* Nothing to read only means that another reader was faster; the clock is what counts. */
    if (read(timer_fd, &n_expired, sizeof n_expired) < 0)
        CHECK(errno == EAGAIN || errno == EINTR);
}

bool
il__proc_write_all(int fd, const void *data, size_t n_bytes)
{
    const char *p = data;

    while (n_bytes > 0) {
        ssize_t n = write(fd, p, n_bytes);
        if (n < 0 && errno == EAGAIN) {
            /* A process that shares the open file description has made it non-blocking. */
            struct pollfd room = { fd, POLLOUT, 0 };
            (void)poll(&room, 1, -1);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

void
il__proc_fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* no unflushed writes are at stake here */
    *fd = -1;
}

int
il__proc_fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

bool
il__proc_fd_above(int *fd, int lowest)
{
    int high  = fcntl(*fd, F_DUPFD_CLOEXEC, lowest);
    int error = errno;

    il__proc_fd_close(fd);
    *fd   = high;
    errno = error;
    return high >= 0;
}

void
il__proc_fds_ensure(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* open() returns the lowest free number: this one, since those below it are open by now. */
        int opened = open("/dev/null", O_RDWR); /* the command has it */
        CHECK(opened < 0 || opened == fd);
    }
}

void
il__proc_say_never_wait(void)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) != 0 || S_ISREG(st.st_mode))
        return; /* a file accepts it, and a closed one fails at once */
    say_manner = TO_SOCKET;
    if (S_ISSOCK(st.st_mode))
        return;
    /* O_NONBLOCK belongs to the open file description, which fd 2 shares with others: hence a new
     * one. */
    say_fd     = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    say_manner = say_fd >= 0 ? TO_OPENED : IF_ROOM;
}

static void
write_in_manner(enum manner manner, const char *text, size_t n_bytes)
{
    struct pollfd room = { STDERR_FILENO, POLLOUT, 0 };

    switch (manner) {
    case PATIENTLY:
        (void)il__proc_write_all(STDERR_FILENO, text, n_bytes); /* closed: wants no messages */
        break;
    case TO_SOCKET:
        (void)send(STDERR_FILENO, text, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case TO_OPENED:
        (void)!write(say_fd, text, n_bytes);
        break;
    case IF_ROOM: /* no /proc, or not allowed: another writer may still take the room first */
        if (poll(&room, 1, 0) > 0)
            (void)!write(STDERR_FILENO, text, n_bytes);
        break;
    }
}

bool
il__proc_signal_ends(int sig)
{
    return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

void
il__proc_signals_drain(int sig_fd)
{
    struct signalfd_siginfo info;

    while (read(sig_fd, &info, sizeof info) == (ssize_t)sizeof info)
        continue;
}

void
il__proc_signals_forget(const sigset_t *set)
{
    struct timespec now = { 0, 0 };

    while (sigtimedwait(set, NULL, &now) > 0)
        continue;
}

/* No one reads stderr any more: that must not kill us with SIGPIPE or SIGXFSZ. */
static void
write_safely(enum manner manner, const char *text, size_t n_bytes)
{
    sigset_t ours;
    sigset_t before;

    CHECK(sigemptyset(&ours) == 0);
    CHECK(sigaddset(&ours, SIGPIPE) == 0);
    CHECK(sigaddset(&ours, SIGXFSZ) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &ours, &before) == 0);
    write_in_manner(manner, text, n_bytes);
    il__proc_signals_forget(&ours); /* if left pending, it would strike when the mask is restored */
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

void
il__proc_write_stderr(const char *text, size_t n_bytes)
{
    write_safely(PATIENTLY, text, n_bytes);
}

void
il__proc_die_of(int sig)
{
    struct rlimit no_core = { 0, 0 };
    sigset_t      set;

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that is a program ignores the limit */
    CHECK(sigemptyset(&set) == 0);
    CHECK(sigaddset(&set, sig) == 0);
    (void)signal(sig, SIG_DFL);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    (void)raise(sig);
}

void
il__proc_say(const char *fmt, ...)
{
    static const char prefix[] = "interlock: ";
    char              line[2048];
    va_list           ap;

    memcpy(line, prefix, sizeof prefix);
    size_t room = sizeof line - sizeof prefix - 1; /* the newline takes the place of the NUL */
    va_start(ap, fmt);
    int n = vsnprintf(line + sizeof prefix - 1, room, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t n_bytes = sizeof prefix - 1 + MIN((size_t)n, room - 1);
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            line[i] = '?';
    }
    line[n_bytes++] = '\n';
    write_safely(say_manner, line, n_bytes);
}
