/*
 * cmd_reaper.c: `interlock reaper` (hidden): the process between a worker and a job's command. See
 * proc/child.h.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "proc/sys.h"
#include "proc/child.h"

/* Are these the descriptors that a worker passes? The command must not inherit them. */
static bool
have_fds(void)
{
    int       type;
    socklen_t n_type = sizeof type;

    for (int fd = IL__CHILD_CTL_FD; fd < IL__CHILD_FD_END; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return false;
    }
    return getsockopt(IL__CHILD_CTL_FD, SOL_SOCKET, SO_TYPE, &type, &n_type) == 0 &&
           type == SOCK_SEQPACKET;
}

int
il__cli_cmd_reaper(struct cli *cli)
{
    const char *const *operands = cli->args.operands;
    uint64_t           grace_ms;
    uint64_t           timeout_ms;
    uint64_t           pid;

    if (!il__parse_u64(operands[2], IL_TTL_MS_MAX, &grace_ms) ||
        !il__parse_u64(operands[3], CLI_MS_MAX, &timeout_ms) ||
        !il__parse_u64(operands[4], INT32_MAX, &pid) || cli->args.tail[1] == NULL || !have_fds())
        return il__cli_usage("reaper: internal command, started by `interlock queue work`");
    struct il__reaper_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, IL__CHILD_SHARED_FD, 0);
    if (shared == MAP_FAILED)
        return il__cli_fail_memory();

    struct proc_tty        no_tty = { .fd = -1 };
    struct il__reaper_opts opts   = {
          .path        = cli->args.tail[0],
          .argv        = cli->args.tail + 1,
          .key         = operands[0],
          .holder      = operands[1],
          .grace_ns    = (int64_t)grace_ms * IL__NS_PER_MS,
          .timeout_ns  = (int64_t)timeout_ms * IL__NS_PER_MS,
          .out_fd      = IL__CHILD_OUT_FD,
          .err_fd      = IL__CHILD_ERR_FD,
          .wrapper_fds = { -1, -1 },
          .quiet       = strcmp(operands[5], "quiet") == 0,
          .tty         = &no_tty,
    };
    struct il__reaper_wrapper wrapper = { .pid   = (pid_t)pid,
                                          .pidfd = il__proc_pidfd_open((pid_t)pid),
                                          .ctl   = IL__CHILD_CTL_FD };
    /* If the worker is already gone, start nothing; its pid may have been reused. */
    if (getppid() != wrapper.pid)
        return 0;
    il__reaper_main(&opts, shared, &wrapper);
}
