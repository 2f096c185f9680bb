/*
 * runner.c: the cost of running a command in a server (src/proc: spawner and reaper), and of
 * running a pipeline with one step, each compared with just starting the same command and waiting
 * for it. Ours and the baseline alternate.
 */
#include "apps/runner/runner.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "data/data.h"
#include "proc/proc.h"

#define N_BLOCKS 5 /* rounds of the result: each the median of a block */
#define N_PER_BLOCK 100
#define N_PER_BLOCK_QUICK 2
#define COMMAND "/bin/true"
#define TENANT "bench"

/* One side of a comparison: run once. Returns the time it was done; 0: now. */
typedef int64_t once_fn(void *cookie);

/* The baseline: the obvious implementation. */
static int64_t
run_bare(void *cookie UNUSED)
{
    static char path[] = COMMAND;
    char *const argv[] = { path, NULL };
    pid_t       pid;
    int         status;

    int rc = posix_spawn(&pid, path, NULL, NULL, argv, environ);
    if (rc != 0)
        die("%s: %s", path, strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("%s failed", path);
    return 0;
}

static int64_t
time_once(once_fn *fn, void *cookie)
{
    int64_t start_ns = il__clock_boot_ns();
    int64_t done_ns  = fn(cookie);

    return (done_ns != 0 ? done_ns : il__clock_boot_ns()) - start_ns;
}

static void
compare(struct bench *b, struct result *r, once_fn *ours, void *cookie)
{
    struct samples all[2] = { 0 };
    unsigned       n      = b->quick ? N_PER_BLOCK_QUICK : N_PER_BLOCK;

    r->n_rounds = b->quick ? 2 : N_BLOCKS;
    for (unsigned i = 0; i < N_PER_BLOCK_QUICK; i++) { /* so that everything is loaded and cached */
        (void)ours(cookie);
        (void)run_bare(NULL);
    }
    for (unsigned i = 0; i < r->n_rounds; i++) {
        struct samples block[2] = { 0 };
        for (unsigned j = 0; j < n; j++) {
            samples_add(&block[0], time_once(ours, cookie));
            samples_add(&block[1], time_once(run_bare, NULL));
        }
        r->ours[i]     = (double)samples_quantiles(&block[0]).p50_ns;
        r->baseline[i] = (double)samples_quantiles(&block[1]).p50_ns;
        for (size_t k = 0; k < 2; k++) {
            samples_add_all(&all[k], &block[k]);
            samples_release(&block[k]);
        }
    }
    r->ours_latency     = samples_quantiles(&all[0]);
    r->baseline_latency = samples_quantiles(&all[1]);
    samples_release(&all[0]);
    samples_release(&all[1]);
    report_add(&b->report, r);
}

/*
 * Executed as /proc/self/exe. The spawner under test is that of the interlock binary, though: this
 * program links the libraries of all peers, which makes a fork several times as expensive.
 */
#define BINARY_VARIABLE "LD_INTERLOCK_BENCH_BINARY" /* LD_: a spawner gets no other variables */

int
bench_spawner(void)
{
    const char *binary = getenv(BINARY_VARIABLE);

    if (binary != NULL)
        (void)execl(binary, binary, "spawner", (char *)NULL);
    return 1;
}

static void
name_binary(const struct bench *b)
{
    CHECK(setenv(BINARY_VARIABLE, b->binary, 1) == 0);
}

/* ---- a command ------------------------------------------------------------------------------- */

/* With everything a step has: a lease deadline, a time limit, pipes for its output. */
static int64_t
run_command(void *cookie)
{
    static char        path[] = COMMAND;
    char *const        argv[] = { path, NULL };
    struct proc_child  c      = PROC_CHILD_NONE;
    struct proc_report report = { .end = PROC_END_NONE };
    struct proc_spec   spec   = { .argv        = argv,
                                  .env         = environ,
                                  .cwd         = "/",
                                  .grace_ms    = 1000,
                                  .timeout_ms  = 60000,
                                  .deadline_ns = il__clock_boot_ns() + 60 * BENCH_NS_PER_S };
    il_error           err    = { 0 };

    must(il__proc_start(cookie, &spec, &c, &err), path, &err);
    while (report.end == PROC_END_NONE) {
        struct pollfd fd = { c.ctl, POLLIN, 0 };
        (void)poll(&fd, 1, -1);
        il__proc_report(&c, &report);
    }
    if (report.end != PROC_END_EXITED || report.wait_status != 0)
        die("%s failed under the spawner", path);
    il__proc_finish(&c);
    return 0;
}

void
bench_command(struct bench *b, unsigned unused UNUSED)
{
    struct result        r   = { .name         = "command",
                                 .what         = "true under spawner and reaper",
                                 .against      = "posix_spawn() and waitpid() of true",
                                 .durability   = BENCH_MEMORY,
                                 .unit         = UNIT_NS,
                                 .wanted       = WANTED_RATIO_AT_MOST,
                                 .wanted_value = 2 };
    struct proc_spawner *s   = NULL;
    il_error             err = { 0 };

    name_binary(b);
    must(il__proc_spawner_open(&s, &err), "spawner", &err);
    compare(b, &r, run_command, s);
    il__proc_spawner_close(s);
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct rig {
    struct runner   *runner;
    struct pipeline *pipeline;
    pthread_mutex_t  mutex;
    pthread_cond_t   cond;
    unsigned         n_ended; /* under the mutex, as the next one */
    int64_t          step_ns; /* when the command of the last run had ended */
    unsigned         n_seen;
    bool             whole; /* time it to the end of the run, not of its command */
};

static void
on_note(void *cookie, const struct runner_note *note)
{
    struct rig *g = cookie;

    if (note->event != RUNNER_EVENT_run_ended && note->event != RUNNER_EVENT_step_ended)
        return;
    CHECK(pthread_mutex_lock(&g->mutex) == 0);
    if (note->event == RUNNER_EVENT_step_ended)
        g->step_ns = il__clock_boot_ns();
    else
        g->n_ended++;
    CHECK(pthread_cond_signal(&g->cond) == 0);
    CHECK(pthread_mutex_unlock(&g->mutex) == 0);
}

/* From the durable trigger to the end of its command, or to the durable end of the run with its
 * history. The next one starts after the latter in either case. */
static int64_t
run_pipeline(void *cookie)
{
    struct rig           *g = cookie;
    char                  id[37];
    char                 *outside = NULL;
    il_op                 op;
    il_error              err = { 0 };
    struct runner_trigger t   = {
          .tenant = TENANT, .pipeline = g->pipeline, .id = id, .by = "bench", .type = "api"
    };

    must(il_uuid(id), "il_uuid", NULL);
    if (runner_trigger(g->runner, &t, &op, &outside, &err) != RUNNER_TRIGGERED)
        die("trigger: %s", err.message);
    il_op_release(&op);
    il__free(outside);
    g->n_seen++;
    CHECK(pthread_mutex_lock(&g->mutex) == 0);
    while (g->n_ended < g->n_seen)
        CHECK(pthread_cond_wait(&g->cond, &g->mutex) == 0);
    int64_t step_ns = g->step_ns;
    CHECK(pthread_mutex_unlock(&g->mutex) == 0);
    return g->whole ? 0 : step_ns;
}

static void
write_pipeline(const struct bench *b, char dir[BENCH_PATH_BYTES])
{
    char path[BENCH_PATH_BYTES];

    (void)temp_path(b, "pipelines", dir);
    (void)temp_path(b, "pipelines/" TENANT, path);
    if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || (mkdir(path, 0700) != 0 && errno != EEXIST))
        die("%s: %s", path, strerror(errno));
    FILE *file = fopen(temp_path(b, "pipelines/" TENANT "/one.yml", path), "we");
    if (file == NULL ||
        fputs("pipeline_id: one\nsteps:\n  - step_id: only\n    type: command\n    run: [\"" COMMAND
              "\"]\n",
              file) < 0 ||
        fclose(file) != 0)
        die("%s: %s", path, strerror(errno));
}

void
bench_run(struct bench *b, unsigned whole)
{
    struct result    r = { .name         = whole != 0 ? "run-whole" : "run-start",
                           .what         = whole != 0 ? "one step: trigger to end, with history"
                                                      : "one step: trigger to its command's end",
                           .against      = "posix_spawn() and waitpid() of true",
                           .durability   = BENCH_FULL,
                           .unit         = UNIT_NS,
                           .wanted       = whole != 0 ? WANTED_NOTHING : WANTED_RATIO_AT_MOST,
                           .wanted_value = whole != 0 ? 0 : 3 };
    struct rig       g = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                           .cond  = PTHREAD_COND_INITIALIZER,
                           .whole = whole != 0 };
    char             path[BENCH_PATH_BYTES];
    char             dir[BENCH_PATH_BYTES];
    char             url[BENCH_PATH_BYTES + 16];
    il_error         err  = { 0 };
    struct il__data *data = NULL;

    name_binary(b);
    write_pipeline(b, dir);
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "runs.db", path));
    il                  *h   = store_open(url, NULL);
    struct il__data_open how = { .store_url = url, .no_keys = true };
    must(il__data_open(&how, &data, &err), url, &err);
    struct runner_options opts = { .h             = h,
                                   .data          = data,
                                   .store_url     = url,
                                   .pipelines_dir = dir,
                                   .work_dir      = b->dir,
                                   .lease_ms      = 30000,
                                   .grace_ms      = 5000,
                                   .note          = on_note,
                                   .note_cookie   = &g };
    must(runner_open(&opts, &g.runner, &err), "runner", &err);
    g.pipeline = il__catalogue_get(runner_catalogue(g.runner), TENANT, "one");
    if (g.pipeline == NULL)
        die("the pipeline was not read");
    compare(b, &r, run_pipeline, &g);
    il__pipeline_unref(g.pipeline);
    runner_close(g.runner);
    il__data_close(data);
    il_close(h);
    temp_remove_database(path);
}
