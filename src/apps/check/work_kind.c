/*
 * work_kind.c: invariants as a kind of work (apps/work/work.h): which exist, when they are due, and
 * how one is executed.
 */
#include "apps/check/serve.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#define PURGE_NS (INT64_C(3600) * 1000 * IL__NS_PER_MS)
#define PURGE_ROWS 1000
#define KEEP_MS (2 * (int64_t)CHECK_CATCH_UP_MS) /* of a run in the store */
/* A run that does not end by itself: its own timeout, connecting, closing, and then some. */
#define BACKSTOP_MS 60000

_Static_assert(2 * CHECK_NAME_BYTES_MAX <= WORK_NAME_BYTES_MAX, "a name is that of a subject");

/* ---- what exists ----------------------------------------------------------------------------- */

/* A reference to a subject is one to its set. */
static void *
hold(const struct check_subject *s)
{
    il__check_current_ref(s->set);
    return (void *)(uintptr_t)s; /* work passes subjects on as they are */
}

static void *
find(void *cookie, const char *tenant, const char *name)
{
    struct check_current       *c       = il__check_app_current(cookie);
    const struct check_subject *s       = il__check_subject_get(c, tenant, name);
    void                       *subject = s != NULL && s->check->fault == NULL ? hold(s) : NULL;

    il__check_current_unref(c);
    return subject;
}

static void *
ref(void *subject)
{
    return hold(subject);
}

static void
drop(void *subject)
{
    il__check_current_unref(((struct check_subject *)subject)->set);
}

static void
plan(void *cookie UNUSED, const void *subject, struct work_plan *ret)
{
    const struct check *c = ((const struct check_subject *)subject)->check;

    *ret = (struct work_plan){
        .tenant      = c->tenant,
        .name        = c->name,
        .version     = "",
        .timeout_ms  = c->timeout_ms + BACKSTOP_MS,
        .cron        = &c->schedule,
        .zone        = c->zone,
        .catch_up_ms = CHECK_CATCH_UP_MS,
        .on_success  = c->on_success,
        .on_failure  = c->on_failure,
        .on_lost     = c->on_lost,
    };
}

static void
tenants(void *cookie, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    struct check_current *c    = il__check_app_current(cookie);
    const char           *last = NULL;
    bool                  more = true;

    for (size_t i = 0; i < c->n && more; i++) {
        const char *tenant = c->subjects[i].check->tenant;
        if (tenant[0] != '\0' && (last == NULL || strcmp(tenant, last) != 0))
            more = each(each_cookie, tenant);
        last = tenant;
    }
    il__check_current_unref(c);
}

static size_t
list(void *cookie, const char *after_tenant, const char *after_name, void **subjects, size_t n)
{
    struct check_current       *c       = il__check_app_current(cookie);
    const struct check_subject *end     = c->subjects + c->n;
    const struct check_subject *s       = c->subjects;
    size_t                      n_found = 0;

    if (after_tenant != NULL)
        s = il__check_subject_from(c, after_tenant, after_name, true);
    for (; s < end && n_found < n; s++) {
        if (s->check->fault == NULL)
            subjects[n_found++] = hold(s);
    }
    il__check_current_unref(c);
    return n_found;
}

/* ---- starting -------------------------------------------------------------------------------- */

static il_status
start_op(const struct work_start *s, void **mem, il_op *op, il_error *reterr)
{
    struct work_start all = *s;

    all.class  = CHECK_CLASS;
    all.policy = IL_POLICY_JOIN; /* one that is running says the same */
    return work_start_op(&all, mem, op, reterr);
}

il_status
il__check_start_op(const struct check *c, const char *id, const char *by, void **mem, il_op *op,
                   il_error *reterr)
{
    struct work_start s = {
        .tenant = c->tenant, .name = c->name, .id = id, .by = by, .type = "api", .keep_ms = KEEP_MS
    };

    return start_op(&s, mem, op, reterr);
}

static il_status
tick_op(void *cookie UNUSED, const struct work_tick *tick, void **mem, il_op *op, il_error *reterr)
{
    struct work_start s = { .tenant  = tick->plan.tenant,
                            .name    = tick->plan.name,
                            .id      = tick->id,
                            .by      = "schedule",
                            .type    = "schedule",
                            .keep_ms = tick->keep_ms };

    return start_op(&s, mem, op, reterr);
}

/* ---- executing ------------------------------------------------------------------------------- */

/* An invariant that is being checked. */
struct doing {
    struct check_app           *app;
    const struct check_current *set;
    struct work_run            *run;
    struct il__mutex            mutex; /* protects the rest */
    il_guard                   *guard; /* open; NULL: none */
    int64_t                     deadline_ns;
    bool                        stopped;
};

static il_status
url_of(void *cookie, const char *connection, char **ret, il_error *reterr)
{
    const struct check_current *c = ((const struct doing *)cookie)->set;

    for (size_t i = 0; i < c->n_connections; i++) {
        if (strcmp(c->connections[i].name, connection) != 0)
            continue;
        *ret = il__strdup(c->connections[i].url);
        return *ret != NULL ? IL_OK : il__error_nomem(reterr);
    }
    return il__error_set(reterr, IL_NOT_FOUND, "connection '%.64s' is not configured", connection);
}

