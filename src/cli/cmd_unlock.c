/*
 * cmd_unlock.c: `interlock unlock`: ends the keeper that holds a key for a process, which releases
 * it. The store says who the keeper is; keeper_open_pidfd() makes sure of it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/lock/keeper.h"
#include "cli/wrap/meta.h"
#include "proc/sys.h"

#define ANSWER_MS 10000 /* beside the time that the store may take */

struct kept {
    pid_t    keeper; /* 0: none */
    uint64_t fence;
    char     holder[IL_HOLDER_BYTES_MAX + 1];
};

/* The newest lease of the key whose keeper watches this process. */
static il_status
find(const struct cli *cli, pid_t pid, struct kept *ret, il_error *reterr)
{
    const char     *key    = cli->args.operands[0];
    AUTO_FREE char *cursor = NULL;
    bool            more   = true;
    il_status       st     = IL_OK;

    *ret = (struct kept){ .keeper = 0 };
    while (st == IL_OK && more) {
        il_op page = { 0 };
        st         = il_list(cli->store, key, cursor, IL_PAGE_ITEMS_MAX, 0, &page, reterr);
        for (size_t i = 0; st == IL_OK && i < page.out.n_items; i++) {
            const il_lease_info *info   = &page.out.items[i];
            pid_t                keeper = wrap_meta_keeper(info->meta, pid);
            if (keeper == 0 || strcmp(info->key, key) != 0)
                continue;
            *ret = (struct kept){ .keeper = keeper, .fence = info->fence };
            (void)snprintf(ret->holder, sizeof ret->holder, "%s", info->holder);
        }
        size_t n = page.out.n_items;
        /* Of the keys with this prefix the key itself comes first. */
        more = page.out.next != NULL && (n == 0 || strcmp(page.out.items[n - 1].key, key) == 0);
        il__free(cursor);
        cursor = more ? il__strdup(page.out.next) : NULL;
        if (st == IL_OK && more && cursor == NULL)
            st = il__error_nomem(reterr);
        il_op_release(&page);
    }
    return st;
}

/* Ask it to let go, and wait until it has. A stopped one has to go on for that. */
static il_status
end(const struct cli *cli, const struct kept *kept, il_error *reterr)
{
    const char   *key     = cli->args.operands[0];
    AUTO_FD int   pidfd   = keeper_open_pidfd(kept->keeper, kept->holder);
    int64_t       wait_ms = ANSWER_MS + 2 * CLI_SETTING(cli, store_timeout)->number;
    struct pollfd p       = { pidfd, POLLIN, 0 };

    if (pidfd < 0)
        return il__error_set(reterr, IL_NOT_HELD,
                             "unlock: %s: its keeper, process %d, has died; the lease will expire",
                             key, (int)kept->keeper);
    if (il__proc_pidfd_kill(pidfd, SIGTERM) != 0 || il__proc_pidfd_kill(pidfd, SIGCONT) != 0)
        return errno == ESRCH
                   ? IL_OK
                   : il__error_set(reterr, IL_INVAL,
                                   "unlock: %s: cannot signal its keeper, process %d: %s", key,
                                   (int)kept->keeper, strerror(errno));
    if (poll(&p, 1, (int)MIN(wait_ms, INT32_MAX)) == 1)
        return IL_OK;
    return il__error_set(reterr, IL_STORE, "unlock: %s: its keeper, process %d, does not exit", key,
                         (int)kept->keeper);
}

int
il__cli_cmd_unlock(struct cli *cli)
{
    const char *key = cli->args.operands[0];
    pid_t       pid =
        CLI_GIVEN(cli, unlock, pid) ? (pid_t)CLI_OPTION(cli, unlock, pid)->number : getppid();
    struct kept kept, left;
    il_error    err;
    il_status   st = il__cli_check_key(cli, key, &err);

    if (st == IL_OK)
        st = find(cli, pid, &kept, &err);
    if (st == IL_OK && kept.keeper == 0)
        st = il__error_set(&err, IL_NOT_HELD,
                           "unlock: process %d does not hold '%s' through `interlock lock`",
                           (int)pid, key);
    if (st == IL_OK)
        st = end(cli, &kept, &err);
    if (st == IL_OK)
        st = find(cli, pid, &left, &err);
    if (st == IL_OK && left.keeper != 0 && left.fence == kept.fence)
        st = il__error_set(&err, IL_STORE,
                           "unlock: %s: the keeper cannot release it; the lease will expire", key);
    if (st != IL_OK)
        return il__cli_fail(&err);
    return cli->json ? il__cli_json_print(json_pack("{s:s, s:I, s:i}", "key", key, "fence",
                                                    (json_int_t)kept.fence, "pid", (int)pid))
                     : 0;
}
