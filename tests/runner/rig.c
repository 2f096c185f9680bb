/*
 * rig.c: see rig.h.
 */
#include "rig.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/data.h"
#include "harness/clock.h"
#include "harness/postgres.h"
#include "proc/proc.h"

/* ---- notes ----------------------------------------------------------------------------------- */

static const char *const event_names[] = {
#define X(id, level, name, text) #id,
#include "apps/runner/events.def"
#undef X
};

static void
on_note(void *cookie, const struct runner_note *note)
{
    struct rig_notes *n = cookie;

    CHECK(pthread_mutex_lock(&n->mutex) == 0);
    (void)snprintf(n->last[note->event], sizeof n->last[0], "%s",
                   note->text != NULL ? note->text : "");
    CHECK(pthread_mutex_unlock(&n->mutex) == 0);
    t_event_add(&n->events[note->event]);
    if (getenv("RIG_NOTES") != NULL)
        (void)fprintf(stderr, "# %s %s %s %s\n", event_names[note->event],
                      note->run != NULL ? note->run : "-", note->step != NULL ? note->step : "-",
                      note->text != NULL ? note->text : "");
}

/* ---- runners --------------------------------------------------------------------------------- */

static struct runner_options
options(il *h, struct il__data *data, const char *url, const char *pipelines, const char *work,
        struct rig_opts o)
{
    return (struct runner_options){
        .h             = h,
        .data          = data,
        .store_url     = url,
        .pipelines_dir = pipelines,
        .work_dir      = work,
        .mode          = o.mode,
        .lease_ms      = o.lease_ms != 0 ? o.lease_ms : 3000,
        .grace_ms      = o.grace_ms != 0 ? o.grace_ms : 300,
        .shutdown_ms   = o.shutdown_ms,
        .keep_ms       = o.keep_ms,
        .runs_max      = o.runs_max,
        .limits        = o.limits,
        .defaults      = { .lock_retries = 0, .lock_retry_delay_ms = 100, .lock_metrics = true },
    };
}

static struct il__data *
open_data(const char *url, const char *data_url)
{
    struct il__data     *data;
    struct il__data_open o   = { .store_url = url,
                                 .data_url  = data_url[0] != '\0' ? data_url : NULL,
                                 .no_keys   = true };
    il_error             err = { 0 };

    if (il__data_open(&o, &data, &err) != IL_OK)
        T_FAIL("%s: %s", url, err.message);
    return data;
}

void
rig_init(struct rig *g, struct t_store *s)
{
    memset(g, 0, sizeof *g);
    g->s = s;
    t_path(g->url, "%s", s->real_url);
    t_path(g->pipelines, "%s/pipelines", s->dir);
    t_path(g->work, "%s/work", s->dir);
    t_tmp_make_plain(g->scratch, false);
    T_TRUE(mkdir(g->pipelines, 0700) == 0 && mkdir(g->work, 0700) == 0);
    if (strncmp(s->engine->name, "redis", 5) == 0)
        t_path(g->data_url, "sqlite:%s/data.db", s->dir);
    /* the stores' own schemas are emptied, not made anew */
    if (strncmp(s->engine->name, "postgres", 8) == 0) {
        static unsigned n;
        (void)snprintf(g->schema, sizeof g->schema, "il_rig_%d_%u", (int)getpid(), n++);
        t_path(g->data_url, "%s&schema=%s", t_postgres_url(), g->schema);
    }
    CHECK(pthread_mutex_init(&g->notes.mutex, NULL) == 0);
    for (size_t i = 0; i < RUNNER_EVENT_COUNT; i++)
        t_event_init(&g->notes.events[i]);
    g->h    = t_store_open_real(s);
    g->data = open_data(g->url, g->data_url);
}

