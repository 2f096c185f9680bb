/* spool_read.c: reads a spool while it grows; format and rules are in spool.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/wrap/spool.h"
#include "proc/sys.h"

static bool
read_head(int fd, struct il__spool_head *head)
{
    return pread(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head &&
           memcmp(head->magic, IL__SPOOL_MAGIC, sizeof head->magic) == 0;
}

il_status
il__spool_open(struct il__spool_reader *r, const char *path, uint64_t fence, il_error *reterr)
{
    struct il__spool_head head;
    struct stat           st;
    /* The path may come from another holder's meta: no links, no devices, no waiting for a
     * pipe's writer. */
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    *r = (struct il__spool_reader){ .fd = -1, .offset = sizeof head };
    if (fd < 0)
        return il__error_set(reterr, errno == ENOENT ? IL_NOT_HELD : IL_INVAL, "%.300s: %s", path,
                             strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return il__error_set(reterr, IL_INVAL, "%.300s is not owned by this user", path);
    if (!read_head(fd, &head))
        return il__error_set(reterr, IL_INVAL, "%.300s is not a spool of this version", path);
    /* While waiting for its lease it has no fence yet; it gets one before the command starts. */
    if (head.state != IL__SPOOL_WAITING && head.fence != fence)
        return il__error_set(reterr, IL_NOT_HELD, "%.300s belongs to another lease", path);
    r->fd = il__proc_fd_take(&fd);
    return IL_OK;
}

enum copied {
    COPIED,
    NOT_YET,
    UNREADABLE,
    UNWRITABLE
};

/* Copy one frame, if it is complete. */
static enum copied
copy_frame(struct il__spool_reader *r)
{
    static char            data[IL__SPOOL_FRAME_BYTES_MAX];
    struct il__spool_frame frame;
    int64_t                at = r->offset + (int64_t)sizeof frame;

    ssize_t n = pread(r->fd, &frame, sizeof frame, (off_t)r->offset);
    if (n >= 0 && n < (ssize_t)sizeof frame)
        return NOT_YET;
    if (n < 0 || frame.n_bytes == 0 || frame.n_bytes > sizeof data ||
        (frame.stream != STDOUT_FILENO && frame.stream != STDERR_FILENO))
        return UNREADABLE;
    n = pread(r->fd, data, frame.n_bytes, (off_t)at);
    if (n >= 0 && n < (ssize_t)frame.n_bytes)
        return NOT_YET;
    if (n < 0)
        return UNREADABLE;
    /* A descriptor that was closed at start-up is skipped: see pump.c. */
    if (!il__proc_write_all((int)frame.stream, data, frame.n_bytes) && errno != EBADF)
        return UNWRITABLE;
    r->offset = at + (int64_t)frame.n_bytes;
    return COPIED;
}

enum il__spool_news
il__spool_copy(struct il__spool_reader *r, struct il__spool_head *ret_head)
{
    enum copied copied;

    /* Read the head first: its end mark was written after the last frame, so all frames are
     * there. */
    if (!read_head(r->fd, ret_head))
        return IL__SPOOL_BROKEN;
    do {
        copied = copy_frame(r);
    } while (copied == COPIED);
    if (copied != NOT_YET)
        return copied == UNWRITABLE ? IL__SPOOL_UNWRITABLE : IL__SPOOL_BROKEN;
    if (ret_head->state != IL__SPOOL_ENDED)
        return IL__SPOOL_MORE;
    return read_head(r->fd, ret_head) ? IL__SPOOL_COMPLETE : IL__SPOOL_BROKEN;
}

int
il__spool_writer_gone(const struct il__spool_reader *r)
{
    if (flock(r->fd, LOCK_SH | LOCK_NB) == 0) {
        (void)flock(r->fd, LOCK_UN);
        return 1;
    }
    return errno == EWOULDBLOCK ? 0 : -1;
}
