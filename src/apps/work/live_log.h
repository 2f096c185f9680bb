/*
 * live_log.h: the live log of a run: lines and the current stage, which go to the store.
 *
 * It is written by a few writer threads, never by a thread that executes the run: a slow store
 * delays only what is visible of a run, not the run itself. Output that does not fit into the
 * buffer meanwhile is omitted, and the log says how much.
 */
#ifndef IL_APPS_WORK_LIVE_LOG_H
#define IL_APPS_WORK_LIVE_LOG_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mutex.h"

#define WORK_WRITERS 2

/* The writer threads of one executor, and the logs that are to be written. */
struct work_writers {
    bool              ready;
    struct il__mutex  mutex; /* protects what follows, and the list's part of each log */
    pthread_cond_t    wake;
    struct work_live *first;
    bool              closing;
    pthread_t         threads[WORK_WRITERS];
    size_t            n_threads;
};
/* Returns 0 or an errno; stop it in either case. */
int work_writers_start(struct work_writers *w) MUST_USE;
/* All logs are closed. Also if it was never started. */
void work_writers_stop(struct work_writers *w);

#define WORK_STAGE_BYTES_MAX 512

struct work_live {
    struct work_writers *writers;
    il_run              *run;
    _Atomic int64_t     *sign_ns; /* the last sign of life: a line, part of one, a stage */
    struct il__mutex     mutex;   /* protects what follows */
    pthread_cond_t       idle;    /* signalled when no thread writes it any more */
    struct il__buf       pending;
    uint64_t             n_logged; /* bytes known to be in the store */
    size_t               n_sent; /* of pending, by a write not confirmed yet: they stay in front */
    uint64_t             n_dropped; /* bytes omitted right after those */
    char                 stage[WORK_STAGE_BYTES_MAX + 1];
    int32_t              progress;
    bool                 stage_changed;
    bool                 closed; /* writers ignore it */
    /* under writers->mutex: */
    struct work_live *next;
    bool              listed, writing;
    int64_t           due_ns;
    int64_t           written_ns; /* last time */
};
/* sign_ns must live as long as *l. */
void work_live_init(struct work_live *l, struct work_writers *w, il_run *run, uint64_t log_bytes,
                    _Atomic int64_t *sign_ns);
/* Add a line of a step (mark '|' stdout, '!' stderr), or of the run itself (step NULL):
 * "== text". */
void work_live_line(struct work_live *l, const char *step, char mark, const char *text,
                    size_t n_bytes);
/* Set the current stage and its progress (percent; -1 = as it was). */
void work_live_stage(struct work_live *l, const char *stage, int32_t progress);
/* Detach it from the writers. The caller writes the rest: the log from byte `offset` on, owned
 * by *l until it is released. */
struct work_live_rest {
    const char *log; /* NULL = nothing */
    size_t      log_bytes;
    uint64_t    offset;
    const char *stage; /* NULL = unchanged */
    int32_t     progress;
};
void work_live_close(struct work_live *l, struct work_live_rest *ret);
void work_live_release(struct work_live *l);

/* Splits a stream into lines; an incomplete line is kept until its end arrives. */
#define WORK_LINE_BYTES_MAX 4096
struct work_lines {
    char   data[WORK_LINE_BYTES_MAX];
    size_t n_bytes;
};
void work_lines_add(struct work_lines *s, struct work_live *l, const char *step, char mark,
                    const void *data, size_t n_bytes);
void work_lines_end(struct work_lines *s, struct work_live *l, const char *step, char mark);

#endif
