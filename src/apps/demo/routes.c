/*
 * routes.c: the buttons of the demo. Each of them does something to a real process of the demo, or
 * real requests, and says what to watch then.
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "apps/demo/demo.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/auth.h"
#include "http/handler.h"
#include "http/server.h"
#include "wire/table.h"

#define LOOK_MS 100       /* how often to check whether something has happened */
#define PATIENCE_MS 15000 /* for it to happen */
/* Pause a holder only if its command will not end by itself before the lease does. */
#define HELD_MS_MAX (DEMO_EXPORT_MS - DEMO_LEASE_MS - 1000)
#define JOB_PAYLOAD "{\"to\":\"you\",\"seconds\":8}"
#define JOB_PRIORITY (-100) /* before all others */

static struct demo_app *
app_of(const struct http_request *r)
{
    return http_app_state(r->server, &demo_http_app);
}

/* May the caller kill and pause the demo's processes? False: the request has been answered. */
static bool
is_ours(struct http_request *r)
{
    bool ours = strcmp(r->caller->tenant, DEMO_TENANT) == 0;

    if (!ours)
        http_refuse(r, NULL, "only keys of the tenant " DEMO_TENANT " can use the demo");
    return ours;
}

/* ---- what can be tried ----------------------------------------------------------------------- */

struct button {
    const char *name, *title, *what, *watch, *path;
};

enum {
    TRIGGER_TEN,
    KILL_WORKER,
    PAUSE_HOLDER,
};

static const struct button buttons[] = {
    [TRIGGER_TEN]  = { "trigger-ten", "Trigger it ten times at once",
                       "Ten clients trigger the pipeline " DEMO_PIPELINE " at the same time.",
                       "One run starts, and the other nine triggers join it: they get its id.",
                       "/api/v1/demo/trigger-ten" },
    [KILL_WORKER]  = { "kill-worker", "Kill the worker",
                       "The worker of the queue " DEMO_QUEUE
                       " gets SIGKILL while it processes a job.",
                       "The job stays RUNNING until its lease of " DEMO_LEASE
                       " expires. Then the next worker claims it, as attempt 2, and completes it.",
                       "/api/v1/demo/kill-worker" },
    [PAUSE_HOLDER] = { "pause-holder", "Pause the holder",
                       "The process that holds the key " DEMO_KEY " gets SIGSTOP, so that it "
                       "cannot renew its lease.",
                       "Its lease of " DEMO_LEASE
                       " expires. Before that, its command is stopped and the "
                       "paused process killed; then the next holder gets the key, with a higher "
                       "fence.",
                       "/api/v1/demo/pause-holder" },
};

#define STRUCT struct button
#define WATCH F("watch", watch, TEXT, WIRE_NOT_NULL, "what to watch now")
static const struct wire_field button_fields[] = {
    F("name", name, TEXT, WIRE_NOT_NULL, "its name"),
    F("title", title, TEXT, WIRE_NOT_NULL, "label of the button"),
    F("what", what, TEXT, WIRE_NOT_NULL, "what it does"),
    F("watch", watch, TEXT, WIRE_NOT_NULL, "what to watch afterwards"),
    F("path", path, TEXT, WIRE_NOT_NULL, "route to POST to"),
};
static OBJECT(out_button, "DemoButton", button_fields, WIRE_ANSWER, "Something to try");
#undef STRUCT

static void
list(struct http_request *r)
{
    http_say_page(r, &out_button, buttons, sizeof *buttons, ARRAY_LEN(buttons), NULL);
}

/* ---- trigger it ten times at once ------------------------------------------------------------ */

struct ten {
    struct demo_ten sum;
    const char     *run, *watch;
    il_status       status;
    il_error        error;
};

#define STRUCT struct ten
static const struct wire_field ten_fields[] = {
    F("run_id", run, TEXT, WIRE_NOT_NULL, "id of the run that was started or joined"),
    F("started", sum.n_started, UINT32, WIRE_NOT_NULL, "triggers that started a run"),
    F("joined", sum.n_joined, UINT32, WIRE_NOT_NULL, "triggers that got the id of a running one"),
    WATCH,
};
static OBJECT(out_ten, "DemoTen", ten_fields, WIRE_ANSWER, "Outcome of ten triggers");
#undef STRUCT

/* On a thread of the pool. */
static void
do_trigger_ten(struct http_request *r)
{
    struct ten *w = r->state;

    w->status = demo_trigger_ten(app_of(r)->url, DEMO_PIPELINE, &w->sum, &w->error);
}

