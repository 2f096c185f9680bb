/*
 * capture.h: the output of a command, kept in memory: as an answer that can be repeated, or as a value.
 *
 * An answer is a head of 8 bytes (magic, flags) and frames, in the order in which the output came:
 *
 *     ILO1 | flags | 0 0 0 | stream | n_bytes (4, little-endian) | bytes | stream | …
 *
 * An answer that does not begin so was given by somebody else, and is repeated as it is.
 */
#ifndef IL_CLI_RUN_CAPTURE_H
#define IL_CLI_RUN_CAPTURE_H

#include "base/buf.h"

#define IL__CAPTURE_VALUE_BYTES_MAX ((size_t)64 << 20)

struct il__capture {
    struct il__buf b;
    size_t         frame;    /* where the last frame begins; 0 = there is none */
    bool           overflow; /* it was too much; nothing is kept */
};

/* Add output; what does not fit into IL_BLOB_BYTES_MAX makes all of it go. */
void il__capture_add(struct il__capture *c, uint32_t stream, const void *data, size_t n_bytes);
/* Some of the output is missing. */
void il__capture_incomplete(struct il__capture *c);
/* The answer, the capture's own; of an overflow only that it was one. */
const void *il__capture_answer(struct il__capture *c, size_t *ret_bytes);
void        il__capture_release(struct il__capture *c);

enum il__capture_told {
    IL__CAPTURE_WHOLE,
    IL__CAPTURE_PARTLY,     /* there was more, which was not kept */
    IL__CAPTURE_UNWRITABLE, /* our stdout or stderr does not take it: errno */
};

/* Repeat an answer on stdout and stderr. */
enum il__capture_told il__capture_repeat(const void *answer, size_t n_bytes);

#endif
