/*
 * spool.h: the output of a running command, kept in a file for callers that join it.
 *
 * One file per run, `$XDG_STATE_HOME/interlock/spool/NAME` (0600 in a 0700 folder). NAME is derived
 * from tenant, key and holder, so it can be found even after the lease and its meta are gone. It
 * holds a head, updated in place, and append-only frames:
 *
 *     head | frame | bytes | frame | bytes | …
 *
 * The end is also recorded in the head: on a full disk there may be no room for another frame. The
 * writer holds an exclusive flock() while it lives; a reader that gets the lock knows that nothing
 * more will come. The file appears under its name only once it is locked and has its head.
 *
 * Only processes of the same machine read the format, so numbers are in native byte order. A change
 * of the format changes the last byte of the magic; a reader does not join a format it does not
 * know.
 */
#ifndef IL_CLI_WRAP_SPOOL_H
#define IL_CLI_WRAP_SPOOL_H

#include "base/base.h"

#define IL__SPOOL_BYTES_MAX (INT64_C(64) << 20)
#define IL__SPOOL_FRAME_BYTES_MAX 65536
#define IL__SPOOL_PATH_BYTES_MAX 1000 /* stored in the lease's meta */
#define IL__SPOOL_MAGIC "ILSPOOL1"

enum il__spool_state {
    IL__SPOOL_WAITING = 1, /* the lease is not granted yet */
    IL__SPOOL_RUNNING,
    IL__SPOOL_ENDED, /* exit_status is valid, no more frames follow */
};

struct il__spool_head {
    char     magic[8];
    uint64_t fence;
    uint32_t state;       /* enum il__spool_state */
    uint32_t incomplete;  /* 1: some output is missing */
    int32_t  exit_status; /* of the wrapper: the command's own, 128 + signal, 76, 77 */
    uint32_t reserved;
};
_Static_assert(sizeof(struct il__spool_head) == 32, "the head is a file format");

struct il__spool_frame {
    uint32_t stream; /* 1 = stdout, 2 = stderr */
    uint32_t n_bytes;
};
_Static_assert(sizeof(struct il__spool_frame) == 8, "the frame is a file format");

/* The path of that holder's spool, whether it exists or not. IL_OK, or IL_STORE if there is no
 * home folder. */
il_status il__spool_path(const char *tenant, const char *key, const char *holder,
                         char out[IL__SPOOL_PATH_BYTES_MAX + 1], il_error *reterr);

/* -------------------------------------------------------------------------------------------
 * Writing. Not thread-safe.
 */
struct il__spool {
    int                   fd; /* -1 = none */
    int64_t               n_bytes;
    struct il__spool_head head;
    char                  path[IL__SPOOL_PATH_BYTES_MAX + 1];
};

/* Create it, and remove old ones. IL_OK; or IL_HELD (another run has a spool of that name),
 * IL_STORE, with the reason: then there is no spool. */
il_status il__spool_create(struct il__spool *s, const char *tenant, const char *key,
                           const char *holder, il_error *reterr);
void      il__spool_begin(struct il__spool *s, uint64_t fence);
/* Add output. What does not fit or cannot be written is omitted, and so is everything after it. */
void il__spool_add(struct il__spool *s, uint32_t stream, const void *data, size_t n_bytes);
/* From now on some output is missing. */
void il__spool_mark_incomplete(struct il__spool *s);
void il__spool_end(struct il__spool *s, int exit_status); /* and close; the file stays */
void il__spool_drop(struct il__spool *s);                 /* close and remove, if there is one */

/* -------------------------------------------------------------------------------------------
 * Reading.
 */
struct il__spool_reader {
    int     fd; /* -1 = none */
    int64_t offset;
};

/* IL_OK; IL_NOT_HELD: no such spool, or of another lease; IL_INVAL: not readable for us. */
il_status il__spool_open(struct il__spool_reader *r, const char *path, uint64_t fence,
                         il_error *reterr);

enum il__spool_news {
    IL__SPOOL_MORE,       /* still running */
    IL__SPOOL_COMPLETE,   /* everything was copied, *ret_head is final */
    IL__SPOOL_BROKEN,     /* no longer readable */
    IL__SPOOL_UNWRITABLE, /* cannot write to our stdout or stderr: see errno */
};

/* Copy what has arrived, stdout to stdout and stderr to stderr; blocks as long as those do. */
enum il__spool_news il__spool_copy(struct il__spool_reader *r, struct il__spool_head *ret_head);

/* Is the writer gone? 1, 0, or -1: unknown on this file system. */
int il__spool_writer_gone(const struct il__spool_reader *r);

#endif
