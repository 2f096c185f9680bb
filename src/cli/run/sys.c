/*
 * sys.c: system calls; the contract is in sys.h.
 */
#include "cli/run/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int
il__run_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
il__run_pidfd_kill(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int
il__run_timer_new(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void
il__run_timer_arm(int timer_fd, int64_t at_ns)
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
il__run_timer_drain(int timer_fd)
{
    uint64_t n_expired;

    /* Nothing to read only means that somebody was faster; the clock is what counts. */
    if (read(timer_fd, &n_expired, sizeof n_expired) < 0)
        CHECK(errno == EAGAIN || errno == EINTR);
}

bool
il__run_write_all(int fd, const void *data, size_t n_bytes)
{
    const char *p = data;

    while (n_bytes > 0) {
        ssize_t n = write(fd, p, n_bytes);
        if (n < 0 && errno == EAGAIN) {
            /* Whoever shares the open file with us has made it non-blocking. */
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
il__run_fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing that was written through it is in doubt here */
    *fd = -1;
}

int
il__run_fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

void
il__run_fds_ensure(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is taken: this one, since those below it are open by now. */
        int opened = open("/dev/null", O_RDWR); /* the command has it */
        CHECK(opened < 0 || opened == fd);
    }
}

void
il__run_say(const char *fmt, ...)
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
    (void)il__run_write_all(STDERR_FILENO, line, n_bytes); /* a closed stderr wants no messages */
}
