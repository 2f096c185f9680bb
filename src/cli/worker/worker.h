/*
 * worker.h: `interlock queue work`: runs a command for each job of a queue.
 *
 * The worker is one process. Its main thread claims as many jobs as it has room for (worker.c),
 * from its queues by their weights (queues.c). Each job has its own thread until it is done
 * (task.c), which runs the command under a reaper (child.c). One more thread reads signals and
 * tells the reapers how long the claims live (worker.c).
 */
#ifndef IL_CLI_WORKER_WORKER_H
#define IL_CLI_WORKER_WORKER_H

#include "cli/defs.h"
#include "cli/hook.h"

struct il__worker_opts {
    const char         *store_url;
    const il_open_opts *open_opts;
    struct il__worker_named {
        const char *name;
        uint32_t    weight;
    } queues[CLI_WORK_QUEUES_MAX];
    size_t   n_queues;
    char   **argv; /* the command, NULL-terminated, at least one */
    uint32_t n_jobs;
    int64_t  lease_ms; /* 0 = the queue's */
    int64_t  grace_ms; /* at most a third of the lease: reduced, unless `strict` */
    int64_t  timeout_ms;
    int64_t  snooze_ms;
    bool     strict; /* the grace was given explicitly: refuse one that is too long */
    bool     once;
    bool     drain;
    bool     fail_on_failed;
    const struct cli_hooks *hooks;
    bool                    create;
    bool                    quiet;
    bool                    json; /* one JSON object on stderr for each job */
};

/* Run the worker. Returns the exit status of the interlock process. */
int il__worker_run(const struct il__worker_opts *opts);

#endif
