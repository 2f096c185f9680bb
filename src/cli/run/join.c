/*
 * join.c: --on-conflict join: the output and exit status of the run that holds the key.
 *
 * Between "held" and our look the holder may end, and another may come. The order of things makes
 * that safe: the holder makes its spool before it asks for the lease and writes the end into it
 * before it releases. So the spool of a holder that was seen holding is there, running or ended; if
 * it is not, the holder was one that cannot be joined, or has been gone for long, and we start
 * again from the acquire.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cli/run/meta.h"
#include "cli/run/run_state.h"
#include "proc/sys.h"
#include "cli/table.h"

#define LIVENESS_MS 1000 /* how often to ask, beside the events, whether the runner still lives */

/* Does the lease `fence` still stand? If so, *ret (may be NULL) is where its output is. */
static bool
look_up(struct il__run_state *r, uint64_t fence, struct il__run_meta_spool *ret)
{
    il_op op    = { .type = IL_OP_NONE };
    bool  found = false;

    if (il_get(r->store, r->opts->key, &op, NULL) == IL_OK) {
        for (size_t i = 0; i < op.out.n_items && !found; i++) {
            found = op.out.items[i].fence == fence;
            if (found && ret != NULL)
                il__run_meta_read(op.out.items[i].meta, ret);
        }
    }
    il_op_release(&op);
    return found;
}

static enum il__run_joined
cannot(struct il__run_state *r, const il_error *held, const char *why)
{
    char more[512];

    (void)snprintf(more, sizeof more, "; it cannot be joined: %.480s", why);
    il__run_tell_held(r, held, more);
    return IL__JOIN_CANNOT;
}

static enum il__run_joined
find_spool(struct il__run_state *r, const il_error *held, struct il__spool_reader *reader)
{
    const il_open_opts       *o = r->opts->open_opts;
    struct il__run_meta_spool meta;
    char                      why[400];
    char                      path[IL__SPOOL_PATH_BYTES_MAX + 1];
    il_error                  error;

    bool stands = look_up(r, held->fence, &meta);
    if (stands && meta.spool[0] == '\0')
        return cannot(r, held, "it was not started with --on-conflict join");
    if (stands && !meta.same_host) {
        (void)snprintf(why, sizeof why, "it runs on %.250s", meta.host);
        return cannot(r, held, why);
    }
    if (!stands && il__spool_path(o != NULL ? o->tenant : NULL, r->opts->key, held->holder, path,
                                  &error) != IL_OK)
        return IL__JOIN_AGAIN;
    il_status status = il__spool_open(reader, stands ? meta.spool : path, held->fence, &error);
    if (status == IL_OK)
        return IL__JOIN_DONE;
    /* If it stood a moment ago and has no spool, it may have given up on it, or have just ended. */
    if (!stands || !look_up(r, held->fence, NULL))
        return IL__JOIN_AGAIN;
    return cannot(r, held, error.message);
}

/* Has the runner gone? Its lock tells; where there are no locks, its lease does. */
static bool
runner_gone(struct il__run_state *r, const struct il__spool_reader *reader, uint64_t fence)
{
    int gone = il__spool_writer_gone(reader);

    return gone >= 0 ? gone == 1 : !look_up(r, fence, NULL);
}

/* Sleep until the file changes or is closed, a second at most. */
static void
sleep_until_news(int inotify_fd)
{
    char          events[4096];
    struct pollfd fds[] = { { inotify_fd, POLLIN, 0 } };

    /* Without inotify (its limits are per user) this is a look per second. */
    if (poll(fds, ARRAY_LEN(fds), LIVENESS_MS) > 0 && read(inotify_fd, events, sizeof events) < 0)
        CHECK(errno == EAGAIN || errno == EINTR);
}

static int
follow(struct il__run_state *r, const il_error *held, struct il__spool_reader *reader)
{
    struct il__spool_head head;
    enum il__spool_news   news;
    char                  path[64];
    AUTO_FD int           inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    /*
     * By descriptor: the name may be gone, or be somebody else's file. Watched before the first
     * look.
     */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", reader->fd);
    if (inotify_fd >= 0)
        (void)inotify_add_watch(inotify_fd, path, IN_MODIFY | IN_CLOSE_WRITE);
    for (;;) {
        /*
         * Gone or not is asked before the look: what a dying runner wrote last is then copied, too.
         */
        bool gone = runner_gone(r, reader, held->fence);
        news      = il__spool_copy(reader, &head);
        if (news != IL__SPOOL_MORE || gone)
            break;
        sleep_until_news(inotify_fd);
    }
    if (news == IL__SPOOL_UNWRITABLE) {
        il__run_tell(r, "%s: the output cannot be written: %s", r->opts->key, strerror(errno));
        r->outcome = "failed";
        return CLI_EXIT_IO;
    }
    if (news != IL__SPOOL_COMPLETE) {
        il__run_tell(
            r,
            "%s: the run of %s that was joined has died, or its output cannot be read; how it "
            "ended is not known",
            r->opts->key, held->holder);
        r->outcome = "lost";
        return il_status_exit(IL_LOST);
    }
    if (head.incomplete != 0)
        il__run_say("%s: the output of %s is not complete", r->opts->key, held->holder);
    r->outcome = "joined";
    return head.exit_status;
}

enum il__run_joined
il__run_join(struct il__run_state *r, const il_error *held, int *ret_status)
{
    struct il__spool_reader reader = { .fd = -1 };
    enum il__run_joined     found  = find_spool(r, held, &reader);

    if (found != IL__JOIN_DONE)
        return found;
    /*
     * From here on we only read and print, so the signals may do what they always do, and so may a
     * closed stdout; nothing of ours is left to be cleaned up.
     */
    il__spool_drop(&r->spool);
    il__run_pump_finish(&r->pump);
    il__reaper_finish(&r->reaper);
    il__run_signals_close(r);
    if (!r->opts->quiet && !r->opts->json && isatty(STDERR_FILENO))
        il__run_tell_held(r, held, "; joining it");
    *ret_status = follow(r, held, &reader);
    il__run_fd_close(&reader.fd);
    return IL__JOIN_DONE;
}
