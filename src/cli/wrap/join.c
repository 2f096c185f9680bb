/*
 * join.c: --on-conflict join: outputs what the run that holds the key prints, and exits with its
 * status.
 *
 * Between "held" and our lookup the holder may end, and another may follow. The order of operations
 * makes that safe: the holder creates its spool before it asks for the lease, and writes the end
 * into it before it releases. So the spool of a holder that was seen holding exists, running or
 * ended. If it does not, the holder cannot be joined or ended long ago, and we start again from the
 * acquire.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cli/defs.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

#define LIVENESS_MS 1000 /* how often to check, besides events, whether the runner is alive */

/* Is the lease `fence` still held? If so, *ret (may be NULL) is where its output is. */
static bool
look_up(struct wrap *r, uint64_t fence, struct wrap_meta_spool *ret)
{
    il_op op    = { .type = IL_OP_NONE };
    bool  found = false;

    if (il_get(r->store, r->opts->key, &op, NULL) == IL_OK) {
        for (size_t i = 0; i < op.out.n_items && !found; i++) {
            found = op.out.items[i].fence == fence;
            if (found && ret != NULL)
                wrap_meta_read(op.out.items[i].meta, ret);
        }
    }
    il_op_release(&op);
    return found;
}

static enum wrap_joined
cannot(struct wrap *r, const il_error *held, const char *why)
{
    char more[512];

    (void)snprintf(more, sizeof more, "; it cannot be joined: %.480s", why);
    wrap_tell_held(r, held, more);
    return IL__JOIN_CANNOT;
}

static enum wrap_joined
find_spool(struct wrap *r, const il_error *held, struct il__spool_reader *reader)
{
    const il_open_opts    *o = r->opts->open_opts;
    struct wrap_meta_spool meta;
    char                   why[400];
    char                   path[IL__SPOOL_PATH_BYTES_MAX + 1];
    il_error               error;

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
    /* If it was held a moment ago and has no spool, it may have given up on it, or have just
     * ended. */
    if (!stands || !look_up(r, held->fence, NULL))
        return IL__JOIN_AGAIN;
    return cannot(r, held, error.message);
}

/* Is the runner gone? Its file lock tells, or without locks its lease. */
static bool
runner_gone(struct wrap *r, const struct il__spool_reader *reader, uint64_t fence)
{
    int gone = il__spool_writer_gone(reader);

    return gone >= 0 ? gone == 1 : !look_up(r, fence, NULL);
}

/* Sleep until the file changes or is closed, at most a second. */
static void
sleep_until_news(int inotify_fd)
{
    char          events[4096];
    struct pollfd fds[] = { { inotify_fd, POLLIN, 0 } };

    /* Without inotify (its limits are per user) this polls once a second. */
    if (poll(fds, ARRAY_LEN(fds), LIVENESS_MS) > 0 && read(inotify_fd, events, sizeof events) < 0)
        CHECK(errno == EAGAIN || errno == EINTR);
}

static int
follow(struct wrap *r, const il_error *held, struct il__spool_reader *reader)
{
    struct il__spool_head head;
    enum il__spool_news   news;
    char                  path[64];
    AUTO_FD int           inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    /* By descriptor: the name may be gone, or belong to another file. Watch before the first
     * read. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", reader->fd);
    if (inotify_fd >= 0)
        (void)inotify_add_watch(inotify_fd, path, IN_MODIFY | IN_CLOSE_WRITE);
    for (;;) {
        /* Check for the end before reading, so that the last output of a dying runner is copied
         * as well. */
        bool gone = runner_gone(r, reader, held->fence);
        news      = il__spool_copy(reader, &head);
        if (news != IL__SPOOL_MORE || gone)
            break;
        sleep_until_news(inotify_fd);
    }
    if (news == IL__SPOOL_UNWRITABLE) {
        wrap_tell(r, "%s: cannot write the output: %s", r->opts->key, strerror(errno));
        r->outcome = "failed";
        return CLI_EXIT_IO;
    }
    if (news != IL__SPOOL_COMPLETE) {
        wrap_tell(r,
                  "%s: the joined run of %s died or its output cannot be read; its exit status "
                  "is unknown",
                  r->opts->key, held->holder);
        r->outcome = "lost";
        return il_status_exit(IL_LOST);
    }
    if (head.incomplete != 0)
        il__proc_say("%s: the output of %s is incomplete", r->opts->key, held->holder);
    r->outcome = "joined";
    return head.exit_status;
}

enum wrap_joined
wrap_join(struct wrap *r, const il_error *held, int *ret_status)
{
    struct il__spool_reader reader = { .fd = -1 };
    enum wrap_joined        found  = find_spool(r, held, &reader);

    if (found != IL__JOIN_DONE)
        return found;
    /* From here on we only read and print, so signals and a closed stdout may have their default
     * effect; there is nothing to clean up. */
    il__spool_drop(&r->spool);
    wrap_pump_finish(&r->pump);
    il__reaper_finish(&r->reaper);
    wrap_signals_close(r);
    if (!r->opts->quiet && !r->opts->json && isatty(STDERR_FILENO))
        wrap_tell_held(r, held, "; joining it");
    *ret_status = follow(r, held, &reader);
    il__proc_fd_close(&reader.fd);
    return IL__JOIN_DONE;
}
