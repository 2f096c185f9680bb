/*
 * load.h: processes that acquire and release keys, execute jobs and runs, and answer requests as
 * fast as they can, each with a log of what was acknowledged to it, written before it continues;
 * and the checker that compares those logs with the resulting store.
 */
#ifndef T_LOAD_H
#define T_LOAD_H

#include "harness/proc.h"
#include "harness/tmp.h"

#define LOAD_LOGS_MAX 128

struct load {
    char     dir[T_PATH_BYTES];
    char     db[T_PATH_BYTES]; /* "" when it is no file */
    char     url[T_PATH_BYTES];
    unsigned n_logs; /* workers started so far, killed ones included */
};

/* One worker: a process of its own. */
struct load_worker {
    struct t_proc proc;
    struct load  *load;
    unsigned      i_log;
    unsigned      n_threads;
};

/* Files on a real disk, where a commit costs what it costs. */
void load_init(struct load *l);
/* The same on a store of a server, whose URL allows leases of an hour. */
void load_init_at(struct load *l, const char *url);
void load_release(struct load *l);

/* Start one; no handle may be open in this process. */
void load_start(struct load *l, struct load_worker *w, unsigned n_threads);
/* Wait until it has written n more bytes of log; fails the test at the limit. */
void load_await(struct load_worker *w, size_t n_bytes, int64_t limit_ms);
/* kill -9, wherever it is. */
void load_kill(struct load_worker *w);

/*
 * Everybody is dead. Is the file whole, do the invariants hold, is what was acknowledged there, did
 * no two have a key, a job or an answer, does every fence exist once? Fails the test otherwise.
 * Returns the number of acknowledged grants.
 */
size_t load_judge(struct load *l);

#endif
