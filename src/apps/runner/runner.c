/* runner.c: opens and closes the runner; its settings, counters and notes. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mapping.h"

#define LEASE_MS 30000
#define LOCK_TIMEOUT_MS 3600000
#define GRACE_MS 5000
#define KEEP_MS (INT64_C(30) * 86400000)
#define RUNS_MAX 32
#define ALERT_PERMILLE 800
#define RECORDER_PATIENCE_MS 5000 /* time for the data store when the runner is closed */
#define PATH_FALLBACK "/usr/local/bin:/usr/bin:/bin"

/* ---- helpers --------------------------------------------------------------------------------- */

int
runner_thread(pthread_t *ret, void *(*main)(void *), void *arg)
{
    return il__thread_start(ret, main, arg);
}

void
runner_note_full(struct runner *r, struct runner_note note)
{
    if (r->o.note != NULL)
        r->o.note(r->o.note_cookie, &note);
}

void
runner_note(struct runner *r, enum runner_event event, const struct execution *e, const char *step,
            const char *text)
{
    struct runner_note note = {
        .event = event, .step = step, .text = text, .wait_ms = -1, .hold_ms = -1
    };

    if (e != NULL) {
        note.tenant   = e->tenant;
        note.pipeline = e->pipeline->id;
        note.run      = e->id;
        note.fence    = e->fence;
    }
    runner_note_full(r, note);
}

void
runner_trouble(struct runner *r, const char *what, const il_error *error)
{
    char    text[700];
    int64_t now_ns = il__clock_boot_ns();

    runner_lock(&r->mutex);
    bool tell = r->trouble_ns == 0 || now_ns - r->trouble_ns >= RUNNER_NS_PER_S;
    if (tell)
        r->trouble_ns = now_ns;
    runner_unlock(&r->mutex);
    if (!tell)
        return;
    (void)snprintf(text, sizeof text, "%s: %s", what, error->message);
    runner_note(r, RUNNER_EVENT_trouble, NULL, NULL, text);
}

static void
on_trouble(void *cookie, const char *what, const il_error *error)
{
    runner_trouble(cookie, what, error);
}

void
runner_joined(struct runner *r, const struct il__data_join *join)
{
    work_record_join(&r->recorder, join);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct runner_connections *
connections_new(const struct runner_connection *items, size_t n)
{
    struct runner_connections *c = il__calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->n_refs = 1;
    c->n      = n;
    c->items  = il__arena_alloc(&c->mem, (n + 1) * sizeof *c->items);
    bool ok   = c->items != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        c->items[i].name = il__arena_strdup(&c->mem, items[i].name);
        c->items[i].url  = il__arena_strdup(&c->mem, items[i].url);
        ok               = c->items[i].name != NULL && c->items[i].url != NULL;
    }
    if (ok)
        return c;
    il__arena_free(&c->mem);
    il__free(c);
    return NULL;
}

struct runner_connections *
runner_connections_ref(struct runner *r)
{
    r->connections->n_refs++;
    return r->connections;
}

void
runner_connections_unref(struct runner *r, struct runner_connections *c)
{
    if (c == NULL)
        return;
    runner_lock(&r->mutex);
    bool last = --c->n_refs == 0;
    runner_unlock(&r->mutex);
    if (!last)
        return;
    il__arena_free(&c->mem);
    il__free(c);
}

/* ---- environment ----------------------------------------------------------------------------- */

static const char *const passed[] = { "PATH",   "HOME", "LANG",    "LC_ALL", "TZ",
                                      "TMPDIR", "USER", "LOGNAME", "SHELL",  NULL };

static bool
pass_one(struct runner *r, const char *name)
{
    const char *value = getenv(name);

    if (value == NULL && strcmp(name, "PATH") == 0)
        value = PATH_FALLBACK;
    if (value == NULL || strncmp(name, "INTERLOCK_", 10) == 0)
        return true; /* a run's status is never the server's own */
    size_t n_bytes = strlen(name) + strlen(value) + 2;
    char  *text    = il__arena_alloc(&r->env_mem, n_bytes);
    if (text == NULL)
        return false;
    (void)snprintf(text, n_bytes, "%s=%s", name, value);
    r->env[r->n_env++] = text;
    return true;
}

