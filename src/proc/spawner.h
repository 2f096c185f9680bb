/*
 * spawner.h: what server and spawner say to each other; only for proc.c, link.c, packet.c, spawner.c and served.c. What it is all for is explained in proc.h.
 *
 * Requests go over a SOCK_SEQPACKET pair, one packet each, with the descriptors for the child beside them. What becomes of a child is said on the child's own
 * socket (reaper.h): by its reaper, or, when that is gone, by the end of file. The spawner keeps an end of that socket, too, until
 * it has reaped the reaper and ended what that may have left: so end of file always means that nothing of the child is left.
 */
#ifndef IL_PROC_SPAWNER_H
#define IL_PROC_SPAWNER_H

#include "base/base.h"
#include "proc/proc.h"
#include "proc/reaper.h"

#define PROC_SPAWNER_NAME "il-spawner" /* what ps shows */

/* What the spawner has open besides the usual. */
enum proc_fd {
    PROC_FD_REQUEST = 3,
    PROC_FD_SERVER  = 4, /* a pidfd; closed where there are none */
    PROC_FD_PAGE    = 5,
    PROC_FD_END     = 6,
};

#define PROC_CHILDREN_MAX 4096
#define PROC_INLINE_BYTES_MAX 8192 /* strings of a request; longer ones come in a memfd */

/* Shared by server, spawner and all reapers; each uses a slot of its own. A slot is used again once its child has reported. */
struct proc_page {
    _Atomic uint64_t n_taken; /* requests that the spawner has seen to: it is alive if that grows */
    struct il__reaper_shared slots[PROC_CHILDREN_MAX];
};

enum proc_request_type {
    PROC_REQUEST_START = 1, /* with descriptors: enum proc_request_fd */
    PROC_REQUEST_STOP,      /* its reaper was told to stop; do not be patient with that for ever */
};

enum proc_request_fd {
    PROC_REQUEST_CTL,
    PROC_REQUEST_OUT,
    PROC_REQUEST_ERR,
    PROC_REQUEST_STRINGS, /* only if there are more than PROC_INLINE_BYTES_MAX */
    PROC_REQUEST_FD_END,
};

/* Behind it, or in the memfd: `n_bytes` of strings, each with its NUL: cwd, arguments, environment. */
struct proc_request {
    int32_t            type;
    uint32_t           slot;
    uint64_t           serial; /* of the child */
    int64_t            grace_ms;
    int64_t            timeout_ms;
    struct proc_limits limits;
    uint32_t           n_args;
    uint32_t           n_env;
    uint64_t           n_bytes;
};

/* A packet as it is received. */
union proc_packet {
    struct proc_request request;
    char                bytes[sizeof(struct proc_request) + PROC_INLINE_BYTES_MAX];
};

/* ---- packet.c ---------------------------------------------------------------------------------------------- */

/* Send a request; `strings` NULL: without. 0, or an errno: EPIPE = nobody is there. */
int il__proc_send(int fd, const struct proc_request *request, const char *strings, const int *fds,
                  size_t n_fds, int flags);
/* Receive one. 0, or an errno: EPIPE = nobody is there. The descriptors are the caller's; -1 = none. */
int il__proc_receive(int fd, union proc_packet *p, int fds[PROC_REQUEST_FD_END], size_t *ret_n_fds,
                     int flags);

/* ---- served.c: the new reaper ----------------------------------------------------------------------------- */

struct proc_served {
    struct proc_page *page;
    int               server_fd; /* pidfds; -1 = none */
    int               self_fd;   /* the spawner's */
    struct rlimit     files;     /* RLIMIT_NOFILE of the server */
};

/* In the forked process, which has closed what it has of the spawner. */
_Noreturn void il__proc_served_main(const struct proc_served *v, union proc_packet *p,
                                    const int fds[PROC_REQUEST_FD_END]);
/*
 * The same, forked before there is a request: it makes itself ready, and waits for one at the socket; the end of that is its own. So a start need not wait for a fork.
 */
_Noreturn void il__proc_spare_main(const struct proc_served *v, int fd);
/* Nothing was started, and this is why. */
void il__proc_refuse(int ctl, enum il__reaper_end end, int error);

/* ---- link.c: one spawner process, as the server sees it ------------------------------------------------- */

/* Its children hold references; a spawner that has died stays until the last of them is finished. */
struct proc_link {
    int               fd;  /* requests */
    pid_t             pid; /* not reaped before the end: the number is right */
    struct proc_page *page;
    _Atomic uint64_t  n_sent;
    /* Under the mutex of the struct proc_spawner: */
    unsigned n_refs;
    unsigned n_free;
    uint16_t free_slots[PROC_CHILDREN_MAX];
};

/* Execute a spawner: one reference, the caller's. IL_OK, IL_NOMEM. */
il_status il__proc_link_open(struct proc_link **ret, il_error *reterr) MUST_USE;
/* Without its last reference: lets the spawner go, and waits for it. */
void il__proc_link_close(struct proc_link *l);
/* Has the spawner ended? Sooner and surer than EPIPE: a reaper that it has just forked may still have its end of the socket. */
bool il__proc_link_gone(const struct proc_link *l);
/*
 * Send a request. 0, or an errno: EPIPE = the spawner is gone; EAGAIN = it takes nothing any more (`wait`: for some seconds,
 * else just now).
 */
int il__proc_link_send(struct proc_link *l, const struct proc_request *request, const char *strings,
                       const int *fds, size_t n_fds, bool wait);

#endif
