/*
 * spawner.h: the protocol between server and spawner; private to proc.c, spawner_link.c,
 * spawner_packet.c, spawner.c and served_reaper.c. proc.h explains the purpose.
 *
 * Requests go over a SOCK_SEQPACKET pair, one packet each, with the child's descriptors attached.
 * The outcome of a child is reported on the child's own socket (reaper.h): by its reaper or, if
 * that has died, by end of file. The spawner also keeps an end of that socket open until it has
 * reaped the reaper and killed the processes it may have left: so end of file always means that
 * nothing of the child is left.
 */
#ifndef IL_PROC_SPAWNER_H
#define IL_PROC_SPAWNER_H

#include "base/base.h"
#include "proc/proc.h"
#include "proc/reaper.h"

#define PROC_SPAWNER_NAME "il-spawner" /* what ps shows */

/* Descriptors of the spawner besides the standard ones. */
enum proc_fd {
    PROC_FD_REQUEST = 3,
    PROC_FD_SERVER  = 4, /* a pidfd; closed on kernels without pidfds */
    PROC_FD_PAGE    = 5,
    PROC_FD_END     = 6,
};

#define PROC_CHILDREN_MAX 4096
#define PROC_INLINE_BYTES_MAX 8192 /* strings of a request; longer ones are sent in a memfd */

/* Shared by server, spawner and all reapers; each child has its own slot. A slot is reused once its
 * child has reported. */
struct proc_page {
    _Atomic uint64_t n_taken; /* requests handled by the spawner: it is alive if this grows */
    struct il__reaper_shared slots[PROC_CHILDREN_MAX];
};

enum proc_request_type {
    PROC_REQUEST_START = 1, /* with descriptors: enum proc_request_fd */
    PROC_REQUEST_STOP,      /* its reaper was told to stop; do not wait forever */
};

enum proc_request_fd {
    PROC_REQUEST_CTL,
    PROC_REQUEST_OUT,
    PROC_REQUEST_ERR,
    PROC_REQUEST_STRINGS, /* only for more than PROC_INLINE_BYTES_MAX */
    PROC_REQUEST_FD_END,
};

/* Followed by, or in the memfd: `n_bytes` of NUL-terminated strings: cwd, arguments,
 * environment; and the input. */
struct proc_request {
    int32_t            type;
    uint32_t           slot;
    uint64_t           serial; /* of the child */
    int64_t            grace_ms;
    int64_t            timeout_ms;
    struct proc_limits limits;
    uint32_t           n_args;
    uint32_t           n_env;
    uint64_t           n_input; /* bytes of standard input; 0 = /dev/null */
    uint64_t           n_bytes;
};

/* A received packet. */
union proc_packet {
    struct proc_request request;
    char                bytes[sizeof(struct proc_request) + PROC_INLINE_BYTES_MAX];
};

/* ---- spawner_packet.c ------------------------------------------------------------------------ */

/* Send a request; `strings` NULL: without. 0, or an errno: EPIPE = the peer has closed. */
int il__proc_send(int fd, const struct proc_request *request, const char *strings, const int *fds,
                  size_t n_fds, int flags);
/* Receive one. 0, or an errno: EPIPE = the peer has closed. The caller owns the descriptors; -1 =
 * none. */
int il__proc_receive(int fd, union proc_packet *p, int fds[PROC_REQUEST_FD_END], size_t *ret_n_fds,
                     int flags);

/* ---- served_reaper.c: the new reaper --------------------------------------------------------- */

struct proc_served {
    struct proc_page *page;
    int               server_fd; /* pidfds; -1 = none */
    int               self_fd;   /* the spawner's */
    struct rlimit     files;     /* RLIMIT_NOFILE of the server */
};

/* In the forked process, which has closed the descriptors inherited from the spawner. */
_Noreturn void il__proc_served_main(const struct proc_served *v, union proc_packet *p,
                                    const int fds[PROC_REQUEST_FD_END]);
/*
 * The same, forked in advance: it prepares itself and waits for a request on the socket; at end of
 * file it exits. So a start need not wait for a fork.
 */
_Noreturn void il__proc_spare_main(const struct proc_served *v, int fd);
/* Report why nothing was started. */
void il__proc_refuse(int ctl, enum il__reaper_end end, int error);

/* ---- spawner_link.c: one spawner process, as the server sees it ------------------------------ */

/* Its children hold references; the struct of a dead spawner stays until the last of them is
 * finished. */
struct proc_link {
    int               fd;  /* requests */
    pid_t             pid; /* not reaped before the end: the pid stays valid */
    struct proc_page *page;
    _Atomic uint64_t  n_sent;
    /* Under the mutex of the struct proc_spawner: */
    unsigned n_refs;
    unsigned n_free;
    uint16_t free_slots[PROC_CHILDREN_MAX];
};

/* Execute a spawner: one reference, owned by the caller. IL_OK, IL_NOMEM. */
il_status il__proc_link_open(struct proc_link **ret, il_error *reterr) MUST_USE;
/* Dropping the last reference dismisses the spawner and waits for it. */
void il__proc_link_close(struct proc_link *l);
/* Has the spawner exited? Faster and more reliable than EPIPE: a reaper it has just forked may
 * still have its end of the socket open. */
bool il__proc_link_gone(const struct proc_link *l);
/*
 * Send a request. 0, or an errno: EPIPE = the spawner has exited; EAGAIN = it accepts no requests
 * (with `wait`: for some seconds, else right now).
 */
int il__proc_link_send(struct proc_link *l, const struct proc_request *request, const char *strings,
                       const int *fds, size_t n_fds, bool wait);

#endif
