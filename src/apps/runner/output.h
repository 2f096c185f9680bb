/*
 * output.h: the output of steps: the tail that is kept of each attempt. Lines go to the live log of
 * the run (apps/work/live_log.h).
 */
#ifndef IL_APPS_RUNNER_OUTPUT_H
#define IL_APPS_RUNNER_OUTPUT_H

#include "base/buf.h"

/* The end of a stream, at most DATA_OUTPUT_BYTES_MAX of it, and its total length. */
struct runner_tail {
    struct il__buf data; /* up to twice as much: it is trimmed only when full */
    int64_t        n_bytes;
};
void runner_tail_init(struct runner_tail *t);
void runner_tail_add(struct runner_tail *t, const void *data, size_t n_bytes);
/* As valid UTF-8 without NUL; invalid bytes become '?'. Owned by the tail, which accepts nothing
 * more afterwards. */
const char *runner_tail_text(struct runner_tail *t);
void        runner_tail_release(struct runner_tail *t);

#endif
