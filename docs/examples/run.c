/*
 * run.c: an execution that cannot start twice, tells how far it is, and can be asked to stop.
 *
 * The run has an id, and a row in the store that stays after its end; while it executes it holds
 * the lease of its key, which a thread of the library renews.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <interlock.h>

/* On the watchdog's thread: somebody asks the run to stop, or its lease is lost. Note it and
 * return. */
static void
on_cancel(void *cookie, il_run *run, const char *reason)
{
    atomic_int *stop = cookie;

    printf("run %.8s should stop: %s\n", il_run_id(run), reason);
    atomic_store(stop, 1);
}

static void
on_lost(void *cookie, il_run *run, const char *why)
{
    atomic_int *stop = cookie;

    printf("run %.8s has lost its lease: %s\n", il_run_id(run), why);
    atomic_store(stop, 1);
}

/* The work, in steps of 20 ms, each of which is told. */
static il_run_state
work(il_run *run, const atomic_int *stop, int n_steps)
{
    const struct timespec step = { .tv_nsec = 20000000 };
    char                  line[64];

    for (int i = 1; i <= n_steps; i++) {
        if (atomic_load(stop))
            return IL_RUN_CANCELLED;
        nanosleep(&step, NULL);
        int n = snprintf(line, sizeof line, "step %d done\n", i);
        if (il_run_stage(run, "convert", i * 100 / n_steps, line, (size_t)n, NULL) == IL_STALE)
            return IL_RUN_CANCELLED; /* it has ended otherwise: nobody wants the rest */
    }
    return IL_RUN_COMPLETED;
}

/* Start, work, finish; with `cancelled`, somebody cancels the run at its start. The state in which
 * it ended. */
static il_run_state
run_once(il *store, int cancelled, il_error *err)
{
    atomic_int   stop  = 0;
    il_run_opts  opts  = IL_RUN_OPTS_INIT;
    il_run      *run   = NULL;
    il_run      *other = NULL;
    il_op        op    = { .type = IL_OP_NONE };
    il_run_state state;

    opts.policy    = IL_POLICY_JOIN; /* if one is running already, tell me which */
    opts.trigger   = "manual";
    opts.on_cancel = on_cancel;
    opts.on_lost   = on_lost;
    opts.cookie    = &stop;
    if (il_run_start(store, "pipeline:daily", &opts, &run, NULL, err) != IL_OK)
        return IL_RUN_NONE;

    /* A second start does not start. */
    if (il_run_start(store, "pipeline:daily", &opts, &other, &op, err) == IL_DUPLICATE)
        printf("it runs already: %s\n", op.out.runs->id);
    il_op_release(&op);

    if (cancelled && il_run_cancel(store, il_run_id(run), "the data is not ready", err) != IL_OK)
        printf("%s\n", err->message);
    state = work(run, &stop, cancelled ? 1000 : 5);
    if (il_run_finish(run, state, NULL, err) != IL_OK)
        state = IL_RUN_NONE;

    /* Its row stays. Somebody who only waits for the end of a run calls il_run_wait(). */
    if (state != IL_RUN_NONE && il_run_wait(store, il_run_id(run), 1000, &op, err) == IL_OK)
        printf("%s at %d %%\n", il_run_state_name(op.out.runs->state), op.out.runs->progress);
    il_op_release(&op);
    il_run_free(run);
    return state;
}

int
main(int argc, char **argv)
{
    il      *store = NULL;
    il_error err   = { .status = IL_OK };

    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return il_status_exit(err.status);
    }
    il_run_state undisturbed = run_once(store, 0, &err);
    il_run_state cancelled   = run_once(store, 1, &err);
    il_close(store);
    return undisturbed == IL_RUN_COMPLETED && cancelled == IL_RUN_CANCELLED ? 0 : 1;
}
