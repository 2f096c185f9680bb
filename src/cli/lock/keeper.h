/*
 * keeper.h: the process behind `interlock lock`: it holds a lease while another process runs, a
 * shell script as a rule. It is a daemon: it has its own session and keeps nothing of the caller
 * open. docs/man/lock.md says what it promises, and what it does not.
 */
#ifndef IL_CLI_LOCK_KEEPER_H
#define IL_CLI_LOCK_KEEPER_H

#include <sys/types.h>

#include "base/base.h"

struct keeper_opts {
    const char         *store_url;
    const il_open_opts *open_opts;
    const char         *key;
    pid_t               pid; /* whose lease it is */
    int                 pidfd;
    int64_t             ttl_ms;
    int64_t             wait_ms;
    int64_t             stop_ms; /* it gets TERM this long before the lease may end */
    il_mode             mode;
    uint32_t            permits;
};

/* What a keeper tells the process that started it. */
struct keeper_report {
    il_status status;
    uint64_t  fence;
    pid_t     keeper;
    char      holder[IL_HOLDER_BYTES_MAX + 1];
    char      message[2048]; /* why there is no lease */
};

/*
 * Start a keeper and wait until it has the lease, or has none. With status IL_OK in *ret the keeper
 * waits for keeper_confirm(*ret_fd); if that does not come it releases the lease.
 */
MUST_USE il_status keeper_start(const struct keeper_opts *o, struct keeper_report *ret, int *ret_fd,
                                il_error *reterr);
MUST_USE bool      keeper_confirm(int fd);

/* A pidfd of this keeper; -1: it has ended, or another process has its pid. */
int keeper_open_pidfd(pid_t keeper, const char *holder);

#endif