static void
did_trigger_ten(struct http_request *r)
{
    struct ten *w = r->state;

    w->run   = w->sum.run;
    w->watch = buttons[TRIGGER_TEN].watch;
    if (w->status == IL_OK)
        http_say(r, 200, &out_ten, w);
    else
        http_fail(r, il_status_http(w->status), il_status_name(w->status), demo_http_app.name, NULL,
                  "%s", w->error.message);
}

static void
trigger_ten(struct http_request *r)
{
    if (!is_ours(r))
        return;
    struct ten *w = http_calloc(r, sizeof *w);
    if (w == NULL)
        return;
    r->state = w;
    http_pool(r, do_trigger_ten, did_trigger_ten);
}

/* ---- processes of the demo ------------------------------------------------------------------- */

/* The first line of a file of the folder; "" if the file is missing. */
static void
read_line(const struct demo_app *app, const char *name, char out[64])
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", app->folder, name);
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(out, 64, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)fclose(file); /* was only read */
}

/* 0: it is not running. */
static pid_t
pid_of(const struct demo_app *app, const char *name)
{
    char     file[64], line[64];
    uint64_t pid = 0;

    (void)snprintf(file, sizeof file, "%s.pid", name);
    read_line(app, file, line);
    return il__parse_u64(line, INT32_MAX, &pid) && pid > 1 ? (pid_t)pid : 0;
}

/* Waiting for the moment at which the worker or a holder is at work. */
struct moment {
    int64_t     until_ns;
    const char *job; /* its id */
};

static struct moment *
await_moment(struct http_request *r)
{
    struct moment *m = http_calloc(r, sizeof *m);

    if (m == NULL)
        return NULL;
    m->until_ns = il__clock_boot_ns() + PATIENCE_MS * (int64_t)IL__NS_PER_MS;
    r->state    = m;
    return m;
}

/* Not yet: look again, unless it has taken too long. */
static void
look_again(struct http_request *r, http_fn *look)
{
    const struct moment *m = r->state;

    il_op_release(&r->op);
    if (r->server->stopping) /* nothing is delayed any more */
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
    else if (il__clock_boot_ns() < m->until_ns)
        http_delay(r, LOOK_MS, look);
    else
        http_fail(r, 503, "DEMO_NOT_READY", demo_http_app.name, NULL,
                  "the worker or the holder of the demo is not running; try again");
}

/* What was done to which process. */
struct done {
    const char *name, *id, *watch;
    uint64_t    fence;
    int64_t     pid, expires_ms;
};

/* ---- kill the worker ------------------------------------------------------------------------- */

#define STRUCT struct done
static const struct wire_field killed_fields[] = {
    F("queue", name, TEXT, WIRE_NOT_NULL, "queue of the worker"),
    F("job_id", id, TEXT, WIRE_NOT_NULL, "id of the job that it was working on"),
    F("attempt", fence, UINT64, WIRE_NOT_NULL, "number of the attempt that was killed"),
    F("pid", pid, INT64, WIRE_NOT_NULL, "process id of the worker"),
    F("expires_at", expires_ms, TIME, 0,
      "when its lease expires, and another worker can claim the job"),
    WATCH,
};
static OBJECT(out_killed, "DemoKilled", killed_fields, WIRE_ANSWER, "A worker that was killed");
#undef STRUCT

static void look_at_job(struct http_request *r);

/* Only once its command runs: a server takes back a job if the worker dies before it has heard of
 * it. */
static void
kill_it(struct http_request *r)
{
    const il_job_info *job = r->op.status == IL_OK ? r->op.out.jobs : NULL;
    pid_t              pid = pid_of(app_of(r), DEMO_WORKER);
    char               at_work[64];

    read_line(app_of(r), DEMO_AT_WORK, at_work);
    if (job == NULL || job->state != IL_JOB_RUNNING || strcmp(at_work, job->id) != 0 || pid == 0 ||
        kill(pid, SIGKILL) != 0) {
        look_again(r, look_at_job);
        return;
    }
    http_say(r, 200, &out_killed,
             &(struct done){ .name       = DEMO_QUEUE,
                             .id         = job->id,
                             .fence      = job->attempt,
                             .pid        = pid,
                             .expires_ms = http_at_ms(job->remaining_ms),
                             .watch      = buttons[KILL_WORKER].watch });
}

static void
look_at_job(struct http_request *r)
{
    const struct moment *m = r->state;

    r->op = (il_op){ .type = IL_OP_JOB_GET, .in.job.id = m->job };
    http_do_ops(r, &r->op, 1, 0, kill_it);
}

