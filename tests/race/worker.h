/*
 * worker.h: shared by the parts of race-worker.
 */
#ifndef T_WORKER_H
#define T_WORKER_H

#include "base/base.h"

_Noreturn void worker_die(const char *what);
/* Append a line to a file, in one write. */
void worker_append(const char *path, const char *line);
il  *worker_open(const char *url);

/* Do the jobs of a queue until none is left; see worker_jobs.c. Returns the exit status. */
int worker_jobs(const char *url, const char *queue, const char *log, const char *name,
                const char *how);

#endif
