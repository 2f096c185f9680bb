/*
 * race.h: a folder with a store, and processes that meet in it.
 */
#ifndef T_RACE_H
#define T_RACE_H

#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/server.h"
#include "harness/tmp.h"
#include "harness/unit.h"

struct race {
    char                   dir[T_PATH_BYTES];
    char                   url[T_PATH_BYTES];
    char                   test_url[T_PATH_BYTES]; /* of another store, on a test clock */
    char                   log[T_PATH_BYTES];
    char                   file[T_PATH_BYTES];
    const char            *bin;    /* interlock */
    const char            *worker; /* race-worker */
    const struct t_server *server; /* behind the store; NULL = none */
};

/* A new folder; the store does not exist yet, or is empty; `file` holds "0". $HOME is the folder
 * from now on. IL_TEST_STORE names the engine, a row of t_engines: SQLite by default. */
void race_init(struct race *r);
void race_release(struct race *r);

/* Open the store (the caller's). */
il *race_open(const struct race *r);

/* Start `interlock run OPTIONS... KEY -- race-worker ARGUMENTS...`; both lists end with NULL. */
void race_run(const struct race *r, struct t_proc *p, const char *const *options, const char *key,
              const char *const *arguments);
#define RACE_RUN(r, p, options, key, ...) \
    race_run(r, p, options, key, (const char *const[]){ __VA_ARGS__, NULL })

/* Start the worker itself. */
#define RACE_WORKER(r, p, ...) \
    t_proc_start(p, (const char *const[]){ (r)->worker, __VA_ARGS__, NULL }, NULL)

/* Wait until so many leases (or, with IL_LIST_WAITERS, waiters) of the key are in the store. */
void race_await_count(il *h, const char *key, uint32_t flags, size_t n, int64_t limit_ms);

/* Wait until the file holds at least n lines that start with `prefix`. */
void race_await_lines(const char *path, const char *prefix, size_t n, int64_t limit_ms);

#endif
