/*
 * pump.c: copies the command's output; the contract is in pump.h.
 */
#include "cli/wrap/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "proc/sys.h"

#define JOIN_SECONDS_MAX 1

bool
wrap_pump_init(struct wrap_pump *p)
{
    int pipes[2][2];

    *p = WRAP_PUMP_NONE;
    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return false;
        p->read_fds[i]  = pipes[i][0];
        p->write_fds[i] = pipes[i][1];
    }
    return true;
}

void
wrap_pump_forked(struct wrap_pump *p)
{
    il__proc_fd_close(&p->write_fds[0]);
    il__proc_fd_close(&p->write_fds[1]);
}

/*
 * Write everything, but never block in a write that only the reader could end. A pipe that polls
 * writable takes PIPE_BUF bytes without blocking. false: it cannot be written (p->error, unless the
 * reader has gone), or we were told to give up.
 */
static bool
write_patiently(struct wrap_pump *p, int fd, const char *data, size_t n_bytes)
{
    while (n_bytes > 0) {
        struct pollfd fds[] = { { fd, POLLOUT, 0 }, { p->abort_fd, POLLIN, 0 } };
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents != 0)
            return false;
        ssize_t n = write(fd, data, MIN(n_bytes, PIPE_BUF));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0 && errno == EBADF)
            return true; /* closed at start-up: not wanted, so not an error */
        if (n < 0 && errno != EPIPE)
            atomic_store(&p->error, errno);
        if (n < 0)
            return false;
        data += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

/* Pass on what one pipe has. false: end of file. */
static bool
pass(struct wrap_pump *p, int i)
{
    int     to = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    ssize_t n  = read(p->read_fds[i], p->data, IL__PUMP_BYTES);

    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    if (!p->sink.add(p->cookie, (uint32_t)to, p->data, (size_t)n) ||
        write_patiently(p, to, p->data, (size_t)n))
        return true;
    /*
     * The reader of our output has gone, or the disk is full. Close our end, so that the command
     * gets the SIGPIPE or EPIPE it would have got without us: `interlock run K -- yes | head -1`
     * must end.
     */
    if (p->sink.incomplete != NULL)
        p->sink.incomplete(p->cookie);
    return false;
}

static void *
pump_main(void *arg)
{
    struct wrap_pump *p    = arg;
    bool              quit = false;

    while (p->read_fds[0] >= 0 || p->read_fds[1] >= 0) {
        struct pollfd fds[] = {
            { p->read_fds[0], POLLIN, 0 },
            { p->read_fds[1], POLLIN, 0 },
            { quit ? -1 : p->quit_fd, POLLIN, 0 },
        };
        /* Once all writers are gone the pipes hold all the output. End of file may still never
         * come: a process outside the command's tree can hold a copy of its stdout. */
        int n = poll(fds, ARRAY_LEN(fds), quit ? 0 : -1);
        if (n == 0)
            break;
        for (int i = 0; n > 0 && i < 2; i++) {
            if (fds[i].revents != 0 && !pass(p, i))
                il__proc_fd_close(&p->read_fds[i]);
        }
        quit |= n > 0 && fds[2].revents != 0;
    }
    CHECK(eventfd_write(p->done_fd, 1) == 0);
    return NULL;
}

bool
wrap_pump_start(struct wrap_pump *p, const struct wrap_sink *sink, void *cookie)
{
    p->sink     = *sink;
    p->cookie   = cookie;
    p->quit_fd  = eventfd(0, EFD_CLOEXEC);
    p->done_fd  = eventfd(0, EFD_CLOEXEC);
    p->abort_fd = eventfd(0, EFD_CLOEXEC);
    p->data     = il__alloc(IL__PUMP_BYTES);
    if (p->quit_fd < 0 || p->done_fd < 0 || p->abort_fd < 0 || p->data == NULL)
        return false;
    /* Block our signals, and SIGPIPE and SIGXFSZ of the writes: those are return values here. */
    p->running = il__thread_start(&p->thread, pump_main, p) == 0;
    return p->running;
}

void
wrap_pump_quit(struct wrap_pump *p)
{
    if (p->running)
        CHECK(eventfd_write(p->quit_fd, 1) == 0);
}

void
wrap_pump_finish(struct wrap_pump *p)
{
    if (p->running) {
        struct timespec until;
        CHECK(eventfd_write(p->quit_fd, 1) == 0);
        CHECK(eventfd_write(p->abort_fd, 1) == 0); /* harmless if the thread is already finishing */
        CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
        until.tv_sec += JOIN_SECONDS_MAX;
        /* A hanging terminal may still block it. The thread is then abandoned with everything it
         * uses; the process is about to exit. */
        if (pthread_timedjoin_np(p->thread, NULL, &until) != 0)
            return;
        p->running = false;
    }
    il__free(p->data);
    p->data = NULL;
    for (int i = 0; i < 2; i++) {
        il__proc_fd_close(&p->read_fds[i]);
        il__proc_fd_close(&p->write_fds[i]);
    }
    il__proc_fd_close(&p->quit_fd);
    il__proc_fd_close(&p->done_fd);
    il__proc_fd_close(&p->abort_fd);
}
