/*
 * cmd_lock.c: `interlock lock`: holds a key for the process that calls it, a shell script as a
 * rule, through a keeper.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/input.h"
#include "cli/lock/keeper.h"
#include "proc/sys.h"

static il_status
fill(struct cli *cli, il_open_opts *open_opts, struct keeper_opts *o, il_error *reterr)
{
    bool permits = CLI_GIVEN(cli, lock, permits);
    bool shared  = CLI_GIVEN(cli, lock, shared);

    if (shared && permits)
        return il__error_set(reterr, IL_INVAL, "lock: --shared and --permits cannot be combined");
    *o = (struct keeper_opts){
        .open_opts = open_opts,
        .key       = cli->args.operands[0],
        .ttl_ms    = CLI_SETTING(cli, ttl)->number,
        .wait_ms   = CLI_SETTING(cli, wait)->number,
        .mode      = permits  ? IL_MODE_PERMIT
                     : shared ? IL_MODE_SHARED
                              : IL_MODE_EXCLUSIVE,
        .permits   = (uint32_t)CLI_OPTION(cli, lock, permits)->number,
    };
    il_status st = il__cli_check_key(cli, o->key, reterr);
    if (st == IL_OK)
        st =
            il__cli_choose_grace(cli, CLI_OPTION(cli, lock, grace), o->ttl_ms, &o->stop_ms, reterr);
    return st == IL_OK ? il__cli_shared_store(cli, open_opts, &o->store_url, reterr) : st;
}

/* The process whose lease it will be. Its parent may be gone, and init is nobody's script. */
static il_status
find_process(const struct cli *cli, struct keeper_opts *o, il_error *reterr)
{
    bool given = CLI_GIVEN(cli, lock, pid);

    o->pid = given ? (pid_t)CLI_OPTION(cli, lock, pid)->number : getppid();
    if (!given && o->pid <= 1)
        return il__error_set(reterr, IL_INVAL, "lock: the calling process has exited; pass --pid");
    o->pidfd = il__proc_pidfd_open(o->pid);
    if (o->pidfd >= 0 && il__proc_pidfd_kill(o->pidfd, 0) == 0)
        return IL_OK;
    return il__error_set(reterr, IL_INVAL, "lock: cannot watch process %d: %s", (int)o->pid,
                         strerror(errno));
}

/* In single quotes, for eval. */
static void
print_quoted(const char *name, const char *text)
{
    (void)printf("export %s='", name);
    for (; *text != '\0'; text++)
        (void)fputs(*text == '\'' ? "'\\''" : (char[]){ *text, '\0' }, stdout);
    (void)puts("'");
}

static int
print(const struct cli *cli, const struct keeper_opts *o, const struct keeper_report *r)
{
    if (cli->json)
        return il__cli_json_print(json_pack("{s:s, s:s, s:I, s:i, s:i}", "key", o->key, "holder",
                                            r->holder, "fence", (json_int_t)r->fence, "pid",
                                            (int)o->pid, "keeper", (int)r->keeper));
    if (CLI_GIVEN(cli, lock, export)) {
        print_quoted("INTERLOCK_KEY", o->key);
        print_quoted("INTERLOCK_HOLDER", r->holder);
        (void)printf("export INTERLOCK_FENCE=%" PRIu64 "\n", r->fence);
    } else {
        (void)printf("%" PRIu64 "\n", r->fence);
    }
    return 0;
}

static int
refused(const struct cli *cli, const struct keeper_report *r)
{
    if (r->status != IL_HELD) {
        il__cli_error("%s", r->message);
        return il_status_exit(r->status);
    }
    if (!cli->quiet)
        il__cli_error("%s", r->message);
    return (int)CLI_OPTION(cli, lock, conflict_exit_code)->number;
}

int
il__cli_cmd_lock(struct cli *cli)
{
    il_open_opts         open_opts;
    struct keeper_opts   o      = { .key = "", .pidfd = -1 };
    struct keeper_report report = { .status = IL_OK };
    il_error             err;
    int                  fd = -1;
    il_status            st = fill(cli, &open_opts, &o, &err);

    if (st == IL_OK)
        st = find_process(cli, &o, &err);
    if (st == IL_OK)
        st = keeper_start(&o, &report, &fd, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (report.status != IL_OK)
        return refused(cli, &report);
    /* Not held unless the caller learns of it. */
    int status = il__cli_out_finish(print(cli, &o, &report));
    if (status == 0 && !keeper_confirm(fd)) {
        il__cli_error("%s: the keeper has died; the lease will expire", o.key);
        status = il_status_exit(IL_STORE);
    }
    return status;
}
