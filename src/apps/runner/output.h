/*
 * output.h: what steps write: the tail that is kept of each attempt, and the live log of a run, which goes to the store.
 *
 * The live log is written by threads of the runner (the writers), never by a step's: a store that is slow delays only what is seen of a run, not the run. What
 * does not fit into the buffer meanwhile is left out, and the log says how much that was.
 */
#ifndef IL_APPS_RUNNER_OUTPUT_H
#define IL_APPS_RUNNER_OUTPUT_H

#include <pthread.h>

#include "base/buf.h"

struct runner;

/* ---- tails ----------------------------------------------------------------------------------------------------------------- */

/* The end of a stream, at most DATA_OUTPUT_BYTES_MAX of it, and how much there was. */
struct runner_tail {
    struct il__buf data; /* up to twice as much: it is cut only when it is full */
    int64_t        n_bytes;
};
void runner_tail_init(struct runner_tail *t);
void runner_tail_add(struct runner_tail *t, const void *data, size_t n_bytes);
/* As valid UTF-8 without NUL; what is not that becomes '?'. The tail's own; it takes nothing more afterwards. */
const char *runner_tail_text(struct runner_tail *t);
void        runner_tail_release(struct runner_tail *t);

/* Replace what is not valid UTF-8, and NUL, by '?'. The length stays. */
void runner_text_clean(char *text, size_t n_bytes);

/* ---- the live log ---------------------------------------------------------------------------------------------------------- */

#define RUNNER_STAGE_BYTES_MAX 512

struct runner_live {
    struct runner  *r;
    il_run         *run;
    pthread_mutex_t mutex; /* protects what follows */
    pthread_cond_t  idle;  /* nobody writes it any more */
    struct il__buf  pending;
    uint64_t        n_logged; /* bytes that are in the store for certain */
    size_t          n_sent;   /* of it, by a write that has not succeeded yet: they stay in front */
    uint64_t        n_dropped; /* bytes left out right behind those */
    char            stage[RUNNER_STAGE_BYTES_MAX + 1];
    int32_t         progress;
    bool            stage_changed;
    bool            closed; /* writers leave it alone */
    /* under r->live_mutex: */
    struct runner_live *next;
    bool                listed, writing;
    int64_t             due_ns;
    int64_t             written_ns; /* last time */
};
void runner_live_init(struct runner_live *l, struct runner *r, il_run *run, uint64_t log_bytes);
/* A line of a step (mark '|' stdout, '!' stderr), or of the runner's own (step NULL): "== text". */
void runner_live_line(struct runner_live *l, const char *step, char mark, const char *text,
                      size_t n_bytes);
/* What is being done, and how much of it is done (percent). */
void runner_live_stage(struct runner_live *l, const char *stage, int32_t progress);
/* No more of it: the writers leave it. What is left is the caller's to write: the log from byte `offset` on, which is runner_live's until it is released. */
struct runner_live_rest {
    const char *log; /* NULL = nothing */
    size_t      log_bytes;
    uint64_t    offset;
    const char *stage; /* NULL = as before */
    int32_t     progress;
};
void runner_live_close(struct runner_live *l, struct runner_live_rest *ret);
void runner_live_release(struct runner_live *l);

/* Lines of a stream: what came without its end is kept until that comes. */
#define RUNNER_LINE_BYTES_MAX 4096
struct runner_lines {
    char   data[RUNNER_LINE_BYTES_MAX];
    size_t n_bytes;
};
void runner_lines_add(struct runner_lines *s, struct runner_live *l, const char *step, char mark,
                      const void *data, size_t n_bytes);
void runner_lines_end(struct runner_lines *s, struct runner_live *l, const char *step, char mark);

/* The writers. */
int  runner_writers_start(struct runner *r);
void runner_writers_stop(struct runner *r);

#endif
