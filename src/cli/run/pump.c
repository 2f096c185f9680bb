/*
 * pump.c: passing output on; the contract is in pump.h.
 */
#include "cli/run/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/run/sys.h"

bool
il__run_pump_init(struct il__run_pump *p)
{
    int pipes[2][2];

    *p = (struct il__run_pump){ { -1, -1 }, { -1, -1 }, NULL, NULL, -1, -1, 0, false };
    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            return false;
        p->read_fds[i]  = pipes[i][0];
        p->write_fds[i] = pipes[i][1];
    }
    return true;
}

void
il__run_pump_forked(struct il__run_pump *p)
{
    il__run_fd_close(&p->write_fds[0]);
    il__run_fd_close(&p->write_fds[1]);
}

/* Pass on what one pipe has. false when nothing more will come from it. */
static bool
pass(struct il__run_pump *p, int i)
{
    int     to = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    ssize_t n  = read(p->read_fds[i], p->data, IL__SPOOL_FRAME_BYTES_MAX);

    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    il__spool_add(p->spool, (uint32_t)to, p->data, (size_t)n);
    if (il__run_write_all(to, p->data, (size_t)n))
        return true;
    /*
     * Whoever read our output has gone. Our end is closed, so that the command gets the SIGPIPE or
     * EPIPE that it would have got without us: `interlock run K -- yes | head -1` must end.
     */
    il__spool_incomplete(p->spool);
    return false;
}

static void *
pump_main(void *arg)
{
    struct il__run_pump *p    = arg;
    bool                 quit = false;

    while (p->read_fds[0] >= 0 || p->read_fds[1] >= 0) {
        struct pollfd fds[] = {
            { p->read_fds[0], POLLIN, 0 },
            { p->read_fds[1], POLLIN, 0 },
            { quit ? -1 : p->quit_fd, POLLIN, 0 },
        };
        /*
         * Once all writers are gone the pipes hold all there is. An end of file may yet never come: a
         * process that is not below the command can have been given a copy of its stdout.
         */
        int n = poll(fds, ARRAY_LEN(fds), quit ? 0 : -1);
        if (n == 0)
            break;
        for (int i = 0; n > 0 && i < 2; i++) {
            if (fds[i].revents != 0 && !pass(p, i))
                il__run_fd_close(&p->read_fds[i]);
        }
        quit |= n > 0 && fds[2].revents != 0;
    }
    CHECK(eventfd_write(p->done_fd, 1) == 0);
    return NULL;
}

bool
il__run_pump_start(struct il__run_pump *p, struct il__spool *spool)
{
    sigset_t all;
    sigset_t before;

    p->spool   = spool;
    p->quit_fd = eventfd(0, EFD_CLOEXEC);
    p->done_fd = eventfd(0, EFD_CLOEXEC);
    p->data    = il__alloc(IL__SPOOL_FRAME_BYTES_MAX);
    if (p->quit_fd < 0 || p->done_fd < 0 || p->data == NULL)
        return false;
    /* None of ours, nor SIGPIPE or SIGXFSZ of the writes: those are return values here. */
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    p->running = pthread_create(&p->thread, NULL, pump_main, p) == 0;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return p->running;
}

void
il__run_pump_quit(struct il__run_pump *p)
{
    if (p->running)
        CHECK(eventfd_write(p->quit_fd, 1) == 0);
}

void
il__run_pump_finish(struct il__run_pump *p)
{
    if (p->running) {
        void *result = NULL;
        /* At its end already, or in a write that may never return. The cancellation points it has are
           the system calls above, and it holds no lock in any of them. */
        (void)pthread_cancel(p->thread);
        CHECK(pthread_join(p->thread, &result) == 0);
        p->running = false;
        if (result == PTHREAD_CANCELED)
            il__spool_incomplete(p->spool);
    }
    il__free(p->data);
    p->data = NULL;
    for (int i = 0; i < 2; i++) {
        il__run_fd_close(&p->read_fds[i]);
        il__run_fd_close(&p->write_fds[i]);
    }
    il__run_fd_close(&p->quit_fd);
    il__run_fd_close(&p->done_fd);
}