static void
pushed(struct http_request *r)
{
    if (r->op.status != IL_OK) {
        http_fail_op(r, &r->op, NULL);
        return;
    }
    il_op_release(&r->op);
    look_at_job(r);
}

/* A job of its own, so that the worker is at work for certain. */
static void
kill_worker(struct http_request *r)
{
    struct moment *m = is_ours(r) ? await_moment(r) : NULL;

    if (m == NULL || (m->job = http_new_id(r, 0)) == NULL)
        return;
    r->op                   = (il_op){ .type = IL_OP_JOB_PUSH, .key = DEMO_QUEUE };
    r->op.in.job.id         = m->job;
    r->op.in.job.data       = JOB_PAYLOAD;
    r->op.in.job.data_bytes = strlen(JOB_PAYLOAD);
    r->op.in.job.priority   = JOB_PRIORITY;
    http_do_ops(r, &r->op, 1, 0, pushed);
}

/* ---- pause the holder ------------------------------------------------------------------------ */

#define STRUCT struct done
static const struct wire_field paused_fields[] = {
    F("key", name, TEXT, WIRE_NOT_NULL, "key that it holds"),
    F("holder", id, TEXT, WIRE_NOT_NULL, "name of the holder"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "its fence; that of the next holder is higher"),
    F("pid", pid, INT64, WIRE_NOT_NULL, "process id of the holder"),
    F("expires_at", expires_ms, TIME, 0, "when its lease expires"),
    WATCH,
};
static OBJECT(out_paused, "DemoPaused", paused_fields, WIRE_ANSWER, "A holder that was paused");
#undef STRUCT

/* The process that holds the key, if it is one of the demo's: anybody could write a process id into
 * the meta text of a lease. 0: it is not. */
static pid_t
holder_of(const struct demo_app *app, const il_lease_info *lease)
{
    json_t *meta = json_loads(lease->meta, 0, NULL);
    pid_t   pid  = (pid_t)json_integer_value(json_object_get(meta, "pid"));

    json_decref(meta);
    return pid == pid_of(app, DEMO_HOLDER_1) || pid == pid_of(app, DEMO_HOLDER_2) ? pid : 0;
}

static void look_at_key(struct http_request *r);

static void
pause_it(struct http_request *r)
{
    const il_lease_info *lease =
        r->op.status == IL_OK && r->op.out.n_items > 0 ? r->op.out.items : NULL;
    bool  good = lease != NULL && lease->state == IL_LEASE_HELD && lease->age_ms < HELD_MS_MAX;
    pid_t pid  = good ? holder_of(app_of(r), lease) : 0;

    if (pid == 0 || kill(pid, SIGSTOP) != 0) {
        look_again(r, look_at_key);
        return;
    }
    http_say(r, 200, &out_paused,
             &(struct done){ .name       = DEMO_KEY,
                             .id         = lease->holder,
                             .fence      = lease->fence,
                             .pid        = pid,
                             .expires_ms = http_at_ms(lease->remaining_ms),
                             .watch      = buttons[PAUSE_HOLDER].watch });
}

static void
look_at_key(struct http_request *r)
{
    r->op = (il_op){ .type = IL_OP_GET, .key = DEMO_KEY };
    http_do_ops(r, &r->op, 1, 0, pause_it);
}

static void
pause_holder(struct http_request *r)
{
    if (is_ours(r) && await_moment(r) != NULL)
        look_at_key(r);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define BUTTON(i, id_, fn_, answer_, summary_)                                                     \
    {                                                                                              \
        .method = "POST", .path = "/demo/" i, .permission = HTTP_ACCESS(operator, ALL), .id = id_, \
        .fn = fn_, .answer = answer_, .summary = summary_                                          \
    }
const struct http_route demo_routes[DEMO_ROUTES] = {
    { .method     = "GET",
      .path       = "/demo",
      .permission = HTTP_ACCESS(read, NONE),
      .id         = "demo_list",
      .fn         = list,
      .answer     = &out_button,
      .flags      = HTTP_PAGE,
      .summary    = "List what can be tried in the demo, and what to watch" },
    BUTTON("trigger-ten", "demo_trigger_ten", trigger_ten, &out_ten,
           "Trigger a pipeline ten times at once: one run starts, nine join it"),
    BUTTON("kill-worker", "demo_kill_worker", kill_worker, &out_killed,
           "Kill the worker of a queue while it works on a job"),
    BUTTON("pause-holder", "demo_pause_holder", pause_holder, &out_paused,
           "Stop the process that holds a key, until its lease has expired"),
};