struct runner *
rig_runner_on(struct rig *g, il *h, struct rig_opts o)
{
    struct runner_options opts   = options(h, g->data, g->url, g->pipelines, g->work, o);
    struct runner        *runner = NULL;
    il_error              err    = { 0 };

    opts.note        = on_note;
    opts.note_cookie = &g->notes;
    if (runner_open(&opts, &runner, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return runner;
}

struct runner *
rig_another(struct rig *g, struct rig_opts o, il **ret_h)
{
    *ret_h = t_store_open_real(g->s);
    return rig_runner_on(g, *ret_h, o);
}

void
rig_open(struct rig *g, struct rig_opts o)
{
    g->runner = rig_runner_on(g, g->h, o);
}

void
rig_reload(struct rig *g)
{
    struct runner_options opts =
        options(g->h, g->data, g->url, g->pipelines, g->work, (struct rig_opts){ 0 });
    il_error err = { 0 };

    if (runner_reload(g->runner, &opts, NULL, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

void
rig_close(struct rig *g)
{
    runner_close(g->runner);
    g->runner = NULL;
}

void
rig_release(struct rig *g)
{
    rig_close(g);
    t_tmp_remove(g->scratch);
    il__data_close(g->data);
    il_close(g->h);
    if (g->schema[0] != '\0') {
        char sql[128], out[T_PG_TEXT_BYTES];
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", g->schema);
        (void)t_postgres_ask(t_postgres_url(), sql, out);
    }
    for (size_t i = 0; i < RUNNER_EVENT_COUNT; i++)
        t_event_release(&g->notes.events[i]);
    CHECK(pthread_mutex_destroy(&g->notes.mutex) == 0);
}

void
rig_pipeline_of(struct rig *g, const char *tenant, const char *id, const char *text)
{
    char path[T_PATH_BYTES];

    t_path(path, "%s/%s", g->pipelines, tenant);
    (void)mkdir(path, 0700);
    t_path(path, "%s/%s/%s.yml", g->pipelines, tenant, id);
    t_file_write(path, text, strlen(text));
}

void
rig_pipeline(struct rig *g, const char *id, const char *fmt, ...)
{
    char    text[8192];
    int     n = snprintf(text, sizeof text, "pipeline_id: %s\n", id);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    rig_pipeline_of(g, TENANT, id, text);
}

/* ---- triggers -------------------------------------------------------------------------------- */

enum runner_answer
rig_trigger_with(struct rig *g, struct runner *r, const char *pipeline, const char *parameters,
                 char id[IL_ID_BYTES_MAX + 1], il_error *err)
{
    char                  made[37];
    char                 *outside = NULL;
    il_op                 op;
    struct pipeline      *p     = il__catalogue_get(runner_catalogue(r), TENANT, pipeline);
    json_t               *given = parameters != NULL ? json_loads(parameters, 0, NULL) : NULL;
    struct runner_trigger t     = { .tenant     = TENANT,
                                    .pipeline   = p,
                                    .id         = made,
                                    .by         = "test",
                                    .type       = "api",
                                    .parameters = given };

    (void)g;
    if (p == NULL)
        T_FAIL("there is no pipeline %s", pipeline);
    T_EQ(il_uuid(made), IL_OK);
    enum runner_answer answer = runner_trigger(r, &t, &op, &outside, err);
    (void)snprintf(id, IL_ID_BYTES_MAX + 1, "%s", op.out.n_runs > 0 ? op.out.runs[0].id : made);
    il_op_release(&op);
    il__free(outside);
    json_decref(given);
    il__pipeline_unref(p);
    return answer;
}

enum runner_answer
rig_trigger(struct rig *g, const char *pipeline, char id[IL_ID_BYTES_MAX + 1])
{
    il_error           err    = { .message = "" };
    enum runner_answer answer = rig_trigger_with(g, g->runner, pipeline, NULL, id, &err);

    if (answer == RUNNER_FAILED)
        T_FAIL("%s: %s", pipeline, err.message);
    return answer;
}

void
rig_slot(struct rig *g, const char *pipeline, char id[IL_ID_BYTES_MAX + 1])
{
    char made[37];

    T_EQ(il_uuid(made), IL_OK);
    (void)snprintf(id, IL_ID_BYTES_MAX + 1, "%s", made);
    rig_slot_as(g, pipeline, id);
}

void
rig_slot_as(struct rig *g, const char *pipeline, const char *id)
{
    il_op op = { .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT, .tenant = TENANT };
    char  key[256], meta[256];

    (void)snprintf(key, sizeof key, "%s%s", PIPELINE_KEY_PREFIX, pipeline);
    (void)snprintf(meta, sizeof meta, "{\"pipeline\":\"%s\",\"version\":\"\",\"parameters\":{}}",
                   pipeline);
    op.key           = key;
    op.in.run.id     = id;
    op.in.run.meta   = meta;
    op.in.run.policy = IL_POLICY_QUEUE;
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static il_op
get_op(const char *id)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = TENANT };

    op.in.run.id = id;
    return op;
}

static void
take_run(const il_op *op, struct rig_run *ret)
{
    const il_run_info *r = op->out.runs;

    *ret = (struct rig_run){ .state         = r->state,
                             .fence         = r->fence,
                             .progress      = r->progress,
                             .started_at_ms = r->started_at_ms,
                             .ended_at_ms   = r->ended_at_ms,
                             .n_joined      = r->n_joined,
                             .cancelled     = r->cancelled };
    (void)snprintf(ret->error, sizeof ret->error, "%s", r->error);
    (void)snprintf(ret->stage, sizeof ret->stage, "%s", r->stage);
}

struct rig_run
rig_look(struct rig *g, const char *id)
{
    struct rig_run ret;
    il_op          op = get_op(id);

    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    take_run(&op, &ret);
    il_op_release(&op);
    return ret;
}

/* Until it is there, or beyond. */
static struct rig_run
until(struct rig *g, const char *id, il_run_state state)
{
    struct rig_run ret;
    il_op          op    = get_op(id);
    int64_t        limit = t_real_ms() + 3 * SOON_MS;

    for (;;) {
        T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        take_run(&op, &ret);
        if (ret.state >= state)
            break;
        if (t_real_ms() > limit)
            T_FAIL("run %s is still %s", id, il_run_state_name(ret.state));
        IGNORE(il_wait(g->h, &op, 1000));
    }
    il_op_release(&op);
    return ret;
}

struct rig_run
rig_end(struct rig *g, const char *id, il_run_state state)
{
    struct rig_run run = until(g, id, IL_RUN_COMPLETED);

    if (run.state != state) {
        char *log = rig_log(g, id);
        T_FAIL("run %s is %s (%s), not %s; its log:\n%s", id, il_run_state_name(run.state),
               run.error, il_run_state_name(state), log);
    }
    return run;
}

void
rig_await(struct rig *g, const char *id, il_run_state state)
{
    struct rig_run run = until(g, id, state);

    if (run.state != state)
        T_FAIL("run %s is %s: %s", id, il_run_state_name(run.state), run.error);
}

void
rig_cancel(struct rig *g, const char *id)
{
    il_op op = { .type = IL_OP_RUN_CANCEL, .tenant = TENANT };

    op.in.run.id    = id;
    op.in.run.error = "the test wants it";
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

char *
rig_log(struct rig *g, const char *id)
{
    struct il__buf text = { 0 };
    il_op          op   = { .type = IL_OP_RUN_LOG, .tenant = TENANT };

    il__buf_init(&text, IL_LOG_BYTES_MAX);
    op.in.run.id = id;
    for (;;) {
        T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        size_t n = op.out.value_bytes;
        il__buf_add(&text, op.out.value, n);
        op.in.run.offset = op.out.offset + n;
        il_op_release(&op);
        if (n == 0)
            break;
    }
    char *ret = il__strdup(il__buf_str(&text));
    il__buf_release(&text);
    return ret;
}

void
rig_all_free(struct rig *g)
{
    il_op op = { .type = IL_OP_LIST, .tenant = TENANT };

    op.in.list.prefix = PIPELINE_KEY_PREFIX;
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    if (op.out.n_items > 0)
        T_FAIL("%s is held by %s", op.out.items[0].key, op.out.items[0].holder);
    il_op_release(&op);
}

/* ---- history --------------------------------------------------------------------------------- */

static void
take_step(void *cookie, const struct il__data_step *step)
{
    struct rig_steps *s = cookie;

    CHECK(s->n < ARRAY_LEN(s->items));
    struct rig_step *item = &s->items[s->n];
    (void)snprintf(s->names[s->n], sizeof s->names[0], "%s", step->step);
    s->attempts[s->n] = step->attempt;
    (void)snprintf(item->state, sizeof item->state, "%s", step->state);
    (void)snprintf(item->error, sizeof item->error, "%s", step->error);
    item->exit_code     = step->exit_code;
    item->out_bytes     = step->out_bytes;
    item->err_bytes     = step->err_bytes;
    item->started_at_ms = step->started_at_ms;
    item->ended_at_ms   = step->ended_at_ms;
    item->out           = il__strdup(step->out);
    item->err           = il__strdup(step->err);
    s->n++;
}

void
rig_steps(struct rig *g, const char *id, struct rig_steps *ret)
{
    il_error err = { 0 };

    memset(ret, 0, sizeof *ret);
    if (il__data_history_steps(g->data, TENANT, id, true, take_step, ret, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

void
rig_steps_free(struct rig_steps *s)
{
    for (size_t i = 0; i < s->n; i++) {
        il__free(s->items[i].out);
        il__free(s->items[i].err);
    }
    s->n = 0;
}

const struct rig_step *
rig_step(const struct rig_steps *s, const char *step)
{
    const struct rig_step *found = NULL;

    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->names[i], step) == 0)
            found = &s->items[i];
    }
    if (found == NULL)
        T_FAIL("history has no step %s", step);
    return found;
}

/* ---- files ----------------------------------------------------------------------------------- */

long
rig_number(struct rig *g, const char *name)
{
    char    path[T_PATH_BYTES];
    int64_t limit = t_real_ms() + SOON_MS;
    long    n     = 0;

    t_path(path, "%s/%s", g->scratch, name);
    while (n == 0) {
        if (t_real_ms() > limit)
            T_FAIL("%s was not written", path);
        if (t_file_exists(path)) {
            char *text = t_file_read(path, NULL);
            if (strchr(text, '\n') != NULL)
                n = strtol(text, NULL, 10);
            free(text);
        }
        if (n == 0)
            (void)poll(NULL, 0, 5);
    }
    return n;
}

size_t
rig_lines(struct rig *g, const char *name)
{
    char   path[T_PATH_BYTES];
    size_t n = 0;

    t_path(path, "%s/%s", g->scratch, name);
    if (!t_file_exists(path))
        return 0;
    char *text = t_file_read(path, NULL);
    for (const char *at = text; *at != '\0'; at++)
        n += *at == '\n';
    free(text);
    return n;
}

void
rig_no_folders(struct rig *g)
{
    char    path[T_PATH_BYTES];
    int64_t limit = t_real_ms() + SOON_MS;
    size_t  n     = 1;

    t_path(path, "%s/interlock-runs", g->work);
    while (n > 0) { /* a run's folder goes after the run has ended */
        DIR *d = opendir(path);
        if (d == NULL)
            return;
        n = 0;
        const struct dirent *entry;
        while ((entry = readdir(d)) != NULL)
            n += entry->d_name[0] != '.';
        (void)closedir(d);
        if (n > 0 && t_real_ms() > limit)
            T_FAIL("%zu folders are left in %s", n, path);
        if (n > 0)
            (void)poll(NULL, 0, 5);
    }
}

/* ---- a process ------------------------------------------------------------------------------- */

static void
print_note(void *cookie, const struct runner_note *note)
{
    (void)cookie;
    (void)printf("%s %s %s\n", event_names[note->event], note->run != NULL ? note->run : "-",
                 note->text != NULL ? note->text : "");
    (void)fflush(stdout);
}

/* runner URL DATA PIPELINES WORK LEASE GRACE */
static int
runner_main(char **argv)
{
    il            *h      = NULL;
    struct runner *runner = NULL;
    il_error       err    = { 0 };

    if (il_open(argv[2], NULL, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    struct il__data      *data = open_data(argv[2], argv[3]);
    struct rig_opts       o    = { .lease_ms    = strtol(argv[6], NULL, 10),
                                   .grace_ms    = strtol(argv[7], NULL, 10),
                                   .shutdown_ms = strtol(argv[8], NULL, 10) };
    struct runner_options opts = options(h, data, argv[2], argv[4], argv[5], o);
    opts.note                  = print_note;
    if (runner_open(&opts, &runner, &err) != IL_OK)
        T_FAIL("%s", err.message);
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    runner_close(runner);
    il__data_close(data);
    il_close(h);
    return 0;
}

int
rig_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "spawner") == 0)
        return il__proc_spawner_main();
    if (argc == 9 && strcmp(argv[1], "runner") == 0)
        return runner_main(argv);
    return -1;
}

void
rig_spawn(struct rig *g, struct t_proc *p, struct rig_opts o)
{
    char lease[24], grace[24], shutdown[24];

    (void)snprintf(lease, sizeof lease, "%lld", (long long)o.lease_ms);
    (void)snprintf(grace, sizeof grace, "%lld", (long long)o.grace_ms);
    (void)snprintf(shutdown, sizeof shutdown, "%lld", (long long)o.shutdown_ms);
    const char *argv[] = { "/proc/self/exe", "runner", g->url, g->data_url, g->pipelines,
                           g->work,          lease,    grace,  shutdown,    NULL };
    t_proc_start(p, argv, NULL);
    T_LINE(p, "ready", SOON_MS, NULL);
}