/* Copied once, so that nothing reads the environment while another thread may change it. */
static il_status
take_environment(struct runner *r, il_error *reterr)
{
    size_t n  = ARRAY_LEN(passed);
    bool   ok = true;

    for (size_t i = 0; r->o.pass_env != NULL && r->o.pass_env[i] != NULL; i++)
        n++;
    r->env = il__arena_alloc(&r->env_mem, n * sizeof *r->env);
    if (r->env == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the environment of commands");
    for (size_t i = 0; ok && passed[i] != NULL; i++)
        ok = pass_one(r, passed[i]);
    for (size_t i = 0; ok && r->o.pass_env != NULL && r->o.pass_env[i] != NULL; i++)
        ok = pass_one(r, r->o.pass_env[i]);
    r->env[r->n_env] = NULL;
    return ok ? IL_OK
              : il__error_set(reterr, IL_NOMEM, "out of memory for the environment of commands");
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
fill_defaults(struct runner_options *o)
{
    if (o->lease_ms == 0)
        o->lease_ms = LEASE_MS;
    o->lease_ms = MAX(o->lease_ms, IL_TTL_MS_MIN);
    if (o->lock_timeout_ms == 0)
        o->lock_timeout_ms = LOCK_TIMEOUT_MS;
    if (o->grace_ms == 0)
        o->grace_ms = GRACE_MS;
    if (o->keep_ms == 0)
        o->keep_ms = KEEP_MS;
    if (o->runs_max == 0)
        o->runs_max = RUNS_MAX;
    if (o->alert_permille == 0)
        o->alert_permille = ALERT_PERMILLE;
}

/* Our identity. The nonce distinguishes this process from one that had the same pid before, or
 * has it in another container. */
static il_status
make_names(struct runner *r, il_error *reterr)
{
    char host[65] = "localhost";
    char nonce[37];

    if (gethostname(host, sizeof host) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    if (il_uuid(nonce) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    (void)snprintf(r->node, sizeof r->node, "%s:%ld", host, (long)getpid());
    (void)snprintf(r->instance, sizeof r->instance, "%s:%s", r->node, nonce + 24);
    return IL_OK;
}

static void
on_remark(void *cookie, const struct pipeline_remark *remark)
{
    struct runner     *r    = cookie;
    struct runner_note note = { .event = RUNNER_EVENT_file_refused, .wait_ms = -1, .hold_ms = -1 };
    char               text[1024], folder[IL_TENANT_BYTES_MAX + 1];

    if (!remark->is_error)
        return; /* advice is only shown by `pipelines check` */
    const char *end  = strrchr(remark->path, '/');
    const char *from = end;
    while (from != NULL && from > remark->path && from[-1] != '/')
        from--;
    if (from != NULL) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(end - from), from);
        note.tenant = folder;
    }
    (void)snprintf(text, sizeof text, "%s:%zu: %s%s%s", remark->path, remark->line, remark->field,
                   remark->field[0] != '\0' ? ": " : "", remark->text);
    note.text = text;
    runner_note_full(r, note);
}

static void
note_loaded(struct runner *r, const struct pipeline_loaded *loaded)
{
    char text[160];

    runner_lock(&r->mutex);
    r->n_pipelines = loaded->n_pipelines;
    r->n_bad_files = loaded->n_bad;
    runner_unlock(&r->mutex);
    (void)snprintf(text, sizeof text, "%zu pipelines of %zu tenants; %zu invalid files",
                   loaded->n_pipelines, loaded->n_tenants, loaded->n_bad);
    runner_note(r, RUNNER_EVENT_loaded, NULL, NULL, text);
}

static void
init_sync(struct runner *r)
{
    il__mutex_init(&r->mutex, IL__MUTEX_runner);
    il__cond_init(&r->wake);
    il__cond_init(&r->watch);
    il__cond_init(&r->tick);
    il__cond_init(&r->idle);
}

static il_status
open_parts(struct runner *r, il_error *reterr)
{
    struct pipeline_loaded loaded   = { 0 };
    bool                   executes = r->o.pipelines_dir != NULL;
    il_status              st       = make_names(r, reterr);

    if (st == IL_OK)
        st = take_environment(r, reterr);
    if (st == IL_OK && executes)
        st = runner_folder_open(r, reterr);
    if (st == IL_OK) {
        r->connections = connections_new(r->o.connections, r->o.n_connections);
        if (r->connections == NULL)
            st = il__error_set(reterr, IL_NOMEM, "out of memory for a runner");
    }
    if (st == IL_OK)
        st = il__catalogue_open(r->o.pipelines_dir, &r->o.defaults, on_remark, r, &loaded,
                                &r->catalogue, reterr);
    if (st == IL_OK) {
        note_loaded(r, &loaded);
        if (executes)
            st = il__proc_spawner_open(&r->spawner, reterr);
    }
    return st;
}

static il_status
start_threads(struct runner *r, il_error *reterr)
{
    r->recorder.data    = r->o.data;
    r->recorder.keep_ms = r->o.keep_ms;
    r->recorder.purges  = r->o.mode == RUNNER_SERVE;
    r->recorder.trouble = on_trouble;
    r->recorder.cookie  = r;
    il_status st        = work_recorder_start(&r->recorder, reterr);

    if (st != IL_OK || r->o.mode == RUNNER_ASK)
        return st;
    int rc = work_writers_start(&r->writers);
    if (rc == 0) {
        rc               = runner_thread(&r->watcher, runner_watch_main, r);
        r->watch_started = rc == 0;
    }
    if (rc == 0) {
        rc                  = runner_thread(&r->dispatcher, runner_dispatch_main, r);
        r->dispatch_started = rc == 0;
    }
    if (rc == 0 && r->o.mode == RUNNER_SERVE) {
        rc              = runner_thread(&r->ticker, runner_tick_main, r);
        r->tick_started = rc == 0;
    }
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the runner threads: %s", strerror(rc));
    return IL_OK;
}

il_status
runner_open(const struct runner_options *o, struct runner **ret, il_error *reterr)
{
    struct runner *r = il__calloc(1, sizeof *r);

    if (r == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a runner");
    r->o = *o;
    fill_defaults(&r->o);
    /* Without pipelines nothing can be executed: a server for locks and queues needs no folder,
     * no spawner and no threads for that. */
    if (r->o.pipelines_dir == NULL)
        r->o.mode = RUNNER_ASK;
    init_sync(r);
    il_status st = open_parts(r, reterr);
    if (st == IL_OK)
        st = start_threads(r, reterr);
    if (st != IL_OK) {
        runner_close(r);
        return st;
    }
    *ret = r;
    return IL_OK;
}

il_status
runner_reload(struct runner *r, const struct runner_options *o, struct pipeline_loaded *ret,
              il_error *reterr)
{
    struct pipeline_loaded     loaded = { 0 };
    struct runner_connections *fresh  = connections_new(o->connections, o->n_connections);

    if (fresh == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the connections");
    il_status st = il__catalogue_reload(r->catalogue, &o->defaults, on_remark, r, &loaded, reterr);
    if (st != IL_OK) {
        runner_connections_unref(r, fresh);
        return st;
    }
    runner_lock(&r->mutex);
    struct runner_connections *before = r->connections;
    r->connections                    = fresh;
    r->look                           = true; /* slots of newly added pipelines */
    CHECK(pthread_cond_signal(&r->wake) == 0);
    CHECK(pthread_cond_signal(&r->tick) == 0);
    runner_unlock(&r->mutex);
    runner_connections_unref(r, before);
    atomic_fetch_add(&r->n_reloads, 1);
    note_loaded(r, &loaded);
    if (ret != NULL)
        *ret = loaded;
    return IL_OK;
}

struct pipeline_catalogue *
runner_catalogue(struct runner *r)
{
    return r->catalogue;
}

/* ---- closing --------------------------------------------------------------------------------- */

void
runner_stop(struct runner *r)
{
    runner_lock(&r->mutex);
    if (!r->stopping) {
        r->stopping = true;
        r->stop_ns  = il__clock_boot_ns() + r->o.shutdown_ms * IL__NS_PER_MS;
    }
    CHECK(pthread_cond_broadcast(&r->wake) == 0);
    CHECK(pthread_cond_broadcast(&r->watch) == 0);
    CHECK(pthread_cond_broadcast(&r->tick) == 0);
    CHECK(pthread_cond_broadcast(&r->idle) == 0);
    runner_unlock(&r->mutex);
}

/* Stop every thread except the recorder, which still has to write how the runs ended. */
static void
end_threads(struct runner *r)
{
    runner_lock(&r->mutex);
    while (r->n_executions > 0)
        runner_wait(&r->idle, &r->mutex, -1);
    r->closing = true;
    CHECK(pthread_cond_broadcast(&r->wake) == 0);
    CHECK(pthread_cond_broadcast(&r->watch) == 0);
    CHECK(pthread_cond_broadcast(&r->tick) == 0);
    runner_unlock(&r->mutex);
    if (r->tick_started)
        CHECK(pthread_join(r->ticker, NULL) == 0);
    if (r->dispatch_started)
        CHECK(pthread_join(r->dispatcher, NULL) == 0); /* it has joined the run threads */
    if (r->watch_started)
        CHECK(pthread_join(r->watcher, NULL) == 0);
    work_writers_stop(&r->writers);
    work_recorder_stop(&r->recorder, RECORDER_PATIENCE_MS);
}

void
runner_close(struct runner *r)
{
    if (r == NULL)
        return;
    runner_stop(r);
    end_threads(r);
    runner_wants_release(r);
    il__proc_spawner_close(r->spawner);
    if (r->catalogue != NULL)
        il__catalogue_close(r->catalogue);
    runner_connections_unref(r, r->connections);
    il__arena_free(&r->env_mem);
    CHECK(pthread_cond_destroy(&r->wake) == 0);
    CHECK(pthread_cond_destroy(&r->watch) == 0);
    CHECK(pthread_cond_destroy(&r->tick) == 0);
    CHECK(pthread_cond_destroy(&r->idle) == 0);
    il__mutex_destroy(&r->mutex);
    il__free(r);
}

bool
runner_is_stopping(struct runner *r)
{
    runner_lock(&r->mutex);
    bool stopping = r->stopping;
    runner_unlock(&r->mutex);
    return stopping;
}

struct proc_spawner *
runner_spawner(struct runner *r)
{
    return r->spawner;
}

const char *
runner_work_dir(struct runner *r)
{
    return r->work_dir;
}

/* ---- counters -------------------------------------------------------------------------------- */

int64_t
runner_lock_timeout_ms(const struct runner *r, const struct pipeline *p)
{
    return p != NULL && p->lock_timeout_ms != 0 ? p->lock_timeout_ms : r->o.lock_timeout_ms;
}

void
runner_stats(struct runner *r, struct runner_stats *ret)
{
    *ret = (struct runner_stats){ 0 };
    runner_lock(&r->mutex);
    ret->n_pipelines = r->n_pipelines;
    ret->n_bad_files = r->n_bad_files;
    ret->n_running   = r->n_executions;
    ret->n_waiting   = r->wants.n;
    ret->n_expiring  = r->n_expiring;
    ret->n_unrenewed = r->n_unrenewed;
    runner_unlock(&r->mutex);
#define X(name) ret->n_##name = atomic_load(&r->n_##name);
    RUNNER_COUNTERS(X)
#undef X
    ret->n_history_dropped = work_records_dropped(&r->recorder);
}
