/*
 * output.h: the output of steps: the tail kept of each attempt, and the live log of a run, which
 * goes to the store.
 *
 * The live log is written by the runner's writer threads, never by a step's thread: a slow store
 * delays only what is visible of a run, not the run itself. Output that does not fit into the
 * buffer meanwhile is omitted, and the log says how much.
 */
#ifndef IL_APPS_RUNNER_OUTPUT_H
#define IL_APPS_RUNNER_OUTPUT_H

#include <pthread.h>

#include "base/buf.h"
#include "base/mutex.h"

struct runner;

/* ---- tails ----------------------------------------------------------------------------------- */

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

/* Replace invalid UTF-8 and NUL by '?'. The length stays the same. */
void runner_text_clean(char *text, size_t n_bytes);

/* ---- the live log ---------------------------------------------------------------------------- */

#define RUNNER_STAGE_BYTES_MAX 512

struct runner_live {
    struct runner   *r;
    il_run          *run;
    _Atomic int64_t *sign_ns; /* the last sign of life: a line, part of one, a stage */
    struct il__mutex mutex;   /* protects what follows */
    pthread_cond_t   idle;    /* signalled when no thread writes it any more */
    struct il__buf   pending;
    uint64_t         n_logged;  /* bytes known to be in the store */
    size_t           n_sent;    /* of pending, by a write not confirmed yet: they stay in front */
    uint64_t         n_dropped; /* bytes omitted right after those */
    char             stage[RUNNER_STAGE_BYTES_MAX + 1];
    int32_t          progress;
    bool             stage_changed;
    bool             closed; /* writers ignore it */
    /* under r->live_mutex: */
    struct runner_live *next;
    bool                listed, writing;
    int64_t             due_ns;
    int64_t             written_ns; /* last time */
};
/* sign_ns must live as long as *l. */
void runner_live_init(struct runner_live *l, struct runner *r, il_run *run, uint64_t log_bytes,
                      _Atomic int64_t *sign_ns);
/* Add a line of a step (mark '|' stdout, '!' stderr), or of the runner (step NULL): "== text". */
void runner_live_line(struct runner_live *l, const char *step, char mark, const char *text,
                      size_t n_bytes);
/* Set the current stage and its progress (percent). */
void runner_live_stage(struct runner_live *l, const char *stage, int32_t progress);
/* Detach it from the writers. The caller writes the rest: the log from byte `offset` on, owned
 * by runner_live until it is released. */
struct runner_live_rest {
    const char *log; /* NULL = nothing */
    size_t      log_bytes;
    uint64_t    offset;
    const char *stage; /* NULL = unchanged */
    int32_t     progress;
};
void runner_live_close(struct runner_live *l, struct runner_live_rest *ret);
void runner_live_release(struct runner_live *l);

/* Splits a stream into lines; an incomplete line is kept until its end arrives. */
#define RUNNER_LINE_BYTES_MAX 4096
struct runner_lines {
    char   data[RUNNER_LINE_BYTES_MAX];
    size_t n_bytes;
};
void runner_lines_add(struct runner_lines *s, struct runner_live *l, const char *step, char mark,
                      const void *data, size_t n_bytes);
void runner_lines_end(struct runner_lines *s, struct runner_live *l, const char *step, char mark);

/* The writer threads. */
int  runner_writers_start(struct runner *r);
void runner_writers_stop(struct runner *r);

#endif
