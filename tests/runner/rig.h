/*
 * rig.h: runners on a store under test, with pipelines written by the test, and their results.
 *
 * Uses the machine's clock, since runs have real processes. Leases are short (1 s), so that they
 * are lost soon.
 */
#ifndef T_RIG_H
#define T_RIG_H

#include <jansson.h>

#include "apps/runner/runner.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "harness/suite.h"

#define TENANT "acme"
#define SOON_MS 20000 /* for what happens at once on an idle machine */

/* What the runners of a process have told, counted by event. */
struct rig_notes {
    struct t_event  events[RUNNER_EVENT_COUNT];
    pthread_mutex_t mutex;
    char            last[RUNNER_EVENT_COUNT][1400]; /* its text */
};

struct rig {
    struct t_store  *s;
    il              *h;
    struct il__data *data;
    struct runner   *runner;
    struct rig_notes notes;
    char             url[T_PATH_BYTES], data_url[T_PATH_BYTES];
    char             schema[64]; /* of the data store, on PostgreSQL */
    char             pipelines[T_PATH_BYTES], work[T_PATH_BYTES];
    char             scratch[T_PATH_BYTES]; /* for files that steps write */
};

struct rig_opts {
    int64_t        lease_ms, grace_ms, shutdown_ms, keep_ms;
    uint32_t       runs_max;
    enum work_mode mode;
    void (*limits)(void *cookie, const char *tenant, uint32_t *live_max, uint32_t *day_max);
};

/* main() of a test begins with this: -1 = go on. */
int rig_main(int argc, char **argv);

/* Folders and data store; no runner yet. */
void rig_init(struct rig *g, struct t_store *s);
/* steps: the text of `steps:` and of other keys, below `pipeline_id`. */
void rig_pipeline(struct rig *g, const char *id, const char *fmt, ...) PRINTF_LIKE(3, 4);
void rig_pipeline_of(struct rig *g, const char *tenant, const char *id, const char *text);
void rig_open(struct rig *g, struct rig_opts o);
/* Another runner of the same store in this process; its notes are g's. */
struct runner *rig_another(struct rig *g, struct rig_opts o, il **ret_h);
/* through a handle of the caller's */
struct runner *rig_runner_on(struct rig *g, il *h, struct rig_opts o);
void           rig_reload(struct rig *g);
void           rig_close(struct rig *g); /* the runner only */
void           rig_release(struct rig *g);

/* Trigger it; the run's id goes to `id`. */
enum runner_answer rig_trigger(struct rig *g, const char *pipeline, char id[IL_ID_BYTES_MAX + 1]);
enum runner_answer rig_trigger_with(struct rig *g, struct runner *r, const char *pipeline,
                                    const char *parameters, char id[IL_ID_BYTES_MAX + 1],
                                    il_error *err);
/* Only the slot, as somebody else makes it: no runner is told. */
void rig_slot(struct rig *g, const char *pipeline, char id[IL_ID_BYTES_MAX + 1]);
/* The same with an id of the caller's choice, as somebody who can write the store may forge it. */
void rig_slot_as(struct rig *g, const char *pipeline, const char *id);

struct rig_run {
    il_run_state state;
    char         error[4200], stage[600];
    uint64_t     fence;
    int32_t      progress;
    int64_t      started_at_ms, ended_at_ms;
    uint32_t     n_joined, cancelled;
};
struct rig_run rig_look(struct rig *g, const char *id);
/* Wait until it has ended. */
struct rig_run rig_end(struct rig *g, const char *id, il_run_state state);
/* Wait until it is in this state. */
void rig_await(struct rig *g, const char *id, il_run_state state);
void rig_cancel(struct rig *g, const char *id);
/* All of the live log. The caller frees. */
char *rig_log(struct rig *g, const char *id);
/* No lease of a pipeline is left. */
void rig_all_free(struct rig *g);

/* An attempt as it is in history. */
struct rig_step {
    char    state[16], error[1100];
    int64_t exit_code, out_bytes, err_bytes, started_at_ms, ended_at_ms;
    char   *out, *err; /* freed by rig_steps_free() */
};
struct rig_steps {
    struct rig_step items[64];
    size_t          n;
    char            names[64][64];
    uint32_t        attempts[64];
};
void rig_steps(struct rig *g, const char *id, struct rig_steps *ret);
void rig_steps_free(struct rig_steps *s);
/* The last attempt of a step; fails when there is none. */
const struct rig_step *rig_step(const struct rig_steps *s, const char *step);

/* Wait until a file is there and not empty; its content as a number (a pid). */
long rig_number(struct rig *g, const char *name);
/* Lines of a file of `scratch`; 0 when there is none. */
size_t rig_lines(struct rig *g, const char *name);
/* Nothing is left in the working folders. */
void rig_no_folders(struct rig *g);

/* A runner in a process of its own, which prints "ready" and then a line per event: "EVENT RUN
 * text". */
void rig_spawn(struct rig *g, struct t_proc *p, struct rig_opts o);

#define RIG_TEST(name)                    \
    static void name##_on(struct rig *g); \
    T_TEST(name)                          \
    {                                     \
        struct rig g;                     \
        rig_init(&g, s);                  \
        name##_on(&g);                    \
        rig_release(&g);                  \
    }                                     \
    static void name##_on(struct rig *g)

#endif
