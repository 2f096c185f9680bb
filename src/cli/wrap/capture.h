/*
 * capture.h: keeps the output of a command in memory, as an answer that can be replayed or as a
 * value.
 *
 * An answer is a header of 8 bytes (magic, flags) and frames, in the order of the output:
 *
 *     ILO1 | flags | 0 0 0 | stream | n_bytes (4, little-endian) | bytes | stream | …
 *
 * An answer that does not begin like this was stored by another client, and is replayed as is.
 */
#ifndef IL_CLI_WRAP_CAPTURE_H
#define IL_CLI_WRAP_CAPTURE_H

#include "base/buf.h"

#define IL__CAPTURE_VALUE_BYTES_MAX ((size_t)64 << 20)

struct il__capture {
    struct il__buf b;
    size_t         frame;    /* where the last frame begins; 0 = none */
    bool           overflow; /* it was too large; nothing is kept */
};

/* Add output; if it exceeds IL_BLOB_BYTES_MAX, all of it is discarded. */
void il__capture_add(struct il__capture *c, uint32_t stream, const void *data, size_t n_bytes);
/* Some of the output is missing. */
void il__capture_mark_incomplete(struct il__capture *c);
/* The answer, owned by the capture; after an overflow it says only that. */
const void *il__capture_answer(struct il__capture *c, size_t *ret_bytes);
void        il__capture_release(struct il__capture *c);

enum il__capture_told {
    IL__CAPTURE_WHOLE,
    IL__CAPTURE_PARTLY,     /* there was more, which was not kept */
    IL__CAPTURE_UNWRITABLE, /* cannot write to our stdout or stderr: see errno */
};

/* Replay an answer on stdout and stderr. */
enum il__capture_told il__capture_repeat(const void *answer, size_t n_bytes);

#endif
