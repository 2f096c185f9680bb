/* runner.c: opens and closes the runner; its settings, counters and notes. */
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/error.h"

#define LOCK_TIMEOUT_MS 3600000
#define PATH_FALLBACK "/usr/local/bin:/usr/bin:/bin"

/* ---- helpers --------------------------------------------------------------------------------- */

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
        note.tenant   = e->run->tenant;
        note.pipeline = e->pipeline->id;
        note.run      = e->run->id;
        note.fence    = e->run->fence;
    }
    runner_note_full(r, note);
}

void
runner_record_join(struct runner *r, const struct il__data_join *join)
{
    work_record_join(work_recorder(r->work), join);
}

void
runner_take(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p)
{
    work_slot_created(r->work, tenant, run_id, p->id);
    il__pipeline_unref(p); /* executed with the version in the catalogue at that time */
}

void
runner_cancelled(struct runner *r, const il_run_info *run)
{
    work_cancelled(r->work, run);
}

bool
runner_is_served(il *h)
{
    return work_is_served(h, &runner_kind);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct runner_connections *
connections_new(const struct il__connection *items, size_t n)
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
    il__mutex_lock(&r->mutex);
    struct runner_connections *c = r->connections;
    c->n_refs++;
    il__mutex_unlock(&r->mutex);
    return c;
}

void
runner_connections_unref(struct runner *r, struct runner_connections *c)
{
    if (c == NULL)
        return;
    il__mutex_lock(&r->mutex);
    bool last = --c->n_refs == 0;
    il__mutex_unlock(&r->mutex);
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
on_remark(void *cookie, const struct doc_remark *remark)
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

    il__mutex_lock(&r->mutex);
    r->n_pipelines = loaded->n_pipelines;
    r->n_bad_files = loaded->n_bad;
    il__mutex_unlock(&r->mutex);
    (void)snprintf(text, sizeof text, "%zu pipelines of %zu tenants; %zu invalid files",
                   loaded->n_pipelines, loaded->n_tenants, loaded->n_bad);
    runner_note(r, RUNNER_EVENT_loaded, NULL, NULL, text);
}

static il_status
open_parts(struct runner *r, il_error *reterr)
{
    struct pipeline_loaded loaded   = { 0 };
    bool                   executes = r->o.pipelines_dir != NULL;
    il_status              st       = take_environment(r, reterr);

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
open_work(struct runner *r, il_error *reterr)
{
    struct work_options o = {
        .kind           = &runner_kind,
        .cookie         = r,
        .h              = r->o.h,
        .data           = r->o.data,
        .mode           = r->o.mode,
        .lease_ms       = r->o.lease_ms,
        .grace_ms       = r->o.grace_ms,
        .shutdown_ms    = r->o.shutdown_ms,
        .keep_ms        = r->o.keep_ms,
        .runs_max       = r->o.runs_max,
        .alert_permille = r->o.alert_permille,
    };

    return work_open(&o, &r->work, reterr);
}

il_status
runner_open(const struct runner_options *o, struct runner **ret, il_error *reterr)
{
    struct runner *r = il__calloc(1, sizeof *r);

    if (r == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a runner");
    r->o = *o;
    if (r->o.lock_timeout_ms == 0)
        r->o.lock_timeout_ms = LOCK_TIMEOUT_MS;
    /* Without pipelines nothing can be executed: a server for locks and queues needs no folder,
     * no spawner and no threads for that. */
    if (r->o.pipelines_dir == NULL)
        r->o.mode = WORK_ASK;
    il__mutex_init(&r->mutex, IL__MUTEX_runner);
    il__cond_init(&r->idle);
    il_status st = open_work(r, reterr);
    if (st == IL_OK)
        st = open_parts(r, reterr);
    if (st == IL_OK)
        st = work_start(r->work, reterr);
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
    il__mutex_lock(&r->mutex);
    struct runner_connections *before = r->connections;
    r->connections                    = fresh;
    il__mutex_unlock(&r->mutex);
    work_rescan(r->work); /* slots and ticks of newly added pipelines */
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
    work_stop(r->work);
    il__mutex_lock(&r->mutex); /* a thread that has just seen that nothing stops waits by now */
    CHECK(pthread_cond_broadcast(&r->idle) == 0);
    il__mutex_unlock(&r->mutex);
}

void
runner_close(struct runner *r)
{
    if (r == NULL)
        return;
    if (r->work != NULL)
        runner_stop(r);
    work_close(r->work);
    il__proc_spawner_close(r->spawner);
    if (r->catalogue != NULL)
        il__catalogue_close(r->catalogue);
    runner_connections_unref(r, r->connections);
    il__arena_free(&r->env_mem);
    CHECK(pthread_cond_destroy(&r->idle) == 0);
    il__mutex_destroy(&r->mutex);
    il__free(r);
}

bool
runner_is_stopping(struct runner *r)
{
    return work_is_stopping(r->work);
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
    work_stats(r->work, &ret->work);
    il__mutex_lock(&r->mutex);
    ret->n_pipelines = r->n_pipelines;
    ret->n_bad_files = r->n_bad_files;
    il__mutex_unlock(&r->mutex);
#define X(name) ret->n_##name = atomic_load(&r->n_##name);
    RUNNER_COUNTERS(X)
#undef X
}
