/*
 * spool.h: the output of a running command, kept in a file for those who join it.
 *
 * One file per run, `$XDG_STATE_HOME/interlock/spool/NAME` (0600 in a 0700 folder), NAME made from
 * tenant, key and holder, so that it is found also after the lease and its meta are gone. It holds
 * a head, changed in place, and frames, only ever added:
 *
 *     head | frame | bytes | frame | bytes | …
 *
 * The end, too, is a change of the head: on a full disk there may be no room for one more frame.
 * The writer holds an exclusive flock() for as long as it lives; a reader that could take the lock
 * knows that nothing more will come. The file appears under its name only when lock and head are
 * there.
 *
 * The format is read by processes of the same machine only, so numbers are as the machine has them.
 * A change of it changes the last byte of the magic; a reader does not join what it does not know.
 */
#ifndef IL_CLI_RUN_SPOOL_H
#define IL_CLI_RUN_SPOOL_H

#include "base/base.h"

#define IL__SPOOL_BYTES_MAX (INT64_C(64) << 20)
#define IL__SPOOL_FRAME_BYTES_MAX 65536
#define IL__SPOOL_PATH_BYTES_MAX 1000 /* it goes into the lease's meta */
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
    uint32_t incomplete;  /* 1: not all of the output is here */
    int32_t  exit_status; /* of the wrapper: the command's own, 128 + signal, 76, 77 */
    uint32_t reserved;
};
_Static_assert(sizeof(struct il__spool_head) == 32, "the head is a file format");

struct il__spool_frame {
    uint32_t stream; /* 1 = stdout, 2 = stderr */
    uint32_t n_bytes;
};
_Static_assert(sizeof(struct il__spool_frame) == 8, "the frame is a file format");

/*
 * Where the spool of that holder is, or would be. IL_OK, or IL_STORE when there is no home for it.
 */
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

/*
 * Make it, and remove what is old. IL_OK; or IL_HELD (another run has a spool of that name),
 * IL_STORE, with the reason: then there is no spool.
 */
il_status il__spool_create(struct il__spool *s, const char *tenant, const char *key,
                           const char *holder, il_error *reterr);
void      il__spool_begin(struct il__spool *s, uint64_t fence);
/* Add output. What does not fit or cannot be written is left out, and so is all that follows. */
void il__spool_add(struct il__spool *s, uint32_t stream, const void *data, size_t n_bytes);
/* From now on some output is missing. */
void il__spool_incomplete(struct il__spool *s);
void il__spool_end(struct il__spool *s, int exit_status); /* and close; the file stays */
void il__spool_drop(struct il__spool *s);                 /* close and remove, if there is one */

/* -------------------------------------------------------------------------------------------
 * Reading.
 */
struct il__spool_reader {
    int     fd; /* -1 = none */
    int64_t offset;
};

/* IL_OK; IL_NOT_HELD: no such spool, or of another lease; IL_INVAL: not ours to read. */
il_status il__spool_open(struct il__spool_reader *r, const char *path, uint64_t fence,
                         il_error *reterr);

enum il__spool_news {
    IL__SPOOL_MORE,       /* it still runs */
    IL__SPOOL_COMPLETE,   /* all of it was copied, *ret_head is final */
    IL__SPOOL_BROKEN,     /* not readable any more */
    IL__SPOOL_UNWRITABLE, /* our stdout or stderr does not take it: errno */
};

/* Copy what has come, stdout to stdout and stderr to stderr; blocks as long as those do. */
enum il__spool_news il__spool_copy(struct il__spool_reader *r, struct il__spool_head *ret_head);

/* Is the writer gone? 1, 0, or -1: this file system does not tell. */
int il__spool_writer_gone(const struct il__spool_reader *r);

#endif