static il_status
tables_of(void *cookie, const struct http_app *app, il_guard **ret, il_error *reterr)
{
    const struct doing *d = cookie;
    struct tables_opts  o = { .conns_max = 1, .existing = true };

    return il__tables_open(app->tables, d->app->place, &o, ret, reterr);
}

/* The handle is open, or (NULL) about to be closed. Under the mutex, so that it is interrupted only
 * in between; and a stop that came before it was open is not missed. */
static void
watch(void *cookie, il_guard *g, int64_t deadline_ns)
{
    struct doing *d = cookie;

    il__mutex_lock(&d->mutex);
    d->guard       = g;
    d->deadline_ns = deadline_ns;
    if (g != NULL && d->stopped)
        il_guard_interrupt(g);
    il__mutex_unlock(&d->mutex);
    work_run_poke(d->run);
}

static void
on_stop(void *cookie)
{
    struct doing *d = cookie;

    il__mutex_lock(&d->mutex);
    d->stopped = true;
    if (d->guard != NULL)
        il_guard_interrupt(d->guard);
    il__mutex_unlock(&d->mutex);
}

static int64_t
on_watch(void *cookie, int64_t now_ns)
{
    struct doing *d = cookie;

    il__mutex_lock(&d->mutex);
    if (d->guard != NULL && d->deadline_ns <= now_ns) {
        il_guard_interrupt(d->guard);
        d->deadline_ns = INT64_MAX; /* once is enough */
    }
    int64_t next_ns = d->guard != NULL ? d->deadline_ns : INT64_MAX;
    il__mutex_unlock(&d->mutex);
    return next_ns;
}

/* True: it was checked, whatever was found. */
static bool
keep(struct doing *d, const struct check_result *r)
{
    il_error err = { 0 };

    if (work_run_should_stop(d->run))
        return false; /* the result says nothing: it was interrupted */
    if (r->outcome == CHECK_SKIPPED)
        return true;
    if (il__check_conclude(d->app, d->run->h, r, d->run->id, &err) != IL_OK) {
        il__check_trouble(d->app, "cannot store the result of an invariant", err.message);
        work_run_fail(d->run, false, err.message);
        return false;
    }
    if (r->outcome == CHECK_BROKEN)
        (void)snprintf(d->run->alarm, sizeof d->run->alarm, "%" PRId64 " new violation%s",
                       r->found.n_new, r->found.n_new == 1 ? "" : "s");
    if (r->outcome != CHECK_ERROR)
        return true;
    work_run_fail(d->run, r->error.status == IL_TIMEOUT, r->error.message);
    return false;
}

static bool
execute(struct work_run *run)
{
    static const struct work_callbacks callbacks = { .stop = on_stop, .watch = on_watch };
    const struct check_subject        *s         = run->subject;
    struct doing d = { .app = run->cookie, .set = s->set, .run = run, .deadline_ns = INT64_MAX };
    struct check_how    how = { .url = url_of, .tables = tables_of, .cookie = &d };
    struct check_watch  w   = { watch, &d };
    struct check_result r;

    il__mutex_init(&d.mutex, IL__MUTEX_checks);
    work_run_callbacks(run, &callbacks, &d);
    il__check_run(s->check, &how, &w, &r);
    work_run_callbacks(run, NULL, NULL); /* nobody uses d any more */
    bool done = keep(&d, &r);
    il__check_result_release(&r);
    il__mutex_destroy(&d.mutex);
    return done;
}

/* ---- now and then ---------------------------------------------------------------------------- */

static void
purge(struct check_app *app)
{
    int64_t  now_ns = il__clock_boot_ns(), n = PURGE_ROWS;
    il_error err = { 0 };

    if (now_ns < app->purge_ns)
        return;
    app->purge_ns = now_ns + PURGE_NS;
    while (n == PURGE_ROWS && !work_is_stopping(app->work)) {
        if (il__check_history_purge(app->tables, il__clock_wall_ms() - app->keep_ms, PURGE_ROWS, &n,
                                    &err) != IL_OK) {
            il__check_trouble(app, "cannot delete old results", err.message);
            return;
        }
    }
}

/* On one thread of `work`. */
static void
tidy(void *cookie)
{
    il__check_app_look(cookie);
    il__check_gauges(cookie);
    purge(cookie);
}

static void
note(void *cookie, const struct work_note *n)
{
    if (n->event == WORK_EVENT_trouble)
        il__check_trouble(cookie, NULL, n->text);
    else if (n->event == WORK_EVENT_hook_failed)
        il__check_trouble(cookie, "hook failed", n->text);
}

const struct work_kind il__check_kind = {
    .class    = CHECK_CLASS,
    .presence = "interlock.check",
    .find     = find,
    .ref      = ref,
    .drop     = drop,
    .plan     = plan,
    .tenants  = tenants,
    .execute  = execute,
    .tidy     = tidy,
    .note     = note,
    .list     = list,
    .tick_op  = tick_op,
};
