/*
 * toy.h: a kind of work for tests, without files, routes or processes: a few subjects that are
 * named after what their runs do. Executors are opened on a store under test, in this process or in
 * one of their own.
 */
#ifndef T_TOY_H
#define T_TOY_H

#include "apps/work/work.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "harness/suite.h"

#define TENANT "acme"
#define CLASS "toy"
#define SOON_MS 20000 /* for what happens at once on an idle machine */

/*
 * The subjects. A run of any of them adds its id, as a line, to the file of that name in toys.dir;
 * what it does then:
 *   quick    ends
 *   fails    says that it failed
 *   lazy     ends without having done all, and without a reason
 *   stages   shows a stage, says a line, and waits until it is to stop
 *   late     shows signs of life until it is to stop, which its total deadline demands
 *   stalled  waits, without a sign of life, until it is to stop
 *   alive    shows signs of life for longer than its no-progress deadline, then ends
 *   tick     ends; it has a schedule: every minute
 */
struct toys {
    struct t_store  *s;
    il              *h;
    struct il__data *data;
    char             url[T_PATH_BYTES], data_url[T_PATH_BYTES], dir[T_PATH_BYTES];
    char             schema[64]; /* of the data store, on PostgreSQL */
    struct t_event   events[WORK_EVENT_COUNT];
    struct t_event   stopped;  /* the stop hook of a run was called */
    struct t_event   returned; /* execute() of a run has returned */
    atomic_int       n_refs;   /* references to subjects that are held */
    bool             with_ticks;
};

struct toy_opts {
    enum work_mode mode;
    int64_t        shutdown_ms;
    uint32_t       runs_max;
};

/* main() of a test begins with this: -1 = go on. */
int toy_main(int argc, char **argv);

void toys_init(struct toys *t, struct t_store *s);
void toys_release(struct toys *t); /* all references were dropped */
/* An executor of this process on a handle of the caller's; close it with work_close(). */
struct work *toy_open(struct toys *t, il *h, struct toy_opts o);
/* An executor in a process of its own. Closing its stdin ends it. */
void toy_spawn(struct toys *t, struct t_proc *p);

/* Create a slot; the run's id goes to `id`. */
void toy_slot(struct toys *t, const char *name, char id[IL_ID_BYTES_MAX + 1]);

struct toy_run {
    il_run_state state;
    int32_t      progress;
    uint64_t     fence;
    char         error[WORK_TEXT_BYTES], stage[WORK_STAGE_BYTES_MAX + 1];
};
struct toy_run toy_look(struct toys *t, const char *id);
/* Wait until the run is in this state; fails if it ends in another one. */
struct toy_run toy_await(struct toys *t, const char *id, il_run_state state);
/* How many runs of the subject have begun, in all processes; id NULL = any run. */
size_t toy_begun(const struct toys *t, const char *name, const char *id);

#endif
