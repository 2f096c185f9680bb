/*
 * spawner_packet.c: sends and receives requests with their descriptors: from the server to the
 * spawner, and from there to the spare reaper.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proc/spawner.h"

union control {
    char           bytes[CMSG_SPACE(PROC_REQUEST_FD_END * sizeof(int))];
    struct cmsghdr align;
};

int
il__proc_send(int fd, const struct proc_request *request, const char *strings, const int *fds,
              size_t n_fds, int flags)
{
    struct iovec  iov[2] = { { .iov_base = (void *)(uintptr_t)request, .iov_len = sizeof *request },
                             { .iov_base = (void *)(uintptr_t)strings } };
    struct msghdr msg    = { .msg_iov = iov, .msg_iovlen = 1 };
    union control control;

    if (n_fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control      = control.bytes;
        msg.msg_controllen   = CMSG_SPACE(n_fds * sizeof *fds);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level     = SOL_SOCKET;
        cmsg->cmsg_type      = SCM_RIGHTS;
        cmsg->cmsg_len       = CMSG_LEN(n_fds * sizeof *fds);
        memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof *fds);
    }
    if (strings != NULL) {
        iov[1].iov_len = (size_t)request->n_bytes;
        msg.msg_iovlen = 2;
    }
    if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) >= 0)
        return 0;
    return errno == ECONNRESET ? EPIPE : errno;
}

static size_t
take_fds(struct msghdr *msg, int ret[PROC_REQUEST_FD_END])
{
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);

    if (cmsg == NULL || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t n_bytes = cmsg->cmsg_len - CMSG_LEN(0);
    CHECK(n_bytes <= PROC_REQUEST_FD_END * sizeof *ret);
    memcpy(ret, CMSG_DATA(cmsg), n_bytes);
    return n_bytes / sizeof *ret;
}

int
il__proc_receive(int fd, union proc_packet *p, int fds[PROC_REQUEST_FD_END], size_t *ret_n_fds,
                 int flags)
{
    struct iovec  iov = { p->bytes, sizeof *p };
    union control control;
    struct msghdr msg = { .msg_iov        = &iov,
                          .msg_iovlen     = 1,
                          .msg_control    = control.bytes,
                          .msg_controllen = sizeof control };

    for (size_t i = 0; i < PROC_REQUEST_FD_END; i++)
        fds[i] = -1;
    ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
    if (n < 0)
        return errno;
    if (n < (ssize_t)sizeof p->request)
        return EPIPE;
    *ret_n_fds = take_fds(&msg, fds);
    return 0;
}
