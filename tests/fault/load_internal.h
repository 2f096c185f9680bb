/*
 * load_internal.h: shared by the files of the worker and the checker.
 */
#ifndef T_LOAD_INTERNAL_H
#define T_LOAD_INTERNAL_H

#include "fault/load.h"
#include "harness/rng.h"

#define LOAD_TTL_MS (60 * 60 * 1000) /* nothing expires during a test */
#define LOAD_QUEUE "load"

/* One thread of a worker. */
struct load_thread {
    il          *h;
    int          log_fd;
    unsigned     i_log;
    unsigned     i;
    unsigned     n; /* what it does now */
    struct t_rng rng;
};

/* Write a line to the log: "WHAT NAME HOLDER NUMBER TIME". */
void load_note(const struct load_thread *t, char what, const char *name, const char *holder,
               uint64_t number);
/* Apply; repeated as it is while the outcome is unknown. */
void load_expect(const il_op *op, bool as_expected); /* else tells what came instead, and ends */
void load_apply(const struct load_thread *t, il_op *op);

/* Do one of each, from the beginning to the end. */
void load_job(struct load_thread *t);
void load_run(struct load_thread *t);
void load_once(struct load_thread *t);

/*
 * What was told of a job, a run or an idempotency key. The letters of the log are in load_work.c.
 */
struct load_fact {
    char     kind; /* 'j', 'r', 'o' */
    char     name[48];
    uint64_t number; /* its token or fence; 0 = only pushed */
    bool     ending; /* its end was sent … */
    bool     ended;  /* … and acknowledged */
};

/* Does a line of the log belong here? Then it is added to facts[*n], which has room. */
bool load_learn(struct load_fact *facts, size_t *n, char what, const char *name, uint64_t number);
/* Is all of it in the store, and nothing twice? Fails the test otherwise. Sorts. */
void load_judge_facts(il *h, struct load_fact *facts, size_t n);

#endif
