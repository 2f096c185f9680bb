/*
 * queue.c: pushing jobs, and a worker that does them.
 *
 * A job is claimed by one worker at a time and finished once. A worker that dies is noticed: its
 * claim runs out, and the job is claimed again, so what a job does must bear being begun twice.
 * il_lease_fence() of il_job_lease() is the token of this attempt, which a resource can compare.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <interlock.h>

/* On the watchdog's thread: the claim is lost, or somebody cancels the job. */
static void
on_stop(void *cookie, il_job *job, const char *why)
{
    atomic_int *stop = cookie;

    fprintf(stderr, "job %s: %s\n", il_job_look(job)->id, why);
    atomic_store(stop, 1);
}

/* Do one job. The status of what was reported about it: IL_STALE = it is not ours any more. */
static il_status
do_job(il_job *job, const atomic_int *stop, il_error *err)
{
    const il_job_info *info = il_job_look(job); /* as it was claimed */
    char               result[128];

    printf("attempt %u of '%s'\n", info->attempt, (const char *)info->payload);
    if (strcmp(info->payload, "send mail") == 0 && info->attempt == 1)
        return il_job_fail(job, "the mail server is asleep", 0, 50, err); /* again in 50 ms */
    if (il_job_progress(job, 50, "half of it", err) == IL_STALE || atomic_load(stop))
        return IL_STALE;
    int n = snprintf(result, sizeof result, "did %s", (const char *)info->payload);
    return il_job_finish(job, result, (size_t)n, err);
}

/* Work until there has been nothing to do for half a second. How many jobs were done. */
static int
work(il *store, il_error *err)
{
    atomic_int    stop   = 0;
    int           n_done = 0;
    il_claim_opts opts   = IL_CLAIM_OPTS_INIT;

    opts.limit     = 2;
    opts.wait_ms   = 500;
    opts.on_lost   = on_stop;
    opts.on_cancel = on_stop;
    opts.cookie    = &stop;
    for (;;) {
        il_job   *jobs[2];
        size_t    n  = 0;
        il_status st = il_claim(store, "chores", &opts, jobs, &n, err);
        if (st != IL_OK)
            return st == IL_EMPTY ? n_done : -1;
        for (size_t i = 0; i < n; i++) {
            if (do_job(jobs[i], &stop, err) == IL_OK)
                n_done++;
            il_job_free(jobs[i]);
        }
    }
}

int
main(int argc, char **argv)
{
    il          *store = NULL;
    il_push_opts opts  = IL_PUSH_OPTS_INIT;
    il_error     err   = { .status = IL_OK };
    char         id[IL_ID_BYTES_MAX + 1], same[IL_ID_BYTES_MAX + 1];

    opts.unique_key = "mail"; /* no second one while the first is not done */
    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK ||
        il_push(store, "chores", "send mail", 9, &opts, id, &err) != IL_OK ||
        il_push(store, "chores", "sweep the floor", 15, NULL, NULL, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        il_close(store);
        return il_status_exit(err.status);
    }
    il_status again = il_push(store, "chores", "send mail", 9, &opts, same, &err);
    printf("pushed twice: %s, %s id\n", il_status_name(again),
           strcmp(id, same) == 0 ? "the same" : "another");

    /* three attempts, of which one failed: reported, so done with */
    int n_done = work(store, &err);
    il_close(store);
    return again == IL_DUPLICATE && strcmp(id, same) == 0 && n_done == 3 ? 0 : 1;
}
